//! Plans over ranks. Arrays are in rows, so that the ranks' plans are of one layout.

use std::sync::{Arc, Mutex, PoisonError};

use gustav::{DType, Error, Index, Layout, Problem, with_scalar};
use gustav_mpi::{
    Communication, Device, DistScalar, Explanation, Options, Replicated, ReplicatedSpmmPlan,
    SddmmCall, SddmmPlan, SpgemmPlan, SpmmPlan,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::pattern::{AnyDist, DistPattern, with_dist};
use super::ranks::reported;
use crate::array::Array;
use crate::block::Block;
use crate::element::Element;
use crate::error::{Fault, detached};
use crate::place::Place;
use crate::scale::{Factors, semiring};
use crate::threads;

/// The CPU with so many threads.
fn device(threads: Option<usize>, communication: &str) -> PyResult<Device> {
    let chosen = Communication::ALL.into_iter().find(|c| c.name() == communication);
    let chosen = chosen.ok_or_else(|| {
        let names = Communication::ALL.map(Communication::name).join(", ");
        PyValueError::new_err(format!("communication: {communication:?} is not known; {names} are"))
    })?;
    let threads = threads::device(threads)?.threads().clone();
    Ok(Device::cpu(Options { threads, ..Options::default() }).communication(chosen))
}

/// A matrix or vector that is read in rows.
fn in_rows(name: &'static str, object: &Bound<'_, PyAny>) -> PyResult<Array> {
    let array = Array::to_read(name, object, &Place::Host)?;
    expect_rows(array)
}

fn expect_rows(array: Array) -> PyResult<Array> {
    match array.layout_of_matrix() {
        Layout::RowMajor => Ok(array),
        Layout::ColumnMajor => Err(PyValueError::new_err(format!(
            "{}: over ranks, matrices are in rows (C order); give a copy that is",
            array.name
        ))),
    }
}

/// What a plan does, whatever its type of values.
trait AnySpmm: Send {
    fn execute(&mut self, arrays: [Array; 3], factors: Factors) -> Result<(), Fault>;
}

macro_rules! any_spmm {
    ($plan:ident) => {
        impl<T: DistScalar> AnySpmm for $plan<T> {
            fn execute(
                &mut self,
                [values, b, mut out]: [Array; 3],
                factors: Factors,
            ) -> Result<(), Fault> {
                let (values, b) = (values.slice::<T>()?, b.dense::<T>()?);
                Ok(self.execute(values, b, out.dense_mut::<T>()?, factors.scale::<T::Accum>())?)
            }
        }
    };
}

any_spmm!(SpmmPlan);
any_spmm!(ReplicatedSpmmPlan);

/// Ranks of a team: 1 without copies, `None` for the number that sends the fewest bytes.
fn copies(text: &str) -> PyResult<Option<usize>> {
    match text {
        "auto" => Ok(None),
        number => number.parse().map(Some).map_err(|_| {
            PyValueError::new_err(format!(
                "copies: {text:?} is not a number of ranks, nor \"auto\""
            ))
        }),
    }
}

/// A plan, which threads of a rank may share, and its ranks.
struct SharedPlan<P: ?Sized> {
    plan: Arc<Mutex<Box<P>>>,
    ranks: gustav_mpi::Ranks,
    dtype: DType,
    explanation: Explanation,
}

impl<P: ?Sized + Send> SharedPlan<P> {
    fn new(pattern: &AnyDist, dtype: DType, (plan, explanation): (Box<P>, Explanation)) -> Self {
        let ranks = with_dist!(pattern, |p| p.ranks().clone());
        SharedPlan { plan: Arc::new(Mutex::new(plan)), ranks, dtype, explanation }
    }

    /// Executes with `arrays`. An error in them is reported to the other ranks.
    fn run<A: Send, R: Send>(
        &self,
        py: Python<'_>,
        arrays: PyResult<A>,
        work: impl FnOnce(&mut P, A) -> Result<R, Fault> + Send,
    ) -> PyResult<R> {
        let arrays = reported(&self.ranks, arrays)?;
        let plan = self.plan.clone();
        detached(py, move || {
            let mut plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
            reported(&self.ranks, work(&mut plan, arrays))
        })
    }
}

/// A product with a dense matrix or a vector over ranks, planned for one pattern.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct DistSpmmPlan {
    shared: SharedPlan<dyn AnySpmm>,
}

#[pymethods]
impl DistSpmmPlan {
    #[new]
    fn new(
        py: Python<'_>,
        pattern: &Bound<'_, DistPattern>,
        columns: usize,
        dtype: &str,
        calls: u64,
        transpose: bool,
        semiring_name: &str,
        deterministic: bool,
        threads: Option<usize>,
        communication: &str,
        copies_text: &str,
    ) -> PyResult<Self> {
        let pattern = pattern.get().inner.clone();
        let parsed = || {
            let dtype = Element::named(dtype).value("dtype")?;
            let copies = copies(copies_text)?;
            let device = device(threads, communication)?;
            Ok::<_, PyErr>((dtype, semiring(semiring_name)?, device, copies))
        };
        let ranks = with_dist!(&pattern, |p| p.ranks());
        let (dtype, semiring, device, copies) = reported(ranks, parsed())?;
        let made = with_scalar!(dtype, |T| detached(py, || {
            with_dist!(&pattern, |p| {
                let problem = p.spmm(columns).problem.calls(calls).transpose_a(transpose);
                let problem = problem.semiring(semiring).deterministic(deterministic);
                if copies == Some(1) {
                    let plan = SpmmPlan::<T>::new(p, &problem, &device)?;
                    let explanation = plan.explain().clone();
                    let plan: Box<dyn AnySpmm> = Box::new(plan);
                    return Ok((plan, explanation));
                }
                let device = match copies {
                    Some(copies) => Replicated::new(device, copies),
                    None => Replicated::automatic(device),
                };
                let plan = ReplicatedSpmmPlan::<T>::new(p, &problem, &device)?;
                let explanation = plan.explain().clone();
                let plan: Box<dyn AnySpmm> = Box::new(plan);
                Ok((plan, explanation))
            })
        }))?;
        Ok(DistSpmmPlan { shared: SharedPlan::new(&pattern, dtype, made) })
    }

    /// `out = scale(alpha, op(A) @ b) + scale(beta, out)`. Collective.
    fn execute_into(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
        beta: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let arrays = || {
            let values = Array::vector("values", values, &Place::Host)?;
            let b = in_rows("b", b)?;
            let out = expect_rows(Array::to_write("out", out, &Place::Host)?)?;
            out.refuse_overlap(&values)?;
            out.refuse_overlap(&b)?;
            Ok(([values, b, out], Factors::new(alpha, beta, self.shared.dtype)?))
        };
        self.shared.run(py, arrays(), |plan, (arrays, factors)| plan.execute(arrays, factors))
    }

    /// What is computed and what ranks send, as text.
    fn explain(&self) -> String {
        self.shared.explanation.to_string()
    }

    /// Bytes that all ranks send in one execution.
    #[getter]
    fn sent_bytes(&self) -> u64 {
        self.shared.explanation.volume.bytes()
    }

    /// Messages that all ranks send in one execution.
    #[getter]
    fn messages(&self) -> u64 {
        self.shared.explanation.volume.messages()
    }

    /// Bytes that the plan holds on this rank.
    #[getter]
    fn workspace_bytes(&self) -> usize {
        self.shared.explanation.workspace_bytes
    }
}

trait AnySddmm: Send {
    fn execute(&mut self, arrays: [Array; 3], factors: Factors) -> Result<(), Fault>;
}

impl<T: DistScalar> AnySddmm for SddmmPlan<T> {
    fn execute(&mut self, [x, y, mut out]: [Array; 3], factors: Factors) -> Result<(), Fault> {
        let call = SddmmCall::from(factors.scale::<T::Accum>());
        Ok(self.execute(x.dense::<T>()?, y.dense::<T>()?, out.slice_mut::<T>()?, call)?)
    }
}

/// A product of dense matrices at the nonzeros of a pattern over ranks.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct DistSddmmPlan {
    shared: SharedPlan<dyn AnySddmm>,
}

#[pymethods]
impl DistSddmmPlan {
    #[new]
    fn new(
        py: Python<'_>,
        pattern: &Bound<'_, DistPattern>,
        depth: usize,
        dtype: &str,
        calls: u64,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let pattern = pattern.get().inner.clone();
        let parsed = || {
            let dtype = Element::named(dtype).value("dtype")?;
            Ok::<_, PyErr>((dtype, device(threads, Communication::RowsOfB.name())?))
        };
        let (dtype, device) = reported(with_dist!(&pattern, |p| p.ranks()), parsed())?;
        let made = with_scalar!(dtype, |T| detached(py, || {
            with_dist!(&pattern, |p| {
                let problem = p.sddmm(depth).problem.calls(calls);
                let plan = SddmmPlan::<T>::new(p, &problem, &device)?;
                let explanation = plan.explain().clone();
                let plan: Box<dyn AnySddmm> = Box::new(plan);
                Ok((plan, explanation))
            })
        }))?;
        Ok(DistSddmmPlan { shared: SharedPlan::new(&pattern, dtype, made) })
    }

    /// `out = alpha * (x @ y.T) + beta * out` at the nonzeros. Collective.
    fn execute_into(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        y: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
        beta: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let arrays = || {
            let (x, y) = (in_rows("x", x)?, in_rows("y", y)?);
            let out = Array::to_write("out", out, &Place::Host)?;
            out.refuse_overlap(&x)?;
            out.refuse_overlap(&y)?;
            Ok(([x, y, out], Factors::new(alpha, beta, self.shared.dtype)?))
        };
        self.shared.run(py, arrays(), |plan, (arrays, factors)| plan.execute(arrays, factors))
    }

    /// What is computed and what ranks send, as text.
    fn explain(&self) -> String {
        self.shared.explanation.to_string()
    }

    /// Bytes that all ranks send in one execution.
    #[getter]
    fn sent_bytes(&self) -> u64 {
        self.shared.explanation.volume.bytes()
    }
}

/// A pattern over ranks, and this rank's values.
type Product = (AnyDist, Block);

trait AnySpgemm: Send {
    fn execute(&mut self, values: [Array; 2], factors: Factors) -> Result<Product, Fault>;
}

/// A plan, and how the pattern of its product is wrapped.
struct Typed<T: DistScalar, I: Index> {
    plan: SpgemmPlan<T, I, u64>,
    wrap: fn(gustav_mpi::DistPattern<I, u64>) -> AnyDist,
}

impl<T: DistScalar, I: Index> AnySpgemm for Typed<T, I> {
    fn execute(&mut self, [a, b]: [Array; 2], factors: Factors) -> Result<Product, Fault> {
        let alpha = factors.scale::<T::Accum>().alpha;
        let c = self.plan.execute(a.slice::<T>()?, b.slice::<T>()?, alpha)?;
        let values = c.values().as_slice();
        let mut copy = gustav::Buffer::<T>::zeroed(values.len(), "values of C")?;
        copy.copy_from_slice(values);
        Ok(((self.wrap)(c.pattern().clone()), Block::values(copy)))
    }
}

/// A product of two sparse matrices over ranks.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct DistSpgemmPlan {
    shared: SharedPlan<dyn AnySpgemm>,
}

#[pymethods]
impl DistSpgemmPlan {
    #[new]
    fn new(
        py: Python<'_>,
        a: &Bound<'_, DistPattern>,
        b: &Bound<'_, DistPattern>,
        dtype: &str,
        semiring_name: &str,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let (a, b) = (a.get().inner.clone(), b.get().inner.clone());
        let parsed = || {
            let device = device(threads, Communication::RowsOfB.name())?;
            Ok::<_, PyErr>((
                Element::named(dtype).value("dtype")?,
                semiring(semiring_name)?,
                device,
            ))
        };
        let (dtype, semiring, device) = reported(with_dist!(&a, |p| p.ranks()), parsed())?;
        let made = with_scalar!(dtype, |T| detached(py, || match (&a, &b) {
            (AnyDist::Long(a), AnyDist::Long(b)) => {
                let problem = a.spgemm(b).problem.semiring(semiring);
                spgemm::<T, _>((a, b), &problem, &device, AnyDist::Long)
            }
            (AnyDist::Large(a), AnyDist::Large(b)) => {
                let problem = a.spgemm(b).problem.semiring(semiring);
                spgemm::<T, _>((a, b), &problem, &device, AnyDist::Large)
            }
            _ => Err(Error::Unsupported {
                problem: "an A and B of which one has more than 2^32 columns".into(),
                backend: "the SpGEMM over ranks".into(),
                reason: "their indices are of different types".into(),
                nearest: "A and B with as many columns each, or fewer".into(),
            }
            .into()),
        }))?;
        Ok(DistSpgemmPlan { shared: SharedPlan::new(&a, dtype, made) })
    }

    /// The pattern of `alpha * a @ b` and this rank's values. Collective.
    fn execute(
        &self,
        py: Python<'_>,
        values_of_a: &Bound<'_, PyAny>,
        values_of_b: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(DistPattern, Block)> {
        let arrays = || {
            let a = Array::vector("values of a", values_of_a, &Place::Host)?;
            let b = Array::vector("values of b", values_of_b, &Place::Host)?;
            Ok(([a, b], Factors::new(alpha, None, self.shared.dtype)?))
        };
        let (inner, values) = self
            .shared
            .run(py, arrays(), |plan, (arrays, factors)| plan.execute(arrays, factors))?;
        Ok((DistPattern { inner }, values))
    }

    /// What is computed and what ranks send, as text.
    fn explain(&self) -> String {
        self.shared.explanation.to_string()
    }

    /// Bytes that all ranks send in one execution.
    #[getter]
    fn sent_bytes(&self) -> u64 {
        self.shared.explanation.volume.bytes()
    }
}

fn spgemm<T: DistScalar, I: Index>(
    (a, b): (&gustav_mpi::DistPattern<I, u64>, &gustav_mpi::DistPattern<I, u64>),
    problem: &Problem,
    device: &Device,
    wrap: fn(gustav_mpi::DistPattern<I, u64>) -> AnyDist,
) -> Result<(Box<dyn AnySpgemm>, Explanation), Fault> {
    let plan = SpgemmPlan::<T, I, u64>::new(a, b, problem, device)?;
    let explanation = plan.explain().clone();
    Ok((Box::new(Typed { plan, wrap }), explanation))
}
