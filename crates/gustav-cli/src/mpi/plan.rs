//! `gustav plan --mpi`.

use gustav::{Index, Operation, Problem};
use gustav_mpi::{DistScalar, Explanation};
use serde::Serialize;

use super::engine::Engine;
use super::job::{self, Job};
use super::parts::read;
use super::report::Sent;
use super::spgemm::{self, Pair};
use super::{Ranked, sddmm};
use crate::args::{Choice, Printing, Types};
use crate::failure::{Failure, Outcome, Result};
use crate::measure;
use crate::output::{self, Number};
use crate::source::Source;
use crate::types::with_types;

/// A product to plan, as the command line has it.
#[derive(Debug)]
pub struct Plan<'a> {
    /// A.
    pub file: &'a Source,
    /// B of an SpGEMM, if it is named.
    pub right: Option<&'a Source>,
    /// The product.
    pub operation: Operation,
    /// Columns of B, or of X and Y.
    pub columns: usize,
    /// How often it would be computed.
    pub calls: u64,
    /// Seed of a generated A.
    pub seed: u64,
    /// Types of A.
    pub types: &'a Types,
    /// How to compute.
    pub choice: &'a Choice,
    /// Over which ranks.
    pub ranked: Ranked,
    /// What is printed.
    pub printing: Printing,
}

#[derive(Serialize)]
struct Report {
    operation: Operation,
    file: String,
    rows: usize,
    cols: usize,
    nnz: usize,
    columns: usize,
    dtype: String,
    ranks: usize,
    mpi: String,
    partition: String,
    algorithm: String,
    reason: String,
    plan_ms: Number,
    #[serde(flatten)]
    sent: Sent,
    workspace_bytes: usize,
}

/// Plans over the ranks of the job and prints the explanation. Collective.
///
/// # Errors
/// On every rank.
pub fn plan(args: &Plan<'_>) -> Result {
    job::run(args.printing, args, |job| {
        let (e, plan_ms) = with_types!(args.types, |T, I, O| explained::<T, I, O>(job, args))?;
        let report = Report {
            operation: args.operation,
            file: args.file.to_string(),
            rows: e.problem.rows,
            cols: e.problem.cols,
            nnz: e.problem.nnz,
            columns: e.problem.columns,
            dtype: args.types.dtype.to_string(),
            ranks: job.ranks.size(),
            mpi: e.ranks.clone(),
            partition: args.ranked.spread().to_string(),
            algorithm: e.choice.algorithm.to_string(),
            reason: e.choice.reason.clone(),
            plan_ms: Number(plan_ms),
            sent: Sent::of(&e),
            workspace_bytes: e.workspace_bytes,
        };
        let text = format!("{e}\nplan       {plan_ms:.3} ms\n");
        job.first(|| output::print(job.printing, &report, &text))?;
        Ok(Outcome::Done)
    })
}

fn explained<T: DistScalar, I: Index, O: Index>(
    job: &Job,
    args: &Plan<'_>,
) -> Result<(Explanation, f64)> {
    let refine = |problem: Problem| args.choice.refine(problem).calls(args.calls);
    if args.operation == Operation::Spgemm {
        let (place, _) = job.place_alone(args.choice, args.ranked)?;
        let partition = args.ranked.spread();
        let pair = Pair::<T, I, O>::read(job, args.file, args.right, args.seed, partition)?;
        let (a, b) = (pair.a(), pair.b());
        let problem = refine(a.pattern().spgemm(b.pattern()).problem);
        return measure::once(|| {
            let patterns = (a.pattern(), b.pattern());
            Ok(spgemm::Engine::<T, I, O>::new(&place, patterns, &problem)?.explain().clone())
        });
    }
    let a = read::<T, I, O>(job, args.file, args.seed, args.ranked.spread())?;
    let pattern = a.matrix.pattern();
    measure::once(|| match args.operation {
        Operation::Spmm | Operation::Spmv => {
            let problem = refine(pattern.spmm(args.columns).problem);
            let problem = Problem { operation: args.operation, ..problem };
            let (location, _) = job.location(args.choice, args.ranked)?;
            Ok(Engine::<T>::new(&location, pattern, &problem)?.explain().clone())
        }
        Operation::Sddmm => {
            let (place, _) = job.place_alone(args.choice, args.ranked)?;
            let problem = refine(pattern.sddmm(args.columns).problem);
            Ok(sddmm::Engine::<T>::new(&place, pattern, &problem)?.explain().clone())
        }
        other => Err(Failure::Request(format!("operation: {other} is not computed over ranks"))),
    })
}
