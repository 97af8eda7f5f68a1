//! What a product over ranks prints.

use std::fmt::Write;

use gustav::{Scalar, Semiring};
use gustav_mpi::Explanation;
use gustav_testkit::oracle::Verdict;
use serde::Serialize;

use super::Spread;
use super::job::Job;
use crate::args::Types;
use crate::failure::Result;
use crate::measure::Timing;
use crate::output::{self, Number};
use crate::source::Source;
use crate::table::rate;

/// A finished product over ranks.
pub struct Finished<'a> {
    /// The source of A.
    pub source: &'a Source,
    /// The types in which it was read.
    pub types: &'a Types,
    /// What the plan says.
    pub explanation: &'a Explanation,
    /// Which rows each rank has.
    pub partition: Spread,
    /// Threads of this rank.
    pub threads: usize,
    /// Milliseconds of planning.
    pub plan_ms: f64,
    /// Milliseconds of executing, of the slowest rank.
    pub timing: Timing,
    /// Multiplications, where they were counted.
    pub multiplications: Option<f64>,
    /// Nonzeros of C, of an SpGEMM.
    pub nnz_c: Option<usize>,
    /// The product as text.
    pub formula: String,
    /// A few values of C, and its norm.
    pub sample: (String, f64),
    /// The oracle's verdict, on the first rank.
    pub verdict: Option<Verdict>,
}

/// A product over ranks as JSON; the keys are documented in docs/json.md.
#[derive(Serialize)]
struct Report {
    operation: String,
    file: String,
    rows: usize,
    cols: usize,
    nnz: usize,
    columns: usize,
    dtype: String,
    index: String,
    semiring: Semiring,
    transpose: bool,
    ranks: usize,
    mpi: String,
    partition: String,
    threads: usize,
    algorithm: String,
    reason: String,
    plan_ms: Number,
    execute_ms: Number,
    repeats: usize,
    gflops: Option<Number>,
    #[serde(flatten)]
    sent: Sent,
    workspace_bytes: usize,
    nnz_c: Option<usize>,
    norm: Number,
    verified: Option<bool>,
    max_error: Option<Number>,
    error_bound: Option<Number>,
}

/// What ranks send each other, as JSON.
#[derive(Serialize)]
pub struct Sent {
    communication: &'static str,
    sent_bytes: u64,
    messages: u64,
    rows_of_b_bytes: u64,
    partial_rows_bytes: u64,
    oblivious_bytes: u64,
    imbalance: Number,
    communication_imbalance: Number,
}

impl Sent {
    /// What a plan counted.
    pub fn of(e: &Explanation) -> Self {
        Sent {
            communication: e.communication.name(),
            sent_bytes: e.volume.bytes(),
            messages: e.volume.messages(),
            rows_of_b_bytes: e.volume.rows_of_b_bytes,
            partial_rows_bytes: e.volume.partial_rows_bytes,
            oblivious_bytes: e.volume.oblivious_bytes,
            imbalance: Number(e.volume.imbalance()),
            communication_imbalance: Number(e.volume.communication_imbalance()),
        }
    }
}

impl Finished<'_> {
    /// Prints it on the first rank. Collective.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn print(&self, job: &Job) -> Result {
        let printed = match job.is_first() {
            true => output::print(job.printing, &self.report(job.ranks.size()), &self.text()),
            false => Ok(()),
        };
        job.together(printed)?;
        job.outcome(self.verdict.as_ref().is_none_or(|v| v.ok))
    }

    fn gflops(&self) -> Option<f64> {
        // At least a nanosecond, to avoid a division by zero.
        Some(2.0 * self.multiplications? / self.timing.median_ms.max(1e-6) / 1e6)
    }

    fn report(&self, ranks: usize) -> Report {
        let e = self.explanation;
        Report {
            operation: e.problem.operation.to_string(),
            file: self.source.to_string(),
            rows: e.problem.rows,
            cols: e.problem.cols,
            nnz: e.problem.nnz,
            columns: e.problem.columns,
            dtype: self.types.dtype.to_string(),
            index: self.types.index.to_string(),
            semiring: e.problem.semiring,
            transpose: e.problem.transpose_a,
            ranks,
            mpi: e.ranks.clone(),
            partition: self.partition.to_string(),
            threads: self.threads,
            algorithm: e.choice.algorithm.to_string(),
            reason: e.choice.reason.clone(),
            plan_ms: Number(self.plan_ms),
            execute_ms: Number(self.timing.median_ms),
            repeats: self.timing.repeats,
            gflops: self.gflops().map(Number),
            sent: Sent::of(e),
            workspace_bytes: e.workspace_bytes,
            nnz_c: self.nnz_c,
            norm: Number(self.sample.1),
            verified: self.verdict.as_ref().map(|v| v.ok),
            max_error: self.verdict.as_ref().map(|v| Number(v.max_error())),
            error_bound: self.verdict.as_ref().map(|v| Number(v.error_bound())),
        }
    }

    fn text(&self) -> String {
        let e = self.explanation;
        let mut t = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(
            t,
            "{}: {}, {} on {} threads a rank",
            e.problem.operation, self.formula, self.types.dtype, self.threads
        );
        let (rows, cols, nnz) = (e.problem.rows, e.problem.cols, e.problem.nnz);
        let _ = writeln!(t, "A          {}: {rows} x {cols}, {nnz} nonzeros", self.source);
        if let Some(nnz_c) = self.nnz_c {
            let _ = writeln!(t, "size       {nnz_c} nonzeros of C");
        }
        // The first line says the problem.
        let lines = e.to_string();
        lines.lines().skip(1).for_each(|line| t += &format!("{line}\n"));
        let _ = writeln!(t, "plan       {:.3} ms", self.plan_ms);
        let rate = self.gflops().map(|g| format!(", {} GFLOP/s", rate(g))).unwrap_or_default();
        let Timing { median_ms, repeats } = self.timing;
        let _ = writeln!(
            t,
            "execute    {median_ms:.3} ms on the slowest rank (median of {repeats}){rate}"
        );
        let _ = writeln!(t, "C          {}, norm {:.6e}", self.sample.0, self.sample.1);
        if let Some(v) = &self.verdict {
            let _ = writeln!(t, "verified   {v}");
        }
        t
    }
}

/// The first values of C in rank order as text, and its Frobenius norm. Collective.
///
/// # Errors
/// Of communication.
pub fn sample<T: Scalar>(job: &Job, local: &[T]) -> Result<(String, f64)> {
    const SHOWN: usize = 4;
    let square = |v: &T| v.to_f64().powi(2);
    let sample = local.iter().take(SHOWN + 1).map(|v| format!(" {v:.6}")).collect::<String>();
    let squares: f64 = local.iter().map(square).sum();
    let all = job.ranks.gather_text(&format!("{squares:?}{sample}"))?;
    let (mut shown, mut sum) = (Vec::new(), 0.0);
    for line in &all {
        let mut words = line.split(' ');
        sum += words.next().and_then(|w| w.parse::<f64>().ok()).unwrap_or(f64::NAN);
        shown.extend(words);
    }
    if shown.len() > SHOWN {
        shown.truncate(SHOWN);
        shown.push("...");
    }
    let shown = if shown.is_empty() { "no values".into() } else { shown.join(" ") };
    Ok((shown, sum.sqrt()))
}
