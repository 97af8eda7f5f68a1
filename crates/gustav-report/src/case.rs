//! A case: one product to be measured; and filters of cases.

use std::fmt::Display;
use std::str::FromStr;

use gustav_core::{DType, Error, Operation, Result};

use crate::{Layouts, Mask};

/// One product on one matrix, on which engines are timed.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Case {
    /// Name of the matrix.
    pub matrix: String,
    /// Name of the operation: `spmm`, `spmv`, `spgemm`, `sddmm` or `attention`; followed by
    /// `-gradients` for the gradients of one.
    pub operation: String,
    /// Columns of B and C (SpMM), of X and Y (SDDMM), of a head (attention); 1 for SpMV, 0 for
    /// SpGEMM.
    pub columns: usize,
    /// Name of the type of the values.
    pub dtype: String,
    /// Whether rows of the product must be sorted (SpGEMM).
    pub sorted: bool,
    /// Name of the layouts of B and C (SpMM).
    #[serde(default = "row_major", skip_serializing_if = "is_row_major")]
    pub layout: String,
    /// Name of the mask under which C is computed (SpGEMM); empty for all of C.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mask: String,
    /// Heads of an attention.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub heads: usize,
}

fn one() -> usize {
    1
}

fn is_one(count: &usize) -> bool {
    *count == 1
}

/// How suites derive matrices from others.
const DERIVATIONS: [&str; 4] = ["copies", "leading", "blocks", "interleaved"];

/// What follows the name of an operation in the name of its gradients.
const GRADIENTS: &str = "-gradients";

fn row_major() -> String {
    Layouts::RowMajor.name().into()
}

fn is_row_major(layout: &String) -> bool {
    layout == Layouts::RowMajor.name()
}

impl Case {
    /// A case, row-major and not sorted.
    pub fn new(matrix: &str, operation: Operation, columns: usize, dtype: DType) -> Self {
        Case {
            matrix: matrix.into(),
            operation: operation.name().into(),
            columns,
            dtype: dtype.name().into(),
            sorted: false,
            layout: row_major(),
            mask: String::new(),
            heads: 1,
        }
    }

    /// The gradients of the same.
    #[must_use]
    pub fn gradients(self) -> Self {
        Case { operation: self.operation + GRADIENTS, ..self }
    }

    /// The operation, where a case of gradients stands for what they are of.
    pub(crate) fn product(&self) -> &str {
        self.operation.strip_suffix(GRADIENTS).unwrap_or(&self.operation)
    }

    /// Name of the matrix without the number of nonzeros that copies of it along the diagonal have:
    /// copies have its pattern.
    pub fn pattern(&self) -> &str {
        let copied = self.matrix.rsplit_once(" x ");
        copied.filter(|(_, nnz)| nnz.parse::<u64>().is_ok()).map_or(&self.matrix, |(name, _)| name)
    }

    /// Whether the matrix was derived from another of its suite: `copies:K`, `leading:N`, `blocks:K`
    /// or `interleaved:K` follows its name.
    pub(crate) fn is_derived(&self) -> bool {
        let derived = self.pattern().rsplit_once(' ').and_then(|(_, how)| how.split_once(':'));
        derived
            .is_some_and(|(how, size)| DERIVATIONS.contains(&how) && size.parse::<usize>().is_ok())
    }

    /// The same of so many heads.
    #[must_use]
    pub fn heads(self, heads: usize) -> Self {
        Case { heads, ..self }
    }

    /// The same with rows sorted, or not.
    #[must_use]
    pub fn sorted(self, sorted: bool) -> Self {
        Case { sorted, ..self }
    }

    /// The same under `mask`.
    #[must_use]
    pub fn mask(self, mask: Mask) -> Self {
        Case { mask: mask.name().into(), ..self }
    }

    /// The same with B and C in `layouts`.
    #[must_use]
    pub fn layout(self, layouts: Layouts) -> Self {
        Case { layout: layouts.name().into(), ..self }
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.matrix, self.operation, self.dtype)?;
        match self.product() {
            "spmm" if !is_row_major(&self.layout) => {
                write!(f, " n={} {}", self.columns, self.layout)
            }
            "spmm" | "sddmm" => write!(f, " n={}", self.columns),
            "attention" => write!(f, " n={}, heads={}", self.columns, self.heads),
            "spgemm" => {
                f.write_str(if self.sorted { " sorted" } else { " unsorted" })?;
                if self.mask.is_empty() { Ok(()) } else { write!(f, " mask={}", self.mask) }
            }
            _ => Ok(()),
        }
    }
}

/// A part of a suite: `op=spmm,n=8|32,dtype=f32,matrix=dlmc*`. Every given key must match; `|`
/// separates alternatives, `*` in one stands for any text. Names of generated matrices have commas: what follows one
/// without a key belongs to `matrix=` before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    rules: Vec<(Key, Vec<String>)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Key {
    Operation,
    Columns,
    DType,
    Matrix,
    Order,
    Layout,
    Heads,
}

const KEYS: [(&str, Key); 7] = [
    ("op", Key::Operation),
    ("n", Key::Columns),
    ("dtype", Key::DType),
    ("matrix", Key::Matrix),
    ("order", Key::Order),
    ("layout", Key::Layout),
    ("heads", Key::Heads),
];

impl Filter {
    /// Whether `case` is part of the choice. `n` is compared for SpMM, SDDMM and attention only,
    /// `order` for SpGEMM, `layout` for SpMM, `heads` for attention.
    pub fn matches(&self, case: &Case) -> bool {
        self.rules.iter().all(|(key, any)| {
            let found = match key {
                Key::Operation => case.operation.clone(),
                Key::Columns if ["spmm", "sddmm", "attention"].contains(&case.product()) => {
                    case.columns.to_string()
                }
                Key::DType => case.dtype.clone(),
                Key::Matrix => case.matrix.clone(),
                Key::Order if case.operation == "spgemm" => {
                    (if case.sorted { "sorted" } else { "unsorted" }).into()
                }
                Key::Layout if case.operation == "spmm" => case.layout.clone(),
                Key::Heads if case.product() == "attention" => case.heads.to_string(),
                Key::Columns | Key::Order | Key::Layout | Key::Heads => return true,
            };
            any.iter().any(|pattern| glob(pattern, &found))
        })
    }

    /// Whether a product with `columns` columns can match.
    pub fn admits_columns(&self, columns: usize) -> bool {
        let text = columns.to_string();
        let named = self.rules.iter().filter(|(key, _)| *key == Key::Columns);
        named.into_iter().all(|(_, any)| any.iter().any(|pattern| glob(pattern, &text)))
    }

    /// Whether a case of the matrix can match.
    pub fn admits_matrix(&self, name: &str) -> bool {
        let named = self.rules.iter().filter(|(key, _)| *key == Key::Matrix);
        named.into_iter().all(|(_, any)| any.iter().any(|pattern| glob(pattern, name)))
    }
}

impl FromStr for Filter {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let rule = |part: &str| {
            let found = part.split_once('=').and_then(|(key, values)| {
                let (_, key) = KEYS.iter().find(|(name, _)| *name == key.trim())?;
                Some((*key, values.split('|').map(|v| v.trim().to_owned()).collect()))
            });
            found.ok_or_else(|| Error::Argument {
                name: "only",
                found: part.into(),
                expected:
                    "op=, n=, dtype=, matrix=, order=, layout= or heads=, separated by commas"
                        .into(),
            })
        };
        let mut rules: Vec<(Key, Vec<String>)> = Vec::new();
        for part in text.split(',').filter(|p| !p.trim().is_empty()) {
            match rules.last_mut() {
                Some((Key::Matrix, names)) if !part.contains('=') => {
                    let mut more = part.split('|').map(str::trim);
                    if let (Some(name), Some(end)) = (names.last_mut(), more.next()) {
                        *name = format!("{name},{end}");
                    }
                    names.extend(more.map(str::to_owned));
                }
                _ => rules.push(rule(part)?),
            }
        }
        Ok(Filter { rules })
    }
}

/// Whether `text` is `pattern`, where `*` stands for any text.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(head) else { return false };
    (0..=text.len()).filter(|&k| text.is_char_boundary(k)).any(|k| glob(rest, &text[k..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, matches) in [
            ("cant", "cant", true),
            ("cant", "cantilever", false),
            ("c*", "cant", true),
            ("*nt", "cant", true),
            ("d*_ffn*", "dlmc_tr_ffn1", true),
            ("d*_ffn*", "dlmc_tr_embed", false),
            ("*", "", true),
        ] {
            assert_eq!(glob(pattern, text), matches, "{pattern} {text}");
        }
    }

    #[test]
    fn derived_matrices_are_known_by_their_names() {
        for (name, derived) in [
            ("mdual leading:4000", true),
            ("grid5:20x30 blocks:2", true),
            ("mdual copies:2 x 5000000", true),
            ("mdual x 5000000", false),
            ("grid5:20x30", false),
            ("my leading:matrix", false),
        ] {
            let case = Case::new(name, Operation::Spmm, 8, DType::F32);
            assert_eq!(case.is_derived(), derived, "{name}");
        }
    }

    #[test]
    fn every_key_must_match_and_n_is_for_dense_factors() {
        let filter: Filter = "op=spmm|spmv, n=8|32, dtype=f32".parse().unwrap();
        let case = |op, n, dtype| Case::new("m", op, n, dtype);
        assert!(filter.matches(&case(Operation::Spmm, 32, DType::F32)));
        assert!(!filter.matches(&case(Operation::Spmm, 64, DType::F32)));
        assert!(!filter.matches(&case(Operation::Spmm, 32, DType::F64)));
        assert!(filter.matches(&case(Operation::Spmv, 1, DType::F32)));
        assert!(!filter.matches(&case(Operation::Spgemm, 0, DType::F32)));
        let sampled: Filter = "op=sddmm,n=8".parse().unwrap();
        let matches = |n| sampled.matches(&case(Operation::Sddmm, n, DType::F32));
        assert!(matches(8) && !matches(32));
    }

    #[test]
    fn names_of_generated_matrices_have_commas() {
        let filter: Filter = "matrix=sparse:64x64,0.9|fem:2x2x2,3|cant,n=8".parse().unwrap();
        for (name, admitted) in [
            ("sparse:64x64,0.9", true),
            ("fem:2x2x2,3", true),
            ("cant", true),
            ("sparse:64x64", false),
        ] {
            assert_eq!(filter.admits_matrix(name), admitted, "{name}");
        }
        assert!(filter.admits_columns(8) && !filter.admits_columns(9));
        assert!("op=spmm,0.9".parse::<Filter>().is_err());
    }

    #[test]
    fn an_unknown_key_is_refused_by_name() {
        let error = "colour=red".parse::<Filter>().unwrap_err().to_string();
        assert!(error.contains("colour=red") && error.contains("dtype="), "{error}");
    }
}
