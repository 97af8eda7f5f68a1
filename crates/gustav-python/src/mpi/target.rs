//! Where a rank computes, and plans that its threads share. Arrays are in rows, so that the ranks' plans are of one
//! layout.

use std::sync::{Arc, Mutex, PoisonError};

use gustav::cuda::KeptContext;
use gustav::{DType, Layout};
use gustav_mpi::{Communication, Device, Explanation, Options};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::pattern::{AnyDist, with_dist};
use super::ranks::{detached_on, reported};
use crate::array::Array;
use crate::error::{Fault, to_python};
use crate::place::{Given, Gpu, OnGpu, Place};
use crate::scale::Factors;
use crate::spmm::UNPLANNED;

/// Where this rank computes.
pub struct Target {
    /// The device of the package that it is, whose context plans leave as it was.
    pub of: gustav::Device,
    /// Its number, of a GPU.
    pub gpu: Option<u32>,
    pub engine: Engine,
}

pub enum Engine {
    Cpu(Device),
    Gpu(gustav_mpi::Gpu),
}

impl Target {
    /// The GPU of a place, or the CPU with so many threads.
    pub fn new(
        py: Python<'_>,
        threads: Option<usize>,
        communication: &str,
        place: Given,
    ) -> PyResult<Self> {
        let chosen = Communication::ALL.into_iter().find(|c| c.name() == communication);
        let chosen = chosen.ok_or_else(|| {
            let names = Communication::ALL.map(Communication::name).join(", ");
            PyValueError::new_err(format!(
                "communication: {communication:?} is not known; {names} are"
            ))
        })?;
        let place = Place::new(py, place)?;
        let of = place.device(threads)?;
        let (gpu, engine) = match &place {
            Place::Host => {
                let options = Options { threads: of.threads().clone(), ..Options::default() };
                (None, Engine::Cpu(Device::cpu(options).communication(chosen)))
            }
            Place::Gpu(gpu) => {
                gpu.refuse_capture("making a plan", UNPLANNED)?;
                let device = of.cuda_device().map_err(to_python)?.clone();
                let on = gustav_mpi::Gpu::new(device).communication(chosen);
                (Some(gpu.ordinal), Engine::Gpu(on))
            }
        };
        Ok(Target { of, gpu, engine })
    }

    /// Makes a plan on `ranks`, detached from the interpreter.
    pub fn plan<R: Send>(
        &self,
        py: Python<'_>,
        ranks: &gustav_mpi::Ranks,
        make: impl FnOnce(&Engine) -> Result<R, Fault> + Send,
    ) -> PyResult<R> {
        detached_on(py, ranks, || {
            let _kept = match self.gpu {
                Some(_) => Some(KeptContext::of(self.of.cuda_device()?)),
                None => None,
            };
            make(&self.engine)
        })
    }
}

/// The GPU of a call of a plan that is of one.
pub fn expect_gpu(place: &Place) -> Result<&Gpu, Fault> {
    match place {
        Place::Gpu(gpu) => Ok(gpu),
        Place::Host => Err(Fault::Panic("operands of a GPU in host memory".into())),
    }
}

/// Has the device's own stream, on which plans over ranks do their work and wait for it, wait for the call's. What
/// fails here, as in finding the operands, other ranks have to be told.
pub fn ordered<R>(gpu: &Gpu, operands: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
    let found = || {
        gpu.on()?.stream().wait(&gpu.stream.record()?)?;
        operands()
    };
    found().map_err(|fault| Fault::Python(PyErr::from(fault)))
}

/// A matrix or vector that is read in rows.
pub fn in_rows(name: &'static str, object: &Bound<'_, PyAny>, place: &Place) -> PyResult<Array> {
    let array = Array::to_read(name, object, place)?;
    expect_rows(array)
}

pub fn expect_rows(array: Array) -> PyResult<Array> {
    match array.layout_of_matrix() {
        Layout::RowMajor => Ok(array),
        Layout::ColumnMajor => Err(PyValueError::new_err(format!(
            "{}: over ranks, matrices are in rows (C order); give a copy that is",
            array.name
        ))),
    }
}

/// A plan of a product that takes `ARRAYS` arrays, whatever its types of values.
pub trait AnyPlan<const ARRAYS: usize, R = ()>: Send {
    fn explain(&self) -> &Explanation;

    /// Executes with arrays at a place, of which the plan is.
    fn execute(
        &mut self,
        place: &Place,
        arrays: [Array; ARRAYS],
        factors: Factors,
    ) -> Result<R, Fault>;
}

/// A plan, which threads of a rank may share, and its ranks.
pub struct SharedPlan<const ARRAYS: usize, R = ()> {
    plan: Arc<Mutex<OnGpu<Box<dyn AnyPlan<ARRAYS, R>>>>>,
    ranks: gustav_mpi::Ranks,
    dtype: DType,
    /// The number of the GPU that it is planned for.
    gpu: Option<u32>,
    explanation: Explanation,
}

impl<const ARRAYS: usize, R: Send> SharedPlan<ARRAYS, R> {
    pub fn new(
        pattern: &AnyDist,
        dtype: DType,
        target: &Target,
        plan: Box<dyn AnyPlan<ARRAYS, R>>,
    ) -> Self {
        let ranks = with_dist!(pattern, |p| p.ranks().clone());
        let explanation = plan.explain().clone();
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

    /// Executes with the `arrays` of a place. An error in them is reported to the other ranks.
    pub fn execute(
        &self,
        py: Python<'_>,
        place: Given,
        [alpha, beta]: [Option<&Bound<'_, PyAny>>; 2],
        arrays: impl FnOnce(&Place) -> PyResult<[Array; ARRAYS]>,
    ) -> PyResult<R> {
        let found = || {
            let place = self.place(py, place)?;
            Ok::<_, PyErr>((arrays(&place)?, Factors::new(alpha, beta, self.dtype)?, place))
        };
        let (arrays, factors, place) = reported(&self.ranks, found())?;
        let plan = self.plan.clone();
        detached_on(py, &self.ranks, move || {
            let mut plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
            reported(&self.ranks, place.within(|| plan.execute(&place, arrays, factors)))
        })
    }

    pub fn explanation(&self) -> DistExplanation {
        DistExplanation { inner: self.explanation.clone() }
    }
}

/// What a plan over ranks computes and sends.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct DistExplanation {
    inner: Explanation,
}

#[pymethods]
impl DistExplanation {
    fn __str__(&self) -> String {
        self.inner.to_string()
    }

    /// Bytes that all ranks send in one execution.
    #[getter]
    fn sent_bytes(&self) -> u64 {
        self.inner.volume.bytes()
    }

    /// Messages that all ranks send in one execution.
    #[getter]
    fn messages(&self) -> u64 {
        self.inner.volume.messages()
    }

    /// Bytes that the plan holds on this rank besides patterns.
    #[getter]
    fn workspace_bytes(&self) -> usize {
        self.inner.workspace_bytes
    }
}
