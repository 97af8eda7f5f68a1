//! The plan of an attention over a pattern.

use gustav_core::{
    AttentionRequest, DenseView, DenseViewMut, HeadValues, Index, PatternRef, Plans, Problem,
    Result, Scalar, ScoreOptions,
};
use gustav_cpu::CpuScalar;

use super::heads::{Bias, Staging, host_only};
use super::{accessors, explained};
use crate::cuda::{DeviceBuffer, DeviceDense, DevicePattern, Stream, plan_attention};
use crate::explain::facts;
use crate::operands::{DenseOperand, DenseResult, IntoOperand, SparseValues, VectorResult, mixed};
use crate::{Device, Explanation};

/// A plan for O = softmax(leaky(scale·Q·Kᵀ + bias))·V, over the nonzeros of every row of one pattern, made
/// by `pattern.attention(columns).plan(&device)`; see [`SpmmPlan`](crate::SpmmPlan) for where
/// operands are.
///
/// Heads lie side by side in the columns of Q, K, V and O, or one above the other in their rows, as
/// the shape of each matrix says; all are row-major. Nothing of the size of the nonzeros is stored.
/// Results are the same to the bit from run to run; on a GPU for operands of the same alignment.
///
/// ```
/// use gustav::{AttentionCall, AttentionPlan, Dense, Device, Layout, Pattern};
///
/// // The first row sees both columns, the second the last one.
/// let pattern = Pattern::<u32, u32>::new(2, 2, vec![0, 2, 3], vec![0, 1, 1])?;
/// let q = Dense::from_row_major(2, 1, vec![0.0, 1.0])?;
/// let k = Dense::from_row_major(2, 1, vec![1.0, 2.0])?;
/// let v = Dense::from_row_major(2, 2, vec![1.0, 0.0, 3.0, 8.0])?;
/// let mut o = Dense::<f64>::zeros(2, 2, Layout::RowMajor)?;
///
/// let request = pattern.attention(1).value_columns(2);
/// let mut plan: AttentionPlan<'_, f64> = request.plan(&Device::cpu())?;
/// plan.execute(&q, &k, &v, &mut o, AttentionCall::new().scale(1.0))?;
/// assert_eq!(o.data(), [2.0, 4.0, 3.0, 8.0]);
/// # Ok::<(), gustav::Error>(())
/// ```
pub struct AttentionPlan<'a, T: CpuScalar> {
    inner: Inner<'a, T>,
    explanation: Explanation,
}

enum Inner<'a, T: CpuScalar> {
    Cpu(Box<gustav_cpu::AttentionPlan<'a, T>>),
    Cuda(Box<Staged<T>>),
}

/// A plan on a GPU with copies of operands in host memory, made when there are such.
struct Staged<T: CpuScalar> {
    plan: gustav_cuda::attention::AttentionPlan<T>,
    staging: Staging<T>,
    q: Option<DeviceDense<T>>,
    k: Option<DeviceDense<T>>,
    v: Option<DeviceDense<T>>,
    o: Option<DeviceDense<T>>,
    lse: Option<DeviceBuffer<T::Accum>>,
}

/// Options of one execution of an [`AttentionPlan`]; `()` is taken in its place.
pub struct AttentionCall<'v, T: Scalar> {
    scores: ScoreOptions<T::Accum>,
    bias: Option<Bias<'v, T>>,
    lse: Option<VectorResult<'v, T::Accum>>,
    stream: Option<&'v Stream>,
}

impl<T: Scalar> Default for AttentionCall<'_, T> {
    fn default() -> Self {
        AttentionCall { scores: ScoreOptions::default(), bias: None, lse: None, stream: None }
    }
}

impl<T: Scalar> From<()> for AttentionCall<'_, T> {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl<'v, T: Scalar> AttentionCall<'v, T> {
    /// Scores over √d for Q and K of d columns, without a bias.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the factor of the scores, else 1/√d.
    #[must_use]
    pub fn scale(mut self, scale: T::Accum) -> Self {
        self.scores.scale = Some(scale);
        self
    }

    /// Sets the negative slope of a leaky ReLU of the scores, else 1: scores s = scale·⟨q, k⟩ + bias
    /// that are not above zero become slope·s.
    #[must_use]
    pub fn negative_slope(mut self, slope: T::Accum) -> Self {
        self.scores.negative_slope = Some(slope);
        self
    }

    /// Adds a value for every nonzero to the scores, one of each head or of all.
    #[must_use]
    pub fn bias(mut self, values: impl Into<SparseValues<'v, T>>, order: HeadValues) -> Self {
        self.bias = Some(Bias { values: values.into(), order });
        self
    }

    /// Keeps what [`AttentionGradientsPlan`](crate::AttentionGradientsPlan) needs: for every head
    /// and row, `[head · rows + row]`, the logarithm of the sum of the exponentials of the scores;
    /// −∞ for a row without any.
    #[must_use]
    pub fn lse(mut self, lse: impl Into<VectorResult<'v, T::Accum>>) -> Self {
        self.lse = Some(lse.into());
        self
    }

    /// Queues the work on `stream` (GPU).
    #[must_use]
    pub fn on(mut self, stream: &'v Stream) -> Self {
        self.stream = Some(stream);
        self
    }
}

impl<T: CpuScalar> AttentionPlan<'_, T> {
    accessors!();

    /// O for every head. Q has as many rows as the pattern, K and V as the pattern has columns.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) when a matrix does not fit the pattern and the heads,
    /// [`Error::Length`](crate::Error::Length) for another number of values of the bias or the
    /// rows, [`Error::Pattern`](crate::Error::Pattern) for a bias of another pattern,
    /// [`Error::Argument`](crate::Error::Argument) for operands in memory of different kinds, and
    /// on a GPU for results that overlap operands;
    /// [`Error::Unsupported`](crate::Error::Unsupported) for a stream on the CPU, and on a GPU what
    /// its driver refuses.
    pub fn execute<'v>(
        &mut self,
        q: impl IntoOperand<DenseOperand<'v, T>>,
        k: impl IntoOperand<DenseOperand<'v, T>>,
        v: impl IntoOperand<DenseOperand<'v, T>>,
        o: impl IntoOperand<DenseResult<'v, T>>,
        call: impl Into<AttentionCall<'v, T>>,
    ) -> Result<()> {
        use {DenseOperand as D, DenseResult as R};
        let call = call.into();
        let (q, k, v) = (q.into_operand()?, k.into_operand()?, v.into_operand()?);
        let problem = &self.explanation.problem;
        match (&mut self.inner, q, k, v, o.into_operand()?) {
            (Inner::Cpu(plan), D::Host(q), D::Host(k), D::Host(v), R::Host(o)) => {
                host_only(call.stream, problem)?;
                plan.execute(q, k, v, o, call.on_host(&self.explanation.device)?)
            }
            (Inner::Cuda(staged), D::Host(q), D::Host(k), D::Host(v), R::Host(o)) => {
                let stream = call.stream;
                let call = call.on_host(&self.explanation.device)?;
                staged.execute([q, k, v], o, call, stream, problem)
            }
            (Inner::Cuda(staged), D::Device(q), D::Device(k), D::Device(v), R::Device(o)) => {
                let call = call.on_device(&self.explanation.device)?;
                staged.plan.execute(q, k, v, o, call)
            }
            _ => mixed(&self.explanation.device),
        }
    }
}

impl<'v, T: Scalar> AttentionCall<'v, T> {
    /// The call of the CPU's backend.
    fn on_host(self, device: &str) -> Result<gustav_cpu::AttentionCall<'v, T>> {
        let bias = self.bias.map(|bias| bias.on_host(device)).transpose()?;
        let lse = match self.lse {
            None => None,
            Some(VectorResult::Host(lse)) => Some(lse),
            Some(VectorResult::Device(_)) => return mixed(device),
        };
        Ok(gustav_cpu::AttentionCall { scores: self.scores, bias, lse })
    }

    /// The call of the GPU's backend.
    fn on_device(self, device: &str) -> Result<gustav_cuda::attention::AttentionCall<'v, T>> {
        let mut call = gustav_cuda::attention::AttentionCall::new().scores(self.scores);
        if let Some(bias) = self.bias {
            let (values, order) = bias.on_device(device)?;
            call = call.bias(values, order);
        }
        match self.lse {
            None => {}
            Some(VectorResult::Device(lse)) => call = call.lse(lse),
            Some(VectorResult::Host(_)) => return mixed(device),
        }
        Ok(match self.stream {
            Some(stream) => call.on(stream),
            None => call,
        })
    }
}

impl<T: CpuScalar> Staged<T> {
    fn execute(
        &mut self,
        [q, k, v]: [DenseView<'_, T>; 3],
        o: DenseViewMut<'_, T>,
        call: gustav_cpu::AttentionCall<'_, T>,
        stream: Option<&Stream>,
        p: &Problem,
    ) -> Result<()> {
        let Staged { plan, staging, .. } = self;
        let operand = |name, rows, columns| staging.operand(p, name, rows, columns);
        operand("Q", p.rows, p.columns).check(&q)?;
        operand("K", p.cols, p.columns).check(&k)?;
        operand("V", p.cols, p.value_columns).check(&v)?;
        operand("O", p.rows, p.value_columns).check(&o.as_view())?;
        let bias = call.bias.map(|bias| staging.bias(p, bias)).transpose()?;
        let q = staging.written(&mut self.q, &q)?;
        let k = staging.written(&mut self.k, &k)?;
        let v = staging.written(&mut self.v, &v)?;
        let on_o = staging.output(&mut self.o, &o)?;
        let mut on = gustav_cuda::attention::AttentionCall::new().scores(call.scores);
        if let Some((values, order)) = &bias {
            on = on.bias(values, *order);
        }
        if let Some(stream) = stream {
            on = on.on(stream);
        }
        let Some(lse) = call.lse else {
            plan.execute(q, k, v, on_o, on)?;
            return staging.returned(on_o, o);
        };
        staging.check_rows(p, lse.len())?;
        let on_lse = staging.of_rows(&mut self.lse, lse.len())?;
        plan.execute(q, k, v, on_o, on.lse(on_lse))?;
        on_lse.read(lse)?;
        staging.returned(on_o, o)
    }
}

impl<'a, T: CpuScalar, I: Index, O: Index> Plans<AttentionRequest<PatternRef<'a, I, O>>, T>
    for Device
{
    type Plan = AttentionPlan<'a, T>;

    fn plan(
        &self,
        request: AttentionRequest<PatternRef<'a, I, O>>,
    ) -> Result<AttentionPlan<'a, T>> {
        let AttentionRequest { pattern, problem } = request;
        if let Some(gpu) = self.gpu() {
            let on_device = DevicePattern::upload(&gpu.device, pattern.view())?;
            let plan: AttentionPlan<'_, T> =
                self.plan(AttentionRequest { pattern: on_device, problem })?;
            let facts = facts(self, &pattern.view());
            let explanation = Explanation { facts, ..plan.explanation };
            return Ok(AttentionPlan { inner: plan.inner, explanation });
        }
        let problem = problem.bound::<T>(&pattern.clone().into())?;
        self.offers(&problem)?;
        let facts = facts(self, &pattern.view());
        let inner = gustav_cpu::AttentionPlan::new(pattern, &problem, self.options())?;
        let bytes = inner.workspace_bytes();
        let explanation = explained(self, facts, &problem, inner.choice(), None, bytes);
        Ok(AttentionPlan { inner: Inner::Cpu(Box::new(inner)), explanation })
    }
}

impl<T: CpuScalar, I: Index, O: Index> Plans<AttentionRequest<DevicePattern<I, O>>, T> for Device {
    type Plan = AttentionPlan<'static, T>;

    fn plan(
        &self,
        request: AttentionRequest<DevicePattern<I, O>>,
    ) -> Result<AttentionPlan<'static, T>> {
        let AttentionRequest { pattern, problem } = request;
        let (plan, explanation) = plan_attention::<T, I, O>(self, &pattern, &problem)?;
        let staging = Staging::new(&pattern);
        let (q, k, v, o) = (None, None, None, None);
        let staged = Staged { plan, staging, q, k, v, o, lse: None };
        Ok(AttentionPlan { inner: Inner::Cuda(Box::new(staged)), explanation })
    }
}
