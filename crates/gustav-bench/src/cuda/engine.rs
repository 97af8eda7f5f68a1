//! An algorithm on a GPU, ours or the vendor's, timed by the GPU's clock.

use std::collections::BTreeMap;

use gustav_core::{Error, Result};
use gustav_cuda::probe::timed;
use gustav_cuda::spmm::vendor;
use gustav_cuda::{Config, Options, SpmmPlan};

use super::{Resident, Started};
use crate::engine::{Engine, Outcome, Prepared, Task};
use crate::timing::{Runner, quantile};
use crate::value::Value;

// Executions of which the hot figure is the median.
const HOT_RUNS: usize = 15;
// Calls that a plan is told to expect; `once` is told of one.
const CALLS: u64 = 1000;

/// A plan on a GPU with the operands that it multiplies.
pub(crate) struct CudaEngine<'a, T: Value> {
    gpu: &'a Started,
    on: &'a Resident<T>,
    task: Task<'a, T>,
    plan: SpmmPlan<T, u32, u32>,
    prepared: Prepared,
    versions: BTreeMap<String, String>,
}

impl<'a, T: Value> CudaEngine<'a, T> {
    /// Ours: an algorithm or a chooser by name, or `once`, which is `auto` for a single call.
    ///
    /// # Errors
    /// The library's own.
    pub fn ours(
        gpu: &'a Started,
        on: &'a Resident<T>,
        task: Task<'a, T>,
        name: &str,
    ) -> Result<Self> {
        let (name, calls) = if name == "once" { ("auto", 1) } else { (name, CALLS) };
        let options = Options { chooser: name.parse()?, ..Options::default() };
        let versions = BTreeMap::from([("gustav".into(), env!("CARGO_PKG_VERSION").into())]);
        Self::prepare(gpu, on, task, &options, calls, versions)
    }

    /// The vendor's, preprocessed.
    ///
    /// # Errors
    /// When cuSPARSE is missing or refuses.
    pub fn vendor(
        gpu: &'a Started,
        on: &'a Resident<T>,
        task: Task<'a, T>,
        config: vendor::Config,
    ) -> Result<Self> {
        let options = Options { config: Some(Config::Vendor(config)), ..Options::default() };
        let versions = BTreeMap::from([("cusparse".into(), gustav_cuda::cusparse::version()?)]);
        let mut engine = Self::prepare(gpu, on, task, &options, CALLS, versions)?;
        // Its inspection is part of its first execution.
        let (first, done) = crate::engine::timed(|| engine.execute().and_then(|()| engine.wait()));
        done?;
        let rest = engine.hot_ms()?.unwrap_or(0.0);
        let plan_ms = engine.prepared.plan_ms.unwrap_or(0.0) + first - rest;
        engine.prepared.plan_ms = Some(plan_ms.max(0.0));
        Ok(engine)
    }

    fn prepare(
        gpu: &'a Started,
        on: &'a Resident<T>,
        task: Task<'a, T>,
        options: &Options,
        calls: u64,
        versions: BTreeMap<String, String>,
    ) -> Result<Self> {
        let problem = on.a.spmm().columns(task.columns).calls(calls);
        // Kernels are compiled once per machine, which is no part of planning.
        SpmmPlan::new(&on.a, &problem, options)?;
        gpu.device.stream().synchronize()?;
        let (plan_ms, plan) = crate::engine::timed(|| {
            let plan = SpmmPlan::new(&on.a, &problem, options)?;
            gpu.device.stream().synchronize()?;
            Ok::<_, Error>(plan)
        });
        let plan = plan?;
        let prepared = Prepared {
            plan_ms: Some(plan_ms),
            chosen: Some(plan.choice().algorithm.name().into()),
            reason: Some(format!("{}: {:?}", plan.choice().reason, plan.choice().config)),
            products: None,
        };
        Ok(CudaEngine { gpu, on, task, plan, prepared, versions })
    }

    fn execute(&mut self) -> Result<()> {
        let (one, zero) = (T::one().to_accum(), T::zero().to_accum());
        let Resident { a, b, c, .. } = self.on;
        let stream = self.gpu.device.stream();
        self.plan.execute(a, one, b, zero, &mut *c.borrow_mut(), stream)
    }

    fn wait(&self) -> Result<()> {
        self.gpu.device.stream().synchronize()
    }

    fn cold_ms(&mut self) -> Result<f64> {
        let (probe, stream) = (&self.gpu.probe, self.gpu.device.stream());
        probe.cold_ms(stream, || self.execute())
    }
}

impl<T: Value> Runner for CudaEngine<'_, T> {
    /// Milliseconds with cold caches.
    fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
        for _ in 0..wake {
            self.execute()?;
        }
        (0..repeats).map(|_| self.cold_ms()).collect()
    }
}

impl<T: Value> Engine<T> for CudaEngine<'_, T> {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn versions(&self) -> BTreeMap<String, String> {
        self.versions.clone()
    }

    fn hot_ms(&mut self) -> Result<Option<f64>> {
        let stream = self.gpu.device.stream();
        let mut times = Vec::new();
        for _ in 0..HOT_RUNS {
            // The first of two keeps the stream busy while the second is queued.
            self.execute()?;
            times.push(timed(stream, || self.execute())?);
        }
        Ok(quantile(&times, 0.5))
    }

    fn result(&mut self, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        // NaN in every floating-point type.
        self.on.c.borrow_mut().data_mut().fill(0xff, self.gpu.device.stream())?;
        self.execute()?;
        let c = self.on.c.borrow();
        let Some(rows) = rows else { return Ok(Outcome::Dense(c.data().to_host()?.into_vec())) };
        let n = self.task.columns;
        let mut values = vec![T::zero(); rows.len() * n];
        for (row, to) in rows.iter().zip(values.chunks_exact_mut(n.max(1))) {
            c.data().read_at(row * n, to)?;
        }
        Ok(Outcome::Dense(values))
    }
}
