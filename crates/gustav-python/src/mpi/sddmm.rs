//! Products at the nonzeros of a pattern over ranks.

use gustav::with_scalar;
use gustav_mpi::{Communication, DistScalar, GpuSddmmCall, GpuSddmmPlan, SddmmCall, SddmmPlan};
use pyo3::prelude::*;

use super::pattern::{DistPattern, with_dist};
use super::ranks::reported;
use super::target::{Engine, SharedPlan, Target, expect_gpu, in_rows, ordered};
use crate::array::Array;
use crate::element::Element;
use crate::error::Fault;
use crate::place::{Given, Place};
use crate::scale::Factors;

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
        place: Given,
    ) -> PyResult<Self> {
        let pattern = pattern.get().inner.clone();
        let parsed = || {
            let dtype = Element::named(dtype).value("dtype")?;
            let target = Target::new(py, threads, Communication::RowsOfB.name(), place)?;
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
