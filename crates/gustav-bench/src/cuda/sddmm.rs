//! SDDMM on a GPU, single executions after a flush of the caches.

use std::cell::RefCell;

use gustav_core::{DenseView, Error, Result};
use gustav_cuda::sddmm::{Config, Options, SddmmPlan};
use gustav_cuda::{DeviceBuffer, DeviceDense, DevicePattern};
use gustav_plan::{Algorithm, Chooser};
use gustav_report::{CUSPARSE, quantile};

use super::{Started, configuration};
use crate::engine::{Engine, Outcome, Prepared, Task, Versions, our_version};
use crate::timing::Runner;
use crate::value::Value;

// The number of calls for which plans are made; 1 for `once`.
const CALLS: u64 = 1000;
// Executions and plans of which the hot time and the planning time are the medians.
const HOT_RUNS: usize = 15;
const PLANS: usize = 3;

/// A pattern, X, Y and the values in a GPU's memory.
pub(crate) struct Sampled<T> {
    pattern: DevicePattern,
    x: DeviceDense<T>,
    y: DeviceDense<T>,
    values: RefCell<DeviceBuffer<T>>,
    /// Milliseconds of the copy.
    pub transfer_ms: f64,
}

impl<T: Value> Sampled<T> {
    /// Copies the operands of `task` to the GPU.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn new(gpu: &Started, task: &Task<'_, T>) -> Result<Self> {
        let (transfer_ms, made) = crate::engine::timed(|| {
            let pattern = DevicePattern::upload(&gpu.device, task.a.pattern())?;
            let x = DenseView::row_major(task.a.nrows(), task.columns, task.dense_x())?;
            let y = DenseView::row_major(task.a.ncols(), task.columns, task.dense_b())?;
            let x = DeviceDense::upload(&gpu.device, &x)?;
            let y = DeviceDense::upload(&gpu.device, &y)?;
            let values = DeviceBuffer::zeros(&gpu.device, task.a.nnz(), "values on the device")?;
            Ok::<_, Error>(Sampled {
                pattern,
                x,
                y,
                values: RefCell::new(values),
                transfer_ms: 0.0,
            })
        });
        Ok(Sampled { transfer_ms, ..made? })
    }
}

/// One algorithm.
pub(crate) struct SddmmEngine<'a, T: Value> {
    gpu: &'a Started,
    on: &'a Sampled<T>,
    task: Task<'a, T>,
    plan: SddmmPlan<T>,
    prepared: Prepared,
}

impl<'a, T: Value> SddmmEngine<'a, T> {
    /// Gustav: an algorithm or a chooser by name, `NAME#K`, configuration K of those that
    /// autotuning would try, or `once`, which is `auto` for a single call.
    ///
    /// # Errors
    /// The library's own.
    pub fn ours(
        gpu: &'a Started,
        on: &'a Sampled<T>,
        task: Task<'a, T>,
        name: &str,
    ) -> Result<Self> {
        let (name, calls) = if name == "once" { ("auto", 1) } else { (name, CALLS) };
        let options = match name.split_once('#') {
            None => Options { chooser: name.parse()?, ..Options::default() },
            Some((algorithm, k)) => {
                let problem = on.pattern.sddmm(task.columns).problem;
                let all = Config::candidates(algorithm.parse()?, &problem);
                let config = configuration(all, k.parse().unwrap_or(0), name)?;
                Options { config: Some(config), ..Options::default() }
            }
        };
        Self::prepare(gpu, on, task, &options, calls, our_version())
    }

    /// The vendor's algorithm, preprocessed.
    ///
    /// # Errors
    /// When cuSPARSE is missing or refuses.
    pub fn vendor(gpu: &'a Started, on: &'a Sampled<T>, task: Task<'a, T>) -> Result<Self> {
        let versions = Versions::from([("cusparse".into(), gustav_cuda::cusparse::version()?)]);
        let chooser = Chooser::Named(Algorithm::Vendor);
        let options = Options { chooser, ..Options::default() };
        let mut engine = Self::prepare(gpu, on, task, &options, CALLS, versions)?;
        // Its preprocessing is part of its first execution.
        let (first, done) = crate::engine::timed(|| {
            engine.execute()?;
            gpu.device.stream().synchronize()
        });
        done?;
        let rest = engine.hot_ms()?.unwrap_or(0.0);
        let prepared = &mut engine.prepared;
        prepared.plan_ms = prepared.plan_ms.map(|ms| ms + (first - rest).max(0.0));
        Ok(engine)
    }

    fn prepare(
        gpu: &'a Started,
        on: &'a Sampled<T>,
        task: Task<'a, T>,
        options: &Options,
        calls: u64,
        versions: Versions,
    ) -> Result<Self> {
        let problem = on.pattern.sddmm(task.columns).calls(calls).problem;
        let mut plan = SddmmPlan::new(&on.pattern, &problem, options)?;
        let mut times = Vec::new();
        // Kernels are compiled once per machine, so compilation is not part of planning.
        for _ in 0..PLANS {
            gpu.device.stream().synchronize()?;
            let (ms, next) = crate::engine::timed(|| {
                let plan = SddmmPlan::new(&on.pattern, &problem, options)?;
                gpu.device.stream().synchronize()?;
                Ok::<_, Error>(plan)
            });
            times.push(ms);
            plan = next?;
        }
        let choice = plan.choice();
        let prepared = Prepared {
            plan_ms: quantile(&times, 0.5),
            chosen: Some(choice.algorithm.name().into()),
            reason: Some(format!("{}: {:?}", choice.reason, choice.config)),
            versions,
            ..Prepared::default()
        };
        Ok(SddmmEngine { gpu, on, task, plan, prepared })
    }

    fn execute(&mut self) -> Result<()> {
        let Sampled { x, y, values, .. } = self.on;
        self.plan.execute(x, y, &mut values.borrow_mut(), ())
    }

    fn cold_ms(&mut self) -> Result<f64> {
        let (probe, stream) = (&self.gpu.probe, self.gpu.device.stream());
        probe.cold_ms(stream, || self.execute())
    }

    /// Milliseconds of an execution with warm caches.
    fn again_ms(&mut self) -> Result<f64> {
        self.execute()?;
        gustav_cuda::probe::timed(self.gpu.device.stream(), || self.execute())
    }
}

/// Whether cuSPARSE has an SDDMM of that name; it has only a default.
pub(super) fn is_peer(name: &str) -> bool {
    name == CUSPARSE[0]
}

impl<T: Value> Runner for SddmmEngine<'_, T> {
    fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
        for _ in 0..wake {
            self.execute()?;
        }
        (0..repeats).map(|_| self.cold_ms()).collect()
    }
}

impl<T: Value> Engine<T> for SddmmEngine<'_, T> {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn hot_ms(&mut self) -> Result<Option<f64>> {
        let times = (0..HOT_RUNS).map(|_| self.again_ms()).collect::<Result<Vec<_>>>()?;
        Ok(quantile(&times, 0.5))
    }

    fn result(&mut self, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        // NaN in every floating-point type.
        self.on.values.borrow_mut().fill(0xff, self.gpu.device.stream())?;
        self.execute()?;
        let values = self.on.values.borrow().to_host()?;
        let Some(rows) = rows else { return Ok(Outcome::Values(values.to_vec())) };
        let offsets = self.task.a.offsets();
        let of_row = |row: &usize| &values[offsets[*row] as usize..offsets[row + 1] as usize];
        Ok(Outcome::Values(rows.iter().flat_map(of_row).copied().collect()))
    }
}
