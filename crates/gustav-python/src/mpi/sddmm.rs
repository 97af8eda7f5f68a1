//! Products at the nonzeros of a pattern over ranks.

use gustav::with_scalar;
use gustav_mpi::{
    Communication, DistScalar, Explanation, GpuSddmmCall, GpuSddmmPlan, SddmmCall, SddmmPlan,
};
use pyo3::prelude::*;

use super::pattern::{DistPattern, with_dist};
use super::ranks::reported;
use super::target::{
    AnyPlan, DistExplanation, Engine, SharedPlan, Target, expect_gpu, in_rows, ordered,
};
use crate::array::Array;
use crate::element::Element;
use crate::error::Fault;
use crate::place::{Given, Place};
use crate::scale::Factors;

impl<T: DistScalar> AnyPlan<3> for SddmmPlan<T> {
    fn explain(&self) -> &Explanation {
        self.explain()
    }

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

impl<T: DistScalar> AnyPlan<3> for GpuSddmmPlan<T> {
    fn explain(&self) -> &Explanation {
        self.explain()
    }

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
    shared: SharedPlan<3>,
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
        place: Given,
    ) -> PyResult<Self> {
        let pattern = pattern.get().inner.clone();
        let parsed = || {
            let dtype = Element::named(dtype).value("dtype")?;
            let target = Target::new(py, threads, Communication::RowsOfB.name(), place)?;
            Ok::<_, PyErr>((dtype, target))
        };
        let ranks = with_dist!(&pattern, |p| p.ranks());
        let (dtype, target) = reported(ranks, parsed())?;
        let plan = with_scalar!(dtype, |T| target.plan(py, ranks, |engine| {
            with_dist!(&pattern, |p| {
                let problem = p.sddmm(depth).problem.calls(calls);
                let plan: Box<dyn AnyPlan<3>> = match engine {
                    Engine::Gpu(gpu) => Box::new(GpuSddmmPlan::<T>::new(p, &problem, gpu)?),
                    Engine::Cpu(device) => Box::new(SddmmPlan::<T>::new(p, &problem, device)?),
                };
                Ok(plan)
            })
        }))?;
        Ok(DistSddmmPlan { shared: SharedPlan::new(&pattern, dtype, &target, plan) })
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
        self.shared.execute(py, place, [alpha, beta], |place| {
            let (x, y) = (in_rows("x", x, place)?, in_rows("y", y, place)?);
            let out = Array::to_write("out", out, place)?;
            out.refuse_overlap(&x)?;
            out.refuse_overlap(&y)?;
            Ok([x, y, out])
        })
    }

    #[getter]
    fn explanation(&self) -> DistExplanation {
        self.shared.explanation()
    }
}
