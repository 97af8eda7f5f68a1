//! The softmax of values over the rows of a pattern, and its gradient.

use std::sync::Arc;

use gustav::{CpuScalar, Device, PatternRef, Plans, SoftmaxCall, SoftmaxRequest, with_scalar};
use pyo3::prelude::*;

use crate::array::Array;
use crate::device_pattern::Kind;
use crate::element::Element;
use crate::error::Fault;
use crate::pattern::{AnyPattern, AnyRef, Extents, Pattern, with_indices};
use crate::place::{Given, OnGpu, Place};
use crate::shared::Shared;

/// What a [`SoftmaxPlan`] does, whatever its type of values.
trait AnyPlan: Send {
    fn execute(&mut self, scores: &Array, out: &mut Array, place: &Place) -> Result<(), Fault>;
    fn gradient(
        &mut self,
        weights: &Array,
        of_weights: &Array,
        out: &mut Array,
        place: &Place,
    ) -> Result<(), Fault>;
}

impl<T: CpuScalar> AnyPlan for gustav::SoftmaxPlan<'static, T> {
    fn execute(&mut self, scores: &Array, out: &mut Array, place: &Place) -> Result<(), Fault> {
        let Place::Gpu(gpu) = place else {
            let (scores, out) = (scores.slice::<T>()?, out.slice_mut::<T>()?);
            return Ok(gustav::SoftmaxPlan::execute(self, scores, out, ())?);
        };
        let (scores, mut out) = (scores.buffer::<T>(gpu)?, out.buffer_mut::<T>(gpu)?);
        let call = SoftmaxCall::new().on(&gpu.stream);
        Ok(gustav::SoftmaxPlan::execute(self, &scores, &mut out, call)?)
    }

    fn gradient(
        &mut self,
        weights: &Array,
        of_weights: &Array,
        out: &mut Array,
        place: &Place,
    ) -> Result<(), Fault> {
        let Place::Gpu(gpu) = place else {
            let (weights, of_weights) = (weights.slice::<T>()?, of_weights.slice::<T>()?);
            let out = out.slice_mut::<T>()?;
            return Ok(gustav::SoftmaxPlan::gradient(self, weights, of_weights, out, ())?);
        };
        let (weights, of_weights) = (weights.buffer::<T>(gpu)?, of_weights.buffer::<T>(gpu)?);
        let mut out = out.buffer_mut::<T>(gpu)?;
        let call = SoftmaxCall::new().on(&gpu.stream);
        Ok(gustav::SoftmaxPlan::gradient(self, &weights, &of_weights, &mut out, call)?)
    }
}

fn planned<T: CpuScalar>(
    pattern: &AnyPattern,
    heads: usize,
    device: &Device,
) -> gustav::Result<gustav::SoftmaxPlan<'static, T>> {
    const CALLS: u64 = 1000;
    match pattern {
        AnyPattern::Host(p) => with_indices!(AnyRef, p.to_ref(), |p| {
            let problem = p.view().softmax().heads(heads).calls(CALLS).problem;
            Plans::<SoftmaxRequest<PatternRef<'static, _, _>>, T>::plan(
                device,
                SoftmaxRequest { pattern: p, problem },
            )
        }),
        AnyPattern::Gpu(p) => with_indices!(Kind, p.kind(), |p| {
            p.softmax().heads(heads).calls(CALLS).plan(device)
        }),
    }
}

/// The softmax over the rows of a pattern that is planned once; values of one head after another.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct SoftmaxPlan {
    plan: Arc<Shared<OnGpu<Box<dyn AnyPlan>>>>,
    arrays: Extents,
    gpu: Option<u32>,
}

#[pymethods]
impl SoftmaxPlan {
    #[new]
    #[pyo3(signature = (pattern, heads, dtype, place=None))]
    fn new(
        py: Python<'_>,
        pattern: &Bound<'_, Pattern>,
        heads: usize,
        dtype: &str,
        place: Given,
    ) -> PyResult<Self> {
        let dtype = Element::named(dtype).value("dtype")?;
        let pattern = pattern.get().inner.clone();
        let (arrays, gpu) = (pattern.extents(), pattern.gpu());
        let place = Place::new(py, place)?;
        place.to_plan("the pattern", gpu)?;
        let device = place.device(None)?;
        let (size, of_plan) = (pattern.nnz(), device.clone());
        let plan: Box<dyn AnyPlan> = with_scalar!(dtype, |T| {
            let work = move || Ok(planned::<T>(&pattern, heads, &of_plan)?);
            Box::new(place.run_long(py, size, &device, work)?)
        });
        let plan = Arc::new(Shared::new(OnGpu::new(&device, plan)));
        Ok(SoftmaxPlan { plan, arrays, gpu })
    }

    /// `out = exp(scores) / Σ exp(scores)` over every row.
    #[pyo3(signature = (scores, out, place=None))]
    fn execute_into(
        &self,
        py: Python<'_>,
        scores: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        place: Given,
    ) -> PyResult<()> {
        let place = Place::new(py, place)?;
        place.of("the plan", self.gpu)?;
        let scores = Array::vector("scores", scores, &place)?;
        let out = Array::to_write("out", out, &place)?;
        out.refuse_overlap(&scores)?;
        self.arrays.refuse_overlap(&out)?;
        let size = scores.len();
        let operands = (scores, out, place.clone());
        place.execute_long(py, size, &self.plan, operands, |plan, (scores, out, place)| {
            plan.execute(scores, out, place)
        })
    }

    /// The gradient with respect to the scores, given the weights and the gradient with respect to them.
    #[pyo3(signature = (weights, of_weights, out, place=None))]
    fn gradient_into(
        &self,
        py: Python<'_>,
        weights: &Bound<'_, PyAny>,
        of_weights: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        place: Given,
    ) -> PyResult<()> {
        let place = Place::new(py, place)?;
        place.of("the plan", self.gpu)?;
        let weights = Array::vector("weights", weights, &place)?;
        let of_weights = Array::vector("gradient of weights", of_weights, &place)?;
        let out = Array::to_write("out", out, &place)?;
        out.refuse_overlap(&weights)?;
        out.refuse_overlap(&of_weights)?;
        self.arrays.refuse_overlap(&out)?;
        let size = weights.len();
        let operands = (weights, of_weights, out, place.clone());
        place.execute_long(
            py,
            size,
            &self.plan,
            operands,
            |plan, (weights, of_weights, out, place)| {
                plan.gradient(weights, of_weights, out, place)
            },
        )
    }
}
