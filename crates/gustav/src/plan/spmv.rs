//! The plan of y = scale(α, op(A)·x) ⊕ scale(β, y).

use gustav_core::{CsrView, Index, PatternRef, Plans, Problem, Result, SpmvRequest};
use gustav_cpu::CpuScalar;

use super::{accessors, autotuned, explained, median_seconds, options};
use crate::cuda::{Call, DeviceBuffer, DevicePattern, plan_spmv};
use crate::explain::{Report, facts};
use crate::operands::{IntoOperand, SparseValues, VectorOperand, VectorResult, mixed};
use crate::{Device, Explanation};

/// A plan for sparse × vector products with one pattern of A, made by
/// `pattern.spmv().plan(&device)`; see [`SpmmPlan`](crate::SpmmPlan) for where operands are.
pub struct SpmvPlan<'a, T: CpuScalar> {
    inner: Inner<'a, T>,
    explanation: Explanation,
}

enum Inner<'a, T: CpuScalar> {
    Cpu(gustav_cpu::SpmvPlan<'a, T>),
    Cuda(Box<Staged<T>>),
}

/// A plan on a GPU with copies of operands in host memory, made when there are such.
struct Staged<T: CpuScalar> {
    device: gustav_cuda::Device,
    plan: gustav_cuda::SpmvPlan<T>,
    pattern: gustav_core::PatternId,
    nnz: usize,
    copies: Option<[DeviceBuffer<T>; 3]>,
}

impl<T: CpuScalar> SpmvPlan<'_, T> {
    accessors!();

    /// y = scale(α, op(A)·x) ⊕ scale(β, y); see [`SpmmPlan::execute`](crate::SpmmPlan::execute).
    ///
    /// # Errors
    /// As there, with [`Error::Shape`](crate::Error::Shape) for the lengths of x and y.
    pub fn execute<'v>(
        &mut self,
        values: impl Into<SparseValues<'v, T>>,
        x: impl IntoOperand<VectorOperand<'v, T>>,
        y: impl IntoOperand<VectorResult<'v, T>>,
        call: impl Into<Call<'v, T>>,
    ) -> Result<()> {
        use {SparseValues as V, VectorOperand as X, VectorResult as Y};
        let call = call.into();
        let (x, y) = (x.into_operand()?, y.into_operand()?);
        match (&mut self.inner, values.into(), x, y) {
            (Inner::Cpu(plan), V::Host(values), X::Host(x), Y::Host(y)) => {
                call.check_host(&self.explanation.problem)?;
                plan.execute(values, x, y, call.scale())
            }
            (Inner::Cuda(staged), V::Device(values), X::Device(x), Y::Device(y)) => {
                staged.plan.execute(values, x, y, call)
            }
            (Inner::Cuda(staged), V::Host(values), X::Host(x), Y::Host(y)) => {
                let values = values.fit("A", staged.pattern, staged.nnz)?;
                staged.execute(values, x, y, call, &self.explanation.problem)
            }
            _ => mixed(&self.explanation.device),
        }
    }
}

impl<T: CpuScalar> Staged<T> {
    fn execute(
        &mut self,
        values: &[T],
        x: &[T],
        y: &mut [T],
        call: Call<'_, T>,
        problem: &Problem,
    ) -> Result<()> {
        let on = |values: &[T], what| DeviceBuffer::from_slice(&self.device, values, what);
        // Copies of other lengths belong to operands that the plan refused.
        let lengths = [values.len(), x.len(), y.len()];
        let held = self.copies.take().filter(|c| [c[0].len(), c[1].len(), c[2].len()] == lengths);
        let [on_values, on_x, on_y] = match held {
            Some([mut on_values, mut on_x, mut on_y]) => {
                on_values.write(values)?;
                on_x.write(x)?;
                if call.reads(problem.semiring) {
                    on_y.write(y)?;
                }
                self.copies.insert([on_values, on_x, on_y])
            }
            None => self.copies.insert([
                on(values, "values on the device")?,
                on(x, "x on the device")?,
                on(y, "y on the device")?,
            ]),
        };
        self.plan.execute(&*on_values, on_x, on_y, call)?;
        on_y.read(y)
    }
}

impl<'a, T: CpuScalar, I: Index, O: Index> Plans<SpmvRequest<PatternRef<'a, I, O>>, T> for Device {
    type Plan = SpmvPlan<'a, T>;

    fn plan(&self, request: SpmvRequest<PatternRef<'a, I, O>>) -> Result<SpmvPlan<'a, T>> {
        let SpmvRequest { pattern, problem } = request;
        if let Some(gpu) = self.gpu() {
            let on_device = DevicePattern::upload(&gpu.device, pattern.view())?;
            let plan: SpmvPlan<'_, T> = self.plan(SpmvRequest { pattern: on_device, problem })?;
            let explanation =
                Explanation { facts: facts(self, &pattern.view()), ..plan.explanation };
            return Ok(SpmvPlan { inner: plan.inner, explanation });
        }
        let problem = problem.bound::<T>(&pattern.clone().into())?;
        self.offers(&problem)?;
        let (options, tuned) = options(self, || tune::<T, I, O>(self, &pattern, &problem))?;
        let view = pattern.view();
        let facts = facts(self, &view);
        let inner = gustav_cpu::SpmvPlan::new(pattern, &problem, &options)?;
        let bytes = inner.workspace_bytes();
        let explanation = explained(self, facts, &problem, inner.choice(), tuned, bytes);
        Ok(SpmvPlan { inner: Inner::Cpu(inner), explanation })
    }
}

impl<T: CpuScalar, I: Index, O: Index> Plans<SpmvRequest<DevicePattern<I, O>>, T> for Device {
    type Plan = SpmvPlan<'static, T>;

    fn plan(&self, request: SpmvRequest<DevicePattern<I, O>>) -> Result<SpmvPlan<'static, T>> {
        let SpmvRequest { pattern, problem } = request;
        let (plan, explanation) = plan_spmv::<T, I, O>(self, &pattern, &problem)?;
        let device = pattern.device().clone();
        let staged =
            Staged { device, plan, pattern: pattern.id(), nnz: pattern.nnz(), copies: None };
        Ok(SpmvPlan { inner: Inner::Cuda(Box::new(staged)), explanation })
    }
}

/// Times every algorithm on operands of the problem's shape.
fn tune<T: CpuScalar, I: Index, O: Index>(
    device: &Device,
    pattern: &PatternRef<'_, I, O>,
    problem: &Problem,
) -> Result<(gustav_cpu::Options, Report)> {
    let values = vec![T::one(); problem.nnz];
    let a: CsrView<'_, T, I, O> = pattern.view().with_values(&values)?;
    let x = vec![T::zero(); problem.inner()];
    let mut y = vec![T::zero(); problem.output_rows()];
    autotuned(problem.operation, device.options(), &mut |options| {
        let mut plan = gustav_cpu::SpmvPlan::new(a, problem, options)?;
        median_seconds(&mut || plan.execute(a, &x, &mut y, ()))
    })
}
