//! SpGEMM on a GPU: from CSR to CSR in its memory, with all steps.

use std::cell::RefCell;
use std::fmt::Debug;
use std::time::Instant;

use gustav_core::{Problem, Result, Scalar};
use gustav_cuda::probe::timed;
use gustav_cuda::spgemm::masked::{self, MaskedPlan};
use gustav_cuda::spgemm::{Config, Options, SpgemmPlan, multiply, vendor};
use gustav_cuda::{Call, DeviceCsr, SpgemmCall, Stream};
use gustav_plan::Algorithm;
use gustav_report::{CUSPARSE, WHOLE, quantile};

use super::rotating::median;
use super::{Started, configuration};
use crate::engine::{Engine, Outcome, Prepared, Task, Versions, our_version};
use crate::timing::Runner;
use crate::value::Value;

// Executions of which the time with a plan is the median.
const REUSES: usize = 15;

/// A and B in a GPU's memory, and a mask.
pub(crate) struct Pair<T> {
    a: DeviceCsr<T>,
    // `None` if it is A.
    b: Option<DeviceCsr<T>>,
    mask: Option<DeviceCsr<T>>,
    /// Milliseconds of the copy.
    pub transfer_ms: f64,
}

impl<T: Value> Pair<T> {
    /// Copies the operands of `task` to the GPU.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`], [`gustav_core::Error::Device`].
    pub fn new(gpu: &Started, task: &Task<'_, T>) -> Result<Self> {
        let start = Instant::now();
        let a = DeviceCsr::upload(&gpu.device, &task.a)?;
        let other = task.b.filter(|b| !std::ptr::eq(b.indices(), task.a.indices()));
        let b = other.map(|b| DeviceCsr::upload(&gpu.device, &b)).transpose()?;
        let transfer_ms = start.elapsed().as_secs_f64() * 1e3;
        let mask = task.mask.map(|mask| DeviceCsr::upload(&gpu.device, &mask)).transpose()?;
        Ok(Pair { a, b, mask, transfer_ms })
    }

    fn b(&self) -> &DeviceCsr<T> {
        self.b.as_ref().unwrap_or(&self.a)
    }
}

/// One algorithm; every execution is a whole product, from CSR to a C in memory that it allocates, timed
/// by the GPU's clock. Only the vendor's handle is made beforehand, and held by a plan.
pub(crate) struct SpgemmEngine<'a, T: Value> {
    gpu: &'a Started,
    on: &'a Pair<T>,
    /// `None` for all of C.
    mask: Option<&'a DeviceCsr<T>>,
    problem: Problem,
    options: Options,
    vendor: Option<RefCell<SpgemmPlan<T>>>,
    prepared: Prepared,
}

impl<'a, T: Value> SpgemmEngine<'a, T> {
    /// Gustav: an algorithm or a chooser by name, or `NAME#K`, configuration K of those that
    /// autotuning would try.
    ///
    /// # Errors
    /// The library's own.
    pub fn ours(gpu: &'a Started, on: &'a Pair<T>, task: Task<'a, T>, name: &str) -> Result<Self> {
        let problem = problem(&task);
        let mask = on.mask.as_ref().filter(|_| name != WHOLE);
        let name = if name == WHOLE { "auto" } else { name };
        let options = match name.split_once('#') {
            None => Options { chooser: name.parse()?, ..Options::default() },
            Some((algorithm, k)) => {
                let all = Config::candidates(algorithm.parse()?, &problem);
                let config = configuration(all, k.parse().unwrap_or(0), name)?;
                Options { config: Some(config), ..Options::default() }
            }
        };
        Self::prepare(gpu, (on, mask), problem, options, our_version())
    }

    /// One of the vendor's algorithms.
    ///
    /// # Errors
    /// When cuSPARSE is missing or refuses.
    pub fn vendor(
        gpu: &'a Started,
        on: &'a Pair<T>,
        task: Task<'a, T>,
        name: &str,
    ) -> Result<Self> {
        let place = CUSPARSE.iter().position(|p| *p == name).unwrap_or(0);
        let versions = Versions::from([("cusparse".into(), gustav_cuda::cusparse::version()?)]);
        let problem = problem(&task);
        let config = Some(Config::Vendor(vendor::Config::ALL[place]));
        let options = Options { config, ..Options::default() };
        let plan = SpgemmPlan::new(on.a.pattern(), on.b().pattern(), &problem, &options)?;
        let engine = Self::prepare(gpu, (on, on.mask.as_ref()), problem, options, versions)?;
        Ok(SpgemmEngine { vendor: Some(RefCell::new(plan)), ..engine })
    }

    fn prepare(
        gpu: &'a Started,
        (on, mask): (&'a Pair<T>, Option<&'a DeviceCsr<T>>),
        problem: Problem,
        options: Options,
        versions: Versions,
    ) -> Result<Self> {
        // Kernels are compiled once per machine, so compilation is not part of a product.
        let prepared = |algorithm: Algorithm, reason: &str, config: &dyn Debug| Prepared {
            plan_ms: None,
            chosen: Some(algorithm.name().into()),
            reason: Some(format!("{reason}: {config:?}")),
            products: None,
            versions: versions.clone(),
            features_ms: None,
        };
        let prepared = match mask {
            None => {
                let plan =
                    SpgemmPlan::<T>::new(on.a.pattern(), on.b().pattern(), &problem, &options)?;
                let choice = plan.choice();
                let prepared = prepared(choice.algorithm, &choice.reason, &choice.config);
                Prepared { products: plan.products(), ..prepared }
            }
            Some(mask) => {
                let (a, b) = (on.a.pattern(), on.b().pattern());
                let plan = MaskedPlan::<T>::new(a, b, mask.pattern(), &problem, &options)?;
                let choice = plan.choice();
                prepared(choice.algorithm, &choice.reason, &choice.config)
            }
        };
        gpu.device.stream().synchronize()?;
        Ok(SpgemmEngine { gpu, on, mask, problem, options, vendor: None, prepared })
    }

    fn stream(&self) -> &Stream {
        self.gpu.device.stream()
    }

    /// A whole product.
    fn product(&self) -> Result<DeviceCsr<T>> {
        let (a, b, call) = (&self.on.a, self.on.b(), Call::new());
        let (problem, options) = (&self.problem, &self.options);
        match (self.mask, &self.vendor) {
            (Some(mask), _) => masked::multiply(a, b, mask.pattern(), problem, options, call),
            (None, Some(plan)) => plan.borrow_mut().execute(a, b, SpgemmCall::new()),
            (None, None) => multiply(a, b, problem, options, call),
        }
    }

    /// Milliseconds of a whole product with cold caches.
    fn timed_cold(&self) -> Result<f64> {
        // C is freed outside the timing.
        let mut c = None;
        self.gpu.probe.cold_ms(self.stream(), || {
            c = Some(self.product()?);
            Ok(())
        })
    }

    /// The same with warm caches.
    fn timed_warm(&self) -> Result<f64> {
        let mut c = None;
        timed(self.stream(), || {
            c = Some(self.product()?);
            Ok(())
        })
    }
}

/// The whole product of A and B.
fn problem<T: Scalar>(task: &Task<'_, T>) -> Problem {
    Problem::spgemm(&task.a, &task.b.unwrap_or(task.a)).sorted(task.sorted)
}

/// A plan whose symbolic work is reused.
enum Plan<T: Scalar> {
    Whole(Box<SpgemmPlan<T>>),
    Masked(Box<MaskedPlan<T>>),
}

impl<T: Value> Runner for SpgemmEngine<'_, T> {
    fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
        for _ in 0..wake {
            self.product()?;
        }
        (0..repeats).map(|_| self.timed_cold()).collect()
    }
}

impl<T: Value> Engine<T> for SpgemmEngine<'_, T> {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn hot_ms(&mut self) -> Result<Option<f64>> {
        median(|| self.timed_warm())
    }

    fn reuse_ms(&mut self) -> Result<Option<f64>> {
        let (a, b, stream) = (&self.on.a, self.on.b(), self.stream());
        let (of_a, of_b, options) = (a.pattern(), b.pattern(), &self.options);
        let mut plan = match self.mask {
            None => Plan::Whole(Box::new(SpgemmPlan::new(of_a, of_b, &self.problem, options)?)),
            Some(mask) => {
                let problem = self.problem.clone().calls(REUSES as u64);
                let plan = MaskedPlan::new(of_a, of_b, mask.pattern(), &problem, options)?;
                Plan::Masked(Box::new(plan))
            }
        };
        let mut c = match &mut plan {
            Plan::Whole(plan) => plan.execute(a, b, SpgemmCall::new())?,
            Plan::Masked(plan) => plan.execute(a, b, Call::new())?,
        };
        let mut times = Vec::new();
        for _ in 0..REUSES {
            times.push(timed(stream, || match &mut plan {
                Plan::Whole(plan) => plan.execute_into(a, b, &mut c, SpgemmCall::new()),
                Plan::Masked(plan) => plan.execute_into(a, b, &mut c, Call::new()),
            })?);
        }
        Ok(quantile(&times, 0.5))
    }

    fn memory(&mut self) -> Result<Option<[u64; 2]>> {
        let bytes = |m: &DeviceCsr<T>| m.bytes() as u64;
        let others = [self.on.b.as_ref(), self.mask].into_iter().flatten().map(bytes);
        let operands = bytes(&self.on.a) + others.sum::<u64>();
        let device = &self.gpu.device;
        // Without the memory that other engines hold.
        let before = device.reset_peak_memory()?;
        let c = self.product()?;
        let most = device.peak_memory()?.saturating_sub(before) + operands;
        Ok(Some([most, operands + 2 * bytes(&c)]))
    }

    fn result(&mut self, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        let c = self.product()?.download()?;
        crate::engine::sparse_rows(c.view(), rows)
    }
}
