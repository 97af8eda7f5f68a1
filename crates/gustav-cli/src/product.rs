//! The common part of the product verbs: running algorithms, and printing the result.

use std::fmt::Write;

use gustav::{
    Algorithm, Chooser, Device, Error, Explanation, Operation, Order, Problem, Reduce, Scalar,
};
use gustav_testkit::oracle::Verdict;
use serde::Serialize;

use crate::args::{AlgorithmArg, Choice, Printing, Running, Types};
use crate::cuda;
use crate::failure::{Failure, Outcome, Result};
use crate::limits::Limits;
use crate::measure::Timing;
use crate::mpi::Ranked;
use crate::output::{self, Number};
use crate::source::Source;
use crate::table;

/// The options that all products have.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    pub types: Types,
    #[command(flatten)]
    pub choice: Choice,
    #[command(flatten)]
    pub ranked: Ranked,
    #[command(flatten)]
    pub running: Running,
    #[command(flatten)]
    pub printing: Printing,
}

/// One algorithm that was planned, executed and possibly checked.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The plan's explanation.
    pub explanation: Explanation,
    /// Milliseconds of planning.
    pub plan_ms: f64,
    /// Milliseconds of copying the operands to a GPU and the product back.
    pub transfer_ms: Option<f64>,
    /// Milliseconds of executing.
    pub timing: Timing,
    /// The oracle's verdict, if the product was checked.
    pub verdict: Option<Verdict>,
}

impl Trial {
    /// An unchecked run on the CPU.
    pub fn new(explanation: &Explanation, plan_ms: f64, timing: Timing) -> Self {
        let explanation = explanation.clone();
        Trial { explanation, plan_ms, transfer_ms: None, timing, verdict: None }
    }

    /// An unchecked run on a GPU.
    pub fn of(run: cuda::Run) -> Self {
        let cuda::Run { explanation, plan_ms, transfer_ms, timing } = run;
        Trial { explanation, plan_ms, transfer_ms: Some(transfer_ms), timing, verdict: None }
    }

    /// Whether the product is not known to be wrong.
    pub fn is_right(&self) -> bool {
        self.verdict.as_ref().is_none_or(|v| v.ok)
    }
}

/// The limits from memory bandwidth, if they are printed: on GPUs, and for `--algorithm all`.
///
/// # Errors
/// When memory for the measurement is lacking.
pub fn limits(
    choice: &Choice,
    device: &Device,
    problem: &Problem,
    reads_c: bool,
) -> Result<Option<Limits>> {
    if device.is_cuda() || choice.algorithm == AlgorithmArg::All {
        return Ok(Some(Limits::measure(device, problem, reads_c)?));
    }
    Ok(None)
}

/// An algorithm of `--algorithm all`: its trial, or the reason for its refusal.
pub type Attempt = (Algorithm, std::result::Result<Trial, String>);

/// Runs the device's choice, or with `--algorithm all` every algorithm of `operation`; returns the
/// fastest correct trial, and all attempts if there were several.
///
/// # Errors
/// The first error of `trial`, except that with `all` an algorithm may refuse the problem.
pub fn attempt(
    choice: &Choice,
    device: &Device,
    operation: Operation,
    trial: &mut dyn FnMut(&Device) -> Result<Trial>,
) -> Result<(Trial, Vec<Attempt>)> {
    if choice.algorithm != AlgorithmArg::All {
        return Ok((trial(device)?, Vec::new()));
    }
    let mut attempts: Vec<Attempt> = Vec::new();
    for a in device.algorithms(operation) {
        match trial(&device.clone().choose(Chooser::Named(a))) {
            Ok(done) => attempts.push((a, Ok(done))),
            Err(Failure::Library(e @ (Error::Unsupported { .. } | Error::OutOfMemory { .. }))) => {
                attempts.push((a, Err(e.to_string())));
            }
            Err(e) => return Err(e),
        }
    }
    let done = attempts.iter().filter_map(|(_, t)| t.as_ref().ok());
    let best = done.min_by(|a, b| {
        b.is_right().cmp(&a.is_right()).then(a.timing.median_ms.total_cmp(&b.timing.median_ms))
    });
    match best.cloned() {
        Some(mut best) => {
            let ran = attempts.iter().filter(|(_, t)| t.is_ok()).count();
            best.explanation.choice.reason = format!("fastest of the {ran} that ran");
            Ok((best, attempts))
        }
        None => Err(Failure::Request(format!("no algorithm computes this {operation}"))),
    }
}

/// A multiplication as JSON; the keys are documented in docs/json.md.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    operation: Operation,
    file: String,
    rows: usize,
    cols: usize,
    nnz: usize,
    columns: usize,
    dtype: String,
    index: String,
    semiring: String,
    reduce: Reduce,
    transpose: bool,
    device: String,
    threads: usize,
    algorithm: Algorithm,
    reason: String,
    order: Option<Order>,
    plan_ms: Number,
    transfer_ms: Option<Number>,
    execute_ms: Number,
    repeats: usize,
    gflops: Option<Number>,
    floor_ms: Option<Number>,
    gather_ms: Option<Number>,
    workspace_bytes: usize,
    norm: Number,
    verified: Option<bool>,
    max_error: Option<Number>,
    error_bound: Option<Number>,
    #[serde(flatten)]
    sparse: Option<Sparse>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<Candidate>,
}

/// The part of the report for a sparse C.
#[derive(Clone, Debug, Serialize)]
pub struct Sparse {
    /// The mask of C.
    pub mask: Option<String>,
    /// Intermediate products of A and B, those outside the mask included.
    pub products: u64,
    /// Nonzeros of C.
    pub nnz_c: usize,
}

/// One line of `--algorithm all` as JSON.
#[derive(Clone, Debug, Serialize)]
struct Candidate {
    algorithm: Algorithm,
    plan_ms: Option<Number>,
    transfer_ms: Option<Number>,
    execute_ms: Option<Number>,
    gflops: Option<Number>,
    floor_fraction: Option<Number>,
    gather_fraction: Option<Number>,
    vendor_ratio: Option<Number>,
    verified: Option<bool>,
    max_error: Option<Number>,
    error_bound: Option<Number>,
    refused: Option<String>,
}

/// A finished product, to be printed.
pub struct Product<'a> {
    /// The source of A.
    pub source: &'a Source,
    /// The types in which it was read.
    pub types: &'a Types,
    /// The device.
    pub device: &'a Device,
    /// The fastest correct trial.
    pub best: &'a Trial,
    /// All attempts of `--algorithm all`.
    pub attempts: &'a [Attempt],
    /// Multiplications: nnz · columns, or the intermediate products; not counted under a mask.
    pub multiplications: Option<f64>,
    /// The part for a sparse C.
    pub sparse: Option<Sparse>,
    /// The limits from memory bandwidth.
    pub limits: Option<Limits>,
    /// The product as text, such as `C = A·B`.
    pub formula: String,
    /// A few values of C.
    pub sample: String,
    /// The Frobenius norm of C.
    pub norm: f64,
}

impl Product<'_> {
    /// Prints the product on standard output.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn print(&self, printing: Printing) -> Result {
        output::print(printing, &self.report(), &self.text())?;
        let mut trials: Vec<&Trial> =
            self.attempts.iter().filter_map(|(_, t)| t.as_ref().ok()).collect();
        trials.push(self.best);
        let wrong = trials.iter().any(|t| !t.is_right());
        Ok(if wrong { Outcome::Failed } else { Outcome::Done })
    }

    /// The memory floor as a fraction of the execution time.
    pub fn floor_fraction(&self, trial: &Trial) -> Option<f64> {
        Some(self.limits?.floor_ms / trial.timing.median_ms.max(1e-6))
    }

    /// The gather limit as a fraction of the execution time.
    pub fn gather_fraction(&self, trial: &Trial) -> Option<f64> {
        Some(self.limits?.gather_ms? / trial.timing.median_ms.max(1e-6))
    }

    /// Time of the vendor's library over that of `trial`, if it ran and was correct.
    pub fn vendor_ratio(&self, trial: &Trial) -> Option<f64> {
        let vendor = self.attempts.iter().find(|(a, _)| *a == Algorithm::Vendor)?;
        let vendor = vendor.1.as_ref().ok().filter(|t| t.is_right())?;
        Some(vendor.timing.median_ms / trial.timing.median_ms.max(1e-6))
    }

    /// 10⁹ floating-point operations per second.
    pub fn gflops(&self, trial: &Trial) -> Option<f64> {
        // At least a nanosecond, to avoid a division by zero.
        Some(2.0 * self.multiplications? / trial.timing.median_ms.max(1e-6) / 1e6)
    }

    fn report(&self) -> Report {
        let Explanation { problem, order, choice, workspace_bytes, .. } = &self.best.explanation;
        let verdict = self.best.verdict.as_ref();
        Report {
            operation: problem.operation,
            file: self.source.to_string(),
            rows: problem.rows,
            cols: problem.cols,
            nnz: problem.nnz,
            columns: problem.columns,
            dtype: self.types.dtype.to_string(),
            index: self.types.index.to_string(),
            semiring: problem.semiring.to_string(),
            reduce: problem.reduction(),
            transpose: problem.transpose_a,
            device: self.device.name().into(),
            threads: self.device.threads().count(),
            algorithm: choice.algorithm,
            reason: choice.reason.clone(),
            order: order.map(|o| o.order),
            plan_ms: Number(self.best.plan_ms),
            transfer_ms: self.best.transfer_ms.map(Number),
            execute_ms: Number(self.best.timing.median_ms),
            repeats: self.best.timing.repeats,
            gflops: self.gflops(self.best).map(Number),
            floor_ms: self.limits.map(|l| Number(l.floor_ms)),
            gather_ms: self.limits.and_then(|l| l.gather_ms).map(Number),
            workspace_bytes: *workspace_bytes,
            norm: Number(self.norm),
            verified: verdict.map(|v| v.ok),
            max_error: verdict.map(|v| Number(v.max_error())),
            error_bound: verdict.map(|v| Number(v.error_bound())),
            sparse: self.sparse.clone(),
            candidates: self.attempts.iter().map(|a| self.candidate(a)).collect(),
        }
    }

    fn candidate(&self, (algorithm, outcome): &Attempt) -> Candidate {
        let trial = outcome.as_ref().ok();
        let verdict = trial.and_then(|t| t.verdict.as_ref());
        Candidate {
            algorithm: *algorithm,
            plan_ms: trial.map(|t| Number(t.plan_ms)),
            transfer_ms: trial.and_then(|t| t.transfer_ms).map(Number),
            execute_ms: trial.map(|t| Number(t.timing.median_ms)),
            gflops: trial.and_then(|t| self.gflops(t)).map(Number),
            floor_fraction: trial.and_then(|t| self.floor_fraction(t)).map(Number),
            gather_fraction: trial.and_then(|t| self.gather_fraction(t)).map(Number),
            vendor_ratio: trial.and_then(|t| self.vendor_ratio(t)).map(Number),
            verified: verdict.map(|v| v.ok),
            max_error: verdict.map(|v| Number(v.max_error())),
            error_bound: verdict.map(|v| Number(v.error_bound())),
            refused: outcome.as_ref().err().cloned(),
        }
    }

    fn text(&self) -> String {
        let Trial { explanation, plan_ms, transfer_ms, timing, verdict } = self.best;
        let Explanation { problem, choice, workspace_bytes, .. } = explanation;
        let mut t = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(
            t,
            "{}: {}, {} on {} ({})",
            problem.operation,
            self.formula,
            self.types.dtype,
            self.device,
            self.device.description(),
        );
        let (rows, cols, nnz) = (problem.rows, problem.cols, problem.nnz);
        let mean = nnz as f64 / rows.max(1) as f64;
        let _ = writeln!(
            t,
            "A          {}: {rows} x {cols}, {nnz} nonzeros, {mean:.2} a row",
            self.source
        );
        if let Some(Sparse { mask, products, nnz_c }) = &self.sparse {
            let compression = *products as f64 / (*nnz_c).max(1) as f64;
            let _ =
                write!(t, "size       {products} intermediate products, {nnz_c} nonzeros of C, ");
            let _ = match mask {
                Some(mask) => writeln!(t, "at positions of {mask}"),
                None => writeln!(t, "compression ratio {compression:.2}"),
            };
        }
        let _ = writeln!(t, "algorithm  {} ({})", choice.algorithm, choice.algorithm.source());
        let _ = writeln!(t, "why        {}", choice.reason);
        let _ = writeln!(t, "plan       {plan_ms:.3} ms, workspace {workspace_bytes} bytes");
        let rate = self.gflops(self.best).map(|g| format!(", {} GFLOP/s", table::rate(g)));
        let rate = rate.unwrap_or_default();
        let (ms, repeats) = (timing.median_ms, timing.repeats);
        let _ = writeln!(t, "execute    {ms:.3} ms (median of {repeats}){rate}");
        if let Some(fraction) = self.floor_fraction(self.best) {
            let percent = 100.0 * fraction;
            let _ = writeln!(t, "floor      {percent:.0}% of what copying A, B and C once allows");
        }
        if let Some(fraction) = self.gather_fraction(self.best) {
            let percent = 100.0 * fraction;
            let what = match problem.operation {
                Operation::Spmv => "value of x",
                Operation::Sddmm => "row of Y",
                _ => "row of B",
            };
            let nearer = if fraction > 1.0 { ": L1 held some" } else { "" };
            let _ = writeln!(
                t,
                "gather     {percent:.0}% of what reading a {what} from L2 for every nonzero \
                 allows{nearer}"
            );
        }
        if let Some(ms) = transfer_ms {
            let _ = writeln!(t, "transfer   {ms:.3} ms, operands to the GPU and C back");
        }
        let _ = writeln!(t, "C          {}, norm {:.6e}", self.sample, self.norm);
        if let Some(v) = verdict {
            let _ = match v.worst {
                Some(w) if v.ok => writeln!(
                    t,
                    "verified   right: {} elements within their bounds, worst error {:.3e} of {:.3e} \
                     (row {}, column {})",
                    v.checked, w.error, w.bound, w.row, w.col,
                ),
                _ => writeln!(t, "verified   {v}"),
            };
        }
        t += &table::of(self);
        t
    }
}

/// The first values of C as text, and its Frobenius norm.
pub fn look<T: Scalar>(values: impl Iterator<Item = T> + Clone) -> (String, f64) {
    const SHOWN: usize = 4;
    let mut sample: Vec<String> = values.clone().take(SHOWN).map(|v| format!("{v:.6}")).collect();
    let mut squares = 0.0;
    let mut count = 0usize;
    for v in values {
        squares += v.to_f64().powi(2);
        count += 1;
    }
    if count > SHOWN {
        sample.push("...".into());
    }
    let shown = if sample.is_empty() { "no values".into() } else { sample.join(" ") };
    (shown, squares.sqrt())
}
