//! The softmax of values over the rows of a pattern, and its gradient.

use std::sync::{Mutex, PoisonError};

use gustav::{CpuScalar, Device, PatternRef, Plans, SoftmaxRequest};
use pyo3::prelude::*;

use crate::array::Array;
use crate::element::{Element, with_scalar};
use crate::error::{Fault, catch, detached};
use crate::pattern::{AnyOwned, Extents, Pattern, with_indices};
use crate::threads;

/// What a [`SoftmaxPlan`] does, whatever its type of values.
trait AnyPlan: Send {
    fn execute(&mut self, scores: &Array, out: &mut Array) -> Result<(), Fault>;
    fn gradient(
        &mut self,
        weights: &Array,
        of_weights: &Array,
        out: &mut Array,
    ) -> Result<(), Fault>;
}

impl<T: CpuScalar> AnyPlan for gustav::SoftmaxPlan<'static, T> {
    fn execute(&mut self, scores: &Array, out: &mut Array) -> Result<(), Fault> {
        Ok(gustav::SoftmaxPlan::execute(self, scores.slice::<T>()?, out.slice_mut::<T>()?, ())?)
    }

    fn gradient(
        &mut self,
        weights: &Array,
        of_weights: &Array,
        out: &mut Array,
    ) -> Result<(), Fault> {
        let (weights, of_weights) = (weights.slice::<T>()?, of_weights.slice::<T>()?);
        let out = out.slice_mut::<T>()?;
        Ok(gustav::SoftmaxPlan::gradient(self, weights, of_weights, out, ())?)
    }
}

fn planned<T: CpuScalar>(
    pattern: &AnyOwned,
    heads: usize,
    device: &Device,
) -> gustav::Result<gustav::SoftmaxPlan<'static, T>> {
    with_indices!(AnyRef, pattern.to_ref(), |p| {
        let problem = p.view().softmax().heads(heads).calls(1000).problem;
        Plans::<SoftmaxRequest<PatternRef<'static, _, _>>, T>::plan(
            device,
            SoftmaxRequest { pattern: p, problem },
        )
    })
}

/// The softmax over the rows of a pattern that is planned once; values of one head after another.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct SoftmaxPlan {
    plan: Mutex<Box<dyn AnyPlan>>,
    arrays: Extents,
}

#[pymethods]
impl SoftmaxPlan {
    #[new]
    fn new(
        py: Python<'_>,
        pattern: &Bound<'_, Pattern>,
        heads: usize,
        dtype: &str,
    ) -> PyResult<Self> {
        let dtype = Element::named(dtype).value("dtype")?;
        let pattern = pattern.get().inner.clone();
        let arrays = pattern.extents();
        let device = threads::device(None)?;
        let plan: Box<dyn AnyPlan> = with_scalar!(dtype, |T| {
            Box::new(detached(py, || {
                device.threads().run(|| Ok(planned::<T>(&pattern, heads, &device)?))
            })?)
        });
        Ok(SoftmaxPlan { plan: Mutex::new(plan), arrays })
    }

    /// `out = exp(scores) / Σ exp(scores)` over every row.
    fn execute_into(
        &self,
        py: Python<'_>,
        scores: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let scores = Array::vector("scores", scores)?;
        let mut out = Array::to_write("out", out)?;
        out.refuse_overlap(&scores)?;
        self.arrays.refuse_overlap(&out)?;
        detached(py, || {
            let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
            catch(|| plan.execute(&scores, &mut out))
        })
    }

    /// The gradient with respect to the scores, given the weights and the gradient with respect to them.
    fn gradient_into(
        &self,
        py: Python<'_>,
        weights: &Bound<'_, PyAny>,
        of_weights: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let weights = Array::vector("weights", weights)?;
        let of_weights = Array::vector("gradient of weights", of_weights)?;
        let mut out = Array::to_write("out", out)?;
        out.refuse_overlap(&weights)?;
        out.refuse_overlap(&of_weights)?;
        self.arrays.refuse_overlap(&out)?;
        detached(py, || {
            let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
            catch(|| plan.gradient(&weights, &of_weights, &mut out))
        })
    }
}
