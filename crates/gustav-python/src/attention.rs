//! Attention over the nonzeros of a pattern, and its gradients.

use std::sync::Arc;

use gustav::cuda::DeviceBuffer;
use gustav::{
    AttentionCall, AttentionGradients, AttentionGradientsCall, AttentionGradientsRequest,
    AttentionInputs, AttentionRequest, CpuScalar, Device, HeadValues, PatternRef, Plans, Scalar,
    ScoreOptions, with_scalar,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::Array;
use crate::device_pattern::Kind;
use crate::element::Element;
use crate::error::Fault;
use crate::pattern::{AnyPattern, AnyRef, Extents, Pattern, with_indices};
use crate::place::{Given, Gpu, OnGpu, Place};
use crate::shared::Shared;

/// A vector of values of nonzeros and heads, and the name of their order.
type Values<'py> = (Bound<'py, PyAny>, String);

/// What product and gradients read.
struct Operands {
    q: Array,
    k: Array,
    v: Array,
    bias: Option<(Array, HeadValues)>,
    scores: ScoreOptions<f64>,
    place: Place,
}

impl Operands {
    fn new(
        [q, k, v]: [&Bound<'_, PyAny>; 3],
        scores: ScoreOptions<f64>,
        bias: Option<Values<'_>>,
        place: Place,
    ) -> PyResult<Self> {
        let bias = bias.map(|(bias, order)| -> PyResult<_> {
            Ok((Array::vector("bias", &bias, &place)?, order_named(&order)?))
        });
        let bias = bias.transpose()?;
        let read = |name, array| Array::heads_to_read(name, array, &place);
        let (q, k, v) = (read("q", q)?, read("k", k)?, read("v", v)?);
        Ok(Operands { q, k, v, bias, scores, place })
    }

    fn arrays(&self) -> impl Iterator<Item = &Array> + Clone {
        [&self.q, &self.k, &self.v].into_iter().chain(self.bias.iter().map(|(bias, _)| bias))
    }

    fn bias_on<T: Scalar>(
        &self,
        gpu: &Gpu,
    ) -> Result<Option<(DeviceBuffer<T>, HeadValues)>, Fault> {
        let bias = self.bias.as_ref();
        bias.map(|(bias, order)| Ok((bias.buffer::<T>(gpu)?, *order))).transpose()
    }

    fn bias_in_host_memory<T: Scalar>(&self) -> PyResult<Option<(&[T], HeadValues)>> {
        let bias = self.bias.as_ref();
        bias.map(|(bias, order)| Ok((bias.slice::<T>()?, *order))).transpose()
    }
}

/// What gradients read beside.
struct Saved {
    o: Array,
    lse: Array,
    of_o: Array,
}

/// What gradients write.
struct Results {
    of_q: Array,
    of_k: Array,
    of_v: Array,
    of_bias: Option<(Array, HeadValues)>,
}

impl Results {
    fn arrays(&self) -> Vec<&Array> {
        let of_bias = self.of_bias.iter().map(|(to, _)| to);
        [&self.of_q, &self.of_k, &self.of_v].into_iter().chain(of_bias).collect()
    }
}

/// The order with this name.
fn order_named(name: &str) -> PyResult<HeadValues> {
    match name {
        "shared" => Ok(HeadValues::Shared),
        "head_major" => Ok(HeadValues::HeadMajor),
        "nonzero_major" => Ok(HeadValues::NonzeroMajor),
        _ => Err(PyValueError::new_err(format!(
            "order: {name:?} is not known; shared, head_major and nonzero_major are"
        ))),
    }
}

/// Refuses results that overlap operands, each other or the arrays of the pattern.
fn refuse_overlaps<'a>(
    pattern: &Extents,
    results: &[&'a Array],
    operands: impl Iterator<Item = &'a Array> + Clone,
) -> PyResult<()> {
    for (k, result) in results.iter().enumerate() {
        pattern.refuse_overlap(result)?;
        for other in operands.clone().chain(results[..k].iter().copied()) {
            result.refuse_overlap(other)?;
        }
    }
    Ok(())
}

/// What an [`AttentionPlan`] does, whatever its type of values.
trait AnyPlan: Send {
    fn execute(&mut self, operands: &Operands, o: &mut Array, lse: &mut Array)
    -> Result<(), Fault>;
    fn gradients(
        &mut self,
        operands: &Operands,
        saved: &Saved,
        results: &mut Results,
    ) -> Result<(), Fault>;
}

/// A call with the options of scores and the bias that there are.
macro_rules! options {
    ($T:ident, $call:expr, $scores:expr, $bias:expr) => {{
        let mut call = $call;
        let ScoreOptions { scale, negative_slope } = $scores;
        if let Some(scale) = scale {
            call = call.scale(<$T::Accum as Scalar>::from_f64(*scale));
        }
        if let Some(slope) = negative_slope {
            call = call.negative_slope(<$T::Accum as Scalar>::from_f64(*slope));
        }
        if let Some((bias, order)) = $bias {
            call = call.bias(bias, order);
        }
        call
    }};
}

/// The plan of the product, and that of its gradients from their first execution on.
struct Typed<T: CpuScalar> {
    pattern: AnyPattern,
    device: Device,
    product: gustav::AttentionPlan<'static, T>,
    gradients: Option<gustav::AttentionGradientsPlan<'static, T>>,
}

impl<T: CpuScalar> Typed<T> {
    fn new(
        pattern: AnyPattern,
        heads: usize,
        (columns, value_columns): (usize, usize),
        device: Device,
    ) -> Result<Self, Fault> {
        macro_rules! request {
            ($of:expr) => {
                $of.attention(columns).heads(heads).value_columns(value_columns).calls(1000)
            };
        }
        let product = match &pattern {
            AnyPattern::Host(p) => with_indices!(AnyRef, p.to_ref(), |p| {
                let problem = request!(p.view()).problem;
                Plans::<AttentionRequest<PatternRef<'static, _, _>>, T>::plan(
                    &device,
                    AttentionRequest { pattern: p, problem },
                )?
            }),
            AnyPattern::Gpu(p) => with_indices!(Kind, p.kind(), |p| request!(p).plan(&device)?),
        };
        Ok(Typed { pattern, device, product, gradients: None })
    }

    fn plan_gradients(
        &self,
        place: &Place,
    ) -> Result<gustav::AttentionGradientsPlan<'static, T>, Fault> {
        let problem = self.product.explain().problem.clone();
        let device = &self.device;
        Ok(match &self.pattern {
            AnyPattern::Host(p) => device.threads().run(|| {
                with_indices!(AnyRef, p.to_ref(), |pattern| {
                    Plans::<AttentionGradientsRequest<PatternRef<'static, _, _>>, T>::plan(
                        device,
                        AttentionGradientsRequest { pattern, problem },
                    )
                })
            })?,
            AnyPattern::Gpu(p) => {
                place.to_plan("the pattern", Some(p.ordinal()))?;
                with_indices!(Kind, p.kind(), |p| {
                    AttentionGradientsRequest { pattern: p.clone(), problem }.plan(device)?
                })
            }
        })
    }

    fn execute_on_gpu(
        &mut self,
        operands: &Operands,
        o: &mut Array,
        lse: &mut Array,
        gpu: &Gpu,
    ) -> Result<(), Fault> {
        let Operands { q, k, v, scores, .. } = operands;
        let (q, k) = (q.device_dense::<T>(gpu)?, k.device_dense::<T>(gpu)?);
        let (v, mut o) = (v.device_dense::<T>(gpu)?, o.device_dense_mut::<T>(gpu)?);
        let (bias, mut lse) = (operands.bias_on::<T>(gpu)?, lse.buffer_mut::<T::Accum>(gpu)?);
        let call = AttentionCall::new().on(&gpu.stream).lse(&mut lse);
        let bias = bias.as_ref().map(|(bias, order)| (bias, *order));
        Ok(self.product.execute(&q, &k, &v, &mut o, options!(T, call, scores, bias))?)
    }

    fn gradients_on_gpu(
        plan: &mut gustav::AttentionGradientsPlan<'static, T>,
        operands: &Operands,
        saved: &Saved,
        results: &mut Results,
        gpu: &Gpu,
    ) -> Result<(), Fault> {
        let Operands { q, k, v, scores, .. } = operands;
        let Saved { o, lse, of_o } = saved;
        let Results { of_q, of_k, of_v, of_bias } = results;
        let (q, k) = (q.device_dense::<T>(gpu)?, k.device_dense::<T>(gpu)?);
        let (v, o) = (v.device_dense::<T>(gpu)?, o.device_dense::<T>(gpu)?);
        let (lse, of_o) = (lse.buffer::<T::Accum>(gpu)?, of_o.device_dense::<T>(gpu)?);
        let (mut of_q, mut of_k) =
            (of_q.device_dense_mut::<T>(gpu)?, of_k.device_dense_mut::<T>(gpu)?);
        let mut of_v = of_v.device_dense_mut::<T>(gpu)?;
        let bias = operands.bias_on::<T>(gpu)?;
        let of_bias = of_bias
            .as_mut()
            .map(|(to, order)| -> Result<_, Fault> { Ok((to.buffer_mut::<T>(gpu)?, *order)) });
        let mut of_bias = of_bias.transpose()?;
        let mut call = AttentionGradientsCall::new().on(&gpu.stream);
        if let Some((to, order)) = &mut of_bias {
            call = call.of_bias(to, *order);
        }
        let inputs = AttentionInputs::new(&q, &k, &v, &o, &lse, &of_o);
        let gradients = AttentionGradients::new(&mut of_q, &mut of_k, &mut of_v);
        let bias = bias.as_ref().map(|(bias, order)| (bias, *order));
        Ok(plan.execute(inputs, gradients, options!(T, call, scores, bias))?)
    }
}

impl<T: CpuScalar> AnyPlan for Typed<T> {
    fn execute(
        &mut self,
        operands: &Operands,
        o: &mut Array,
        lse: &mut Array,
    ) -> Result<(), Fault> {
        if let Place::Gpu(gpu) = &operands.place {
            return self.execute_on_gpu(operands, o, lse, gpu);
        }
        let Operands { q, k, v, scores, .. } = operands;
        let call = AttentionCall::new().lse(lse.slice_mut::<T::Accum>()?);
        let call = options!(T, call, scores, operands.bias_in_host_memory::<T>()?);
        let (q, k, v) = (q.dense::<T>()?, k.dense::<T>()?, v.dense::<T>()?);
        Ok(self.product.execute(q, k, v, o.dense_mut::<T>()?, call)?)
    }

    fn gradients(
        &mut self,
        operands: &Operands,
        saved: &Saved,
        results: &mut Results,
    ) -> Result<(), Fault> {
        let plan = match self.gradients.take() {
            Some(plan) => plan,
            None => self.plan_gradients(&operands.place)?,
        };
        let plan = self.gradients.insert(plan);
        if let Place::Gpu(gpu) = &operands.place {
            return Self::gradients_on_gpu(plan, operands, saved, results, gpu);
        }
        let Operands { q, k, v, scores, .. } = operands;
        let Saved { o, lse, of_o } = saved;
        let Results { of_q, of_k, of_v, of_bias } = results;
        let mut call = AttentionGradientsCall::new();
        if let Some((to, order)) = of_bias {
            call = call.of_bias(to.slice_mut::<T>()?, *order);
        }
        let call = options!(T, call, scores, operands.bias_in_host_memory::<T>()?);
        let inputs = AttentionInputs::new(
            q.dense::<T>()?,
            k.dense::<T>()?,
            v.dense::<T>()?,
            o.dense::<T>()?,
            lse.slice::<T::Accum>()?,
            of_o.dense::<T>()?,
        );
        let gradients = AttentionGradients::new(
            of_q.dense_mut::<T>()?,
            of_k.dense_mut::<T>()?,
            of_v.dense_mut::<T>()?,
        );
        Ok(plan.execute(inputs, gradients, call)?)
    }
}

/// Attention that is planned once for a pattern, executed with any operands.
///
/// Matrices are rows × heads × columns, or have the heads side by side in their columns or one above the other in their
/// rows; rows are packed. `lse` has a number for every head and row, head after head, in the type of sums. Biases are a vector and the name of its
/// order: `shared` by the heads, `head_major` or `nonzero_major`.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct AttentionPlan {
    plan: Arc<Shared<OnGpu<Box<dyn AnyPlan>>>>,
    arrays: Extents,
    gpu: Option<u32>,
    /// Multiplications of the product; its gradients have more.
    size: usize,
}

#[pymethods]
impl AttentionPlan {
    #[new]
    #[pyo3(signature = (pattern, heads, columns, value_columns, dtype, place=None))]
    fn new(
        py: Python<'_>,
        pattern: &Bound<'_, Pattern>,
        heads: usize,
        columns: usize,
        value_columns: usize,
        dtype: &str,
        place: Given,
    ) -> PyResult<Self> {
        let dtype = Element::named(dtype).value("dtype")?;
        let pattern = pattern.get().inner.clone();
        let (arrays, gpu) = (pattern.extents(), pattern.gpu());
        let place = Place::new(py, place)?;
        place.to_plan("the pattern", gpu)?;
        let device = place.device(None)?;
        let terms = columns.saturating_add(value_columns).saturating_mul(heads);
        let size = pattern.nnz().saturating_mul(terms);
        let (widths, of_plan) = ((columns, value_columns), device.clone());
        let plan: Box<dyn AnyPlan> = with_scalar!(dtype, |T| {
            let typed = move || Typed::<T>::new(pattern, heads, widths, of_plan);
            Box::new(place.run_long(py, size, &device, typed)?)
        });
        let plan = Arc::new(Shared::new(OnGpu::new(&device, plan)));
        Ok(AttentionPlan { plan, arrays, gpu, size })
    }

    /// `o = softmax(leaky_relu(scale * q @ k.T + bias)) @ v` over the nonzeros of every row, and to `lse` the
    /// logarithm of the sum of the exponentials of its scores; a scale of 1/√d and a slope of 1 where none is given.
    #[pyo3(signature = (q, k, v, o, lse, scale, negative_slope, bias=None, place=None))]
    fn execute_into(
        &self,
        py: Python<'_>,
        q: &Bound<'_, PyAny>,
        k: &Bound<'_, PyAny>,
        v: &Bound<'_, PyAny>,
        o: &Bound<'_, PyAny>,
        lse: &Bound<'_, PyAny>,
        scale: Option<f64>,
        negative_slope: Option<f64>,
        bias: Option<Values<'_>>,
        place: Given,
    ) -> PyResult<()> {
        let place = Place::new(py, place)?;
        place.of("the plan", self.gpu)?;
        let operands =
            Operands::new([q, k, v], ScoreOptions { scale, negative_slope }, bias, place.clone())?;
        let o = Array::heads_to_write("o", o, &place)?;
        let lse = Array::to_write("lse", lse, &place)?.flat();
        refuse_overlaps(&self.arrays, &[&o, &lse], operands.arrays())?;
        let operands = (operands, o, lse);
        place.execute_long(py, self.size, &self.plan, operands, |plan, (operands, o, lse)| {
            plan.execute(operands, o, lse)
        })
    }

    /// The gradients with respect to q, k, v and, where it is given, the bias, from what the product left in `o` and
    /// `lse` and the gradient with respect to o.
    #[pyo3(signature = (
        q, k, v, o, lse, of_o, of_q, of_k, of_v, scale, negative_slope, bias=None, of_bias=None, place=None
    ))]
    fn gradients_into(
        &self,
        py: Python<'_>,
        q: &Bound<'_, PyAny>,
        k: &Bound<'_, PyAny>,
        v: &Bound<'_, PyAny>,
        o: &Bound<'_, PyAny>,
        lse: &Bound<'_, PyAny>,
        of_o: &Bound<'_, PyAny>,
        of_q: &Bound<'_, PyAny>,
        of_k: &Bound<'_, PyAny>,
        of_v: &Bound<'_, PyAny>,
        scale: Option<f64>,
        negative_slope: Option<f64>,
        bias: Option<Values<'_>>,
        of_bias: Option<Values<'_>>,
        place: Given,
    ) -> PyResult<()> {
        let place = Place::new(py, place)?;
        place.of("the plan", self.gpu)?;
        let operands =
            Operands::new([q, k, v], ScoreOptions { scale, negative_slope }, bias, place.clone())?;
        let saved = Saved {
            o: Array::heads_to_read("o", o, &place)?,
            lse: Array::to_read("lse", lse, &place)?.flat(),
            of_o: Array::heads_to_read("the gradient of o", of_o, &place)?,
        };
        let of_bias = of_bias.map(|(to, order)| -> PyResult<_> {
            let to = Array::to_write("the gradient of the bias", &to, &place)?;
            Ok((to, order_named(&order)?))
        });
        let results = Results {
            of_q: Array::heads_to_write("the gradient of q", of_q, &place)?,
            of_k: Array::heads_to_write("the gradient of k", of_k, &place)?,
            of_v: Array::heads_to_write("the gradient of v", of_v, &place)?,
            of_bias: of_bias.transpose()?,
        };
        let read = operands.arrays().chain([&saved.o, &saved.lse, &saved.of_o]);
        refuse_overlaps(&self.arrays, &results.arrays(), read)?;
        let operands = (operands, saved, results);
        place.execute_long(
            py,
            self.size,
            &self.plan,
            operands,
            |plan, (operands, saved, results)| plan.gradients(operands, saved, results),
        )
    }
}
