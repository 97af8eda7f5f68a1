//! Gradients of products: products again, planned together.

use gustav_core::{Error, Operation, Plans, Problem, Result, SddmmRequest, Semiring, SpmmRequest};
use gustav_cpu::CpuScalar;

use crate::cuda::Call;
use crate::operands::{DenseOperand, DenseResult, IntoOperand, SparseValues, VectorResult};
use crate::{Device, SddmmCall, SddmmPlan, SpmmPlan};

/// Plans for the gradients of C = α·op(A)·B, given G, the gradient of a loss with respect to C.
///
/// | of | is | computed by |
/// |---|---|---|
/// | B | α·op(A)ᵀ·G | an SpMM with the other transpose of A |
/// | the values of A | α·(G·Bᵀ) at A's nonzeros; α·(B·Gᵀ) when op(A) is Aᵀ | an SDDMM |
///
/// Neither forms a dense matrix of A's shape. Aᵀ is planned once; on a GPU its values are gathered at
/// every execution.
///
/// ```
/// use gustav::{Csr, Dense, Device, Layout, SpmmGradients};
///
/// let a = Csr::<f64>::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
/// let b = Dense::from_row_major(3, 1, vec![10.0, 20.0, 30.0])?;
/// let g = Dense::from_row_major(2, 1, vec![1.0, -1.0])?;
///
/// let mut gradients = SpmmGradients::plan(&a.pattern().spmm(1).calls(1000), &Device::cpu())?;
/// let mut of_values = vec![0.0; a.nnz()];
/// gradients.of_values(&g, &b, &mut of_values, ())?;
/// assert_eq!(of_values, [10.0, 30.0, -20.0]);
/// let mut of_b = Dense::zeros(3, 1, Layout::RowMajor)?;
/// gradients.of_b(&a, &g, &mut of_b, ())?;
/// assert_eq!(of_b.data(), [1.0, -3.0, 2.0]);
/// # Ok::<(), gustav::Error>(())
/// ```
pub struct SpmmGradients<'a, T: CpuScalar> {
    of_b: SpmmPlan<'a, T>,
    of_values: SddmmPlan<'a, T>,
    transposed: bool,
}

impl<'a, T: CpuScalar> SpmmGradients<'a, T> {
    /// Plans both gradients of the product that `request` describes, on `device`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other semirings than plus-times and for an epilogue; what the plans
    /// of the two products return.
    pub fn plan<P: Clone>(request: &SpmmRequest<P>, device: &Device) -> Result<Self>
    where
        Device: Plans<SpmmRequest<P>, T, Plan = SpmmPlan<'a, T>>
            + Plans<SddmmRequest<P>, T, Plan = SddmmPlan<'a, T>>,
    {
        let SpmmRequest { pattern, problem } = request;
        check(problem)?;
        let transposed = problem.transpose_a;
        let (layout_b, layout_c) = (problem.layout_b, problem.layout_c);
        // G has C's layout, and the gradient of B that of B.
        let of_b = Problem {
            transpose_a: !transposed,
            layout_b: layout_c,
            layout_c: layout_b,
            ..problem.clone()
        };
        let (layout_x, layout_y) =
            if transposed { (layout_b, layout_c) } else { (layout_c, layout_b) };
        let of_values = Problem {
            operation: Operation::Sddmm,
            transpose_a: false,
            layout_c: layout_x,
            layout_b: layout_y,
            tf32: false,
            ..problem.clone()
        };
        Ok(SpmmGradients {
            of_b: SpmmRequest { pattern: pattern.clone(), problem: of_b }.plan(device)?,
            of_values: SddmmRequest { pattern: pattern.clone(), problem: of_values }
                .plan(device)?,
            transposed,
        })
    }

    /// The gradient with respect to B: α·op(A)ᵀ·G + β·`to`, in B's shape and layout.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`].
    pub fn of_b<'v>(
        &mut self,
        values: impl Into<SparseValues<'v, T>>,
        g: impl IntoOperand<DenseOperand<'v, T>>,
        to: impl IntoOperand<DenseResult<'v, T>>,
        call: impl Into<Call<'v, T>>,
    ) -> Result<()> {
        self.of_b.execute(values, g, to, call)
    }

    /// The gradient with respect to the values of A, in the order of its nonzeros, times α, plus β times
    /// `to`: for a nonzero in row i and column j the inner product of row i of G and row j of B; of row i
    /// of B and row j of G when op(A) is Aᵀ.
    ///
    /// # Errors
    /// As [`SddmmPlan::execute`].
    pub fn of_values<'v>(
        &mut self,
        g: impl IntoOperand<DenseOperand<'v, T>>,
        b: impl IntoOperand<DenseOperand<'v, T>>,
        to: impl IntoOperand<VectorResult<'v, T>>,
        call: impl Into<SddmmCall<'v, T>>,
    ) -> Result<()> {
        match self.transposed {
            false => self.of_values.execute(g, b, to, call),
            true => self.of_values.execute(b, g, to, call),
        }
    }

    /// The plans: of the SpMM for B, and of the SDDMM for the values.
    pub fn plans(&self) -> (&SpmmPlan<'a, T>, &SddmmPlan<'a, T>) {
        (&self.of_b, &self.of_values)
    }
}

fn check(problem: &Problem) -> Result<()> {
    let refuse = |reason: &str, nearest: &str| {
        Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: "gradients of an SpMM".into(),
            reason: reason.into(),
            nearest: nearest.into(),
        })
    };
    if problem.semiring != Semiring::PlusTimes {
        return refuse("they are those of sums of products", "plus-times");
    }
    problem.without_extremum("gradients of an SpMM")?;
    if !problem.epilogue.is_none() {
        return refuse(
            "they are those of the product alone",
            "the request without the epilogue, and G multiplied by its derivative",
        );
    }
    Ok(())
}
