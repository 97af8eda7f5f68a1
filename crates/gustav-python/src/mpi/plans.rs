//! Plans over ranks. Arrays are in rows, so that the ranks' plans are of one layout.

use std::sync::{Arc, Mutex, PoisonError};

use gustav::cuda::KeptContext;
use gustav::{DType, Error, Index, Layout, Problem, with_scalar};
use gustav_mpi::{
    Communication, Device, DistScalar, Explanation, GpuSddmmCall, GpuSddmmPlan, GpuSpmmPlan,
    Options, Replicated, ReplicatedSpmmPlan, SddmmCall, SddmmPlan, SpgemmPlan, SpmmPlan,
};
use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;

use super::pattern::{AnyDist, DistPattern, with_dist};
use super::ranks::reported;
use crate::array::Array;
use crate::block::Block;
use crate::element::Element;
use crate::error::{Fault, detached, to_python};
use crate::place::{self, Given, Gpu, OnGpu, Place};
use crate::scale::{Factors, semiring};
use crate::threads;

/// Where this rank computes.
struct Target {
    /// The device of the package that it is, whose context plans leave as it was.
    of: gustav::Device,
    /// Its number, of a GPU.
    gpu: Option<u32>,
    engine: Engine,
}

enum Engine {
    Cpu(Device),
    Gpu(gustav_mpi::Gpu),
}

impl Target {
    /// The GPU of this number, or the CPU with so many threads.
    fn new(
        py: Python<'_>,
        threads: Option<usize>,
        communication: &str,
        gpu: Option<u32>,
    ) -> PyResult<Self> {
        let chosen = Communication::ALL.into_iter().find(|c| c.name() == communication);
        let chosen = chosen.ok_or_else(|| {
            let names = Communication::ALL.map(Communication::name).join(", ");
            PyValueError::new_err(format!(
                "communication: {communication:?} is not known; {names} are"
            ))
        })?;
        let Some(ordinal) = gpu else {
            let of = threads::device(threads)?;
            let options = Options { threads: of.threads().clone(), ..Options::default() };
            return Ok(Target {
                of,
                gpu,
                engine: Engine::Cpu(Device::cpu(options).communication(chosen)),
            });
        };
        let of = gustav::Device::clone(&*place::gpu(py, ordinal)?);
        let device = of.cuda_device().map_err(to_python)?.clone();
        let engine = Engine::Gpu(gustav_mpi::Gpu::new(device).communication(chosen));
        Ok(Target { of, gpu, engine })
    }

    /// Makes a plan, detached from the interpreter.
    fn plan<R: Send>(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&Engine) -> Result<R, Fault> + Send,
    ) -> PyResult<R> {
        detached(py, || {
            let _kept = match self.gpu {
                Some(_) => Some(KeptContext::of(self.of.cuda_device()?)),
                None => None,
            };
            make(&self.engine)
        })
    }
}

/// The GPU of a call of a plan that is of one.
fn expect_gpu(place: &Place) -> Result<&Gpu, Fault> {
    match place {
        Place::Gpu(gpu) => Ok(gpu),
        Place::Host => Err(Fault::Panic("operands of a GPU in host memory".into())),
    }
}

/// Has the device's own stream, on which plans over ranks do their work and wait for it, wait for the call's. What fails
/// here, as in finding the operands, other ranks have to be told.
fn ordered<R>(gpu: &Gpu, operands: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
    let found = || {
        gpu.on()?.stream().wait(&gpu.stream.record()?)?;
        operands()
    };
    found().map_err(|fault| Fault::Python(PyErr::from(fault)))
}

/// A matrix or vector that is read in rows.
fn in_rows(name: &'static str, object: &Bound<'_, PyAny>, place: &Place) -> PyResult<Array> {
    let array = Array::to_read(name, object, place)?;
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
    fn execute(&mut self, place: &Place, arrays: [Array; 3], factors: Factors)
    -> Result<(), Fault>;
}

macro_rules! any_spmm {
    ($plan:ident) => {
        impl<T: DistScalar> AnySpmm for $plan<T> {
            fn execute(
                &mut self,
                _: &Place,
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

impl<T: DistScalar> AnySpmm for GpuSpmmPlan<T> {
    fn execute(
        &mut self,
        place: &Place,
        [values, b, mut out]: [Array; 3],
        factors: Factors,
    ) -> Result<(), Fault> {
        let gpu = expect_gpu(place)?;
        let (values, b, mut out) = ordered(gpu, || {
            let (values, b) = (values.buffer::<T>(gpu)?, b.device_dense::<T>(gpu)?);
            Ok((values, b, out.device_dense_mut::<T>(gpu)?))
        })?;
        Ok(self.execute(&values, &b, &mut out, factors.scale::<T::Accum>())?)
    }
}

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
    plan: Arc<Mutex<OnGpu<Box<P>>>>,
    ranks: gustav_mpi::Ranks,
    dtype: DType,
    /// The number of the GPU that it is planned for.
    gpu: Option<u32>,
    explanation: Explanation,
}

impl<P: ?Sized + Send> SharedPlan<P> {
    fn new(
        pattern: &AnyDist,
        dtype: DType,
        target: &Target,
        (plan, explanation): (Box<P>, Explanation),
    ) -> Self {
        let ranks = with_dist!(pattern, |p| p.ranks().clone());
        let plan = Arc::new(Mutex::new(OnGpu::new(&target.of, plan)));
        SharedPlan { plan, ranks, dtype, gpu: target.gpu, explanation }
    }

    /// Where the operands of a call are, which is where the plan is.
    fn place(&self, py: Python<'_>, given: Given) -> PyResult<Place> {
        let place = Place::new(py, given)?;
        place.of("the plan", self.gpu)?;
        if let Place::Gpu(gpu) = &place {
            gpu.refuse_capture("a product over ranks", "to capture the work before and after it")?;
        }
        Ok(place)
    }

    /// Executes with `arrays` at a place. An error in them is reported to the other ranks.
    fn run<A: Send, R: Send>(
        &self,
        py: Python<'_>,
        arrays: PyResult<(Place, A)>,
        work: impl FnOnce(&mut P, &Place, A) -> Result<R, Fault> + Send,
    ) -> PyResult<R> {
        let (place, arrays) = reported(&self.ranks, arrays)?;
        let plan = self.plan.clone();
        detached(py, move || {
            let mut plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
            reported(&self.ranks, place.within(|| work(&mut plan, &place, arrays)))
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
        gpu: Option<u32>,
    ) -> PyResult<Self> {
        let pattern = pattern.get().inner.clone();
        let parsed = || {
            let dtype = Element::named(dtype).value("dtype")?;
            let copies = copies(copies_text)?;
            if gpu.is_some() && copies != Some(1) {
                return Err(PyNotImplementedError::new_err(
                    "copies: teams multiply on CPUs; nearest that works: copies=1, or arrays in host memory",
                ));
            }
            let target = Target::new(py, threads, communication, gpu)?;
            Ok::<_, PyErr>((dtype, semiring(semiring_name)?, target, copies))
        };
        let ranks = with_dist!(&pattern, |p| p.ranks());
        let (dtype, semiring, target, copies) = reported(ranks, parsed())?;
        let made = with_scalar!(dtype, |T| target.plan(py, |engine| {
            with_dist!(&pattern, |p| {
                let problem = p.spmm(columns).problem.calls(calls).transpose_a(transpose);
                let problem = problem.semiring(semiring).deterministic(deterministic);
                let (plan, explanation): (Box<dyn AnySpmm>, _) = match engine {
                    Engine::Gpu(gpu) => {
                        let plan = GpuSpmmPlan::<T>::new(p, &problem, gpu)?;
                        let explanation = plan.explain().clone();
                        (Box::new(plan), explanation)
                    }
                    Engine::Cpu(device) if copies == Some(1) => {
                        let plan = SpmmPlan::<T>::new(p, &problem, device)?;
                        let explanation = plan.explain().clone();
                        (Box::new(plan), explanation)
                    }
                    Engine::Cpu(device) => {
                        let device = match copies {
                            Some(copies) => Replicated::new(device.clone(), copies),
                            None => Replicated::automatic(device.clone()),
                        };
                        let plan = ReplicatedSpmmPlan::<T>::new(p, &problem, &device)?;
                        let explanation = plan.explain().clone();
                        (Box::new(plan), explanation)
                    }
                };
                Ok((plan, explanation))
            })
        }))?;
        Ok(DistSpmmPlan { shared: SharedPlan::new(&pattern, dtype, &target, made) })
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
        place: Given,
    ) -> PyResult<()> {
        let arrays = || {
            let place = self.shared.place(py, place)?;
            let values = Array::vector("values", values, &place)?;
            let b = in_rows("b", b, &place)?;
            let out = expect_rows(Array::to_write("out", out, &place)?)?;
            out.refuse_overlap(&values)?;
            out.refuse_overlap(&b)?;
            let factors = Factors::new(alpha, beta, self.shared.dtype)?;
            Ok((place, ([values, b, out], factors)))
        };
        self.shared.run(py, arrays(), |plan, place, (arrays, factors)| {
            plan.execute(place, arrays, factors)
        })
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
    fn execute(&mut self, place: &Place, arrays: [Array; 3], factors: Factors)
    -> Result<(), Fault>;
}

impl<T: DistScalar> AnySddmm for SddmmPlan<T> {
    fn execute(
        &mut self,
        _: &Place,
        [x, y, mut out]: [Array; 3],
        factors: Factors,
    ) -> Result<(), Fault> {
        let call = SddmmCall::from(factors.scale::<T::Accum>());
        Ok(self.execute(x.dense::<T>()?, y.dense::<T>()?, out.slice_mut::<T>()?, call)?)
    }
}

impl<T: DistScalar> AnySddmm for GpuSddmmPlan<T> {
    fn execute(
        &mut self,
        place: &Place,
        [x, y, mut out]: [Array; 3],
        factors: Factors,
    ) -> Result<(), Fault> {
        let gpu = expect_gpu(place)?;
        let (x, y, mut out) = ordered(gpu, || {
            let (x, y) = (x.device_dense::<T>(gpu)?, y.device_dense::<T>(gpu)?);
            Ok((x, y, out.buffer_mut::<T>(gpu)?))
        })?;
        let call = GpuSddmmCall::from(factors.scale::<T::Accum>());
        Ok(self.execute(&x, &y, &mut out, call)?)
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
        gpu: Option<u32>,
    ) -> PyResult<Self> {
        let pattern = pattern.get().inner.clone();
        let parsed = || {
            let dtype = Element::named(dtype).value("dtype")?;
            let target = Target::new(py, threads, Communication::RowsOfB.name(), gpu)?;
            Ok::<_, PyErr>((dtype, target))
        };
        let (dtype, target) = reported(with_dist!(&pattern, |p| p.ranks()), parsed())?;
        let made = with_scalar!(dtype, |T| target.plan(py, |engine| {
            with_dist!(&pattern, |p| {
                let problem = p.sddmm(depth).problem.calls(calls);
                let (plan, explanation): (Box<dyn AnySddmm>, _) = match engine {
                    Engine::Gpu(gpu) => {
                        let plan = GpuSddmmPlan::<T>::new(p, &problem, gpu)?;
                        let explanation = plan.explain().clone();
                        (Box::new(plan), explanation)
                    }
                    Engine::Cpu(device) => {
                        let plan = SddmmPlan::<T>::new(p, &problem, device)?;
                        let explanation = plan.explain().clone();
                        (Box::new(plan), explanation)
                    }
                };
                Ok((plan, explanation))
            })
        }))?;
        Ok(DistSddmmPlan { shared: SharedPlan::new(&pattern, dtype, &target, made) })
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
        place: Given,
    ) -> PyResult<()> {
        let arrays = || {
            let place = self.shared.place(py, place)?;
            let (x, y) = (in_rows("x", x, &place)?, in_rows("y", y, &place)?);
            let out = Array::to_write("out", out, &place)?;
            out.refuse_overlap(&x)?;
            out.refuse_overlap(&y)?;
            let factors = Factors::new(alpha, beta, self.shared.dtype)?;
            Ok((place, ([x, y, out], factors)))
        };
        self.shared.run(py, arrays(), |plan, place, (arrays, factors)| {
            plan.execute(place, arrays, factors)
        })
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
            let target = Target::new(py, threads, Communication::RowsOfB.name(), None)?;
            Ok::<_, PyErr>((
                Element::named(dtype).value("dtype")?,
                semiring(semiring_name)?,
                target,
            ))
        };
        let (dtype, semiring, target) = reported(with_dist!(&a, |p| p.ranks()), parsed())?;
        let made = with_scalar!(dtype, |T| target.plan(py, |engine| match (&a, &b) {
            (AnyDist::Long(a), AnyDist::Long(b)) => {
                let problem = a.spgemm(b).problem.semiring(semiring);
                spgemm::<T, _>((a, b), &problem, engine, AnyDist::Long)
            }
            (AnyDist::Large(a), AnyDist::Large(b)) => {
                let problem = a.spgemm(b).problem.semiring(semiring);
                spgemm::<T, _>((a, b), &problem, engine, AnyDist::Large)
            }
            _ => Err(Error::Unsupported {
                problem: "an A and B of which one has more than 2^32 columns".into(),
                backend: "the SpGEMM over ranks".into(),
                reason: "their indices are of different types".into(),
                nearest: "A and B with as many columns each, or fewer".into(),
            }
            .into()),
        }))?;
        Ok(DistSpgemmPlan { shared: SharedPlan::new(&a, dtype, &target, made) })
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
            Ok((Place::Host, ([a, b], Factors::new(alpha, None, self.shared.dtype)?)))
        };
        let (inner, values) = self
            .shared
            .run(py, arrays(), |plan, _, (arrays, factors)| plan.execute(arrays, factors))?;
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
    engine: &Engine,
    wrap: fn(gustav_mpi::DistPattern<I, u64>) -> AnyDist,
) -> Result<(Box<dyn AnySpgemm>, Explanation), Fault> {
    let Engine::Cpu(device) = engine else {
        return Err(Fault::Panic("a plan of sparse matrices of a GPU".into()));
    };
    let plan = SpgemmPlan::<T, I, u64>::new(a, b, problem, device)?;
    let explanation = plan.explain().clone();
    Ok((Box::new(Typed { plan, wrap }), explanation))
}
