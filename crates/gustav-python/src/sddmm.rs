//! Dense × dense at the nonzeros of a pattern.

use std::sync::Arc;

use gustav::{CpuScalar, Device, Layout, PatternRef, Plans, SddmmCall, SddmmRequest, with_scalar};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments;
use crate::array::Array;
use crate::device_pattern::{AnyDevice, Kind};
use crate::element::Element;
use crate::error::{Fault, interruptible};
use crate::pattern::{AnyPattern, AnyRef, Extents, Pattern, Source, with_indices};
use crate::place::{Given, OnGpu, Place};
use crate::scale::Factors;
use crate::shared::Shared;
use crate::spmm::UNPLANNED;

/// The arrays of one execution.
struct Operands {
    x: Array,
    y: Array,
    out: Array,
    place: Place,
}

impl Operands {
    fn new(
        x: &Bound<'_, PyAny>,
        y: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        place: Place,
    ) -> PyResult<Self> {
        let (x, y) = (Array::to_read("x", x, &place)?, Array::to_read("y", y, &place)?);
        let out = Array::to_write("out", out, &place)?;
        out.refuse_overlap(&x)?;
        out.refuse_overlap(&y)?;
        Ok(Operands { x, y, out, place })
    }

    fn depth(&self) -> PyResult<usize> {
        match self.x.shape() {
            [_, depth] => Ok(*depth),
            _ => Err(PyValueError::new_err("x: expected two dimensions, found one")),
        }
    }

    fn layouts(&self) -> (Layout, Layout) {
        (self.x.layout_of_matrix(), self.y.layout_of_matrix())
    }

    fn execute<T: CpuScalar>(
        &mut self,
        plan: &mut gustav::SddmmPlan<'_, T>,
        factors: Factors,
    ) -> Result<(), Fault> {
        let Operands { x, y, out, place } = self;
        let scale = factors.scale::<T::Accum>();
        if let Place::Gpu(gpu) = place {
            let (x, y) = (x.device_dense::<T>(gpu)?, y.device_dense::<T>(gpu)?);
            let call = SddmmCall::from(scale).on(&gpu.stream);
            return Ok(plan.execute(&x, &y, &mut out.buffer_mut::<T>(gpu)?, call)?);
        }
        Ok(plan.execute(x.dense::<T>()?, y.dense::<T>()?, out.slice_mut::<T>()?, scale)?)
    }
}

fn planned<'a, T: CpuScalar>(
    pattern: AnyRef<'a>,
    (depth, batch): (usize, usize),
    calls: u64,
    layouts: (Layout, Layout),
    device: &Device,
) -> gustav::Result<gustav::SddmmPlan<'a, T>> {
    with_indices!(AnyRef, pattern, |p| {
        let request = p.view().sddmm(depth).batch(batch).calls(calls);
        let problem = request.layouts(layouts.0, layouts.1).problem;
        Plans::<SddmmRequest<PatternRef<'a, _, _>>, T>::plan(
            device,
            SddmmRequest { pattern: p, problem },
        )
    })
}

fn planned_on_gpu<T: CpuScalar>(
    pattern: &AnyDevice,
    (depth, batch): (usize, usize),
    calls: u64,
    layouts: (Layout, Layout),
    device: &Device,
) -> gustav::Result<gustav::SddmmPlan<'static, T>> {
    with_indices!(Kind, pattern.kind(), |p| {
        p.sddmm(depth).batch(batch).calls(calls).layouts(layouts.0, layouts.1).plan(device)
    })
}

/// `out = alpha * (x @ y.T) + beta * out` at the nonzeros of a pattern.
#[pyfunction]
pub fn sddmm(
    py: Python<'_>,
    pattern: &Bound<'_, PyAny>,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    alpha: Option<&Bound<'_, PyAny>>,
    beta: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
    place: Given,
) -> PyResult<()> {
    let place = Place::new(py, place)?;
    let source = Source::of(pattern, &place)?;
    let mut operands = Operands::new(x, y, out, place.clone())?;
    source.refuse_overlap(&operands.out)?;
    let depth = operands.depth()?;
    let dtype = operands.x.element.value("x")?;
    let factors = Factors::new(alpha, beta, dtype)?;
    let device = place.device(threads)?;
    let layouts = operands.layouts();
    if let Place::Gpu(gpu) = &place {
        gpu.refuse_capture("a product without a plan", UNPLANNED)?;
        return with_scalar!(dtype, |T| place.run(py, &device, || gpu.between(|| {
            let pattern = source.on_gpu(gpu)?;
            let mut plan = planned_on_gpu::<T>(&pattern, (depth, 1), 1, layouts, &device)?;
            operands.execute(&mut plan, factors)
        })));
    }
    let size = operands.out.len().saturating_mul(depth);
    with_scalar!(dtype, |T| interruptible(py, size, move || device.threads().run(|| {
        let mut plan = planned::<T>(source.pattern()?, (depth, 1), 1, layouts, &device)?;
        operands.execute(&mut plan, factors)
    })))
}

/// What a [`SddmmPlan`] does, whatever its type of values.
trait AnyPlan: Send {
    fn execute(&mut self, operands: &mut Operands, factors: Factors) -> Result<(), Fault>;
}

/// Plans of one product, one for each pair of layouts that it was executed with.
struct Typed<T: CpuScalar> {
    pattern: AnyPattern,
    depth: usize,
    batch: usize,
    calls: u64,
    device: Device,
    plans: [Option<gustav::SddmmPlan<'static, T>>; 4],
}

impl<T: CpuScalar> AnyPlan for Typed<T> {
    fn execute(&mut self, operands: &mut Operands, factors: Factors) -> Result<(), Fault> {
        let Typed { pattern, depth, batch, calls, device, plans } = self;
        let layouts = operands.layouts();
        let bit = |layout| usize::from(layout == Layout::ColumnMajor);
        let plan = match &mut plans[2 * bit(layouts.0) + bit(layouts.1)] {
            Some(plan) => plan,
            none => none.insert(match pattern {
                AnyPattern::Host(p) => {
                    planned(p.to_ref(), (*depth, *batch), *calls, layouts, device)?
                }
                AnyPattern::Gpu(p) => {
                    operands.place.to_plan("the pattern", Some(p.ordinal()))?;
                    planned_on_gpu(p, (*depth, *batch), *calls, layouts, device)?
                }
            }),
        };
        operands.execute(plan, factors)
    }
}

/// A product at the nonzeros of a pattern that is planned once.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct SddmmPlan {
    plan: Arc<Shared<OnGpu<Box<dyn AnyPlan>>>>,
    arrays: Extents,
    gpu: Option<u32>,
    dtype: gustav::DType,
}

#[pymethods]
impl SddmmPlan {
    #[new]
    #[pyo3(signature = (pattern, depth, dtype, calls, place=None, batch=1))]
    fn new(
        py: Python<'_>,
        pattern: &Bound<'_, Pattern>,
        depth: usize,
        dtype: &str,
        calls: u64,
        place: Given,
        batch: usize,
    ) -> PyResult<Self> {
        let dtype = Element::named(dtype).value("dtype")?;
        let pattern = pattern.get().inner.clone();
        let (arrays, gpu) = (pattern.extents(), pattern.gpu());
        let place = Place::new(py, place)?;
        place.of("the pattern", gpu)?;
        let device = place.device(None)?;
        let of_plan = device.clone();
        let plan: Box<dyn AnyPlan> = with_scalar!(dtype, |T| Box::new(Typed::<T> {
            pattern,
            depth,
            batch,
            calls,
            device: of_plan,
            plans: [const { None }; 4],
        }));
        let plan = Arc::new(Shared::new(OnGpu::new(&device, plan)));
        Ok(SddmmPlan { plan, arrays, gpu, dtype })
    }

    /// `out = alpha * (x @ y.T) + beta * out` at the nonzeros.
    #[pyo3(signature = (x, y, out, alpha, beta, place=None))]
    fn execute_into(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        y: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
        beta: Option<&Bound<'_, PyAny>>,
        place: Given,
    ) -> PyResult<()> {
        let place = Place::new(py, place)?;
        place.of("the plan", self.gpu)?;
        let operands = Operands::new(x, y, out, place.clone())?;
        self.arrays.refuse_overlap(&operands.out)?;
        let factors = Factors::new(alpha, beta, self.dtype)?;
        let size = operands.out.len().saturating_mul(operands.depth()?);
        place.execute_long(py, size, &self.plan, operands, move |plan, o| plan.execute(o, factors))
    }
}
