//! The matrices of a suite.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gustav_core::{Error, Operation, Result};
use gustav_io::generate::Generator;

use crate::derived::Derived;
use crate::suite::{Source, Suite};
use crate::workload::{Origin, Workload};

// File name extensions of matrices, longest first.
const ENDINGS: [&str; 6] = [".mtx.zst", ".mtx.gz", ".mtx", ".smtx", ".npz", ".zst"];

/// The matrices of a suite, and notes on missing ones.
///
/// # Errors
/// [`Error::Io`] for a path that is missing and not optional, [`Error::Argument`] for a description
/// of no generator.
pub(crate) fn list(suite: &Suite) -> Result<(Vec<Workload>, Vec<String>)> {
    of(&suite.matrices, &suite.products.operations)
}

/// The family of a generator: its matrices have one source, so that none of them is tested on while
/// relatives are trained on.
fn family(generator: &str) -> &str {
    match generator {
        // All of them choose the columns of a row at random.
        "sparse" | "empty" => "uniform",
        // `grid5`, `grid27` and others: one grid, other neighbours.
        _ => generator.trim_end_matches(|c: char| c.is_ascii_digit()),
    }
}

/// The same for the matrices of `sources`, used for `operations` where they name none.
///
/// # Errors
/// As there.
pub(crate) fn of(
    sources: &[Source],
    operations: &[Operation],
) -> Result<(Vec<Workload>, Vec<String>)> {
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    for source in sources {
        let operations = source.operations.as_deref().unwrap_or(operations);
        let mut add = |listed: Listed, origin: Origin| {
            let variants = [None].into_iter().chain(source.derive.iter().copied().map(Some));
            for derived in variants {
                let shape = match (listed.shape, derived) {
                    (Some(shape), Some(derived)) => Some(derived.shape(shape)),
                    (shape, _) => shape,
                };
                if derived.is_some() && shape.is_some() && shape == listed.shape {
                    continue;
                }
                let small = |most| shape.is_none_or(|(m, n)| m == n && m <= most);
                if source.square_up_to.is_none_or(small) {
                    found.push(Workload {
                        name: named(&listed.name, derived, source.replicate_to),
                        source: listed.source.clone(),
                        kind: listed.kind.clone(),
                        origin: origin.clone(),
                        shape: shape.filter(|_| source.replicate_to.is_none()),
                        derived,
                        replicate_to: source.replicate_to,
                        operations: operations.to_vec(),
                        ours: source.ours.clone(),
                        peers: source.peers.clone(),
                        layouts: source.layouts.clone(),
                    });
                }
            }
        };
        for text in source.generate.iter().flat_map(|text| spelt_out(text, &source.over)) {
            let kind = text.split(':').next().unwrap_or_default().to_owned();
            let shape = Some(text.parse::<Generator>()?.shape()?);
            let (name, source) = (text.clone(), family(&kind).to_owned());
            add(Listed { name, source, kind, shape, nnz: None }, Origin::Generated(text));
        }
        let Some(path) = &source.path else { continue };
        match files(path) {
            Ok(files) => {
                let fits = |f: &Listed| {
                    (source.names.is_empty() || source.names.contains(&f.name))
                        && f.nnz.is_none_or(|nnz| nnz >= source.min_nnz)
                        && f.nnz.zip(source.replicate_to).is_none_or(|(nnz, most)| nnz < most)
                };
                let fitting = files.into_iter().filter(|(f, _)| fits(f));
                fitting.for_each(|(listed, path)| add(listed, Origin::File(path)));
            }
            Err(_) if source.optional => {
                notes.push(format!(
                    "{} does not exist: its matrices are not measured",
                    path.display()
                ));
            }
            Err(source) => return Err(Error::Io { path: path.clone(), action: "read", source }),
        }
    }
    Ok((found, notes))
}

fn named(name: &str, derived: Option<Derived>, replicate_to: Option<usize>) -> String {
    let name = derived.map_or(name.into(), |derived| format!("{name} {derived}"));
    replicate_to.map_or(name.clone(), |nnz| format!("{name} x {nnz}"))
}

/// `text` with every `{name}` replaced by each of its values in turn, in all combinations.
fn spelt_out(text: &str, over: &BTreeMap<String, Vec<f64>>) -> Vec<String> {
    let mut texts = vec![text.to_owned()];
    for (name, values) in over {
        let place = format!("{{{name}}}");
        let with = |t: String| -> Vec<String> {
            match t.contains(&place) {
                true => values.iter().map(|value| t.replace(&place, &value.to_string())).collect(),
                false => vec![t],
            }
        };
        texts = texts.into_iter().flat_map(with).collect();
    }
    texts
}

/// A matrix with the properties from its description or the manifest of its folder.
struct Listed {
    name: String,
    source: String,
    kind: String,
    shape: Option<(usize, usize)>,
    nnz: Option<usize>,
}

/// Rows and columns as a file says them; an unreadable one is reported when it is loaded.
fn header_shape(path: &Path) -> Option<(usize, usize)> {
    let header = gustav_io::read_header(path).ok()?;
    Some((header.rows as usize, header.cols as usize))
}

/// One file, or every matrix file of a folder, smallest first.
fn files(path: &Path) -> std::io::Result<Vec<(Listed, PathBuf)>> {
    let stem = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        let end = ENDINGS.iter().find(|e| name.ends_with(**e))?;
        Some(name[..name.len() - end.len()].to_owned())
    };
    if !std::fs::metadata(path)?.is_dir() {
        let name = stem(path).unwrap_or_else(|| path.display().to_string());
        let (source, kind) = (name.clone(), "file".into());
        let shape = header_shape(path);
        return Ok(vec![(Listed { name, source, kind, shape, nnz: None }, path.into())]);
    }
    let manifest = std::fs::read_to_string(path.join("MANIFEST.csv")).unwrap_or_default();
    // Name, kind, rows, columns, nonzeros.
    let field = |name: &str, k: usize| {
        let line = manifest.lines().find(|l| l.split(',').next() == Some(name));
        line.and_then(|l| l.split(',').nth(k))
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if let Some(name) = stem(&entry.path()) {
            found.push((entry.metadata()?.len(), name, entry.path()));
        }
    }
    found.sort();
    let number = |name: &str, k| field(name, k).and_then(|number| number.parse().ok());
    let listed = |(_, name, path): (u64, String, PathBuf)| {
        let listed = Listed {
            kind: field(&name, 1).unwrap_or("file").to_owned(),
            shape: number(&name, 2).zip(number(&name, 3)).or_else(|| header_shape(&path)),
            nnz: number(&name, 4),
            source: name.clone(),
            name,
        };
        (listed, path)
    };
    Ok(found.into_iter().map(listed).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(matrices: &str) -> Suite {
        let text = format!(
            "name = 's'\ndescription = 'd'\n{matrices}\n[products]\noperations = ['spmm']\n\
             columns = [8]\ndtypes = ['f32']\n[engines]\nours = ['auto']\n"
        );
        Suite::parse(&text).expect("a suite")
    }

    #[test]
    fn a_missing_folder_is_noted_when_optional_and_refused_otherwise() {
        let mut suite = Suite::of_matrices(&["/no/such/folder.mtx".into()]).unwrap();
        assert!(list(&suite).is_err());
        suite.matrices[0].optional = true;
        let (found, notes) = list(&suite).unwrap();
        assert!(found.is_empty() && notes[0].contains("/no/such/folder"), "{notes:?}");
    }

    #[test]
    fn a_source_may_name_files_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["one.mtx", "two.mtx.zst", "three.npz"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let path = folder.path().display();
        let suite = suite(&format!("[[matrices]]\npath = '{path}'\nnames = ['two', 'three']"));
        let (found, _) = list(&suite).unwrap();
        let mut names: Vec<_> = found.iter().map(|w| w.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["three", "two"]);
    }

    #[test]
    fn sizes_are_read_from_files_that_no_manifest_lists() {
        let folder = tempfile::tempdir().unwrap();
        let head = "%%MatrixMarket matrix coordinate real general";
        for (name, size) in
            [("square", "3 3"), ("wide", "3 4"), ("large", "9 9"), ("listed", "9 9")]
        {
            let text = format!("{head}\n{size} 1\n1 1 1\n");
            std::fs::write(folder.path().join(format!("{name}.mtx")), text).unwrap();
        }
        std::fs::write(folder.path().join("MANIFEST.csv"), "listed,grid,2,2,1\n").unwrap();
        let path = folder.path().display();
        let suite = suite(&format!("[[matrices]]\npath = '{path}'\nsquare_up_to = 5"));
        let mut found: Vec<_> =
            list(&suite).unwrap().0.into_iter().map(|w| (w.name, w.shape)).collect();
        found.sort_unstable();
        assert_eq!(found, [("listed".into(), Some((2, 2))), ("square".into(), Some((3, 3)))]);
    }

    #[test]
    fn a_source_may_name_several_matrices() {
        let suite =
            suite("[[matrices]]\ngenerate = ['diagonal:{k}', 'grid5:2x2']\nover.k = [3, 4]");
        let (found, _) = list(&suite).unwrap();
        let names: Vec<_> = found.iter().map(|w| w.name.as_str()).collect();
        // A description without braces is listed once.
        assert_eq!(names, ["diagonal:3", "diagonal:4", "grid5:2x2"]);
    }

    #[test]
    fn families_are_spelt_out_and_derived_from() {
        let suite = suite(
            "[[matrices]]\ngenerate = 'uniform:{m}x{m},{k}'\nover = { m = [10, 20], k = [2, 3] }\n\
             derive = ['copies:3', 'leading:5']\nsquare_up_to = 40",
        );
        let (found, _) = list(&suite).unwrap();
        let names: Vec<_> = found.iter().map(|w| w.name.as_str()).collect();
        // Three copies of 20 rows are too many.
        assert_eq!(names.len(), 4 * 3 - 2, "{names:?}");
        assert_eq!(
            names[..3],
            ["uniform:10x10,2", "uniform:10x10,2 copies:3", "uniform:10x10,2 leading:5"]
        );
        assert_eq!(found[1].shape, Some((30, 30)));
        assert!(found.iter().all(|w| w.source == "uniform" && w.kind == "uniform"));
        assert_eq!(found[2].load(1).unwrap().nrows(), 5);
    }
}
