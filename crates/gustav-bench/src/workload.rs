//! Matrices and their values.

use std::path::PathBuf;

use gustav_core::{Buffer, Csr, Operation, Result, Scalar};
use gustav_io::generate::Generator;
use gustav_report::Layouts;
use rayon::prelude::*;

use crate::derived::Derived;

/// A matrix to load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Workload {
    pub name: String,
    /// Its source, which derived matrices share.
    pub source: String,
    pub kind: String,
    pub origin: Origin,
    /// Rows and columns, if they are known before it is loaded.
    pub shape: Option<(usize, usize)>,
    /// The derivation to apply.
    pub derived: Option<Derived>,
    /// Nonzeros up to which copies of it are placed on the diagonal.
    pub replicate_to: Option<usize>,
    /// Operations it is used for.
    pub operations: Vec<Operation>,
    /// Gustav's algorithms for it, in place of the suite's.
    pub ours: Option<Vec<String>>,
    /// Peers for it, in place of the suite's.
    pub peers: Option<Vec<String>>,
    /// Layouts of B and C for it, in place of the suite's.
    pub layouts: Option<Vec<Layouts>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    Generated(String),
    File(PathBuf),
}

impl Workload {
    /// The pattern in canonical form, which every engine accepts; the values are not used.
    ///
    /// # Errors
    /// As the generator and the reader of files.
    pub fn load(&self, seed: u64) -> Result<Csr<f64>> {
        let matrix: Csr<f64> = match &self.origin {
            Origin::Generated(text) => text.parse::<Generator>()?.build(seed)?,
            Origin::File(path) => gustav_io::read_csr(path, &gustav_io::ReadOptions::default())?,
        };
        let matrix = if matrix.view().is_canonical() { matrix } else { matrix.canonicalize()? };
        let matrix = match self.derived {
            Some(derived) => derived.of(&matrix)?,
            None => matrix,
        };
        match self.replicate_to {
            Some(nnz) if matrix.nnz() > 0 => {
                Derived::Copies(nnz.div_ceil(matrix.nnz())).of(&matrix)
            }
            _ => Ok(matrix),
        }
    }
}

/// A copy of the pattern of `matrix` with new values of another type, in buffers of the library.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(crate) fn with_fresh_values<T: Scalar>(matrix: &Csr<f64>, seed: u64) -> Result<Csr<T>> {
    let values = random::<T>(matrix.nnz(), seed)?;
    Csr::from_pattern(&matrix.pattern().view().to_owned()?, values)
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
pub(crate) fn mix(x: u64) -> u64 {
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
    fn products_are_counted_row_by_row() {
        let a = Csr::<f32>::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0; 3]).unwrap();
        assert_eq!(products(&a, &a), 4);
    }
}
