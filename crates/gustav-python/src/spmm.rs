//! Sparse × dense.

use std::sync::Arc;

use gustav::cuda::Call;
use gustav::{
    CpuScalar, DType, Device, Explanation, Layout, PatternRef, Plans, Problem, Scalar, Scale, Spmm,
    SpmmRequest, Spmv, SpmvPlan, with_scalar,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments;
use crate::array::Array;
use crate::device_pattern::{AnyDevice, Kind};
use crate::element::Element;
use crate::error::{Fault, detached, interruptible};
use crate::pattern::{AnyPattern, AnyRef, Extents, Pattern, Source, with_indices};
use crate::place::{Given, Gpu, OnGpu, Place};
use crate::scale::{Factors, reduction, semiring};
use crate::shared::Shared;

/// What a plan is made for, but for its layouts.
#[derive(Clone)]
struct Wanted {
    columns: usize,
    calls: u64,
    transpose: bool,
    semiring: gustav::Semiring,
    reduce: gustav::Reduce,
    deterministic: bool,
    batch: usize,
}

impl Wanted {
    fn plan<'a, T: CpuScalar>(
        &self,
        pattern: AnyRef<'a>,
        layouts: (Layout, Layout),
        device: &Device,
    ) -> gustav::Result<gustav::SpmmPlan<'a, T>> {
        with_indices!(AnyRef, pattern, |p| {
            let problem = self.problem(p.view().spmm(self.columns).problem, layouts);
            Plans::<SpmmRequest<PatternRef<'a, _, _>>, T>::plan(
                device,
                SpmmRequest { pattern: p, problem },
            )
        })
    }

    fn plan_on_gpu<T: CpuScalar>(
        &self,
        pattern: &AnyDevice,
        layouts: (Layout, Layout),
        device: &Device,
    ) -> gustav::Result<gustav::SpmmPlan<'static, T>> {
        with_indices!(Kind, pattern.kind(), |p| {
            let request = p.spmm(self.columns);
            let problem = self.problem(request.problem, layouts);
            SpmmRequest { problem, ..request }.plan(device)
        })
    }

    fn problem(&self, of_pattern: Problem, layouts: (Layout, Layout)) -> Problem {
        let mut problem = of_pattern.reduce(self.reduce);
        problem.batch = self.batch;
        problem.calls = self.calls;
        problem.transpose_a = self.transpose;
        problem.semiring = self.semiring;
        problem.deterministic = self.deterministic;
        (problem.layout_b, problem.layout_c) = layouts;
        problem
    }
}

/// `out = scale(alpha, op(A) @ b) + scale(beta, out)` in one call, over the semiring.
#[pyfunction]
pub fn spmm(
    py: Python<'_>,
    pattern: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    alpha: Option<&Bound<'_, PyAny>>,
    beta: Option<&Bound<'_, PyAny>>,
    transpose: bool,
    semiring_name: &str,
    reduce: &str,
    deterministic: bool,
    #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
    place: Given,
) -> PyResult<()> {
    let place = Place::new(py, place)?;
    let source = Source::of(pattern, &place)?;
    let operands = Operands::new(values, b, out, place.clone())?;
    source.refuse_overlap(&operands.out)?;
    let dtype = operands.values.element.value("values")?;
    let factors = Factors::new(alpha, beta, dtype)?;
    let (semiring, reduce) = (semiring(semiring_name)?, reduction(reduce)?);
    let device = place.device(threads)?;
    if let Place::Gpu(gpu) = &place {
        gpu.refuse_capture("a product without a plan", UNPLANNED)?;
        let columns = operands.columns();
        let wanted =
            Wanted { columns, calls: 1, transpose, semiring, reduce, deterministic, batch: 1 };
        return with_scalar!(dtype, |T| place.run(py, &device, || gpu.between(|| {
            let mut operands = operands;
            let pattern = source.on_gpu(gpu)?;
            let mut plan = wanted.plan_on_gpu::<T>(&pattern, operands.layouts(), &device)?;
            operands.execute(&mut plan, factors)
        })));
    }
    with_scalar!(dtype, |T| interruptible(py, operands.size(), move || device.threads().run(
        || {
            let Operands { values, b, mut out, .. } = operands;
            let Scale { alpha, beta } = factors.scale::<<T as Scalar>::Accum>();
            with_indices!(AnyRef, source.pattern()?, |p| {
                let a = p.view().with_values(values.slice::<T>()?)?;
                let mut product = Spmm::new(a, b.dense::<T>()?)
                    .device(device.clone())
                    .transpose(transpose)
                    .semiring(semiring)
                    .reduce(reduce)
                    .deterministic(deterministic);
                if let Some(alpha) = alpha {
                    product = product.alpha(alpha);
                }
                Ok(product.run_into(beta.unwrap_or(semiring.zero()), out.dense_mut::<T>()?)?)
            })
        }
    )))
}

/// What works in place of a call that has to wait for the device.
pub const UNPLANNED: &str = "a plan that was executed once before the capture";

/// The arrays of one execution.
struct Operands {
    values: Array,
    b: Array,
    out: Array,
    /// Positions of the nonzeros that won, as many as `out` has elements.
    winners: Option<Array>,
    place: Place,
}

impl Operands {
    fn new(
        values: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        place: Place,
    ) -> PyResult<Self> {
        let values = Array::vector("values", values, &place)?;
        let b = Array::to_read("b", b, &place)?;
        let out = Array::to_write("out", out, &place)?;
        out.refuse_overlap(&values)?;
        out.refuse_overlap(&b)?;
        if b.shape().len() != out.shape().len() {
            return Err(PyValueError::new_err(format!(
                "out: expected {} dimensions, as b has, found {}",
                b.shape().len(),
                out.shape().len()
            )));
        }
        Ok(Operands { values, b, out, winners: None, place })
    }

    /// Columns of b; a vector is one.
    fn columns(&self) -> usize {
        self.b.shape().get(1).copied().unwrap_or(1)
    }

    /// Multiplications.
    fn size(&self) -> usize {
        self.values.len().saturating_mul(self.columns())
    }

    fn layouts(&self) -> (Layout, Layout) {
        (self.b.layout_of_matrix(), self.out.layout_of_matrix())
    }

    fn execute<T: CpuScalar>(
        &mut self,
        plan: &mut gustav::SpmmPlan<'_, T>,
        factors: Factors,
    ) -> Result<(), Fault> {
        let Operands { values, b, out, winners, place } = self;
        let scale = factors.scale::<T::Accum>();
        if let Place::Gpu(gpu) = place {
            let (values, b) = (values.buffer::<T>(gpu)?, b.device_dense::<T>(gpu)?);
            let mut out = out.device_dense_mut::<T>(gpu)?;
            let call = Call::from(scale).on(&gpu.stream);
            match winners {
                Some(winners) => {
                    let mut winners = winners.indices_mut_buffer(gpu)?;
                    plan.execute_with_winners(&values, &b, &mut out, &mut winners, call)?;
                }
                None => plan.execute(&values, &b, &mut out, call)?,
            }
            return Ok(());
        }
        let (values, b) = (values.slice::<T>()?, b.dense::<T>()?);
        let out = out.dense_mut::<T>()?;
        match winners {
            Some(winners) => {
                plan.execute_with_winners(values, b, out, winners.indices_mut()?, scale)?;
            }
            None => plan.execute(values, b, out, scale)?,
        }
        Ok(())
    }
}

/// What a [`SpmmPlan`] does, whatever its type of values.
trait AnyPlan: Send {
    fn execute(&mut self, operands: &mut Operands, factors: Factors) -> Result<(), Fault>;
    fn explain(&mut self) -> Result<Explanation, Fault>;
}

/// Plans of one product, one for each pair of layouts that it was executed with.
struct Typed<T: CpuScalar> {
    wanted: Wanted,
    pattern: AnyPattern,
    device: Device,
    plans: [Option<gustav::SpmmPlan<'static, T>>; 4],
}

impl<T: CpuScalar> Typed<T> {
    fn plan(
        &mut self,
        layouts: (Layout, Layout),
        gpu: Option<&Gpu>,
    ) -> Result<&mut gustav::SpmmPlan<'static, T>, Fault> {
        let bit = |layout| usize::from(layout == Layout::ColumnMajor);
        let held = &mut self.plans[2 * bit(layouts.0) + bit(layouts.1)];
        if held.is_none() {
            if let Some(gpu) = gpu {
                gpu.refuse_capture("planning for another layout", UNPLANNED)?;
            }
            *held = Some(match &self.pattern {
                AnyPattern::Host(p) => self.wanted.plan(p.to_ref(), layouts, &self.device)?,
                AnyPattern::Gpu(p) => self.wanted.plan_on_gpu(p, layouts, &self.device)?,
            });
        }
        held.as_mut().ok_or_else(|| Fault::Panic("a plan that was made is gone".into()))
    }
}

impl<T: CpuScalar> AnyPlan for Typed<T> {
    fn execute(&mut self, operands: &mut Operands, factors: Factors) -> Result<(), Fault> {
        let (layouts, place) = (operands.layouts(), operands.place.clone());
        let gpu = match &place {
            Place::Host => None,
            Place::Gpu(gpu) => Some(gpu),
        };
        operands.execute(self.plan(layouts, gpu)?, factors)
    }

    fn explain(&mut self) -> Result<Explanation, Fault> {
        Ok(self.plan((Layout::RowMajor, Layout::RowMajor), None)?.explain().clone())
    }
}

/// A product that is planned once for a pattern, and executed with any values.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct SpmmPlan {
    plan: Arc<Shared<OnGpu<Box<dyn AnyPlan>>>>,
    arrays: Extents,
    /// The number of the GPU that it is planned for.
    #[pyo3(get)]
    gpu: Option<u32>,
    dtype: DType,
    output_rows: usize,
    inner_rows: usize,
    #[pyo3(get)]
    columns: usize,
    explanation: Explanation,
}

#[pymethods]
impl SpmmPlan {
    #[new]
    #[pyo3(signature = (pattern, columns, dtype, calls, transpose, semiring_name, deterministic, threads=None, reduce="sum", place=None, batch=1))]
    fn new(
        py: Python<'_>,
        pattern: &Bound<'_, Pattern>,
        #[pyo3(from_py_with = arguments::columns)] columns: usize,
        dtype: &str,
        #[pyo3(from_py_with = arguments::calls)] calls: u64,
        transpose: bool,
        semiring_name: &str,
        deterministic: bool,
        #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
        reduce: &str,
        place: Given,
        batch: usize,
    ) -> PyResult<Self> {
        let dtype = Element::named(dtype).value("dtype")?;
        let semiring = semiring(semiring_name)?;
        let reduce = reduction(reduce)?;
        let wanted = Wanted { columns, calls, transpose, semiring, reduce, deterministic, batch };
        let pattern = pattern.get().inner.clone();
        let (arrays, gpu) = (pattern.extents(), pattern.gpu());
        let (rows, cols) = pattern.shape();
        let (output_rows, inner_rows) = if transpose { (cols, rows) } else { (rows, cols) };
        let place = Place::new(py, place)?;
        place.to_plan("the pattern", gpu)?;
        let device = place.device(threads)?;
        let (size, of_plan) = (pattern.nnz().saturating_mul(columns), device.clone());
        let (plan, explanation) = place.run_long(py, size, &device, move || {
            let mut plan: Box<dyn AnyPlan> = with_scalar!(dtype, |T| Box::new(Typed::<T> {
                wanted,
                pattern,
                device: of_plan.clone(),
                plans: [const { None }; 4],
            }));
            let explanation = plan.explain()?;
            Ok((OnGpu::new(&of_plan, plan), explanation))
        })?;
        let plan = Arc::new(Shared::new(plan));
        Ok(SpmmPlan { plan, arrays, gpu, dtype, output_rows, inner_rows, columns, explanation })
    }

    /// `out = scale(alpha, op(A) @ b) + scale(beta, out)` with these values of A; with max and min, to
    /// `winners` the position of the nonzero that won each element, −1 where there is none.
    #[pyo3(signature = (values, b, out, alpha, beta, winners=None, place=None))]
    fn execute_into(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
        beta: Option<&Bound<'_, PyAny>>,
        winners: Option<&Bound<'_, PyAny>>,
        place: Given,
    ) -> PyResult<()> {
        let place = Place::new(py, place)?;
        place.of("the plan", self.gpu)?;
        let mut operands = Operands::new(values, b, out, place.clone())?;
        self.arrays.refuse_overlap(&operands.out)?;
        if let Some(winners) = winners {
            let winners = Array::to_write("winners", winners, &place)?;
            self.arrays.refuse_overlap(&winners)?;
            for other in [&operands.values, &operands.b, &operands.out] {
                winners.refuse_overlap(other)?;
            }
            operands.winners = Some(winners);
        }
        self.run(py, operands, Factors::new(alpha, beta, self.dtype)?)
    }

    /// Waits for what planning has queued on a GPU.
    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        let Some(ordinal) = self.gpu else { return Ok(()) };
        let device = crate::place::gpu(py, ordinal)?;
        detached(py, || Ok(device.cuda_device()?.stream().synchronize()?))
    }

    /// The type of values.
    #[getter]
    fn dtype(&self) -> &'static str {
        crate::element::name(self.dtype)
    }

    /// Rows of the result.
    #[getter]
    fn output_rows(&self) -> usize {
        self.output_rows
    }

    /// Rows of b.
    #[getter]
    fn inner_rows(&self) -> usize {
        self.inner_rows
    }

    /// The name of the algorithm.
    #[getter]
    fn algorithm(&self) -> String {
        self.explanation.choice.algorithm.to_string()
    }

    /// Bytes that the plan holds besides the operands.
    #[getter]
    fn workspace_bytes(&self) -> usize {
        self.explanation.workspace_bytes
    }

    /// Algorithm, configuration, facts, reason and workspace, as text.
    fn explain(&self) -> String {
        self.explanation.to_string()
    }
}

impl SpmmPlan {
    /// The type of values.
    pub fn scalar(&self) -> DType {
        self.dtype
    }

    /// Columns of b.
    pub fn width(&self) -> usize {
        self.columns
    }

    /// `out = op(A) @ b`, where `out` is new memory.
    ///
    /// # Errors
    /// As of a product.
    pub fn fill(
        &self,
        py: Python<'_>,
        values: Array,
        b: Array,
        out: Array,
        place: Place,
    ) -> PyResult<()> {
        place.of("the plan", self.gpu)?;
        let operands = Operands { values, b, out, winners: None, place };
        self.run(py, operands, Factors::new(None, None, self.dtype)?)
    }

    fn run(&self, py: Python<'_>, operands: Operands, factors: Factors) -> PyResult<()> {
        let (size, place) = (operands.size(), operands.place.clone());
        place.execute_long(py, size, &self.plan, operands, move |plan, o| plan.execute(o, factors))
    }
}

/// `out = scale(alpha, op(A) @ x) + scale(beta, out)` with vectors.
#[pyfunction]
pub fn spmv(
    py: Python<'_>,
    pattern: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    x: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    alpha: Option<&Bound<'_, PyAny>>,
    beta: Option<&Bound<'_, PyAny>>,
    transpose: bool,
    semiring_name: &str,
    deterministic: bool,
    #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
    place: Given,
) -> PyResult<()> {
    let place = Place::new(py, place)?;
    let source = Source::of(pattern, &place)?;
    let (values, x) = (Array::vector("values", values, &place)?, Array::vector("x", x, &place)?);
    let mut out = Array::to_write("out", out, &place)?;
    source.refuse_overlap(&out)?;
    out.refuse_overlap(&values)?;
    out.refuse_overlap(&x)?;
    let dtype = values.element.value("values")?;
    let factors = Factors::new(alpha, beta, dtype)?;
    let semiring = semiring(semiring_name)?;
    let device = place.device(threads)?;
    if let Place::Gpu(gpu) = &place {
        gpu.refuse_capture("a product without a plan", UNPLANNED)?;
        return with_scalar!(dtype, |T| place.run(py, &device, || gpu.between(|| {
            let pattern = source.on_gpu(gpu)?;
            let mut plan: SpmvPlan<'_, T> = with_indices!(Kind, pattern.kind(), |p| {
                let mut request = p.spmv();
                request.problem.calls = 1;
                request.problem.transpose_a = transpose;
                request.problem.semiring = semiring;
                request.problem.deterministic = deterministic;
                request.plan(&device)?
            });
            let call = Call::from(factors.scale::<<T as Scalar>::Accum>()).on(&gpu.stream);
            let (values, x) = (values.buffer::<T>(gpu)?, x.buffer::<T>(gpu)?);
            Ok(plan.execute(&values, &x, &mut out.buffer_mut::<T>(gpu)?, call)?)
        })));
    }
    with_scalar!(dtype, |T| interruptible(py, values.len(), move || device.threads().run(|| {
        with_indices!(AnyRef, source.pattern()?, |p| {
            let a = p.view().with_values(values.slice::<T>()?)?;
            let Scale { alpha, beta } = factors.scale::<<T as Scalar>::Accum>();
            let mut product = Spmv::new(a, x.slice::<T>()?)
                .device(device.clone())
                .transpose(transpose)
                .semiring(semiring)
                .deterministic(deterministic);
            if let Some(alpha) = alpha {
                product = product.alpha(alpha);
            }
            Ok(product.run_into(beta.unwrap_or(semiring.zero()), out.slice_mut::<T>()?)?)
        })
    })))
}
