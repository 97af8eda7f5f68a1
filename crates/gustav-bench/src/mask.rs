//! Masks of measured products.

use gustav_core::buffer::try_vec;
use gustav_core::{Csr, Error, Index, Problem, Result};
use gustav_cpu::spgemm::{SpgemmCall, multiply};
use gustav_cpu::{Options, Threads};
use gustav_report::Mask;

use crate::workload::mix;

// The mask `most` lacks one entry of C in so many.
const LEFT_OUT: u64 = 16;

/// The mask for A·A, or A·Aᵀ where A is not square; its values are not used.
///
/// # Errors
/// [`Error::Shape`] if A has another shape than C, [`Error::OutOfMemory`], and as the product.
pub(crate) fn mask_of(mask: Mask, a: &Csr<f64>, threads: &Threads) -> Result<Csr<f64>> {
    let square = a.nrows() == a.ncols();
    if mask == Mask::Own {
        if !square {
            return Err(Error::Shape {
                op: "mask",
                expected: "a square A, so that C is of its shape".into(),
                found: format!("{} x {}", a.nrows(), a.ncols()),
            });
        }
        return a.view().to_owned();
    }
    let transposed = (!square).then(|| a.view().transpose()).transpose()?;
    let (left, right) = (a.view(), transposed.as_ref().unwrap_or(a).view());
    let problem = Problem::spgemm(&left, &right);
    let options = Options { threads: threads.clone(), ..Options::default() };
    let c = multiply(left, right, &problem, &options, SpgemmCall::new())?;
    let mut offsets = try_vec::<u32>(c.nrows() + 1, "row offsets of a mask")?;
    let mut indices = try_vec::<u32>(c.nnz(), "column indices of a mask")?;
    offsets.push(0);
    let (mut at, view) = (0u64, c.view());
    for row in 0..c.nrows() {
        for &column in view.row(row).0 {
            at += 1;
            if !mix(at).is_multiple_of(LEFT_OUT) {
                indices.push(column);
            }
        }
        offsets.push(u32::try_from_usize(indices.len(), "row offset of a mask")?);
    }
    let values = vec![1.0; indices.len()];
    Csr::new(c.nrows(), c.ncols(), offsets, indices, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_c_is_a_part_of_its_places() {
        let a = "rmat:7,9".parse::<gustav_io::generate::Generator>().unwrap();
        let a: Csr<f64> = a.build::<f64, u32, u32>(1).unwrap().canonicalize().unwrap();
        let threads = Threads::new(1, false).unwrap();
        assert_eq!(mask_of(Mask::Own, &a, &threads).unwrap().indices(), a.indices());
        let most = mask_of(Mask::Most, &a, &threads).unwrap();
        let (left, options) = (a.view(), Options::default());
        let problem = Problem::spgemm(&left, &left);
        let c = multiply(left, left, &problem, &options, SpgemmCall::new()).unwrap();
        let share = most.nnz() as f64 / c.nnz() as f64;
        assert!((0.9..0.97).contains(&share), "{share}");
        for row in 0..c.nrows() {
            let (view, all) = (most.view(), c.view());
            assert!(view.row(row).0.iter().all(|j| all.row(row).0.contains(j)));
        }
        let narrow = Csr::<f64>::new(3, 1, vec![0, 1, 1, 2], vec![0, 0], vec![1.0; 2]).unwrap();
        assert!(mask_of(Mask::Own, &narrow, &threads).is_err());
        assert!(mask_of(Mask::Most, &narrow, &threads).unwrap().nnz() <= 4);
    }
}
