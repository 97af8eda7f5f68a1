//! Dense × dense at the nonzeros of a pattern.

use gustav_core::buffer::Buffer;
use gustav_core::{Csr, Index, Pattern, Result};
use gustav_cpu::CpuScalar;

use crate::operands::{DenseOperand, IntoOperand};
use crate::{Device, SddmmPlan};

/// X·Yᵀ at the nonzeros of `pattern`, as a matrix that shares it, computed on the CPU.
///
/// For every nonzero in row i and column j: the inner product of row i of `x` and row j of `y`.
///
/// ```
/// use gustav::{Csr, Dense};
///
/// let a = Csr::<f32>::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0, 1.0])?;
/// let x = Dense::from_row_major(2, 2, vec![1.0, 2.0, 3.0, 4.0])?;
/// let scores = gustav::sddmm(a.pattern(), &x, &x)?;
/// assert_eq!(scores.values().as_slice(), [11.0, 11.0]);
/// # Ok::<(), gustav::Error>(())
/// ```
///
/// # Errors
/// [`gustav_core::Error::Shape`] when X has not as many rows as the pattern or Y as the pattern has
/// columns, or they differ in their columns; [`gustav_core::Error::Argument`] for operands in a
/// GPU's memory; [`gustav_core::Error::OutOfMemory`] for the values.
pub fn sddmm<'v, T: CpuScalar, I: Index, O: Index>(
    pattern: &Pattern<I, O>,
    x: impl IntoOperand<DenseOperand<'v, T>>,
    y: impl IntoOperand<DenseOperand<'v, T>>,
) -> Result<Csr<T, I, O>> {
    let (x, y) = (x.into_operand()?, y.into_operand()?);
    let layout = |m: &DenseOperand<'_, T>| match m {
        DenseOperand::Host(m) => (m.ncols(), m.layout()),
        DenseOperand::Device(m) => (m.ncols(), m.layout()),
    };
    let ((depth, layout_x), (_, layout_y)) = (layout(&x), layout(&y));
    let mut values = Buffer::<T>::zeroed(pattern.nnz(), "values")?;
    let request = pattern.sddmm(depth).layouts(layout_x, layout_y);
    let mut plan: SddmmPlan<'_, T> = request.plan(&Device::cpu())?;
    plan.execute(x, y, &mut values[..], ())?;
    Csr::from_pattern(pattern, values)
}
