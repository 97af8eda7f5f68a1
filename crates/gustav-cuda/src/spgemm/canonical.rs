//! Canonical form: a product with the identity sorts rows and adds repeated entries.

use gustav_core::{Index, Result, Scalar, Semiring};

use super::plan::{Options, multiply};
use crate::device::{Device, DeviceBuffer};
use crate::matrix::DeviceCsr;
use crate::matrix::columns::Columns;
use crate::product::Call;
use crate::product::sparse_operands::Sparse;

/// `m` with increasing columns in every row, repeated entries added over `semiring`; `None` if `m`
/// has them already.
pub(super) fn canonical<T: Scalar, I: Index, O: Index>(
    m: &DeviceCsr<T, I, O>,
    semiring: Semiring,
) -> Result<Option<DeviceCsr<T, I, O>>> {
    m.join(m.device())?;
    let columns = Columns::new(m.device(), I::TYPE, O::TYPE)?;
    // SAFETY: the matrix is alive, and the stream is waited for.
    match unsafe { columns.increase(&Sparse::of(m))? } {
        true => Ok(None),
        false => in_order(m, semiring).map(Some),
    }
}

/// The same, with a copy if `m` has increasing columns already.
pub(super) fn in_order<T: Scalar, I: Index, O: Index>(
    m: &DeviceCsr<T, I, O>,
    semiring: Semiring,
) -> Result<DeviceCsr<T, I, O>> {
    let device = m.device();
    let one = semiring.one::<T::Accum>();
    let product = |a: &DeviceCsr<T, I, O>, b: &DeviceCsr<T, I, O>| {
        let problem = a.pattern().spgemm(b.pattern()).semiring(semiring).problem;
        multiply(a, b, &problem, &Options::default(), Call::new())
    };
    // plus-first takes the values of the left operand, plus-second those of the right one.
    match semiring {
        Semiring::PlusFirst => product(m, &identity(device, m.ncols(), one)?),
        _ => product(&identity(device, m.nrows(), one)?, m),
    }
}

fn identity<T: Scalar, I: Index, O: Index>(
    device: &Device,
    n: usize,
    one: T::Accum,
) -> Result<DeviceCsr<T, I, O>> {
    let what = "an identity matrix";
    let mut offsets = gustav_core::buffer::try_vec::<O>(n + 1, what)?;
    let mut indices = gustav_core::buffer::try_vec::<I>(n, what)?;
    let mut values = gustav_core::buffer::try_vec::<T>(n, what)?;
    O::try_from_usize(n, "row offset of an identity matrix")?;
    offsets.extend((0..=n).map(O::truncate));
    indices.extend((0..n).map(I::truncate));
    values.resize(n, T::from_accum(one));
    let offsets = DeviceBuffer::from_slice(device, &offsets, what)?;
    let indices = DeviceBuffer::from_slice(device, &indices, what)?;
    let values = DeviceBuffer::from_slice(device, &values, what)?;
    // SAFETY: offsets increase by one to `n`, columns are below `n`.
    Ok(unsafe { DeviceCsr::from_parts_unchecked(n, n, offsets, indices, values) })
}
