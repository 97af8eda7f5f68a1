//! The plan of a softmax over the rows of a pattern, and of its gradient.

use gustav_core::{
    HeadValues, Index, PatternId, PatternRef, Plans, Problem, Result, SoftmaxRequest,
};
use gustav_cpu::CpuScalar;

use super::heads::host_only;
use super::{accessors, explained};
use crate::cuda::{DeviceBuffer, DevicePattern, Stream, plan_softmax};
use crate::explain::facts;
use crate::operands::{IntoOperand, SparseValues, VectorResult, mixed};
use crate::{Device, Explanation};

/// A plan for the softmax of values over every row of one pattern, and for its gradient, made by
/// `pattern.softmax().plan(&device)`; see [`SpmmPlan`](crate::SpmmPlan) for where operands are.
///
/// A row with scores of −∞ alone has weights of zero; NaN or +∞ makes a row NaN.
///
/// ```
/// use gustav::{Device, Pattern, SoftmaxPlan};
///
/// let pattern = Pattern::<u32, u32>::new(2, 2, vec![0, 2, 3], vec![0, 1, 1])?;
/// let mut weights = vec![0.0f64; 3];
/// let mut plan: SoftmaxPlan<'_, f64> = pattern.softmax().plan(&Device::cpu())?;
/// plan.execute(&[1.0, 1.0, 5.0], &mut weights, ())?;
/// assert_eq!(weights, [0.5, 0.5, 1.0]);
///
/// let mut of_scores = vec![0.0; 3];
/// plan.gradient(&weights, &[1.0, 0.0, 7.0], &mut of_scores, ())?;
/// assert_eq!(of_scores, [0.25, -0.25, 0.0]);
/// # Ok::<(), gustav::Error>(())
/// ```
pub struct SoftmaxPlan<'a, T: CpuScalar> {
    inner: Inner<'a, T>,
    explanation: Explanation,
}

enum Inner<'a, T: CpuScalar> {
    Cpu(Box<gustav_cpu::SoftmaxPlan<'a, T>>),
    Cuda(Box<Staged<T>>),
}

/// A plan on a GPU.
struct Staged<T: CpuScalar> {
    device: gustav_cuda::Device,
    plan: gustav_cuda::softmax::SoftmaxPlan<T>,
    pattern: PatternId,
}

/// Options of one execution of a [`SoftmaxPlan`]; `()` is taken in its place.
#[derive(Clone, Copy, Debug, Default)]
pub struct SoftmaxCall<'v> {
    order: HeadValues,
    stream: Option<&'v Stream>,
}

impl From<()> for SoftmaxCall<'_> {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl<'v> SoftmaxCall<'v> {
    /// Values head after head.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the values of nonzeros and heads are, else head after head.
    #[must_use]
    pub fn order(mut self, order: HeadValues) -> Self {
        self.order = order;
        self
    }

    /// Queues the work on `stream` (GPU).
    #[must_use]
    pub fn on(mut self, stream: &'v Stream) -> Self {
        self.stream = Some(stream);
        self
    }

    /// The call of the GPU's backend.
    fn on_device(self) -> gustav_cuda::softmax::SoftmaxCall<'v> {
        let call = gustav_cuda::softmax::SoftmaxCall::new().order(self.order);
        match self.stream {
            Some(stream) => call.on(stream),
            None => call,
        }
    }
}

impl<T: CpuScalar> SoftmaxPlan<'_, T> {
    accessors!();

    /// `weights[p] = exp(scores[p]) / Σ exp(scores)` over the nonzeros of p's row, for every head.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) for another number of values than one for every
    /// nonzero and head, [`Error::Pattern`](crate::Error::Pattern) for scores of another pattern,
    /// [`Error::Argument`](crate::Error::Argument) for operands in memory of different kinds and
    /// for [`HeadValues::Shared`] with several heads;
    /// [`Error::Unsupported`](crate::Error::Unsupported) for a stream on the CPU, and on a GPU what
    /// its driver refuses.
    pub fn execute<'v>(
        &mut self,
        scores: impl Into<SparseValues<'v, T>>,
        weights: impl IntoOperand<VectorResult<'v, T>>,
        call: impl Into<SoftmaxCall<'v>>,
    ) -> Result<()> {
        use {SparseValues as S, VectorResult as V};
        let (call, problem) = (call.into(), &self.explanation.problem);
        match (&mut self.inner, scores.into(), weights.into_operand()?) {
            (Inner::Cpu(plan), S::Host(scores), V::Host(weights)) => {
                host_only(call.stream, problem)?;
                plan.execute(scores, weights, call.order)
            }
            (Inner::Cuda(staged), S::Host(scores), V::Host(weights)) => {
                let Staged { device, plan, pattern } = &mut **staged;
                let expected = call.order.len(problem.batch, problem.nnz);
                let scores = scores.fit("the scores", *pattern, expected)?;
                let scores = DeviceBuffer::from_slice(device, scores, "scores")?;
                let mut on = DeviceBuffer::zeros(device, weights.len(), "weights")?;
                plan.execute(&scores, &mut on, call.on_device())?;
                on.read(weights)
            }
            (Inner::Cuda(staged), S::Device(scores), V::Device(weights)) => {
                staged.plan.execute(scores, weights, call.on_device())
            }
            _ => mixed(&self.explanation.device),
        }
    }

    /// The gradient with respect to the scores, given the weights and the gradient with respect to
    /// them: `to[p] = weights[p]·(of_weights[p] − Σ weights·of_weights)`.
    ///
    /// # Errors
    /// As [`SoftmaxPlan::execute`].
    pub fn gradient<'v>(
        &mut self,
        weights: impl Into<SparseValues<'v, T>>,
        of_weights: impl Into<SparseValues<'v, T>>,
        to: impl IntoOperand<VectorResult<'v, T>>,
        call: impl Into<SoftmaxCall<'v>>,
    ) -> Result<()> {
        use {SparseValues as S, VectorResult as V};
        let (call, problem) = (call.into(), &self.explanation.problem);
        match (&mut self.inner, weights.into(), of_weights.into(), to.into_operand()?) {
            (Inner::Cpu(plan), S::Host(weights), S::Host(of_weights), V::Host(to)) => {
                host_only(call.stream, problem)?;
                plan.gradient(weights, of_weights, to, call.order)
            }
            (Inner::Cuda(staged), S::Host(weights), S::Host(of_weights), V::Host(to)) => {
                let Staged { device, plan, pattern } = &mut **staged;
                let expected = call.order.len(problem.batch, problem.nnz);
                let weights = weights.fit("the weights", *pattern, expected)?;
                let of_weights =
                    of_weights.fit("the gradient of the weights", *pattern, expected)?;
                let weights = DeviceBuffer::from_slice(device, weights, "weights")?;
                let of_weights =
                    DeviceBuffer::from_slice(device, of_weights, "gradient of weights")?;
                let mut on = DeviceBuffer::zeros(device, to.len(), "gradient of scores")?;
                plan.gradient(&weights, &of_weights, &mut on, call.on_device())?;
                on.read(to)
            }
            (Inner::Cuda(staged), S::Device(weights), S::Device(of_weights), V::Device(to)) => {
                staged.plan.gradient(weights, of_weights, to, call.on_device())
            }
            _ => mixed(&self.explanation.device),
        }
    }
}

impl<'a, T: CpuScalar, I: Index, O: Index> Plans<SoftmaxRequest<PatternRef<'a, I, O>>, T>
    for Device
{
    type Plan = SoftmaxPlan<'a, T>;

    fn plan(&self, request: SoftmaxRequest<PatternRef<'a, I, O>>) -> Result<SoftmaxPlan<'a, T>> {
        let SoftmaxRequest { pattern, problem } = request;
        if let Some(gpu) = self.gpu() {
            let on_device = DevicePattern::upload(&gpu.device, pattern.view())?;
            let plan: SoftmaxPlan<'_, T> =
                self.plan(SoftmaxRequest { pattern: on_device, problem })?;
            let facts = facts(self, &pattern.view());
            let explanation = Explanation { facts, ..plan.explanation };
            return Ok(SoftmaxPlan { inner: plan.inner, explanation });
        }
        let problem: Problem = problem.bound::<T>(&pattern.clone().into())?;
        self.offers(&problem)?;
        let facts = facts(self, &pattern.view());
        let inner = gustav_cpu::SoftmaxPlan::new(pattern, &problem, self.options())?;
        let bytes = inner.workspace_bytes();
        let explanation = explained(self, facts, &problem, inner.choice(), None, bytes);
        Ok(SoftmaxPlan { inner: Inner::Cpu(Box::new(inner)), explanation })
    }
}

impl<T: CpuScalar, I: Index, O: Index> Plans<SoftmaxRequest<DevicePattern<I, O>>, T> for Device {
    type Plan = SoftmaxPlan<'static, T>;

    fn plan(
        &self,
        request: SoftmaxRequest<DevicePattern<I, O>>,
    ) -> Result<SoftmaxPlan<'static, T>> {
        let SoftmaxRequest { pattern, problem } = request;
        let (plan, explanation) = plan_softmax::<T, I, O>(self, &pattern, &problem)?;
        let (device, pattern) = (pattern.device().clone(), pattern.id());
        let staged = Staged { device, plan, pattern };
        Ok(SoftmaxPlan { inner: Inner::Cuda(Box::new(staged)), explanation })
    }
}
