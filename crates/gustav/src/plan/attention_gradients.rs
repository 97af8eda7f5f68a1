//! The plan of the gradients of an attention over a pattern.

use gustav_core::{
    AttentionGradientsRequest, DenseView, DenseViewMut, HeadValues, Index, PatternRef, Plans,
    Problem, Result, Scalar, ScoreOptions,
};
use gustav_cpu::CpuScalar;

use super::heads::{Bias, Staging, host_only};
use super::{accessors, explained};
use crate::cuda::{DeviceBuffer, DeviceDense, DevicePattern, Stream, plan_attention_gradients};
use crate::explain::facts;
use crate::operands::{
    DenseOperand, DenseResult, SparseValues, VectorOperand, VectorResult, mixed,
};
use crate::{Device, Explanation};

/// A plan for the gradients of [`AttentionPlan`](crate::AttentionPlan) with respect to Q, K, V and
/// the bias, made by `pattern.attention(columns).gradients().plan(&device)`.
///
/// The weights are made again from Q, K and the logarithms that the product stored. A plan holds the
/// transposed pattern and, on a GPU, two values for every nonzero and head in the type of sums, 8
/// bytes or 16 in f64; heads go in groups of at most 256 MiB, one head at least. A row without
/// nonzeros has gradients of zero.
///
/// ```
/// use gustav::{
///     AttentionCall, AttentionGradients, AttentionGradientsPlan, AttentionInputs, AttentionPlan, Dense, Device,
///     Layout, Pattern,
/// };
///
/// let pattern = Pattern::<u32, u32>::new(1, 2, vec![0, 2], vec![0, 1])?;
/// let q = Dense::from_row_major(1, 1, vec![0.0])?;
/// let k = Dense::from_row_major(2, 1, vec![1.0, 3.0])?;
/// let v = Dense::from_row_major(2, 1, vec![2.0, 6.0])?;
/// let zeros = |rows| Dense::<f64>::zeros(rows, 1, Layout::RowMajor);
/// let (mut o, mut lse) = (zeros(1)?, vec![0.0]);
/// let mut plan: AttentionPlan<'_, f64> = pattern.attention(1).plan(&Device::cpu())?;
/// plan.execute(&q, &k, &v, &mut o, AttentionCall::new().lse(&mut lse))?;
///
/// let of_o = Dense::from_row_major(1, 1, vec![1.0])?;
/// let (mut of_q, mut of_k, mut of_v) = (zeros(1)?, zeros(2)?, zeros(2)?);
/// let mut plan: AttentionGradientsPlan<'_, f64> = pattern.attention(1).gradients().plan(&Device::cpu())?;
/// let inputs = AttentionInputs::new(&q, &k, &v, &o, &lse, &of_o);
/// plan.execute(inputs, AttentionGradients::new(&mut of_q, &mut of_k, &mut of_v), ())?;
/// // Weights of ½ each; the score of the second, which has the larger value, should grow.
/// assert_eq!(of_v.data(), [0.5, 0.5]);
/// assert_eq!(of_q.data(), [2.0]);
/// # Ok::<(), gustav::Error>(())
/// ```
pub struct AttentionGradientsPlan<'a, T: CpuScalar> {
    inner: Inner<'a, T>,
    explanation: Explanation,
}

enum Inner<'a, T: CpuScalar> {
    Cpu(Box<gustav_cpu::AttentionGradientsPlan<'a, T>>),
    Cuda(Box<Staged<T>>),
}

/// A plan on a GPU with copies of operands in host memory, made when there are such.
struct Staged<T: CpuScalar> {
    plan: gustav_cuda::attention::AttentionGradientsPlan<T>,
    staging: Staging<T>,
    inputs: [Option<DeviceDense<T>>; 5],
    lse: Option<DeviceBuffer<T::Accum>>,
    gradients: [Option<DeviceDense<T>>; 3],
    of_bias: Option<DeviceBuffer<T>>,
}

/// What an [`AttentionGradientsPlan`] reads.
pub struct AttentionInputs<'v, T: Scalar> {
    /// Q.
    pub q: DenseOperand<'v, T>,
    /// K.
    pub k: DenseOperand<'v, T>,
    /// V.
    pub v: DenseOperand<'v, T>,
    /// O, as the product left it.
    pub o: DenseOperand<'v, T>,
    /// What [`AttentionCall::lse`](crate::AttentionCall::lse) stored.
    pub lse: VectorOperand<'v, T::Accum>,
    /// The gradient with respect to O.
    pub of_o: DenseOperand<'v, T>,
}

impl<'v, T: Scalar> AttentionInputs<'v, T> {
    /// Of operands in this order.
    pub fn new(
        q: impl Into<DenseOperand<'v, T>>,
        k: impl Into<DenseOperand<'v, T>>,
        v: impl Into<DenseOperand<'v, T>>,
        o: impl Into<DenseOperand<'v, T>>,
        lse: impl Into<VectorOperand<'v, T::Accum>>,
        of_o: impl Into<DenseOperand<'v, T>>,
    ) -> Self {
        let (q, k, v, o) = (q.into(), k.into(), v.into(), o.into());
        AttentionInputs { q, k, v, o, lse: lse.into(), of_o: of_o.into() }
    }
}

/// What an [`AttentionGradientsPlan`] writes.
pub struct AttentionGradients<'v, T: Scalar> {
    /// The gradient with respect to Q.
    pub of_q: DenseResult<'v, T>,
    /// With respect to K.
    pub of_k: DenseResult<'v, T>,
    /// With respect to V.
    pub of_v: DenseResult<'v, T>,
}

impl<'v, T: Scalar> AttentionGradients<'v, T> {
    /// Of results in this order.
    pub fn new(
        of_q: impl Into<DenseResult<'v, T>>,
        of_k: impl Into<DenseResult<'v, T>>,
        of_v: impl Into<DenseResult<'v, T>>,
    ) -> Self {
        AttentionGradients { of_q: of_q.into(), of_k: of_k.into(), of_v: of_v.into() }
    }
}

/// Options of one execution of an [`AttentionGradientsPlan`], whose scores and bias are those of
/// the product; `()` is taken in its place.
pub struct AttentionGradientsCall<'v, T: Scalar> {
    scores: ScoreOptions<T::Accum>,
    bias: Option<Bias<'v, T>>,
    of_bias: Option<(VectorResult<'v, T>, HeadValues)>,
    stream: Option<&'v Stream>,
}

impl<T: Scalar> Default for AttentionGradientsCall<'_, T> {
    fn default() -> Self {
        let scores = ScoreOptions::default();
        AttentionGradientsCall { scores, bias: None, of_bias: None, stream: None }
    }
}

impl<T: Scalar> From<()> for AttentionGradientsCall<'_, T> {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl<'v, T: Scalar> AttentionGradientsCall<'v, T> {
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

    /// The negative slope of the product's scores, else 1.
    #[must_use]
    pub fn negative_slope(mut self, slope: T::Accum) -> Self {
        self.scores.negative_slope = Some(slope);
        self
    }

    /// The bias of the product.
    #[must_use]
    pub fn bias(mut self, values: impl Into<SparseValues<'v, T>>, order: HeadValues) -> Self {
        self.bias = Some(Bias { values: values.into(), order });
        self
    }

    /// Computes the gradient with respect to the bias as well.
    #[must_use]
    pub fn of_bias(mut self, to: impl Into<VectorResult<'v, T>>, order: HeadValues) -> Self {
        self.of_bias = Some((to.into(), order));
        self
    }

    /// Queues the work on `stream` (GPU).
    #[must_use]
    pub fn on(mut self, stream: &'v Stream) -> Self {
        self.stream = Some(stream);
        self
    }

    /// The call of the CPU's backend.
    fn on_host(self, device: &str) -> Result<gustav_cpu::AttentionGradientsCall<'v, T>> {
        let bias = self.bias.map(|bias| bias.on_host(device)).transpose()?;
        let of_bias = match self.of_bias {
            None => None,
            Some((VectorResult::Host(to), order)) => Some((to, order)),
            Some((VectorResult::Device(_), _)) => return mixed(device),
        };
        Ok(gustav_cpu::AttentionGradientsCall { scores: self.scores, bias, of_bias })
    }

    /// The call of the GPU's backend.
    fn on_device(
        self,
        device: &str,
    ) -> Result<gustav_cuda::attention::AttentionGradientsCall<'v, T>> {
        let mut call = gustav_cuda::attention::AttentionGradientsCall::new().scores(self.scores);
        if let Some(bias) = self.bias {
            let (values, order) = bias.on_device(device)?;
            call = call.bias(values, order);
        }
        match self.of_bias {
            None => {}
            Some((VectorResult::Device(to), order)) => call = call.of_bias(to, order),
            Some((VectorResult::Host(_), _)) => return mixed(device),
        }
        Ok(match self.stream {
            Some(stream) => call.on(stream),
            None => call,
        })
    }
}

impl<T: CpuScalar> AttentionGradientsPlan<'_, T> {
    accessors!();

    /// The gradients of all heads.
    ///
    /// # Errors
    /// As [`AttentionPlan::execute`](crate::AttentionPlan::execute); on a GPU
    /// [`Error::Unsupported`](crate::Error::Unsupported) for the gradient of a bias that several
    /// heads share in 16 bits.
    pub fn execute<'v>(
        &mut self,
        inputs: AttentionInputs<'v, T>,
        gradients: AttentionGradients<'v, T>,
        call: impl Into<AttentionGradientsCall<'v, T>>,
    ) -> Result<()> {
        use {DenseOperand as D, DenseResult as R, VectorOperand as V};
        let (call, device) = (call.into(), &self.explanation.device);
        let problem = &self.explanation.problem;
        let AttentionInputs { q, k, v, o, lse, of_o } = inputs;
        let AttentionGradients { of_q, of_k, of_v } = gradients;
        match ((q, k, v, o, of_o, lse), (of_q, of_k, of_v), &mut self.inner) {
            (
                (D::Host(q), D::Host(k), D::Host(v), D::Host(o), D::Host(of_o), V::Host(lse)),
                (R::Host(of_q), R::Host(of_k), R::Host(of_v)),
                inner,
            ) => {
                let inputs = gustav_cpu::AttentionInputs { q, k, v, o, lse, of_o };
                let gradients = gustav_cpu::AttentionGradients { of_q, of_k, of_v };
                let stream = call.stream;
                match inner {
                    Inner::Cpu(plan) => {
                        host_only(stream, problem)?;
                        plan.execute(inputs, gradients, call.on_host(device)?)
                    }
                    Inner::Cuda(staged) => {
                        staged.execute(inputs, gradients, call.on_host(device)?, stream, problem)
                    }
                }
            }
            (
                (
                    D::Device(q),
                    D::Device(k),
                    D::Device(v),
                    D::Device(o),
                    D::Device(of_o),
                    V::Device(lse),
                ),
                (R::Device(of_q), R::Device(of_k), R::Device(of_v)),
                Inner::Cuda(staged),
            ) => {
                let inputs = gustav_cuda::attention::AttentionInputs { q, k, v, o, lse, of_o };
                let gradients = gustav_cuda::attention::AttentionGradients { of_q, of_k, of_v };
                staged.plan.execute(inputs, gradients, call.on_device(device)?)
            }
            _ => mixed(device),
        }
    }
}

impl<T: CpuScalar> Staged<T> {
    fn execute(
        &mut self,
        inputs: gustav_cpu::AttentionInputs<'_, T>,
        gradients: gustav_cpu::AttentionGradients<'_, T>,
        call: gustav_cpu::AttentionGradientsCall<'_, T>,
        stream: Option<&Stream>,
        p: &Problem,
    ) -> Result<()> {
        let Staged { plan, staging, .. } = self;
        let gustav_cpu::AttentionInputs { q, k, v, o, lse, of_o } = inputs;
        let gustav_cpu::AttentionGradients { of_q, of_k, of_v } = gradients;
        let check = |name, (rows, columns), m: &DenseView<'_, T>| {
            staging.operand(p, name, rows, columns).check(m)
        };
        let (left, right) = (p.columns, p.value_columns);
        let shapes = [(p.rows, left), (p.cols, left), (p.cols, right), (p.rows, right)];
        for ((name, m), shape) in
            [("Q", &q), ("K", &k), ("V", &v), ("O", &o)].into_iter().zip(shapes)
        {
            check(name, shape, m)?;
        }
        check("the gradient of O", shapes[3], &of_o)?;
        check("the gradient of Q", shapes[0], &of_q.as_view())?;
        check("the gradient of K", shapes[1], &of_k.as_view())?;
        check("the gradient of V", shapes[2], &of_v.as_view())?;
        staging.check_rows(p, lse.len())?;
        let bias = call.bias.map(|bias| staging.bias(p, bias)).transpose()?;
        let [at_q, at_k, at_v, at_o, at_of_o] = &mut self.inputs;
        let inputs = gustav_cuda::attention::AttentionInputs {
            q: staging.written(at_q, &q)?,
            k: staging.written(at_k, &k)?,
            v: staging.written(at_v, &v)?,
            o: staging.written(at_o, &o)?,
            lse: staging.vector(&mut self.lse, lse)?,
            of_o: staging.written(at_of_o, &of_o)?,
        };
        let [to_q, to_k, to_v] = &mut self.gradients;
        let to_q = staging.output(to_q, &of_q)?;
        let to_k = staging.output(to_k, &of_k)?;
        let to_v = staging.output(to_v, &of_v)?;
        let mut on = gustav_cuda::attention::AttentionGradientsCall::new().scores(call.scores);
        if let Some((values, order)) = &bias {
            on = on.bias(values, *order);
        }
        if let Some(stream) = stream {
            on = on.on(stream);
        }
        let results = gustav_cuda::attention::AttentionGradients {
            of_q: &mut *to_q,
            of_k: &mut *to_k,
            of_v: &mut *to_v,
        };
        match call.of_bias {
            Some((to, order)) => {
                let on_bias = staging.of_rows(&mut self.of_bias, to.len())?;
                plan.execute(inputs, results, on.of_bias(on_bias, order))?;
                on_bias.read(to)?;
            }
            None => plan.execute(inputs, results, on)?,
        }
        let back = |from: &DeviceDense<T>, to: DenseViewMut<'_, T>| staging.returned(from, to);
        back(to_q, of_q)?;
        back(to_k, of_k)?;
        back(to_v, of_v)
    }
}

impl<'a, T: CpuScalar, I: Index, O: Index> Plans<AttentionGradientsRequest<PatternRef<'a, I, O>>, T>
    for Device
{
    type Plan = AttentionGradientsPlan<'a, T>;

    fn plan(
        &self,
        request: AttentionGradientsRequest<PatternRef<'a, I, O>>,
    ) -> Result<AttentionGradientsPlan<'a, T>> {
        let AttentionGradientsRequest { pattern, problem } = request;
        if let Some(gpu) = self.gpu() {
            let on_device = DevicePattern::upload(&gpu.device, pattern.view())?;
            let plan: AttentionGradientsPlan<'_, T> =
                self.plan(AttentionGradientsRequest { pattern: on_device, problem })?;
            let facts = facts(self, &pattern.view());
            let explanation = Explanation { facts, ..plan.explanation };
            return Ok(AttentionGradientsPlan { inner: plan.inner, explanation });
        }
        let problem = problem.bound::<T>(&pattern.clone().into())?;
        self.offers(&problem)?;
        let facts = facts(self, &pattern.view());
        let inner = gustav_cpu::AttentionGradientsPlan::new(pattern, &problem, self.options())?;
        let bytes = inner.workspace_bytes();
        let explanation = explained(self, facts, &problem, inner.choice(), None, bytes);
        Ok(AttentionGradientsPlan { inner: Inner::Cpu(Box::new(inner)), explanation })
    }
}

impl<T: CpuScalar, I: Index, O: Index> Plans<AttentionGradientsRequest<DevicePattern<I, O>>, T>
    for Device
{
    type Plan = AttentionGradientsPlan<'static, T>;

    fn plan(
        &self,
        request: AttentionGradientsRequest<DevicePattern<I, O>>,
    ) -> Result<AttentionGradientsPlan<'static, T>> {
        let AttentionGradientsRequest { pattern, problem } = request;
        let (plan, explanation) = plan_attention_gradients::<T, I, O>(self, &pattern, &problem)?;
        let staged = Staged {
            plan,
            staging: Staging::new(&pattern),
            inputs: Default::default(),
            lse: None,
            gradients: Default::default(),
            of_bias: None,
        };
        Ok(AttentionGradientsPlan { inner: Inner::Cuda(Box::new(staged)), explanation })
    }
}
