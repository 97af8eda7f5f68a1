//! Lower bounds for the time of a product from memory bandwidth.

use gustav::cuda::Probe;
use gustav::{Device, Operation, Problem};
use gustav_bench::{Bandwidth, gather_ms};

use crate::failure::Result;

/// Limits in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The memory floor: moving A, B and C once, at the copy bandwidth measured on the device.
    pub floor_ms: f64,
    /// The gather limit, on a GPU: reading a row of B for every nonzero, at the measured bandwidth
    /// of L2.
    pub gather_ms: Option<f64>,
}

impl Limits {
    /// The limits of `problem` on `device`; `reads_c`: C is read as well as written.
    ///
    /// # Errors
    /// When memory for the measurement is lacking.
    pub fn measure(device: &Device, problem: &Problem, reads_c: bool) -> Result<Self> {
        let bytes = bytes(problem, reads_c);
        if !device.is_cuda() {
            let floor_ms = Bandwidth::measure(device.threads())?.floor_ms(bytes);
            return Ok(Limits { floor_ms, gather_ms: None });
        }
        let probe = Probe::new(device.cuda_device()?)?;
        let row = problem.columns * problem.dtype.bytes();
        Ok(Limits {
            floor_ms: bytes / probe.copy_bandwidth()? * 1e3,
            gather_ms: Some(gather_ms(problem.nnz, row, probe.l2_bandwidth()?)),
        })
    }
}

fn bytes(p: &Problem, reads_c: bool) -> f64 {
    let value = p.dtype.bytes();
    let a = p.nnz * (value + p.index_type.bytes()) + (p.rows + 1) * p.offset_type.bytes();
    // In an SDDMM the result has the pattern of A, whose values are read if `reads_c`.
    let sampled = p.operation == Operation::Sddmm;
    let again = if sampled && reads_c { p.nnz * value } else { 0 };
    let lines = p.inner() + p.output_rows() * if reads_c && !sampled { 2 } else { 1 };
    (a + again) as f64 + lines as f64 * p.columns as f64 * value as f64
}

#[cfg(test)]
mod tests {
    use gustav::Csr;

    use super::*;

    #[test]
    fn every_array_counts_once_and_c_twice_when_read() {
        let a = Csr::<f64>::new(2, 3, vec![0u32, 1, 2], vec![0u32, 2], vec![1.0, 2.0]);
        let problem = Problem::spmm(&a.expect("a matrix").view()).columns(10);
        let (stored, b, c) = (2 * 12 + 3 * 4, 3 * 10 * 8, 2 * 10 * 8);
        assert_eq!(bytes(&problem, false), f64::from(stored + b + c));
        assert_eq!(bytes(&problem, true), f64::from(stored + b + 2 * c));
    }
}
