//! Gradients of products: products again, planned together.

mod mean;
mod reduction;
mod sddmm;
mod spgemm;
mod winners;

use gustav_core::{
    Epilogue, Error, Operation, Plans, Problem, Reduce, Result, SddmmRequest, Semiring, SpmmRequest,
};
use gustav_cpu::CpuScalar;

pub use sddmm::SddmmGradients;
pub use spgemm::SpgemmGradients;

use crate::cuda::Call;
use crate::operands::{
    DenseOperand, DenseResult, IntoOperand, SparseValues, VectorResult, WinnersOperand,
};
use crate::{Device, SddmmCall, SddmmPlan, SpmmPlan};
use mean::Mean;
use reduction::{ReductionGradient, ReductionPlan};
use winners::Winners;

/// Plans for the gradients of C = α·op(A)·B, given G, the gradient of a loss with respect to C.
///
/// | of | is | computed by |
/// |---|---|---|
/// | B | α·op(A)ᵀ·G | an SpMM with the other transpose of A |
/// | the values of A | α·(G·Bᵀ) at A's nonzeros; α·(B·Gᵀ) when op(A) is Aᵀ | an SDDMM |
///
/// Of a mean ([`SpmmRequest::reduce`]) they are the same with rows of G over the lengths of their
/// rows. With max and min every element of C passes its gradient to the nonzero that won it, so
/// that [`of_b_with_winners`](Self::of_b_with_winners) and
/// [`of_values_with_winners`](Self::of_values_with_winners) take the winners:
///
/// | of | is |
/// |---|---|
/// | element (k, j) of B | α·Σ `values[p]`·G[i, j] over the nonzeros p of column k of op(A) that won (i, j) |
/// | value p | α·Σ G[i, j]·B[k, j] over the columns j that p won |
///
/// None forms a dense matrix of A's shape, and all are the same to the bit from run to run. Aᵀ is
/// planned once; on a GPU its values are gathered at every execution.
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
    inner: Inner<'a, T>,
}

enum Inner<'a, T: CpuScalar> {
    Sums(Box<Sums<'a, T>>),
    Winners(Box<Winners<'a, T>>),
}

struct Sums<'a, T: CpuScalar> {
    of_b: SpmmPlan<'a, T>,
    of_values: SddmmPlan<'a, T>,
    transposed: bool,
    mean: Option<Box<Mean<T>>>,
}

impl<'a, T: CpuScalar> SpmmGradients<'a, T> {
    /// Plans both gradients of the product that `request` describes, on `device`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other semirings than plus-times, for an epilogue other than a
    /// mean, for a mean of integers, and for a batch of other reductions than sums; what the plans
    /// of the two products return.
    pub fn plan<P: Clone>(request: &SpmmRequest<P>, device: &Device) -> Result<Self>
    where
        Device: Plans<SpmmRequest<P>, T, Plan = SpmmPlan<'a, T>>
            + Plans<SddmmRequest<P>, T, Plan = SddmmPlan<'a, T>>
            + Plans<ReductionGradient<P>, T, Plan = ReductionPlan<'a, T>>,
    {
        let SpmmRequest { pattern, problem } = request;
        check::<T>(problem)?;
        let reduction = ReductionGradient { pattern: pattern.clone(), problem: problem.clone() };
        let mean = match device.plan(reduction)? {
            ReductionPlan::Sum => None,
            ReductionPlan::Mean(mean) => Some(mean),
            ReductionPlan::Winners(winners) => {
                return Ok(SpmmGradients { inner: Inner::Winners(winners) });
            }
        };
        let problem = &problem.clone().reduce(Reduce::Sum);
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
        let sums = Sums {
            of_b: SpmmRequest { pattern: pattern.clone(), problem: of_b }.plan(device)?,
            of_values: SddmmRequest { pattern: pattern.clone(), problem: of_values }
                .plan(device)?,
            transposed,
            mean,
        };
        Ok(SpmmGradients { inner: Inner::Sums(Box::new(sums)) })
    }

    /// The gradient with respect to B: α·op(A)ᵀ·G + β·`to`, in B's shape and layout.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`], and [`Error::Argument`] with max and min.
    pub fn of_b<'v>(
        &mut self,
        values: impl Into<SparseValues<'v, T>>,
        g: impl IntoOperand<DenseOperand<'v, T>>,
        to: impl IntoOperand<DenseResult<'v, T>>,
        call: impl Into<Call<'v, T>>,
    ) -> Result<()> {
        let Sums { of_b, mean, .. } = self.sums("of_b_with_winners")?;
        let (values, to, call) = (values.into(), to.into_operand()?, call.into());
        match mean {
            None => of_b.execute(values, g, to, call),
            Some(mean) => mean.scaled(g.into_operand()?, |g| of_b.execute(values, g, to, call)),
        }
    }

    /// The gradient with respect to the values of A, in the order of its nonzeros, times α, plus β
    /// times `to`: for a nonzero in row i and column j the inner product of row i of G and row j of
    /// B; of row i of B and row j of G when op(A) is Aᵀ.
    ///
    /// # Errors
    /// As [`SddmmPlan::execute`], and [`Error::Argument`] with max and min.
    pub fn of_values<'v>(
        &mut self,
        g: impl IntoOperand<DenseOperand<'v, T>>,
        b: impl IntoOperand<DenseOperand<'v, T>>,
        to: impl IntoOperand<VectorResult<'v, T>>,
        call: impl Into<SddmmCall<'v, T>>,
    ) -> Result<()> {
        let Sums { of_values, mean, transposed, .. } = self.sums("of_values_with_winners")?;
        let (g, b) = (g.into_operand()?, b.into_operand()?);
        let (to, call) = (to.into_operand()?, call.into());
        let product = |g: DenseOperand<'_, T>| match transposed {
            false => of_values.execute(g, b, to, call),
            true => of_values.execute(b, g, to, call),
        };
        match mean {
            None => product(g),
            Some(mean) => mean.scaled(g, product),
        }
    }

    /// The gradient with respect to B of a product with max or min, plus β times `to`, given the
    /// winners that [`SpmmPlan::execute_with_winners`] wrote. Where they do not name a nonzero of
    /// the row, nothing is passed on.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`], [`Error::Length`] for another number of winners than C has
    /// elements, [`Error::Argument`] for other reductions.
    pub fn of_b_with_winners<'v>(
        &mut self,
        values: impl Into<SparseValues<'v, T>>,
        g: impl IntoOperand<DenseOperand<'v, T>>,
        winners: impl Into<WinnersOperand<'v>>,
        to: impl IntoOperand<DenseResult<'v, T>>,
        call: impl Into<Call<'v, T>>,
    ) -> Result<()> {
        let (g, to) = (g.into_operand()?, to.into_operand()?);
        self.winners("of_b")?.of_b(values.into(), g, winners.into(), to, call.into())
    }

    /// The gradient with respect to the values of A of a product with max or min, plus β times
    /// `to`, given its winners.
    ///
    /// # Errors
    /// As [`SddmmPlan::execute`], [`Error::Length`] for another number of winners than C has
    /// elements, [`Error::Argument`] for other reductions and for factors.
    pub fn of_values_with_winners<'v>(
        &mut self,
        g: impl IntoOperand<DenseOperand<'v, T>>,
        b: impl IntoOperand<DenseOperand<'v, T>>,
        winners: impl Into<WinnersOperand<'v>>,
        to: impl IntoOperand<VectorResult<'v, T>>,
        call: impl Into<SddmmCall<'v, T>>,
    ) -> Result<()> {
        let (g, b, to) = (g.into_operand()?, b.into_operand()?, to.into_operand()?);
        self.winners("of_values")?.of_values(g, b, winners.into(), to, call.into())
    }

    /// The plans of sums and means: of the SpMM for B, and of the SDDMM for the values.
    pub fn plans(&self) -> Option<(&SpmmPlan<'a, T>, &SddmmPlan<'a, T>)> {
        match &self.inner {
            Inner::Sums(sums) => Some((&sums.of_b, &sums.of_values)),
            Inner::Winners(_) => None,
        }
    }

    fn sums(&mut self, other: &str) -> Result<&mut Sums<'a, T>> {
        match &mut self.inner {
            Inner::Sums(sums) => Ok(sums),
            Inner::Winners(_) => Err(wrong_winners("none", other)),
        }
    }

    fn winners(&mut self, other: &str) -> Result<&mut Winners<'a, T>> {
        match &mut self.inner {
            Inner::Winners(winners) => Ok(winners),
            Inner::Sums(_) => Err(wrong_winners("those of a sum, in which nothing wins", other)),
        }
    }
}

fn wrong_winners(found: &str, other: &str) -> Error {
    let expected = format!("what the reduction has: {other}");
    Error::Argument { name: "winners", found: found.into(), expected }
}

fn check<T: CpuScalar>(problem: &Problem) -> Result<()> {
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
    if problem.batch > 1 && problem.reduction() != Reduce::Sum {
        return refuse(
            "those of means, max and min are of one matrix",
            "one product after another",
        );
    }
    if problem.epilogue.mean && T::DTYPE.is_integer() {
        return refuse("a mean of integers has none", "f64");
    }
    if !(Epilogue { mean: false, ..problem.epilogue }).is_none() {
        return refuse(
            "they are those of the product alone",
            "the request without the epilogue, and G multiplied by its derivative",
        );
    }
    Ok(())
}
