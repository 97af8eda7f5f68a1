//! Sparse × vector.

use gustav_core::buffer::try_vec;
use gustav_core::{CsrView, Index, PatternRef, Problem, Result, Scale, SpmvRequest};
use gustav_cpu::CpuScalar;

use super::setters;
use crate::Device;
use crate::operands::{IntoOperand, VectorOperand, mixed};

/// y = A·x with the best algorithm of the CPU.
///
/// # Errors
/// [`gustav_core::Error::Shape`] when x has not as many elements as A has columns,
/// [`gustav_core::Error::OutOfMemory`] for y.
pub fn spmv<'a, T: CpuScalar, I: Index, O: Index>(
    a: impl Into<CsrView<'a, T, I, O>>,
    x: impl IntoOperand<VectorOperand<'a, T>>,
) -> Result<Vec<T>> {
    match x.into_operand()? {
        VectorOperand::Host(x) => Spmv::new(a, x).run(),
        VectorOperand::Device(_) => mixed("cpu"),
    }
}

/// A sparse × vector product with options: y = scale(α, op(A)·x) ⊕ scale(β, y).
///
/// ```
/// use gustav::{Csr, Spmv};
///
/// let a = Csr::<f64>::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
/// let y = Spmv::new(&a, &[1.0, 10.0]).transpose(true).alpha(2.0).run()?;
/// assert_eq!(y, [2.0, 60.0, 4.0]);
/// # Ok::<(), gustav::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "the product is computed by run or run_into"]
pub struct Spmv<'a, T: CpuScalar, I: Index, O: Index> {
    a: CsrView<'a, T, I, O>,
    x: &'a [T],
    problem: Problem,
    device: Device,
    threads: Option<usize>,
    alpha: Option<T::Accum>,
}

impl<'a, T: CpuScalar, I: Index, O: Index> Spmv<'a, T, I, O> {
    /// The product A·x.
    pub fn new(a: impl Into<CsrView<'a, T, I, O>>, x: &'a [T]) -> Self {
        let a = a.into();
        let problem = Problem::spmv(&a);
        Spmv { a, x, problem, device: Device::cpu(), threads: None, alpha: None }
    }

    setters!(T::Accum);

    /// A new y = scale(α, op(A)·x).
    ///
    /// # Errors
    /// As [`spmv`], and [`gustav_core::Error::Unsupported`] for a named algorithm.
    pub fn run(self) -> Result<Vec<T>> {
        let rows = self.problem.output_rows();
        let mut y = try_vec(rows, "y")?;
        y.resize(rows, T::zero());
        self.execute(None, &mut y)?;
        Ok(y)
    }

    /// y = scale(α, op(A)·x) ⊕ scale(β, y) in place; β equal to the semiring's zero does not read
    /// y.
    ///
    /// # Errors
    /// As [`Spmv::run`], and [`gustav_core::Error::Shape`] when y does not fit.
    pub fn run_into(self, beta: T::Accum, y: &mut [T]) -> Result<()> {
        self.execute(Some(beta), y)
    }

    fn execute(self, beta: Option<T::Accum>, y: &mut [T]) -> Result<()> {
        let device = self.planner()?;
        let Spmv { a, x, problem, alpha, .. } = self;
        if device.is_unexplained() {
            let pattern = PatternRef::from(a.pattern());
            let problem = problem.bound::<T>(&pattern.clone().into())?;
            device.offers(&problem)?;
            let mut plan = gustav_cpu::SpmvPlan::new(pattern, &problem, device.options())?;
            return plan.execute(a, x, y, Scale { alpha, beta });
        }
        let mut plan = SpmvRequest { pattern: PatternRef::from(a.pattern()), problem }
            .plan::<T, _>(&device)?;
        plan.execute(a, x, y, Scale { alpha, beta })
    }
}
