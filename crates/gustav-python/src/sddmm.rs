//! Dense × dense at the nonzeros of a pattern.

use std::sync::{Mutex, PoisonError};

use gustav::{CpuScalar, Device, Layout, PatternRef, Plans, SddmmRequest};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::Array;
use crate::element::{Element, with_scalar};
use crate::error::{Fault, catch, detached};
use crate::pattern::{AnyOwned, AnyRef, Extents, Pattern, Source, with_indices};
use crate::scale::Factors;
use crate::threads;

/// The arrays of one execution.
struct Operands {
    x: Array,
    y: Array,
    out: Array,
}

impl Operands {
    fn new(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>, out: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (x, y) = (Array::to_read("x", x)?, Array::to_read("y", y)?);
        let out = Array::to_write("out", out)?;
        out.refuse_overlap(&x)?;
        out.refuse_overlap(&y)?;
        Ok(Operands { x, y, out })
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
        let Operands { x, y, out } = self;
        let scale = factors.scale::<T::Accum>();
        Ok(plan.execute(x.dense::<T>()?, y.dense::<T>()?, out.slice_mut::<T>()?, scale)?)
    }
}

fn planned<'a, T: CpuScalar>(
    pattern: AnyRef<'a>,
    depth: usize,
    batch: usize,
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
    threads: Option<usize>,
) -> PyResult<()> {
    let source = Source::of(pattern)?;
    let mut operands = Operands::new(x, y, out)?;
    source.refuse_overlap(&operands.out)?;
    let depth = operands.depth()?;
    let dtype = operands.x.element.value("x")?;
    let factors = Factors::new(alpha, beta, dtype)?;
    let device = threads::device(threads)?;
    with_scalar!(dtype, |T| detached(py, move || device.threads().run(|| {
        let layouts = operands.layouts();
        let mut plan = planned::<T>(source.pattern()?, depth, 1, 1, layouts, &device)?;
        operands.execute(&mut plan, factors)
    })))
}

/// What a [`SddmmPlan`] does, whatever its type of values.
trait AnyPlan: Send {
    fn execute(&mut self, operands: Operands, factors: Factors) -> Result<(), Fault>;
}

/// Plans of one product, one for each pair of layouts that it was executed with.
struct Typed<T: CpuScalar> {
    pattern: AnyOwned,
    depth: usize,
    batch: usize,
    calls: u64,
    device: Device,
    plans: [Option<gustav::SddmmPlan<'static, T>>; 4],
}

impl<T: CpuScalar> AnyPlan for Typed<T> {
    fn execute(&mut self, mut operands: Operands, factors: Factors) -> Result<(), Fault> {
        let Typed { pattern, depth, batch, calls, device, plans } = self;
        let layouts = operands.layouts();
        let bit = |layout| usize::from(layout == Layout::ColumnMajor);
        let plan = match &mut plans[2 * bit(layouts.0) + bit(layouts.1)] {
            Some(plan) => plan,
            none => {
                none.insert(planned(pattern.to_ref(), *depth, *batch, *calls, layouts, device)?)
            }
        };
        operands.execute(plan, factors)
    }
}

/// A product at the nonzeros of a pattern that is planned once.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct SddmmPlan {
    plan: Mutex<Box<dyn AnyPlan>>,
    arrays: Extents,
    dtype: gustav::DType,
}

#[pymethods]
impl SddmmPlan {
    #[new]
    #[pyo3(signature = (pattern, depth, dtype, calls, batch=1))]
    fn new(
        pattern: &Bound<'_, Pattern>,
        depth: usize,
        dtype: &str,
        calls: u64,
        batch: usize,
    ) -> PyResult<Self> {
        let dtype = Element::named(dtype).value("dtype")?;
        let pattern = pattern.get().inner.clone();
        let arrays = pattern.extents();
        let device = threads::device(None)?;
        let plan: Box<dyn AnyPlan> = with_scalar!(dtype, |T| Box::new(Typed::<T> {
            pattern,
            depth,
            batch,
            calls,
            device,
            plans: [const { None }; 4],
        }));
        Ok(SddmmPlan { plan: Mutex::new(plan), arrays, dtype })
    }

    /// `out = alpha * (x @ y.T) + beta * out` at the nonzeros.
    fn execute_into(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        y: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
        beta: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let operands = Operands::new(x, y, out)?;
        self.arrays.refuse_overlap(&operands.out)?;
        let factors = Factors::new(alpha, beta, self.dtype)?;
        detached(py, || {
            let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
            catch(|| plan.execute(operands, factors))
        })
    }
}
