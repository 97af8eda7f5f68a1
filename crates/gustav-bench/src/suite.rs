//! Suites: products and matrices to measure, as TOML.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gustav_core::{DType, Error, Operation, Result};
use gustav_report::{Layouts, Mask};
use serde::{Deserialize, Deserializer};

use crate::Solve;
use crate::derived::Derived;
use crate::timing::Timing;

/// Built-in suites.
const SHIPPED: &[(&str, &str)] = &[
    ("catalog", include_str!("../../../bench/suites/catalog.toml")),
    ("choice", include_str!("../../../bench/suites/choice.toml")),
    ("choice-cpu", include_str!("../../../bench/suites/choice-cpu.toml")),
    ("choice-narrow", include_str!("../../../bench/suites/choice-narrow.toml")),
    ("choice-partial", include_str!("../../../bench/suites/choice-partial.toml")),
    ("corpus", include_str!("../../../bench/suites/corpus.toml")),
    ("cpu", include_str!("../../../bench/suites/cpu.toml")),
    ("cpu-training-step", include_str!("../../../bench/suites/cpu-training-step.toml")),
    ("gpu", include_str!("../../../bench/suites/gpu.toml")),
    ("gpu-attention", include_str!("../../../bench/suites/gpu-attention.toml")),
    ("gpu-columns", include_str!("../../../bench/suites/gpu-columns.toml")),
    ("gpu-masks", include_str!("../../../bench/suites/gpu-masks.toml")),
    ("gpu-narrow", include_str!("../../../bench/suites/gpu-narrow.toml")),
    ("gpu-orders", include_str!("../../../bench/suites/gpu-orders.toml")),
    ("gpu-partial", include_str!("../../../bench/suites/gpu-partial.toml")),
    ("gpu-programs", include_str!("../../../bench/suites/gpu-programs.toml")),
    ("gpu-published", include_str!("../../../bench/suites/gpu-published.toml")),
    ("gpu-sddmm", include_str!("../../../bench/suites/gpu-sddmm.toml")),
    ("gpu-spgemm", include_str!("../../../bench/suites/gpu-spgemm.toml")),
    ("gpu-training-step", include_str!("../../../bench/suites/gpu-training-step.toml")),
    ("n8192", include_str!("../../../bench/suites/n8192.toml")),
    ("order-searches", include_str!("../../../bench/suites/order-searches.toml")),
    ("paper-a", include_str!("../../../bench/suites/paper-a.toml")),
    ("paper-b", include_str!("../../../bench/suites/paper-b.toml")),
    ("paper-b-tiles", include_str!("../../../bench/suites/paper-b-tiles.toml")),
    ("paper-c", include_str!("../../../bench/suites/paper-c.toml")),
    ("paper-c-orders", include_str!("../../../bench/suites/paper-c-orders.toml")),
    ("paper-c-widths", include_str!("../../../bench/suites/paper-c-widths.toml")),
    ("programs", include_str!("../../../bench/suites/programs.toml")),
    ("quick", include_str!("../../../bench/suites/quick.toml")),
    ("regression", include_str!("../../../bench/suites/regression.toml")),
    ("tune", include_str!("../../../bench/suites/tune.toml")),
    ("calibrate", include_str!("../../../bench/suites/calibrate.toml")),
];

/// A suite.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Name, as in records.
    pub name: String,
    /// Its purpose, in a sentence.
    pub description: String,
    /// The GPU, as `cuda:K`; the CPU when absent.
    pub device: Option<String>,
    /// The matrices.
    #[serde(default)]
    pub matrices: Vec<Source>,
    /// A shipped suite whose matrices are measured as well.
    pub matrices_of: Option<String>,
    /// Whether to measure the five implementations of Chen, Chen, Shih and Lee (2025) on a GPU,
    /// which start from different formats, in place of engines in rounds.
    #[serde(default)]
    pub study: bool,
    /// The products.
    #[serde(default)]
    pub products: Products,
    /// The engines.
    #[serde(default)]
    pub engines: Engines,
    /// Whole programs, in place of products.
    #[serde(default)]
    pub programs: Vec<Solve>,
    /// How long each case is measured.
    #[serde(default)]
    pub timing: Timing,
}

/// A source of matrices: either `generate` or `path`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Descriptions of generated matrices, as `gustav generate` takes them: one, or a list.
    #[serde(default, deserialize_with = "one_or_many")]
    pub generate: Vec<String>,
    /// A file, or a folder of files, relative to the working directory.
    pub path: Option<PathBuf>,
    /// Names of the folder's files that are taken; all of them when there are none.
    #[serde(default)]
    pub names: Vec<String>,
    /// Whether a missing path is only noted.
    #[serde(default)]
    pub optional: bool,
    /// Files with fewer nonzeros, by the folder's manifest, are skipped.
    #[serde(default)]
    pub min_nnz: usize,
    /// Files that are not square or have more rows, by the folder's manifest, are skipped.
    pub square_up_to: Option<usize>,
    /// Copies of a matrix are placed on the diagonal until there are so many nonzeros; files that
    /// already have that many, by the folder's manifest, are skipped.
    pub replicate_to: Option<usize>,
    /// Values for the names in braces of `generate`: every combination is a matrix.
    #[serde(default)]
    pub over: BTreeMap<String, Vec<f64>>,
    /// Matrices derived from each matrix, measured as well: `copies:K`, `leading:N`, `blocks:K`,
    /// `interleaved:K`.
    #[serde(default)]
    pub derive: Vec<Derived>,
    /// Operations this source is used for; all of the suite's when absent.
    pub operations: Option<Vec<Operation>>,
    /// Gustav's algorithms for this source, in place of the suite's.
    pub ours: Option<Vec<String>>,
    /// Peers for this source, in place of the suite's.
    pub peers: Option<Vec<String>>,
    /// Layouts of B and C for this source, in place of the suite's.
    pub layouts: Option<Vec<Layouts>>,
}

/// A text, or a list of texts.
fn one_or_many<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a description of a generated matrix, or a list of them")]
    enum Texts {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Texts::deserialize(deserializer)? {
        Texts::One(text) => vec![text],
        Texts::Many(texts) => texts,
    })
}

/// The products to measure with each matrix.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Products {
    /// The operations.
    pub operations: Vec<Operation>,
    /// Operations whose gradients are computed: `spmm` for those of B and of A's values, on a GPU `attention`
    /// for those of Q, K and V.
    #[serde(default)]
    pub gradients: Vec<Operation>,
    /// Columns of B, for SpMM, of X and Y, for SDDMM, or of a head, for attention.
    #[serde(default)]
    pub columns: Vec<usize>,
    /// Heads of an attention.
    #[serde(default = "one_head")]
    pub heads: Vec<usize>,
    /// SpMM of matrices with at most so many columns is also measured with as many columns of B.
    #[serde(default)]
    pub as_many_columns_up_to: usize,
    /// Layouts of B and C, for SpMM.
    #[serde(default = "row_major")]
    pub layouts: Vec<Layouts>,
    /// Types of the values: `f32`, `f64`; on a GPU `f16` and `bf16` as well.
    pub dtypes: Vec<DType>,
    /// Whether rows of an SpGEMM's product are sorted: `false`, `true` or both.
    #[serde(default)]
    pub sorted: Vec<bool>,
    /// Masks under which an SpGEMM is computed on a GPU, `own` and `most`; all of C when there are none.
    #[serde(default)]
    pub masks: Vec<Mask>,
    /// SpGEMM with more intermediate products is skipped.
    #[serde(default = "default_products")]
    pub max_products: u64,
}

fn one_head() -> Vec<usize> {
    vec![1]
}

fn row_major() -> Vec<Layouts> {
    vec![Layouts::RowMajor]
}

fn default_products() -> u64 {
    1_000_000_000
}

/// The engines.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engines {
    /// Gustav's algorithms by name, or `auto`; `all` for every algorithm of the operation.
    pub ours: Vec<String>,
    /// Peers by name.
    #[serde(default)]
    pub peers: Vec<String>,
}

impl Suite {
    /// A suite from the text of its file.
    ///
    /// # Errors
    /// [`Error::Format`] with the line.
    pub fn parse(text: &str) -> Result<Self> {
        let mut suite: Suite = toml::from_str(text).map_err(|e| refuse(e.to_string()))?;
        if let Some(name) = &suite.matrices_of {
            suite.matrices.extend(Suite::shipped(name)?.matrices);
        }
        for dtype in &suite.products.dtypes {
            let on_gpu = matches!(dtype, DType::F16 | DType::Bf16) && suite.device.is_some();
            if !matches!(dtype, DType::F32 | DType::F64) && !on_gpu {
                let there = if suite.device.is_some() { ", f16 or bf16" } else { "" };
                return Err(refuse(format!("type {dtype} has no peers: use f32 or f64{there}")));
            }
        }
        let own = suite.matrices.iter().filter_map(|source| source.layouts.as_ref());
        let row_major =
            own.chain([&suite.products.layouts]).flatten().all(|l| *l == Layouts::RowMajor);
        if suite.device.is_none() && !row_major {
            return Err(refuse("column-major products are measured on a GPU only".into()));
        }
        if suite.device.is_none() && !suite.products.masks.is_empty() {
            return Err(refuse("products under a mask are measured on a GPU only".into()));
        }
        let of = |operation| suite.products.operations.contains(&operation);
        let fused =
            of(Operation::Attention) || suite.products.gradients.contains(&Operation::Attention);
        if suite.device.is_none() && fused {
            return Err(refuse("attention is measured on a GPU only".into()));
        }
        let known = [Operation::Spmm, Operation::Attention];
        if let Some(other) = suite.products.gradients.iter().find(|o| !known.contains(o)) {
            let words =
                format!("gradients of {other} are not measured: those of spmm and attention are");
            return Err(refuse(words));
        }
        if suite.products.heads.contains(&0) {
            return Err(refuse("an attention has at least one head".into()));
        }
        let of_programs = suite.programs.iter().flat_map(|solve| &solve.matrices);
        for source in suite.matrices.iter().chain(of_programs) {
            if source.generate.is_empty() == source.path.is_none() {
                return Err(refuse("a matrix needs either `generate` or `path`".into()));
            }
        }
        Ok(suite)
    }

    /// All peers in it, each once.
    pub fn peers(&self) -> Vec<String> {
        let own = self.matrices.iter().filter_map(|source| source.peers.as_ref());
        let mut names: Vec<String> = Vec::new();
        for name in [&self.engines.peers].into_iter().chain(own).flatten() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Replaces the optional folders of the suite by `folder`.
    pub fn use_corpus(&mut self, folder: &Path) {
        let of_programs = self.programs.iter_mut().flat_map(|solve| &mut solve.matrices);
        for source in self.matrices.iter_mut().chain(of_programs).filter(|s| s.optional) {
            source.path = source.path.as_ref().map(|_| folder.into());
        }
    }

    /// The suite shipped under `name`, or the one in the file of that name.
    ///
    /// # Errors
    /// [`Error::Argument`] with the names that exist, [`Error::Io`], and as [`Suite::parse`].
    pub fn find(name: &str) -> Result<Self> {
        let path = Path::new(name);
        // A file name, not the name of a suite.
        if path.extension().is_some() || name.contains('/') {
            let text = std::fs::read_to_string(path).map_err(|source| Error::Io {
                path: path.into(),
                action: "read",
                source,
            })?;
            return Self::parse(&text).map_err(|e| e.in_file(path));
        }
        Self::shipped(name)
    }

    /// The suite shipped under `name`.
    fn shipped(name: &str) -> Result<Self> {
        if let Some((_, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            return Self::parse(text);
        }
        let names: Vec<_> = Self::names().collect();
        Err(Error::Argument {
            name: "suite",
            found: name.into(),
            expected: format!("{}, a .toml file, or matrix files", names.join(", ")),
        })
    }

    /// Names of the shipped suites.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// The `quick` suite over other matrices: files, folders, or descriptions of generated ones
    /// (which hold a colon).
    ///
    /// # Errors
    /// As [`Suite::find`].
    pub fn of_matrices(targets: &[String]) -> Result<Self> {
        let mut suite = Self::find("quick")?;
        suite.name = "files".into();
        suite.matrices = targets
            .iter()
            .map(|t| match Path::new(t).exists() || !t.contains(':') {
                true => Source { path: Some(t.into()), ..Source::default() },
                false => Source { generate: vec![t.clone()], ..Source::default() },
            })
            .collect();
        Ok(suite)
    }

    /// The suite of command-line targets: one suite, or matrices.
    ///
    /// # Errors
    /// As [`Suite::find`].
    pub fn of_targets(targets: &[String]) -> Result<Self> {
        match targets {
            [one] if !Path::new(one).exists() && !one.contains(':') => Self::find(one),
            [one] if one.ends_with(".toml") => Self::find(one),
            many => Self::of_matrices(many),
        }
    }
}

fn refuse(reason: String) -> Error {
    Error::Format { path: None, format: "suite", reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_suites_parse_and_carry_their_names() {
        for name in Suite::names() {
            let suite = Suite::find(name).unwrap();
            assert_eq!(suite.name, name);
            let products = !suite.matrices.is_empty() && !suite.engines.ours.is_empty();
            assert_eq!(products, suite.programs.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_misspelt_key_is_refused_with_its_line() {
        let text = "name = 'x'\ndescription = ''\nmatrixes = []\n";
        let error = Suite::parse(text).unwrap_err().to_string();
        assert!(error.contains("matrixes") && error.contains("line 3"), "{error}");
    }

    #[test]
    fn integer_types_and_ambiguous_sources_are_refused() {
        let with = |dtype: &str, source: &str| {
            Suite::parse(&format!(
                "name='x'\ndescription=''\nmatrices=[{source}]\n\
                 [products]\noperations=['spmv']\ndtypes=['{dtype}']\n[engines]\nours=['auto']"
            ))
        };
        assert!(with("f32", "{path='a.mtx'}").is_ok());
        assert!(with("i32", "{path='a.mtx'}").unwrap_err().to_string().contains("i32"));
        let both = with("f32", "{path='a.mtx', generate='diagonal:3'}").unwrap_err();
        assert!(both.to_string().contains("either"), "{both}");
    }

    #[test]
    fn layouts_other_than_row_major_need_a_gpu() {
        let on = |device: &str| {
            Suite::parse(&format!(
                "name='x'\ndescription=''\n{device}\n\
                 [[matrices]]\ngenerate='diagonal:3'\nlayouts=['row-to-column-major']\n\
                 [products]\noperations=['spmm']\ndtypes=['f32']\n[engines]\nours=['auto']"
            ))
        };
        let suite = on("device='cuda:0'").unwrap();
        let own = suite.matrices[0].layouts.as_deref();
        assert_eq!(own, Some(&[Layouts::RowToColumnMajor][..]));
        assert!(on("").unwrap_err().to_string().contains("GPU"));
    }

    #[test]
    fn masks_need_a_gpu() {
        let on = |device: &str| {
            Suite::parse(&format!(
                "name='x'\ndescription=''\n{device}\n[[matrices]]\ngenerate='diagonal:3'\n\
                 [products]\noperations=['spgemm']\ndtypes=['f32']\nmasks=['own']\n\
                 [engines]\nours=['auto']"
            ))
        };
        assert_eq!(on("device='cuda:0'").unwrap().products.masks, [Mask::Own]);
        assert!(on("").unwrap_err().to_string().contains("mask"));
    }

    #[test]
    fn targets_are_a_suite_or_matrices() {
        let suite =
            |t: &[&str]| Suite::of_targets(&t.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        assert_eq!(suite(&["cpu"]).unwrap().name, "cpu");
        for missing in ["no-such.toml", "no-such.mtx", "no/such"] {
            let error = suite(&[missing]).unwrap_err().to_string();
            assert!(error.contains(&format!("cannot read {missing}")), "{error}");
        }
        let error = suite(&["no-such-suite"]).unwrap_err().to_string();
        assert!(SHIPPED.iter().all(|(name, _)| error.contains(name)), "{error}");
        let files = suite(&["Cargo.toml.mtx", "diagonal:8"]).unwrap();
        assert_eq!(files.matrices[0].path, Some("Cargo.toml.mtx".into()));
        assert_eq!(files.matrices[1].generate, ["diagonal:8"]);
    }
}
