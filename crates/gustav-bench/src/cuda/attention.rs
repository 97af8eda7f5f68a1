//! Attention and its gradients on a GPU, one execution at a time after the caches were emptied.

use std::cell::RefCell;

use gustav_core::{DenseView, Error, Layout, Operation, Problem, Result, Scalar};
use gustav_cuda::attention::{
    AttentionCall, AttentionGradients, AttentionGradientsPlan, AttentionInputs, AttentionPlan,
    Config, Options,
};
use gustav_cuda::softmax::{self, SoftmaxPlan};
use gustav_cuda::{
    Call, DeviceBuffer, DeviceDense, DevicePattern, SddmmCall, SddmmPlan, SpmmPlan, sddmm, spmm,
};
use gustav_report::{UNFUSED, quantile};

use super::planning::planning_ms;
use super::{Started, configuration};
use crate::engine::{AttentionOutcome, Engine, Outcome, Prepared, Task, dense_rows, our_version};
use crate::timing::Runner;
use crate::value::Value;

// Calls that a plan is made for; `once` is made for one.
const CALLS: u64 = 1000;
// Executions of which the hot figure is the median.
const HOT_RUNS: usize = 15;

/// A pattern and the operands of an attention in a GPU's memory; heads are side by side.
pub(crate) struct Attended<T: Scalar> {
    pattern: DevicePattern,
    q: DeviceDense<T>,
    k: DeviceDense<T>,
    v: DeviceDense<T>,
    o: RefCell<DeviceDense<T>>,
    /// What gradients take and give beside.
    gradients: Option<OfGradients<T>>,
    /// Milliseconds that they took to get there.
    pub transfer_ms: f64,
}

struct OfGradients<T: Scalar> {
    of_o: DeviceDense<T>,
    lse: DeviceBuffer<T::Accum>,
    /// Those of Q, K and V.
    results: RefCell<[DeviceDense<T>; 3]>,
}

impl<T: Value> Attended<T> {
    /// Copies the operands of `task` to the GPU; for gradients O and the logarithms of the sums of exponentials
    /// are computed there.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn new(gpu: &Started, task: &Task<'_, T>) -> Result<Self> {
        let (m, n, width) = (task.a.nrows(), task.a.ncols(), task.width());
        let upload = |rows, values| {
            DeviceDense::upload(&gpu.device, &DenseView::row_major(rows, width, values)?)
        };
        let zeros = |rows| DeviceDense::zeros(&gpu.device, rows, width, Layout::RowMajor);
        let (transfer_ms, made) = crate::engine::timed(|| {
            Ok::<_, Error>(Attended {
                pattern: DevicePattern::upload(&gpu.device, task.a.pattern())?,
                q: upload(m, task.dense_x())?,
                k: upload(n, task.dense_b())?,
                v: upload(n, task.dense_v())?,
                o: RefCell::new(zeros(m)?),
                gradients: None,
                transfer_ms: 0.0,
            })
        });
        let made = Attended { transfer_ms, ..made? };
        if !task.gradients {
            return Ok(made);
        }
        let mut lse = DeviceBuffer::zeros(&gpu.device, m * task.heads, "sums of exponentials")?;
        let mut plan = AttentionPlan::new(&made.pattern, &made.problem(task), &Options::default())?;
        let call = AttentionCall::new().lse(&mut lse);
        plan.execute(&made.q, &made.k, &made.v, &mut made.o.borrow_mut(), call)?;
        let results = RefCell::new([zeros(m)?, zeros(n)?, zeros(n)?]);
        let gradients = OfGradients { of_o: upload(m, task.dense_g())?, lse, results };
        Ok(Attended { gradients: Some(gradients), ..made })
    }

    fn problem(&self, task: &Task<'_, T>) -> Problem {
        self.pattern.attention(task.columns).heads(task.heads).calls(CALLS).problem
    }
}

/// One way to compute it.
pub(crate) struct AttentionEngine<'a, T: Value> {
    gpu: &'a Started,
    on: &'a Attended<T>,
    task: Task<'a, T>,
    plan: Plan<T>,
    prepared: Prepared,
}

enum Plan<T: Value> {
    Fused(AttentionPlan<T>),
    Unfused(Box<Unfused<T>>),
    Gradients(AttentionGradientsPlan<T>),
}

/// Three products, with scores and weights of every nonzero in memory.
struct Unfused<T: Value> {
    sddmm: SddmmPlan<T>,
    softmax: SoftmaxPlan<T>,
    spmm: SpmmPlan<T>,
    scale: T::Accum,
    scores: DeviceBuffer<T>,
    weights: DeviceBuffer<T>,
}

impl<T: Value> Unfused<T> {
    fn new(gpu: &Started, pattern: &DevicePattern, task: &Task<'_, T>) -> Result<Self> {
        let (columns, heads) = (task.columns, task.heads);
        let values =
            || DeviceBuffer::zeros(&gpu.device, task.a.nnz() * heads, "values on the device");
        let of_scores = pattern.sddmm(columns).batch(heads).calls(CALLS).problem;
        let of_weights = pattern.softmax().heads(heads).calls(CALLS).problem;
        let of_o = pattern.spmm(columns).batch(heads).calls(CALLS).problem.finite(true);
        Ok(Unfused {
            sddmm: SddmmPlan::new(pattern, &of_scores, &sddmm::Options::default())?,
            softmax: SoftmaxPlan::new(pattern, &of_weights, &softmax::Options::default())?,
            spmm: SpmmPlan::new(pattern, &of_o, &spmm::Options::default())?,
            scale: T::Accum::from_f64(1.0 / (columns as f64).sqrt()),
            scores: values()?,
            weights: values()?,
        })
    }

    fn execute(&mut self, on: &Attended<T>) -> Result<()> {
        let call = SddmmCall::new().alpha(self.scale);
        self.sddmm.execute(&on.q, &on.k, &mut self.scores, call)?;
        self.softmax.execute(&self.scores, &mut self.weights, ())?;
        self.spmm.execute(&self.weights, &on.v, &mut on.o.borrow_mut(), Call::new())
    }
}

impl<T: Value> Plan<T> {
    fn new(
        gpu: &Started,
        on: &Attended<T>,
        pattern: &DevicePattern,
        task: &Task<'_, T>,
        name: &str,
    ) -> Result<Self> {
        if name == UNFUSED {
            return Ok(Plan::Unfused(Box::new(Unfused::new(gpu, pattern, task)?)));
        }
        let (name, calls) = if name == "once" { ("auto", 1) } else { (name, CALLS) };
        let problem = Problem { calls, ..on.problem(task) };
        let options = match name.split_once('#') {
            None => Options { chooser: name.parse()?, ..Options::default() },
            Some((algorithm, k)) => {
                let all = Config::candidates(algorithm.parse()?, &problem);
                let config = configuration(all, k.parse().unwrap_or(0), name)?;
                Options { config: Some(config), ..Options::default() }
            }
        };
        Ok(match task.gradients {
            false => Plan::Fused(AttentionPlan::new(pattern, &problem, &options)?),
            true => Plan::Gradients(AttentionGradientsPlan::new(pattern, &problem, &options)?),
        })
    }

    /// The algorithm, and why with its configuration.
    fn choice(&self) -> Option<(String, String)> {
        let choice = match self {
            Plan::Fused(plan) => plan.choice(),
            Plan::Gradients(plan) => plan.choice(),
            Plan::Unfused(_) => return None,
        };
        Some((choice.algorithm.name().into(), format!("{}: {:?}", choice.reason, choice.config)))
    }
}

impl<'a, T: Value> AttentionEngine<'a, T> {
    /// Ours: a chooser or an algorithm by name, `NAME#K`, configuration K of those that autotuning would try, `once`,
    /// which is `auto` for a single call, or `unfused`.
    ///
    /// # Errors
    /// The library's own.
    pub fn ours(
        gpu: &'a Started,
        on: &'a Attended<T>,
        task: Task<'a, T>,
        name: &str,
    ) -> Result<Self> {
        debug_assert_eq!(task.operation, Operation::Attention);
        let of = |pattern: &DevicePattern| Plan::new(gpu, on, pattern, &task, name);
        let plan_ms = planning_ms(gpu, &on.pattern, of)?;
        let plan = of(&on.pattern)?;
        let (chosen, reason) = plan.choice().unzip();
        let prepared =
            Prepared { plan_ms, chosen, reason, versions: our_version(), ..Prepared::default() };
        Ok(AttentionEngine { gpu, on, task, plan, prepared })
    }

    fn execute(&mut self) -> Result<()> {
        let Attended { q, k, v, o, gradients, .. } = self.on;
        match (&mut self.plan, gradients) {
            (Plan::Fused(plan), _) => plan.execute(q, k, v, &mut o.borrow_mut(), ()),
            (Plan::Unfused(plan), _) => plan.execute(self.on),
            (Plan::Gradients(plan), Some(OfGradients { of_o, lse, results })) => {
                let inputs = AttentionInputs { q, k, v, o: &o.borrow(), lse, of_o };
                let [of_q, of_k, of_v] = &mut *results.borrow_mut();
                plan.execute(inputs, AttentionGradients { of_q, of_k, of_v }, ())
            }
            (Plan::Gradients(_), None) => Err(Error::Argument {
                name: "operands",
                found: "those of a product".into(),
                expected: "those of gradients, which the plan was made for".into(),
            }),
        }
    }

    fn cold_ms(&mut self) -> Result<f64> {
        let (probe, stream) = (&self.gpu.probe, self.gpu.device.stream());
        // Several launches take longer to queue than one reading.
        probe.flush(stream)?;
        probe.cold_ms(stream, || self.execute())
    }

    /// Milliseconds of an execution right after another.
    fn again_ms(&mut self) -> Result<f64> {
        self.execute()?;
        gustav_cuda::probe::timed(self.gpu.device.stream(), || self.execute())
    }
}

impl<T: Value> Runner for AttentionEngine<'_, T> {
    fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
        for _ in 0..wake {
            self.execute()?;
        }
        (0..repeats).map(|_| self.cold_ms()).collect()
    }
}

impl<T: Value> Engine<T> for AttentionEngine<'_, T> {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn hot_ms(&mut self) -> Result<Option<f64>> {
        let times = (0..HOT_RUNS).map(|_| self.again_ms()).collect::<Result<Vec<_>>>()?;
        Ok(quantile(&times, 0.5))
    }

    fn result(&mut self, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        let stream = self.gpu.device.stream();
        let values = |m: &DeviceDense<T>| Ok::<_, Error>(m.data().to_host()?.to_vec());
        let Some(OfGradients { lse, results, .. }) = &self.on.gradients else {
            // NaN in every floating-point type.
            self.on.o.borrow_mut().data_mut().fill(0xff, stream)?;
            self.execute()?;
            let o = values(&self.on.o.borrow())?;
            return Ok(Outcome::Dense(dense_rows(&o, self.task.width(), rows)));
        };
        for result in &mut *results.borrow_mut() {
            result.data_mut().fill(0xff, stream)?;
        }
        self.execute()?;
        let [of_q, of_k, of_v] = &*results.borrow();
        Ok(Outcome::OfAttention(Box::new(AttentionOutcome {
            o: values(&self.on.o.borrow())?,
            lse: lse.to_host()?.to_vec(),
            of_q: values(of_q)?,
            of_k: values(of_k)?,
            of_v: values(of_v)?,
        })))
    }
}
