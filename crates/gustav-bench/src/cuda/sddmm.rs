//! SDDMM on a GPU.

use std::cell::RefCell;

use gustav_core::{DenseView, Result};
use gustav_cuda::sddmm::{Config, Options, SddmmPlan};
use gustav_cuda::{DeviceBuffer, DeviceDense, DevicePattern};
use gustav_plan::{Algorithm, Chooser};
use gustav_report::CUSPARSE;

use super::planning::planning_ms;
use super::resident::alternating;
use super::rotating::{Rotating, Series};
use super::{Started, configuration};
use crate::engine::{Engine, Outcome, Prepared, Task, Versions, our_version, values_of};
use crate::timing::Runner;
use crate::value::Value;

// The number of calls for which plans are made; 1 for `once`.
const CALLS: u64 = 1000;

/// A pattern, X, Y and the values.
struct Set<T> {
    pattern: DevicePattern,
    x: DeviceDense<T>,
    y: DeviceDense<T>,
    values: RefCell<DeviceBuffer<T>>,
}

impl<T: Value> Set<T> {
    fn new(gpu: &Started, task: &Task<'_, T>) -> Result<Self> {
        let pattern = DevicePattern::upload(&gpu.device, task.a.pattern())?;
        let x = DenseView::row_major(task.a.nrows(), task.columns, task.dense_x())?;
        let y = DenseView::row_major(task.a.ncols(), task.columns, task.dense_b())?;
        let x = DeviceDense::upload(&gpu.device, &x)?;
        let y = DeviceDense::upload(&gpu.device, &y)?;
        let values = DeviceBuffer::zeros(&gpu.device, task.a.nnz(), "values on the device")?;
        Ok(Set { pattern, x, y, values: RefCell::new(values) })
    }

    fn bytes(&self) -> usize {
        let Set { pattern, x, y, values } = self;
        pattern.bytes() + x.data().bytes() + y.data().bytes() + values.borrow().bytes()
    }
}

/// One set of operands in a GPU's memory, or several equal ones that alternate.
pub(crate) struct Sampled<T> {
    sets: Vec<Set<T>>,
    /// Milliseconds of the copy of the first.
    pub transfer_ms: f64,
}

impl<T: Value> Sampled<T> {
    /// Copies the operands of `task` to the GPU, with `rotate`, the number of engines, several times.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`], [`gustav_core::Error::Device`].
    pub fn new(gpu: &Started, task: &Task<'_, T>, rotate: Option<usize>) -> Result<Self> {
        let (transfer_ms, sets) = alternating(gpu, rotate, || Set::new(gpu, task), Set::bytes)?;
        Ok(Sampled { sets, transfer_ms })
    }

    /// The number of sets.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }
}

/// One algorithm.
pub(crate) struct SddmmEngine<'a, T: Value> {
    gpu: &'a Started,
    on: &'a Sampled<T>,
    task: Task<'a, T>,
    /// One for each set of operands.
    plans: Vec<SddmmPlan<T>>,
    series: Series,
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
                let problem = on.sets[0].pattern.sddmm(task.columns).problem;
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
            engine.execute(0)?;
            gpu.device.stream().synchronize()
        });
        done?;
        let rest = engine.repeated_ms()?.unwrap_or(0.0);
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
        let plan_of = |pattern: &DevicePattern| {
            let problem = pattern.sddmm(task.columns).calls(calls).problem;
            SddmmPlan::new(pattern, &problem, options)
        };
        let pattern = &on.sets[0].pattern;
        let plan_ms = planning_ms(gpu, pattern, plan_of)?;
        let plan = plan_of(pattern)?;
        let choice = plan.choice();
        let prepared = Prepared {
            plan_ms,
            chosen: Some(choice.algorithm.name().into()),
            reason: Some(format!("{}: {:?}", choice.reason, choice.config)),
            versions,
            ..Prepared::default()
        };
        let mut plans = vec![plan];
        for set in &on.sets[1..] {
            plans.push(plan_of(&set.pattern)?);
        }
        let mut engine = SddmmEngine { gpu, on, task, plans, series: Series::default(), prepared };
        // First executions may preprocess.
        for set in 1..on.sets.len() {
            engine.execute(set)?;
        }
        Ok(engine)
    }

    /// One more execution on `set` from poisoned values, and those of `rows` (all when `None`).
    fn result_of(&mut self, set: usize, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        // NaN in every floating-point type.
        let values = &self.on.sets[set].values;
        values.borrow_mut().fill(0xff, self.gpu.device.stream())?;
        self.execute(set)?;
        let values = values.borrow().to_host()?;
        Ok(Outcome::Values(values_of(&values, self.task.a.offsets(), rows)))
    }
}

/// Whether cuSPARSE has an SDDMM of that name; it has only a default.
pub(super) fn is_peer(name: &str) -> bool {
    name == CUSPARSE[0]
}

impl<'a, T: Value> Rotating<'a> for SddmmEngine<'a, T> {
    fn gpu(&self) -> &'a Started {
        self.gpu
    }

    fn sets(&self) -> usize {
        self.plans.len()
    }

    fn series(&mut self) -> &mut Series {
        &mut self.series
    }

    fn execute(&mut self, set: usize) -> Result<()> {
        let Set { x, y, values, .. } = &self.on.sets[set];
        self.plans[set].execute(x, y, &mut values.borrow_mut(), ())
    }
}

impl<T: Value> Runner for SddmmEngine<'_, T> {
    fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
        self.round(wake, repeats)
    }

    fn least_repeats(&self, ms: f64) -> usize {
        self.executions_of_round(ms)
    }
}

impl<T: Value> Engine<T> for SddmmEngine<'_, T> {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn hot_ms(&mut self) -> Result<Option<f64>> {
        self.repeated_ms()
    }

    fn single_ms(&mut self) -> Result<Option<f64>> {
        self.flushed_ms()
    }

    fn result(&mut self, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        self.result_of(0, rows)
    }

    fn last_result(&mut self, rows: Option<&[usize]>) -> Result<Option<Outcome<T>>> {
        match self.plans.len() - 1 {
            0 => Ok(None),
            last => self.result_of(last, rows).map(Some),
        }
    }
}
