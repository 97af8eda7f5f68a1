//! Attention over the nonzeros of a pattern, and its gradients.

use std::sync::{Mutex, PoisonError};

use gustav::{
    AttentionCall, AttentionGradients, AttentionGradientsCall, AttentionGradientsRequest,
    AttentionInputs, AttentionRequest, CpuScalar, Device, HeadValues, PatternRef, Plans, Scalar,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::Array;
use crate::element::{Element, with_scalar};
use crate::error::{Fault, catch, detached};
use crate::pattern::{AnyOwned, Extents, Pattern, with_indices};
use crate::threads;

/// A vector of values of nonzeros and heads, and the name of their order.
type Values<'py> = (Bound<'py, PyAny>, String);

/// What product and gradients read.
struct Operands {
    q: Array,
    k: Array,
    v: Array,
    bias: Option<(Array, HeadValues)>,
    scale: Option<f64>,
}

impl Operands {
    fn new(
        [q, k, v]: [&Bound<'_, PyAny>; 3],
        scale: Option<f64>,
        bias: Option<Values<'_>>,
    ) -> PyResult<Self> {
        let bias = bias.map(|(bias, order)| -> PyResult<_> {
            Ok((Array::vector("bias", &bias)?, order_named(&order)?))
        });
        let (q, k, v) = (Array::to_read("q", q)?, Array::to_read("k", k)?, Array::to_read("v", v)?);
        Ok(Operands { q, k, v, bias: bias.transpose()?, scale })
    }

    fn arrays(&self) -> impl Iterator<Item = &Array> + Clone {
        [&self.q, &self.k, &self.v].into_iter().chain(self.bias.iter().map(|(bias, _)| bias))
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
    fn execute(&mut self, operands: &Operands, o: Array, lse: Array) -> Result<(), Fault>;
    fn gradients(
        &mut self,
        operands: &Operands,
        saved: &Saved,
        results: Results,
    ) -> Result<(), Fault>;
}

/// The plan of the product, and that of its gradients from their first execution on.
struct Typed<T: CpuScalar> {
    pattern: AnyOwned,
    device: Device,
    product: gustav::AttentionPlan<'static, T>,
    gradients: Option<gustav::AttentionGradientsPlan<'static, T>>,
}

impl<T: CpuScalar> Typed<T> {
    fn new(
        pattern: AnyOwned,
        heads: usize,
        (columns, value_columns): (usize, usize),
        device: Device,
    ) -> Result<Self, Fault> {
        let product = device.threads().run(|| {
            with_indices!(AnyRef, pattern.to_ref(), |p| {
                let request = p.view().attention(columns).heads(heads).calls(1000);
                let problem = request.value_columns(value_columns).problem;
                Plans::<AttentionRequest<PatternRef<'static, _, _>>, T>::plan(
                    &device,
                    AttentionRequest { pattern: p, problem },
                )
            })
        })?;
        Ok(Typed { pattern, device, product, gradients: None })
    }

    fn gradients_plan(&mut self) -> Result<&mut gustav::AttentionGradientsPlan<'static, T>, Fault> {
        let Typed { pattern, device, product, gradients } = self;
        match gradients {
            Some(plan) => Ok(plan),
            none => {
                let problem = product.explain().problem.clone();
                let plan = device.threads().run(|| {
                    with_indices!(AnyRef, pattern.to_ref(), |p| {
                        Plans::<AttentionGradientsRequest<PatternRef<'static, _, _>>, T>::plan(
                            &*device,
                            AttentionGradientsRequest { pattern: p, problem },
                        )
                    })
                })?;
                Ok(none.insert(plan))
            }
        }
    }
}

impl<T: CpuScalar> AnyPlan for Typed<T> {
    fn execute(&mut self, operands: &Operands, mut o: Array, mut lse: Array) -> Result<(), Fault> {
        let Operands { q, k, v, bias, scale } = operands;
        let mut call = AttentionCall::new().lse(lse.slice_mut::<T::Accum>()?);
        if let Some(scale) = scale {
            call = call.scale(<T::Accum as Scalar>::from_f64(*scale));
        }
        if let Some((bias, order)) = bias {
            call = call.bias(bias.slice::<T>()?, *order);
        }
        let (q, k, v) = (q.dense::<T>()?, k.dense::<T>()?, v.dense::<T>()?);
        Ok(self.product.execute(q, k, v, o.dense_mut::<T>()?, call)?)
    }

    fn gradients(
        &mut self,
        operands: &Operands,
        saved: &Saved,
        results: Results,
    ) -> Result<(), Fault> {
        let Operands { q, k, v, bias, scale } = operands;
        let Saved { o, lse, of_o } = saved;
        let Results { mut of_q, mut of_k, mut of_v, mut of_bias } = results;
        let mut call = AttentionGradientsCall::new();
        if let Some(scale) = scale {
            call = call.scale(<T::Accum as Scalar>::from_f64(*scale));
        }
        if let Some((bias, order)) = bias {
            call = call.bias(bias.slice::<T>()?, *order);
        }
        if let Some((of_bias, order)) = &mut of_bias {
            call = call.of_bias(of_bias.slice_mut::<T>()?, *order);
        }
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
        Ok(self.gradients_plan()?.execute(inputs, gradients, call)?)
    }
}

/// Attention that is planned once for a pattern, executed with any operands.
///
/// Matrices are row-major, with heads side by side in their columns or one above the other in their rows. `lse` has
/// a number for every head and row, head after head, in the type of sums. Biases are a vector and the name of its
/// order: `shared` by the heads, `head_major` or `nonzero_major`.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct AttentionPlan {
    plan: Mutex<Box<dyn AnyPlan>>,
    arrays: Extents,
}

#[pymethods]
impl AttentionPlan {
    #[new]
    fn new(
        py: Python<'_>,
        pattern: &Bound<'_, Pattern>,
        heads: usize,
        columns: usize,
        value_columns: usize,
        dtype: &str,
    ) -> PyResult<Self> {
        let dtype = Element::named(dtype).value("dtype")?;
        let pattern = pattern.get().inner.clone();
        let arrays = pattern.extents();
        let device = threads::device(None)?;
        let widths = (columns, value_columns);
        let plan: Box<dyn AnyPlan> = with_scalar!(dtype, |T| {
            Box::new(detached(py, || Typed::<T>::new(pattern, heads, widths, device))?)
        });
        Ok(AttentionPlan { plan: Mutex::new(plan), arrays })
    }

    /// `o = softmax(scale * q @ k.T + bias) @ v` over the nonzeros of every row, and to `lse` the logarithm of the
    /// sum of the exponentials of its scores; a scale of 1/√d where none is given.
    #[pyo3(signature = (q, k, v, o, lse, scale, bias=None))]
    fn execute_into(
        &self,
        py: Python<'_>,
        q: &Bound<'_, PyAny>,
        k: &Bound<'_, PyAny>,
        v: &Bound<'_, PyAny>,
        o: &Bound<'_, PyAny>,
        lse: &Bound<'_, PyAny>,
        scale: Option<f64>,
        bias: Option<Values<'_>>,
    ) -> PyResult<()> {
        let operands = Operands::new([q, k, v], scale, bias)?;
        let (o, lse) = (Array::to_write("o", o)?, Array::to_write("lse", lse)?);
        refuse_overlaps(&self.arrays, &[&o, &lse], operands.arrays())?;
        detached(py, || {
            let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
            catch(|| plan.execute(&operands, o, lse))
        })
    }

    /// The gradients with respect to q, k, v and, where it is given, the bias, from what the product left in `o` and
    /// `lse` and the gradient with respect to o.
    #[pyo3(signature = (q, k, v, o, lse, of_o, of_q, of_k, of_v, scale, bias=None, of_bias=None))]
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
        bias: Option<Values<'_>>,
        of_bias: Option<Values<'_>>,
    ) -> PyResult<()> {
        let operands = Operands::new([q, k, v], scale, bias)?;
        let saved = Saved {
            o: Array::to_read("o", o)?,
            lse: Array::vector("lse", lse)?,
            of_o: Array::to_read("the gradient of o", of_o)?,
        };
        let of_bias = of_bias.map(|(to, order)| -> PyResult<_> {
            Ok((Array::to_write("the gradient of the bias", &to)?, order_named(&order)?))
        });
        let results = Results {
            of_q: Array::to_write("the gradient of q", of_q)?,
            of_k: Array::to_write("the gradient of k", of_k)?,
            of_v: Array::to_write("the gradient of v", of_v)?,
            of_bias: of_bias.transpose()?,
        };
        let read = operands.arrays().chain([&saved.o, &saved.lse, &saved.of_o]);
        refuse_overlaps(&self.arrays, &results.arrays(), read)?;
        detached(py, || {
            let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
            catch(|| plan.gradients(&operands, &saved, results))
        })
    }
}
