//! Gradients of an SDDMM: products of the gradient's matrix with the other operand.

use gustav_core::{Operation, Plans, Problem, Result, SddmmRequest, SpmmRequest};
use gustav_cpu::CpuScalar;

use crate::cuda::Call;
use crate::operands::{DenseOperand, DenseResult, IntoOperand, SparseValues};
use crate::{Device, SpmmPlan};

/// Plans for the gradients of `values[p] = α·⟨X[row p], Y[column p]⟩`, given G, the gradient of a
/// loss with respect to the values, as values of the pattern.
///
/// | of | is | computed by |
/// |---|---|---|
/// | X | α·G·Y, G as a matrix of the pattern | an SpMM |
/// | Y | α·Gᵀ·X | an SpMM with the transposed pattern, planned once |
///
/// With factors, G is multiplied by them first.
///
/// ```
/// use gustav::{Csr, Dense, Device, Layout, SddmmGradients};
///
/// let a = Csr::<f64>::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![0.0; 3])?;
/// let x = Dense::from_row_major(2, 1, vec![2.0, 3.0])?;
/// let y = Dense::from_row_major(2, 1, vec![5.0, 7.0])?;
/// let g = [1.0, 10.0, 100.0];
///
/// let mut gradients = SddmmGradients::plan(&a.pattern().sddmm(1), &Device::cpu())?;
/// let (mut of_x, mut of_y) =
///     (Dense::zeros(2, 1, Layout::RowMajor)?, Dense::zeros(2, 1, Layout::RowMajor)?);
/// gradients.of_x(&g, &y, &mut of_x, ())?;
/// gradients.of_y(&g, &x, &mut of_y, ())?;
/// assert_eq!(of_x.data(), [75.0, 700.0]);
/// assert_eq!(of_y.data(), [2.0, 320.0]);
/// # Ok::<(), gustav::Error>(())
/// ```
pub struct SddmmGradients<'a, T: CpuScalar> {
    of_x: SpmmPlan<'a, T>,
    of_y: SpmmPlan<'a, T>,
}

impl<'a, T: CpuScalar> SddmmGradients<'a, T> {
    /// Plans both gradients of the product that `request` describes, on `device`; of a batch those
    /// of every product.
    ///
    /// # Errors
    /// What the plans of the two products return.
    pub fn plan<P: Clone>(request: &SddmmRequest<P>, device: &Device) -> Result<Self>
    where
        Device: Plans<SpmmRequest<P>, T, Plan = SpmmPlan<'a, T>>,
    {
        let SddmmRequest { pattern, problem } = request;
        // Gradients have the layouts of their operands.
        let of = |transpose_a, layout_b, layout_c| {
            let operation = Operation::Spmm;
            let problem = Problem { operation, transpose_a, layout_b, layout_c, ..problem.clone() };
            SpmmRequest { pattern: pattern.clone(), problem }.plan(device)
        };
        let (layout_x, layout_y) = (problem.layout_c, problem.layout_b);
        Ok(SddmmGradients {
            of_x: of(false, layout_y, layout_x)?,
            of_y: of(true, layout_x, layout_y)?,
        })
    }

    /// The gradient with respect to X: α·G·Y + β·`to`, in X's shape and layout.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`].
    pub fn of_x<'v>(
        &mut self,
        g: impl Into<SparseValues<'v, T>>,
        y: impl IntoOperand<DenseOperand<'v, T>>,
        to: impl IntoOperand<DenseResult<'v, T>>,
        call: impl Into<Call<'v, T>>,
    ) -> Result<()> {
        self.of_x.execute(g, y, to, call)
    }

    /// The gradient with respect to Y: α·Gᵀ·X + β·`to`, in Y's shape and layout.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`].
    pub fn of_y<'v>(
        &mut self,
        g: impl Into<SparseValues<'v, T>>,
        x: impl IntoOperand<DenseOperand<'v, T>>,
        to: impl IntoOperand<DenseResult<'v, T>>,
        call: impl Into<Call<'v, T>>,
    ) -> Result<()> {
        self.of_y.execute(g, x, to, call)
    }

    /// The plans: for X, and for Y.
    pub fn plans(&self) -> (&SpmmPlan<'a, T>, &SpmmPlan<'a, T>) {
        (&self.of_x, &self.of_y)
    }
}
