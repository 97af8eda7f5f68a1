//! Sparse × dense.

use std::sync::{Mutex, PoisonError};

use gustav::{
    CpuScalar, Device, Explanation, Layout, PatternRef, Plans, Scalar, Scale, Spmm, SpmmRequest,
    Spmv,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::Array;
use crate::element::{Element, with_scalar};
use crate::error::{Fault, catch, detached};
use crate::pattern::{AnyRef, Extents, Source, with_indices};
use crate::scale::{Factors, reduction, semiring};
use crate::threads;

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
            let request = p.view().spmm(self.columns).batch(self.batch);
            let mut problem = request.reduce(self.reduce).problem;
            problem.calls = self.calls;
            problem.transpose_a = self.transpose;
            problem.semiring = self.semiring;
            problem.deterministic = self.deterministic;
            (problem.layout_b, problem.layout_c) = layouts;
            Plans::<SpmmRequest<PatternRef<'a, _, _>>, T>::plan(
                device,
                SpmmRequest { pattern: p, problem },
            )
        })
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
    threads: Option<usize>,
) -> PyResult<()> {
    let source = Source::of(pattern)?;
    let operands = Operands::new(values, b, out)?;
    source.refuse_overlap(&operands.out)?;
    let dtype = operands.values.element.value("values")?;
    let factors = Factors::new(alpha, beta, dtype)?;
    let (semiring, reduce) = (semiring(semiring_name)?, reduction(reduce)?);
    let device = threads::device(threads)?;
    with_scalar!(dtype, |T| detached(py, move || device.clone().threads().run(|| {
        let Operands { values, b, mut out, .. } = operands;
        let Scale { alpha, beta } = factors.scale::<<T as Scalar>::Accum>();
        with_indices!(AnyRef, source.pattern()?, |p| {
            let a = p.view().with_values(values.slice::<T>()?)?;
            let mut product = Spmm::new(a, b.dense::<T>()?)
                .device(device)
                .transpose(transpose)
                .semiring(semiring)
                .reduce(reduce)
                .deterministic(deterministic);
            if let Some(alpha) = alpha {
                product = product.alpha(alpha);
            }
            Ok(product.run_into(beta.unwrap_or(semiring.zero()), out.dense_mut::<T>()?)?)
        })
    })))
}

/// The arrays of one execution.
struct Operands {
    values: Array,
    b: Array,
    out: Array,
    /// Positions of the nonzeros that won, as many as `out` has elements.
    winners: Option<Array>,
}

impl Operands {
    fn new(
        values: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let (values, b) = (Array::vector("values", values)?, Array::to_read("b", b)?);
        let out = Array::to_write("out", out)?;
        out.refuse_overlap(&values)?;
        out.refuse_overlap(&b)?;
        if b.shape().len() != out.shape().len() {
            return Err(PyValueError::new_err(format!(
                "out: expected {} dimensions, as b has, found {}",
                b.shape().len(),
                out.shape().len()
            )));
        }
        Ok(Operands { values, b, out, winners: None })
    }

    fn layouts(&self) -> (Layout, Layout) {
        (self.b.layout_of_matrix(), self.out.layout_of_matrix())
    }

    fn execute<T: CpuScalar>(
        &mut self,
        plan: &mut gustav::SpmmPlan<'_, T>,
        factors: Factors,
    ) -> Result<(), Fault> {
        let Operands { values, b, out, winners } = self;
        let (values, b, scale) =
            (values.slice::<T>()?, b.dense::<T>()?, factors.scale::<T::Accum>());
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
    fn execute(&mut self, operands: Operands, factors: Factors) -> Result<(), Fault>;
    fn explain(&mut self) -> Result<Explanation, Fault>;
}

/// Plans of one product, one for each pair of layouts that it was executed with.
struct Typed<T: CpuScalar> {
    wanted: Wanted,
    pattern: crate::pattern::AnyOwned,
    device: Device,
    plans: [Option<gustav::SpmmPlan<'static, T>>; 4],
}

impl<T: CpuScalar> Typed<T> {
    fn plan(
        &mut self,
        layouts: (Layout, Layout),
    ) -> Result<&mut gustav::SpmmPlan<'static, T>, Fault> {
        let bit = |layout| usize::from(layout == Layout::ColumnMajor);
        let held = &mut self.plans[2 * bit(layouts.0) + bit(layouts.1)];
        match held {
            Some(plan) => Ok(plan),
            none => {
                Ok(none.insert(self.wanted.plan(self.pattern.to_ref(), layouts, &self.device)?))
            }
        }
    }
}

impl<T: CpuScalar> AnyPlan for Typed<T> {
    fn execute(&mut self, mut operands: Operands, factors: Factors) -> Result<(), Fault> {
        let layouts = operands.layouts();
        operands.execute(self.plan(layouts)?, factors)
    }

    fn explain(&mut self) -> Result<Explanation, Fault> {
        Ok(self.plan((Layout::RowMajor, Layout::RowMajor))?.explain().clone())
    }
}

/// A product that is planned once for a pattern, and executed with any values.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct SpmmPlan {
    plan: Mutex<Box<dyn AnyPlan>>,
    arrays: Extents,
    dtype: gustav::DType,
    output_rows: usize,
    inner_rows: usize,
    #[pyo3(get)]
    columns: usize,
    explanation: Explanation,
}

#[pymethods]
impl SpmmPlan {
    #[new]
    #[pyo3(signature = (pattern, columns, dtype, calls, transpose, semiring_name, deterministic, threads=None, reduce="sum", batch=1))]
    fn new(
        py: Python<'_>,
        pattern: &Bound<'_, crate::pattern::Pattern>,
        columns: usize,
        dtype: &str,
        calls: u64,
        transpose: bool,
        semiring_name: &str,
        deterministic: bool,
        threads: Option<usize>,
        reduce: &str,
        batch: usize,
    ) -> PyResult<Self> {
        let dtype = Element::named(dtype).value("dtype")?;
        let semiring = semiring(semiring_name)?;
        let reduce = reduction(reduce)?;
        let wanted = Wanted { columns, calls, transpose, semiring, reduce, deterministic, batch };
        let pattern = pattern.get().inner.clone();
        let arrays = pattern.extents();
        let (rows, cols) = Source::Owned(pattern.clone()).shape();
        let (output_rows, inner_rows) = if transpose { (cols, rows) } else { (rows, cols) };
        let device = threads::device(threads)?;
        let (plan, explanation) = detached(py, move || {
            let mut plan: Box<dyn AnyPlan> = with_scalar!(dtype, |T| Box::new(Typed::<T> {
                wanted,
                pattern,
                device: device.clone(),
                plans: [const { None }; 4],
            }));
            let explanation = device.threads().run(|| plan.explain())?;
            Ok((plan, explanation))
        })?;
        let plan = Mutex::new(plan);
        Ok(SpmmPlan { plan, arrays, dtype, output_rows, inner_rows, columns, explanation })
    }

    /// `out = scale(alpha, op(A) @ b) + scale(beta, out)` with these values of A; with max and min, to
    /// `winners` the position of the nonzero that won each element, −1 where there is none.
    #[pyo3(signature = (values, b, out, alpha, beta, winners=None))]
    fn execute_into(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
        beta: Option<&Bound<'_, PyAny>>,
        winners: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let mut operands = Operands::new(values, b, out)?;
        self.arrays.refuse_overlap(&operands.out)?;
        if let Some(winners) = winners {
            let winners = Array::to_write("winners", winners)?;
            self.arrays.refuse_overlap(&winners)?;
            for other in [&operands.values, &operands.b, &operands.out] {
                winners.refuse_overlap(other)?;
            }
            operands.winners = Some(winners);
        }
        let factors = Factors::new(alpha, beta, self.dtype)?;
        detached(py, || {
            // A panic leaves a plan whose workspace may hold anything, which an execution overwrites.
            let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
            catch(|| plan.execute(operands, factors))
        })
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
    threads: Option<usize>,
) -> PyResult<()> {
    let source = Source::of(pattern)?;
    let (values, x) = (Array::vector("values", values)?, Array::vector("x", x)?);
    let mut out = Array::to_write("out", out)?;
    source.refuse_overlap(&out)?;
    out.refuse_overlap(&values)?;
    out.refuse_overlap(&x)?;
    let dtype = values.element.value("values")?;
    let factors = Factors::new(alpha, beta, dtype)?;
    let semiring = semiring(semiring_name)?;
    let device = threads::device(threads)?;
    with_scalar!(dtype, |T| detached(py, move || device.clone().threads().run(|| {
        with_indices!(AnyRef, source.pattern()?, |p| {
            let a = p.view().with_values(values.slice::<T>()?)?;
            let Scale { alpha, beta } = factors.scale::<<T as Scalar>::Accum>();
            let mut product = Spmv::new(a, x.slice::<T>()?)
                .device(device)
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
