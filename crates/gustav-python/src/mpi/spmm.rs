//! Products with dense matrices over ranks.

use gustav::with_scalar;
use gustav_mpi::{
    DistScalar, Explanation, GpuReplicatedSpmmPlan, GpuSpmmPlan, Replicated, ReplicatedSpmmPlan,
    SpmmPlan,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::pattern::{DistPattern, with_dist};
use super::ranks::reported;
use super::target::{
    AnyPlan, DistExplanation, Engine, SharedPlan, Target, expect_gpu, expect_rows, in_rows, ordered,
};
use crate::array::Array;
use crate::element::Element;
use crate::error::Fault;
use crate::place::{Given, Place};
use crate::scale::{Factors, semiring};

macro_rules! any_spmm {
    ($plan:ident) => {
        impl<T: DistScalar> AnyPlan<3> for $plan<T> {
            fn explain(&self) -> &Explanation {
                self.explain()
            }

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

macro_rules! any_gpu_spmm {
    ($plan:ident) => {
        impl<T: DistScalar> AnyPlan<3> for $plan<T> {
            fn explain(&self) -> &Explanation {
                self.explain()
            }

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
    };
}

any_gpu_spmm!(GpuSpmmPlan);
any_gpu_spmm!(GpuReplicatedSpmmPlan);

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

/// What computes on `device` with so many.
fn replicated<D: Clone>(device: &D, copies: Option<usize>) -> Replicated<D> {
    match copies {
        Some(copies) => Replicated::new(device.clone(), copies),
        None => Replicated::automatic(device.clone()),
    }
}

/// A product with a dense matrix or a vector over ranks, planned for one pattern.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct DistSpmmPlan {
    shared: SharedPlan<3>,
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
        place: Given,
    ) -> PyResult<Self> {
        let pattern = pattern.get().inner.clone();
        let parsed = || {
            let dtype = Element::named(dtype).value("dtype")?;
            let copies = copies(copies_text)?;
            let target = Target::new(py, threads, communication, place)?;
            Ok::<_, PyErr>((dtype, semiring(semiring_name)?, target, copies))
        };
        let ranks = with_dist!(&pattern, |p| p.ranks());
        let (dtype, semiring, target, copies) = reported(ranks, parsed())?;
        let plan = with_scalar!(dtype, |T| target.plan(py, ranks, |engine| {
            with_dist!(&pattern, |p| {
                let problem = p.spmm(columns).problem.calls(calls).transpose_a(transpose);
                let problem = problem.semiring(semiring).deterministic(deterministic);
                let plan: Box<dyn AnyPlan<3>> = match (engine, copies) {
                    (Engine::Cpu(device), Some(1)) => {
                        Box::new(SpmmPlan::<T>::new(p, &problem, device)?)
                    }
                    (Engine::Cpu(device), _) => {
                        let device = replicated(device, copies);
                        Box::new(ReplicatedSpmmPlan::<T>::new(p, &problem, &device)?)
                    }
                    (Engine::Gpu(gpu), Some(1)) => {
                        Box::new(GpuSpmmPlan::<T>::new(p, &problem, gpu)?)
                    }
                    (Engine::Gpu(gpu), _) => {
                        let gpu = replicated(gpu, copies);
                        Box::new(GpuReplicatedSpmmPlan::<T>::new(p, &problem, &gpu)?)
                    }
                };
                Ok(plan)
            })
        }))?;
        Ok(DistSpmmPlan { shared: SharedPlan::new(&pattern, dtype, &target, plan) })
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
        self.shared.execute(py, place, [alpha, beta], |place| {
            let values = Array::vector("values", values, place)?;
            let b = in_rows("b", b, place)?;
            let out = expect_rows(Array::to_write("out", out, place)?)?;
            out.refuse_overlap(&values)?;
            out.refuse_overlap(&b)?;
            Ok([values, b, out])
        })
    }

    #[getter]
    fn explanation(&self) -> DistExplanation {
        self.shared.explanation()
    }
}
