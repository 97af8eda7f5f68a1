//! Gustav as an engine: every algorithm by name, and `auto`.

use std::time::Duration;

use gustav::{Device, SpmmGradients};
use gustav_core::{
    Buffer, Csr, CsrView, DenseView, DenseViewMut, Error, Layout, Operation, PatternRef, Problem,
    Result, Scalar, SpmmRequest,
};
use gustav_cpu::spgemm::{SpgemmCall, multiply};
use gustav_cpu::{Options, SddmmPlan, SpgemmPlan, SpmmPlan, SpmvPlan, Threads};
use gustav_plan::Choice;
use gustav_report::quantile;

use super::{Engine, Outcome, Prepared, Task, dense_rows, our_version, poison, timed, values_of};
use crate::affinity::Pinned;
use crate::allocator::give_back_freed_memory;
use crate::timing::Runner;
use crate::value::CpuValue;

// Time for the library's idle threads to fall asleep; they spin for about a third of this.
const SETTLE: Duration = Duration::from_micros(300);
const REUSES: usize = 5;

/// Gustav prepared for one case.
pub(crate) struct Ours<'a, T: CpuValue> {
    task: Task<'a, T>,
    options: Options,
    problem: Problem,
    prepared: Prepared,
    method: Method<'a, T>,
    /// The same on a copy of the operands.
    copy: Option<Box<Ours<'a, T>>>,
}

enum Method<'a, T: CpuValue> {
    Spmm { plan: Box<SpmmPlan<'a, T>>, c: Buffer<T> },
    Spmv { plan: Box<SpmvPlan<'a, T>>, y: Buffer<T> },
    // The product of the last call; freed outside the timing, as by the peers.
    Spgemm { c: Option<Csr<T>> },
    Sddmm { plan: Box<SddmmPlan<'a, T>>, values: Buffer<T> },
    // Those of B and of A's values, one after the other.
    Gradients { plan: Box<SpmmGradients<'a, T>>, of_values: Buffer<T>, of_b: Buffer<T> },
}

impl<'a, T: CpuValue> Ours<'a, T> {
    /// Plans the product with the algorithm or chooser of that name, and also for `copy`, a copy of
    /// its operands.
    ///
    /// # Errors
    /// The library's own.
    pub fn prepare(
        task: Task<'a, T>,
        copy: Option<Task<'a, T>>,
        algorithm: &str,
        threads: &Threads,
    ) -> Result<Self> {
        let copy = copy.map(|copy| Self::prepare(copy, None, algorithm, threads).map(Box::new));
        let copy = copy.transpose()?;
        let chooser = algorithm.parse()?;
        let options = Options { chooser, threads: threads.clone(), ..Options::default() };
        let problem = problem(&task)?.calls(1000);
        let mut prepared = Prepared { versions: our_version(), ..Prepared::default() };
        let _pinned = Pinned::to_first_core();
        let method = match task.operation {
            Operation::Spmm if task.gradients => {
                let pattern: PatternRef<'a, u32, u32> = task.a.pattern().into();
                let request = SpmmRequest { pattern, problem: problem.clone() };
                let device = Device::cpu().on(threads.clone()).choose(chooser);
                let (ms, plan) = timed(|| SpmmGradients::plan(&request, &device));
                let plan = Box::new(plan?);
                if let Some((of_b, of_values)) = plan.plans() {
                    let (of_b, of_values) = (&of_b.explain().choice, &of_values.explain().choice);
                    let names = [of_b.algorithm.name(), of_values.algorithm.name()];
                    prepared.plan_ms = Some(ms);
                    prepared.chosen = Some(names.join(", "));
                    let reason = format!("B: {}; values: {}", of_b.reason, of_values.reason);
                    prepared.reason = Some(reason);
                }
                let of_values = Buffer::zeroed(task.a.nnz(), "gradient of values")?;
                let of_b = Buffer::zeroed(task.dense_b().len(), "gradient of B")?;
                Method::Gradients { plan, of_values, of_b }
            }
            Operation::Spmm => {
                let (ms, plan) = timed(|| SpmmPlan::new(task.a, &problem, &options));
                let plan = Box::new(plan?);
                note(&mut prepared, ms, plan.choice());
                Method::Spmm { plan, c: Buffer::zeroed(task.dense_c_len(), "C")? }
            }
            Operation::Spmv => {
                let (ms, plan) = timed(|| SpmvPlan::new(task.a, &problem, &options));
                let plan = Box::new(plan?);
                note(&mut prepared, ms, plan.choice());
                Method::Spmv { plan, y: Buffer::zeroed(task.a.nrows(), "y")? }
            }
            Operation::Spgemm => {
                let b = second(&task)?;
                let (ms, plan) = timed(|| SpgemmPlan::<T>::new(task.a, b, &problem, &options));
                let plan = plan?;
                note(&mut prepared, ms, plan.choice());
                prepared.products = Some(plan.products());
                Method::Spgemm { c: None }
            }
            Operation::Sddmm => {
                let (ms, plan) = timed(|| SddmmPlan::new(task.a.pattern(), &problem, &options));
                let plan = Box::new(plan?);
                note(&mut prepared, ms, plan.choice());
                Method::Sddmm { plan, values: Buffer::zeroed(task.a.nnz(), "values")? }
            }
            Operation::Softmax | Operation::Attention => {
                return Err(not_in_suites(task.operation));
            }
        };
        Ok(Ours { task, options, problem, prepared, method, copy })
    }

    /// One execution; its time in milliseconds.
    fn execute(&mut self) -> Result<f64> {
        let task = self.task;
        let (ms, done) = match &mut self.method {
            Method::Spmm { plan, c } => {
                let b = DenseView::row_major(task.a.ncols(), task.columns, task.dense_b())?;
                let (m, n) = (task.a.nrows(), task.columns);
                let c = DenseViewMut::new(m, n, Layout::RowMajor, n, c)?;
                timed(|| plan.execute(task.a, b, c, ()))
            }
            Method::Spmv { plan, y } => {
                let x = task.dense_b();
                timed(|| plan.execute(task.a, x, y, ()))
            }
            Method::Spgemm { c } => {
                *c = None;
                let b = second(&task)?;
                let (problem, options) = (&self.problem, &self.options);
                let (ms, product) =
                    timed(|| multiply(task.a, b, problem, options, SpgemmCall::new()));
                (ms, product.map(|p| *c = Some(p)))
            }
            Method::Sddmm { plan, values } => {
                let (x, y) = dense_factors(&task)?;
                timed(|| plan.execute(x, y, values, ()))
            }
            Method::Gradients { plan, of_values, of_b } => {
                let ((k, n), (g, b)) = ((task.a.ncols(), task.columns), dense_factors(&task)?);
                let of_b = DenseViewMut::new(k, n, Layout::RowMajor, n, of_b)?;
                timed(|| {
                    plan.of_b(task.a, g, of_b, ())?;
                    plan.of_values(g, b, &mut of_values[..], ())
                })
            }
        };
        done.map(|()| ms)
    }
}

fn problem<T: Scalar>(task: &Task<'_, T>) -> Result<Problem> {
    Ok(match task.operation {
        Operation::Spmm => Problem::spmm(&task.a).columns(task.columns),
        Operation::Spmv => Problem::spmv(&task.a),
        Operation::Spgemm => Problem::spgemm(&task.a, &second(task)?).sorted(task.sorted),
        Operation::Sddmm => task.a.pattern().sddmm(task.columns).problem,
        Operation::Softmax | Operation::Attention => {
            return Err(not_in_suites(task.operation));
        }
    })
}

/// X and Y, or the gradient of C and B.
fn dense_factors<'a, T: Scalar>(
    task: &Task<'a, T>,
) -> Result<(DenseView<'a, T>, DenseView<'a, T>)> {
    let x = DenseView::row_major(task.a.nrows(), task.columns, task.dense_x())?;
    Ok((x, DenseView::row_major(task.a.ncols(), task.columns, task.dense_b())?))
}

/// The error for a product that suites do not measure on a CPU.
fn not_in_suites(operation: Operation) -> Error {
    Error::Unsupported {
        problem: operation.to_string(),
        backend: "suites".into(),
        reason: "on a CPU they measure spmm, spmv, spgemm and sddmm".into(),
        nearest: format!("gustav {operation} FILE --columns N --algorithm all"),
    }
}

fn second<'a, T: Scalar>(task: &Task<'a, T>) -> Result<CsrView<'a, T>> {
    task.b.ok_or_else(|| Error::Argument {
        name: "second factor",
        found: "none".into(),
        expected: "a matrix, for an SpGEMM".into(),
    })
}

fn note<C>(prepared: &mut Prepared, ms: f64, choice: &Choice<C>) {
    prepared.plan_ms = Some(ms);
    prepared.chosen = Some(choice.algorithm.name().into());
    prepared.reason = Some(choice.reason.clone());
}

impl<T: CpuValue> Runner for Ours<'_, T> {
    fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
        let pinned = Pinned::to_first_core();
        for _ in 0..wake {
            self.execute()?;
        }
        let times = (0..repeats).map(|_| self.execute()).collect();
        drop(pinned);
        std::thread::sleep(SETTLE);
        times
    }

    fn yield_memory(&mut self) -> Result<()> {
        if let Method::Spgemm { c } = &mut self.method {
            *c = None;
        }
        give_back_freed_memory();
        Ok(())
    }
}

impl<T: CpuValue> Engine<T> for Ours<'_, T> {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn has_copy(&self) -> bool {
        self.copy.is_some()
    }

    fn cold_ms(&mut self) -> Result<f64> {
        let pinned = Pinned::to_first_core();
        if let Some(copy) = &mut self.copy {
            copy.execute()?;
        }
        let ms = self.execute();
        drop(pinned);
        std::thread::sleep(SETTLE);
        ms
    }

    fn reuse_ms(&mut self) -> Result<Option<f64>> {
        if self.task.operation != Operation::Spgemm {
            return Ok(None);
        }
        let (a, b) = (self.task.a, second(&self.task)?);
        let mut plan = SpgemmPlan::new(a, b, &self.problem, &self.options)?;
        let _pinned = Pinned::to_first_core();
        let mut c = plan.execute(a, b, SpgemmCall::new())?;
        let mut times = Vec::new();
        for _ in 0..REUSES {
            let call = SpgemmCall { reuse: Some(c), ..SpgemmCall::new() };
            let (ms, done) = timed(|| plan.execute(a, b, call));
            c = done?;
            times.push(ms);
        }
        Ok(quantile(&times, 0.5))
    }

    fn result(&mut self, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        match &mut self.method {
            Method::Spmm { c, .. } | Method::Spmv { y: c, .. } => c.fill(poison()),
            Method::Sddmm { values, .. } => values.fill(poison()),
            Method::Gradients { of_values, of_b, .. } => {
                of_values.fill(poison());
                of_b.fill(poison());
            }
            Method::Spgemm { .. } => {}
        }
        self.execute()?;
        match &self.method {
            Method::Spmm { c, .. } | Method::Spmv { y: c, .. } => {
                Ok(Outcome::Dense(dense_rows(c, self.task.columns, rows)))
            }
            Method::Sddmm { values, .. } => {
                Ok(Outcome::Values(values_of(values, self.task.a.offsets(), rows)))
            }
            Method::Gradients { of_values, of_b, .. } => {
                Ok(Outcome::OfSpmm { values: of_values.to_vec(), b: of_b.to_vec() })
            }
            Method::Spgemm { c: Some(c), .. } => sparse_rows(c.view(), rows),
            Method::Spgemm { c: None, .. } => Err(Error::Argument {
                name: "result",
                found: "none".into(),
                expected: "an execution before it".into(),
            }),
        }
    }
}

/// A matrix of the given rows; all if `None`.
pub(crate) fn sparse_rows<T: Scalar>(
    c: CsrView<'_, T>,
    rows: Option<&[usize]>,
) -> Result<Outcome<T>> {
    let Some(rows) = rows else { return c.to_indices().map(Outcome::Sparse) };
    crate::check::take_rows(c, rows)?.view().to_indices().map(Outcome::Sparse)
}
