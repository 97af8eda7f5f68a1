//! One-shot products whose C is probably full: `dense-output` computes all rows of C as full rows,
//! without a symbolic phase. Sums to which nothing was added keep a mark; if there is one, the
//! product is computed with a plan.

use gustav_core::{Error, Index, Problem, Result, Scalar};

use super::binned::Arguments;
use super::catalog::Config;
use super::dense_output::FullRows;
use crate::device::{Device, DeviceBuffer};
use crate::matrix::DeviceCsr;
use crate::product::sparse_operands::{Operands, Output};

// Largest expected number of empty positions of C, for evenly distributed columns, with which this
// is tried.
const HOLES: f64 = 0.25;

/// Whether C is probably full, from the row lengths alone.
fn is_likely(problem: &Problem) -> bool {
    let entries = problem.output_rows() as f64 * problem.columns as f64;
    let mean_of_b = problem.nnz_b.unwrap_or(0) as f64 / problem.inner().max(1) as f64;
    let mean = problem.nnz as f64 * mean_of_b / entries.max(1.0);
    entries * (-mean).exp() <= HOLES
}

/// C, if `config` is of `dense-output` and C turns out to be full; else `None`.
///
/// # Safety
/// The addresses in `o` are valid until the work is done.
pub(super) unsafe fn multiply<T: Scalar, I: Index, O: Index>(
    device: &Device,
    o: &Operands,
    problem: &Problem,
    config: Config,
) -> Result<Option<DeviceCsr<T, I, O>>> {
    let Config::DenseOutput(config) = config else { return Ok(None) };
    let nnz = o.a.rows.saturating_mul(o.b.cols);
    let plain = problem.output == problem.dtype && !problem.transpose_a;
    if !plain || nnz == 0 || !is_likely(problem) || O::try_from_usize(nnz, "entries of C").is_err()
    {
        return Ok(None);
    }
    let full = FullRows::new(device, problem, config)?;
    if !full.marks() || full.least(o) == 0 {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    match unsafe { compute(device, o, full, nnz) } {
        Err(Error::OutOfMemory { .. }) => Ok(None),
        other => other,
    }
}

unsafe fn compute<T: Scalar, I: Index, O: Index>(
    device: &Device,
    o: &Operands,
    mut full: FullRows,
    nnz: usize,
) -> Result<Option<DeviceCsr<T, I, O>>> {
    let mut arguments = Arguments::of(o);
    // SAFETY: the operands are the caller's promise; C is large enough for all entries.
    unsafe {
        full.pack(device, o, arguments, false)?;
        // Allocates C while B is being packed.
        let what = "row offsets of C on the device";
        let offsets = DeviceBuffer::<O>::queued(device, o.a.rows + 1, what)?;
        let indices = DeviceBuffer::<I>::queued(device, nnz, "column indices of C on the device")?;
        let values = DeviceBuffer::<T>::queued(device, nnz, "values of C on the device")?;
        arguments.c = Output {
            offsets: offsets.address(),
            indices: indices.address(),
            values: values.address(),
        };
        if !full.launch_taken(device, &arguments)? {
            return Ok(None);
        }
        let c = DeviceCsr::from_parts_unchecked(o.a.rows, o.b.cols, offsets, indices, values);
        Ok(Some(c))
    }
}
