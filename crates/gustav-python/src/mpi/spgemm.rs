//! Products of two sparse matrices over ranks.

use gustav::{Error, Index, Problem, with_scalar};
use gustav_mpi::{
    Communication, DistPattern as Dist, DistScalar, Explanation, GpuSpgemmPlan, SpgemmPlan,
};
use pyo3::prelude::*;

use super::pattern::{AnyDist, DistPattern, copied, with_dist};
use super::ranks::reported;
use super::target::{AnyPlan, DistExplanation, Engine, SharedPlan, Target, expect_gpu, ordered};
use crate::array::Array;
use crate::block::Block;
use crate::device_spgemm::DeviceBlock;
use crate::element::Element;
use crate::error::Fault;
use crate::place::{Given, Place};
use crate::scale::{Factors, semiring};

/// Values of this rank, where it computed.
#[derive(IntoPyObject)]
pub enum Values {
    Host(Block),
    Gpu(DeviceBlock),
}

/// A pattern over ranks, and this rank's values.
type Product = (AnyDist, Values);

/// A plan of these types, and how the pattern of its product is wrapped.
struct Typed<P, I: Index> {
    plan: P,
    wrap: fn(Dist<I, u64>) -> AnyDist,
}

impl<T: DistScalar, I: Index> AnyPlan<2, Product> for Typed<SpgemmPlan<T, I, u64>, I> {
    fn explain(&self) -> &Explanation {
        self.plan.explain()
    }

    fn execute(
        &mut self,
        _: &Place,
        [a, b]: [Array; 2],
        factors: Factors,
    ) -> Result<Product, Fault> {
        let alpha = factors.scale::<T::Accum>().alpha;
        let c = self.plan.execute(a.slice::<T>()?, b.slice::<T>()?, alpha)?;
        let values = Block::values(copied(c.values().as_slice())?);
        Ok(((self.wrap)(c.pattern().clone()), Values::Host(values)))
    }
}

impl<T: DistScalar, I: Index> AnyPlan<2, Product> for Typed<GpuSpgemmPlan<T, I, u64>, I> {
    fn explain(&self) -> &Explanation {
        self.plan.explain()
    }

    fn execute(
        &mut self,
        place: &Place,
        [a, b]: [Array; 2],
        factors: Factors,
    ) -> Result<Product, Fault> {
        let gpu = expect_gpu(place)?;
        let (a, b) = ordered(gpu, || Ok((a.buffer::<T>(gpu)?, b.buffer::<T>(gpu)?)))?;
        let alpha = factors.scale::<T::Accum>().alpha;
        let (pattern, values) = self.plan.execute_with_pattern(&a, &b, alpha)?;
        Ok(((self.wrap)(pattern), Values::Gpu(DeviceBlock::new(values, &gpu.device))))
    }
}

/// A product of two sparse matrices over ranks.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct DistSpgemmPlan {
    shared: SharedPlan<2, Product>,
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
        place: Given,
    ) -> PyResult<Self> {
        let (a, b) = (a.get().inner.clone(), b.get().inner.clone());
        let parsed = || {
            let target = Target::new(py, threads, Communication::RowsOfB.name(), place)?;
            Ok::<_, PyErr>((
                Element::named(dtype).value("dtype")?,
                semiring(semiring_name)?,
                target,
            ))
        };
        let ranks = with_dist!(&a, |p| p.ranks());
        let (dtype, semiring, target) = reported(ranks, parsed())?;
        let plan = with_scalar!(dtype, |T| target.plan(py, ranks, |engine| match (&a, &b) {
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
        Ok(DistSpgemmPlan { shared: SharedPlan::new(&a, dtype, &target, plan) })
    }

    /// The pattern of `alpha * a @ b` and this rank's values. Collective.
    fn execute(
        &self,
        py: Python<'_>,
        values_of_a: &Bound<'_, PyAny>,
        values_of_b: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
        place: Given,
    ) -> PyResult<(DistPattern, Values)> {
        let (inner, values) = self.shared.execute(py, place, [alpha, None], |place| {
            let a = Array::vector("values of a", values_of_a, place)?;
            let b = Array::vector("values of b", values_of_b, place)?;
            Ok([a, b])
        })?;
        Ok((DistPattern { inner }, values))
    }

    #[getter]
    fn explanation(&self) -> DistExplanation {
        self.shared.explanation()
    }
}

fn spgemm<T: DistScalar, I: Index>(
    (a, b): (&Dist<I, u64>, &Dist<I, u64>),
    problem: &Problem,
    engine: &Engine,
    wrap: fn(Dist<I, u64>) -> AnyDist,
) -> Result<Box<dyn AnyPlan<2, Product>>, Fault> {
    Ok(match engine {
        Engine::Cpu(device) => {
            let plan = SpgemmPlan::<T, I, u64>::new(a, b, problem, device)?;
            Box::new(Typed { plan, wrap })
        }
        Engine::Gpu(gpu) => {
            let plan = GpuSpgemmPlan::<T, I, u64>::new(a, b, problem, gpu)?;
            Box::new(Typed { plan, wrap })
        }
    })
}
