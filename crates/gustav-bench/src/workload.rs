//! Matrices and their values.

use std::path::{Path, PathBuf};

use gustav_core::buffer::try_vec;
use gustav_core::{Buffer, Csr, Error, Index, Operation, Result, Scalar};
use gustav_io::generate::Generator;
use rayon::prelude::*;

use crate::suite::Suite;

/// A matrix to be loaded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Workload {
    pub name: String,
    pub kind: String,
    pub origin: Origin,
    /// Nonzeros up to which copies of it are put on the diagonal.
    pub replicate_to: Option<usize>,
    /// Operations it is used for.
    pub operations: Vec<Operation>,
    /// Our algorithms for it, in place of the suite's.
    pub ours: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    Generated(String),
    File(PathBuf),
}

// Ends of the names of matrix files, longest first.
const ENDINGS: [&str; 6] = [".mtx.zst", ".mtx.gz", ".mtx", ".smtx", ".npz", ".zst"];

/// The matrices of a suite, and notes on those that are not there.
///
/// # Errors
/// [`Error::Io`] for a path that is missing and not optional.
pub(crate) fn list(suite: &Suite) -> Result<(Vec<Workload>, Vec<String>)> {
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    for source in &suite.matrices {
        let operations = source.operations.clone().unwrap_or(suite.products.operations.clone());
        if let Some(text) = &source.generate {
            let kind = text.split(':').next().unwrap_or_default().to_owned();
            let (origin, operations) = (Origin::Generated(text.clone()), operations.clone());
            let name = named(text, source.replicate_to);
            let (replicate_to, ours) = (source.replicate_to, source.ours.clone());
            found.push(Workload { name, kind, origin, replicate_to, operations, ours });
        }
        if let Some(path) = &source.path {
            match files(path) {
                Ok(files) => {
                    let fits = |f: &Listed| {
                        let below = |most| f.nnz.is_none_or(|nnz| nnz < most);
                        let square = |most| f.shape.is_none_or(|(m, n)| m == n && m <= most);
                        f.nnz.is_none_or(|nnz| nnz >= source.min_nnz)
                            && source.square_up_to.is_none_or(square)
                            && source.replicate_to.is_none_or(below)
                    };
                    for Listed { name, kind, path, .. } in files.into_iter().filter(fits) {
                        let (origin, operations) = (Origin::File(path), operations.clone());
                        let name = named(&name, source.replicate_to);
                        let (replicate_to, ours) = (source.replicate_to, source.ours.clone());
                        found.push(Workload { name, kind, origin, replicate_to, operations, ours });
                    }
                }
                Err(_) if source.optional => notes.push(format!(
                    "{} is not there: its matrices are not measured",
                    path.display()
                )),
                Err(source) => {
                    return Err(Error::Io { path: path.clone(), action: "read", source });
                }
            }
        }
    }
    Ok((found, notes))
}

fn named(name: &str, replicate_to: Option<usize>) -> String {
    replicate_to.map_or(name.into(), |nnz| format!("{name} x {nnz}"))
}

/// A matrix file, with what the manifest of its folder says.
struct Listed {
    name: String,
    kind: String,
    shape: Option<(usize, usize)>,
    nnz: Option<usize>,
    path: PathBuf,
}

/// One file, or every matrix file of a folder, smallest first.
fn files(path: &Path) -> std::io::Result<Vec<Listed>> {
    let stem = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        let end = ENDINGS.iter().find(|e| name.ends_with(**e))?;
        Some(name[..name.len() - end.len()].to_owned())
    };
    if !std::fs::metadata(path)?.is_dir() {
        let name = stem(path).unwrap_or_else(|| path.display().to_string());
        return Ok(vec![Listed {
            name,
            kind: "file".into(),
            shape: None,
            nnz: None,
            path: path.into(),
        }]);
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
    let listed = |(_, name, path): (u64, String, PathBuf)| Listed {
        kind: field(&name, 1).unwrap_or("file").to_owned(),
        shape: number(&name, 2).zip(number(&name, 3)),
        nnz: number(&name, 4),
        name,
        path,
    };
    Ok(found.into_iter().map(listed).collect())
}

impl Workload {
    /// The pattern, in canonical form (every engine takes that), with values that
    /// nothing reads.
    ///
    /// # Errors
    /// As the generator and the reader of files.
    pub fn load(&self, seed: u64) -> Result<Csr<f64>> {
        let matrix: Csr<f64> = match &self.origin {
            Origin::Generated(text) => text.parse::<Generator>()?.build(seed)?,
            Origin::File(path) => gustav_io::read_csr(path, &gustav_io::ReadOptions::default())?,
        };
        let matrix = if matrix.view().is_canonical() { matrix } else { matrix.canonicalize()? };
        match self.replicate_to {
            Some(nnz) if matrix.nnz() > 0 => replicate(&matrix, nnz.div_ceil(matrix.nnz())),
            _ => Ok(matrix),
        }
    }
}

/// `copies` of `matrix` on the diagonal of a larger one.
fn replicate(matrix: &Csr<f64>, copies: usize) -> Result<Csr<f64>> {
    let (rows, columns, nnz) = (matrix.nrows(), matrix.ncols(), matrix.nnz());
    let number = |n: usize| u32::try_from_usize(n, "index of a replicated matrix");
    number(columns * copies)?;
    number(nnz * copies)?;
    let mut offsets = try_vec::<u32>(rows * copies + 1, "row offsets")?;
    let mut indices = try_vec::<u32>(nnz * copies, "column indices")?;
    let mut values = try_vec::<f64>(nnz * copies, "values")?;
    offsets.push(0);
    for copy in 0..copies {
        let (first, column) = (number(copy * nnz)?, number(copy * columns)?);
        offsets.extend(matrix.offsets()[1..].iter().map(|o| first + o));
        indices.extend(matrix.indices().iter().map(|c| column + c));
        values.extend_from_slice(matrix.values());
    }
    Csr::new(rows * copies, columns * copies, offsets, indices, values)
}

/// The pattern of `matrix` with fresh values of another type.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(crate) fn with_fresh_values<T: Scalar>(matrix: &Csr<f64>, seed: u64) -> Result<Csr<T>> {
    let values = random::<T>(matrix.nnz(), seed)?;
    matrix.view().with_values(&values)?.to_owned()
}

/// `count` values, each at random from ±[2⁻¹⁰, 1]; the same for a seed on every machine.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(crate) fn random<T: Scalar>(count: usize, seed: u64) -> Result<Buffer<T>> {
    let mut values = Buffer::<T>::zeroed(count, "random values")?;
    values.par_iter_mut().enumerate().with_min_len(1 << 14).for_each(|(k, v)| {
        let bits = mix(seed ^ mix(k as u64));
        let magnitude = ((bits >> 40) as f64 + 1.0) / (1u64 << 24) as f64;
        let magnitude = magnitude.max(1.0 / 1024.0);
        *v = T::from_f64(if bits & 1 == 0 { magnitude } else { -magnitude });
    });
    Ok(values)
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Intermediate products of A·B.
pub(crate) fn products<T: Scalar>(a: &Csr<T>, b: &Csr<T>) -> u64 {
    let b = b.view();
    a.indices().par_iter().with_min_len(1 << 14).map(|&k| b.row_len(k as usize) as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_seeded_nonzero_and_of_both_signs() {
        let a = random::<f32>(5000, 7).unwrap();
        assert_eq!(a, random::<f32>(5000, 7).unwrap());
        assert_ne!(a, random::<f32>(5000, 8).unwrap());
        assert!(a.iter().all(|v| (1.0 / 1024.0..=1.0).contains(&v.abs())));
        let mean = a.iter().sum::<f32>() / 5000.0;
        assert!(mean.abs() < 0.05, "{mean}");
    }

    #[test]
    fn copies_lie_on_the_diagonal() {
        let a = Csr::new(2, 3, vec![0, 1, 3], vec![2, 0, 1], vec![1.0, 2.0, 3.0]).unwrap();
        let twice = replicate(&a, 2).unwrap();
        assert_eq!((twice.nrows(), twice.ncols(), twice.nnz()), (4, 6, 6));
        assert_eq!(twice.offsets()[..], [0, 1, 3, 4, 6]);
        assert_eq!(twice.indices()[..], [2, 0, 1, 5, 3, 4]);
    }

    #[test]
    fn products_are_counted_row_by_row() {
        let a = Csr::<f32>::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0; 3]).unwrap();
        assert_eq!(products(&a, &a), 4);
    }

    #[test]
    fn a_missing_folder_is_noted_when_optional_and_refused_otherwise() {
        let mut suite = Suite::of_matrices(&["/no/such/folder.mtx".into()]).unwrap();
        assert!(list(&suite).is_err());
        suite.matrices[0].optional = true;
        let (found, notes) = list(&suite).unwrap();
        assert!(found.is_empty() && notes[0].contains("/no/such/folder"), "{notes:?}");
    }
}
