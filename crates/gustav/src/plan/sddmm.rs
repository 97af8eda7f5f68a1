//! The plan of α·(X·Yᵀ) + β·values at the nonzeros of a pattern.

use gustav_core::{
    Batch, Dense, DenseView, Index, PatternRef, Plans, Problem, Result, Scalar, Scale,
    SddmmRequest, validate,
};
use gustav_cpu::CpuScalar;

use super::{accessors, autotuned, explained, median_seconds, options, written};
use crate::cuda::{self, DeviceBuffer, DeviceDense, DevicePattern, Stream, plan_sddmm};
use crate::explain::{Report, facts};
use crate::operands::{DenseOperand, IntoOperand, SparseValues, VectorResult, mixed};
use crate::{Device, Explanation};

/// A plan for dense × dense products at the nonzeros of one pattern, made by
/// `pattern.sddmm(depth).plan(&device)`; see [`SpmmPlan`](crate::SpmmPlan) for where operands are.
///
/// Results of our algorithms are the same to the bit from run to run; on a GPU for operands of the
/// same alignment and leading dimension.
///
/// ```
/// use gustav::{Csr, Dense, Device, SddmmCall};
///
/// let a = Csr::<f64>::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 10.0, 100.0])?;
/// let x = Dense::from_row_major(2, 2, vec![1.0, 2.0, 3.0, 4.0])?;
/// let y = Dense::from_row_major(3, 2, vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0])?;
/// let mut values = vec![0.0; a.nnz()];
///
/// let mut plan = a.pattern().sddmm(2).plan(&Device::cpu())?;
/// plan.execute(&x, &y, &mut values, ())?;
/// assert_eq!(values, [1.0, 3.0, 4.0]);
/// // (X·Yᵀ)∘A.
/// plan.execute(&x, &y, &mut values, SddmmCall::new().factors(&a))?;
/// assert_eq!(values, [1.0, 30.0, 400.0]);
/// # Ok::<(), gustav::Error>(())
/// ```
pub struct SddmmPlan<'a, T: CpuScalar> {
    inner: Inner<'a, T>,
    explanation: Explanation,
}

enum Inner<'a, T: CpuScalar> {
    Cpu(Box<gustav_cpu::SddmmPlan<'a, T>>),
    Cuda(Box<Staged<T>>),
}

/// A plan on a GPU with copies of operands in host memory, made when there are such.
struct Staged<T: CpuScalar> {
    device: gustav_cuda::Device,
    plan: gustav_cuda::SddmmPlan<T>,
    pattern: gustav_core::PatternId,
    nnz: usize,
    x: Option<DeviceDense<T>>,
    y: Option<DeviceDense<T>>,
    values: Option<DeviceBuffer<T>>,
}

/// Options of one execution of a [`SddmmPlan`]; `()` and a [`Scale`] are taken in its place.
#[derive(Clone, Copy, Debug)]
pub struct SddmmCall<'v, T: Scalar> {
    pub(crate) scale: Scale<T::Accum>,
    pub(crate) factors: Option<SparseValues<'v, T>>,
    pub(crate) stream: Option<&'v Stream>,
}

impl<T: Scalar> Default for SddmmCall<'_, T> {
    fn default() -> Self {
        SddmmCall { scale: Scale::new(), factors: None, stream: None }
    }
}

impl<'v, T: Scalar> SddmmCall<'v, T> {
    /// X·Yᵀ at the nonzeros.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets α, else 1.
    #[must_use]
    pub fn alpha(mut self, alpha: T::Accum) -> Self {
        self.scale = self.scale.alpha(alpha);
        self
    }

    /// Sets β, else 0, which leaves the values unread.
    #[must_use]
    pub fn beta(mut self, beta: T::Accum) -> Self {
        self.scale = self.scale.beta(beta);
        self
    }

    /// Multiplies every value by one of `factors`: a matrix of the plan's pattern, or a slice or
    /// buffer in the order of its nonzeros.
    #[must_use]
    pub fn factors(mut self, factors: impl Into<SparseValues<'v, T>>) -> Self {
        self.factors = Some(factors.into());
        self
    }

    /// Queues the work on `stream` (GPU).
    #[must_use]
    pub fn on(mut self, stream: &'v Stream) -> Self {
        self.stream = Some(stream);
        self
    }
}

impl<T: Scalar> From<()> for SddmmCall<'_, T> {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl<T: Scalar> From<Scale<T::Accum>> for SddmmCall<'_, T> {
    fn from(scale: Scale<T::Accum>) -> Self {
        SddmmCall { scale, ..Self::default() }
    }
}

impl<T: CpuScalar> SddmmPlan<'_, T> {
    accessors!();

    /// `values[p] = α·⟨X[row p], Y[column p]⟩·factors[p] + β·values[p]` for every nonzero p, in the
    /// order of the pattern; factors are 1 unless the call gives them. `x` has as many rows as the
    /// pattern, `y` as the pattern has columns, both the depth of the plan as columns, in the
    /// layouts of the plan.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) when X or Y does not fit,
    /// [`Error::Length`](crate::Error::Length) for another number of values or factors,
    /// [`Error::Pattern`](crate::Error::Pattern) for factors of another pattern,
    /// [`Error::Argument`](crate::Error::Argument) for operands in memory of different kinds,
    /// [`Error::Unsupported`](crate::Error::Unsupported) for a stream on the CPU, and on a GPU what
    /// its driver refuses.
    pub fn execute<'v>(
        &mut self,
        x: impl IntoOperand<DenseOperand<'v, T>>,
        y: impl IntoOperand<DenseOperand<'v, T>>,
        values: impl IntoOperand<VectorResult<'v, T>>,
        call: impl Into<SddmmCall<'v, T>>,
    ) -> Result<()> {
        use {DenseOperand as D, SparseValues as F, VectorResult as V};
        let SddmmCall { scale, factors, stream } = call.into();
        let (x, y, values) = (x.into_operand()?, y.into_operand()?, values.into_operand()?);
        match (&mut self.inner, x, y, values, factors) {
            (Inner::Cpu(plan), D::Host(x), D::Host(y), V::Host(values), None) => {
                host_only(stream, &self.explanation.problem)?;
                plan.execute(x, y, values, scale)
            }
            (Inner::Cpu(plan), D::Host(x), D::Host(y), V::Host(values), Some(F::Host(factors))) => {
                host_only(stream, &self.explanation.problem)?;
                let factors = Some(factors);
                plan.execute(x, y, values, gustav_cpu::SddmmCall { scale, factors })
            }
            (Inner::Cuda(staged), D::Device(x), D::Device(y), V::Device(values), None) => {
                staged.plan.execute(x, y, values, queued(scale, stream))
            }
            (
                Inner::Cuda(staged),
                D::Device(x),
                D::Device(y),
                V::Device(values),
                Some(F::Device(factors)),
            ) => staged.plan.execute(x, y, values, queued(scale, stream).factors(factors)),
            (Inner::Cuda(staged), D::Host(x), D::Host(y), V::Host(values), None) => {
                staged.execute(x, y, values, None, queued(scale, stream), &self.explanation.problem)
            }
            (
                Inner::Cuda(staged),
                D::Host(x),
                D::Host(y),
                V::Host(values),
                Some(F::Host(factors)),
            ) => {
                let batch = self.explanation.problem.batch;
                let factors = factors.fit_batch("factors", staged.pattern, staged.nnz, batch)?;
                let call = queued(scale, stream);
                staged.execute(x, y, values, Some(factors), call, &self.explanation.problem)
            }
            _ => mixed(&self.explanation.device),
        }
    }
}

/// The call of the GPU's backend.
pub(crate) fn queued<'v, T: Scalar>(
    scale: Scale<T::Accum>,
    stream: Option<&'v Stream>,
) -> gustav_cuda::SddmmCall<'v, T> {
    let call = gustav_cuda::SddmmCall::from(scale);
    match stream {
        Some(stream) => call.on(stream),
        None => call,
    }
}

/// Refuses a stream, which the CPU has not.
fn host_only(stream: Option<&Stream>, problem: &Problem) -> Result<()> {
    match stream {
        Some(stream) => cuda::Call::<f32>::new().on(stream).check_host(problem),
        None => Ok(()),
    }
}

impl<T: CpuScalar> Staged<T> {
    fn execute(
        &mut self,
        x: DenseView<'_, T>,
        y: DenseView<'_, T>,
        values: &mut [T],
        factors: Option<&[T]>,
        call: gustav_cuda::SddmmCall<'_, T>,
        problem: &Problem,
    ) -> Result<()> {
        check(problem.batch_c("X"), &x)?;
        check(problem.batch_b("Y"), &y)?;
        validate::length("values", problem.nnz.saturating_mul(problem.batch), values.len())?;
        let device = &self.device;
        let on = |values: &[T], what| DeviceBuffer::from_slice(device, values, what);
        let factors = factors.map(|f| on(f, "factors on the device")).transpose()?;
        let x = written(device, &mut self.x, &x)?;
        let y = written(device, &mut self.y, &y)?;
        let on_values = match &mut self.values {
            Some(held) => {
                if call.reads() {
                    held.write(values)?;
                }
                held
            }
            none => none.insert(on(values, "values on the device")?),
        };
        match &factors {
            Some(factors) => self.plan.execute(x, y, on_values, call.factors(factors))?,
            None => self.plan.execute(x, y, on_values, call)?,
        }
        on_values.read(values)
    }
}

/// Refuses a dense operand that does not fit, before it is moved.
fn check<T: CpuScalar>(batch: Batch, m: &DenseView<'_, T>) -> Result<()> {
    batch.strides((m.nrows(), m.ncols()), m.layout(), m.leading_dimension()).map(drop)
}

impl<'a, T: CpuScalar, I: Index, O: Index> Plans<SddmmRequest<PatternRef<'a, I, O>>, T> for Device {
    type Plan = SddmmPlan<'a, T>;

    fn plan(&self, request: SddmmRequest<PatternRef<'a, I, O>>) -> Result<SddmmPlan<'a, T>> {
        let SddmmRequest { pattern, problem } = request;
        if let Some(gpu) = self.gpu() {
            let on_device = DevicePattern::upload(&gpu.device, pattern.view())?;
            let plan: SddmmPlan<'_, T> = self.plan(SddmmRequest { pattern: on_device, problem })?;
            let explanation =
                Explanation { facts: facts(self, &pattern.view()), ..plan.explanation };
            return Ok(SddmmPlan { inner: plan.inner, explanation });
        }
        let problem = problem.bound::<T>(&pattern.clone().into())?;
        self.offers(&problem)?;
        let (options, tuned) = options(self, || tune::<T, I, O>(self, &pattern, &problem))?;
        let facts = facts(self, &pattern.view());
        let inner = gustav_cpu::SddmmPlan::new(pattern, &problem, &options)?;
        let bytes = inner.workspace_bytes();
        let explanation = explained(self, facts, &problem, inner.choice(), tuned, bytes);
        Ok(SddmmPlan { inner: Inner::Cpu(Box::new(inner)), explanation })
    }
}

impl<T: CpuScalar, I: Index, O: Index> Plans<SddmmRequest<DevicePattern<I, O>>, T> for Device {
    type Plan = SddmmPlan<'static, T>;

    fn plan(&self, request: SddmmRequest<DevicePattern<I, O>>) -> Result<SddmmPlan<'static, T>> {
        let SddmmRequest { pattern, problem } = request;
        let (plan, explanation) = plan_sddmm::<T, I, O>(self, &pattern, &problem)?;
        let (device, nnz) = (pattern.device().clone(), pattern.nnz());
        let staged =
            Staged { device, plan, pattern: pattern.id(), nnz, x: None, y: None, values: None };
        Ok(SddmmPlan { inner: Inner::Cuda(Box::new(staged)), explanation })
    }
}

/// Times every algorithm on operands of the problem's shape.
fn tune<T: CpuScalar, I: Index, O: Index>(
    device: &Device,
    pattern: &PatternRef<'_, I, O>,
    problem: &Problem,
) -> Result<(gustav_cpu::Options, Report)> {
    let x = Dense::<T>::zeros(problem.rows * problem.batch, problem.columns, problem.layout_c)?;
    let y = Dense::<T>::zeros(problem.cols * problem.batch, problem.columns, problem.layout_b)?;
    let mut values = vec![T::zero(); problem.nnz.saturating_mul(problem.batch)];
    autotuned(problem.operation, device.options(), &mut |options| {
        let mut plan = gustav_cpu::SddmmPlan::new(pattern.view(), problem, options)?;
        median_seconds(&mut || plan.execute(&x, &y, &mut values, ()))
    })
}
