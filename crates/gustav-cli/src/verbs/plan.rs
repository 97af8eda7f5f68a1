//! `gustav plan`: the chosen algorithm and the reason, without running.

use gustav::{
    Chooser, Considered, Device, Error, Explanation, Operation, Order, PatternRef, Problem,
    SddmmRequest, SpmmRequest, SpmvRequest,
};
use serde::Serialize;

use super::spgemm::Operands;
use crate::args::{AlgorithmArg, Choice, DenseLayout, Printing, Types, at_least_one};
use crate::failure::{Failure, Outcome, Result};
use crate::measure;
use crate::mpi::{self, Ranked};
use crate::output::{self, Number};
use crate::source::Source;
use crate::types::with_types;

/// Explain which algorithm would be used and why, without multiplying
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The sparse matrix A
    #[arg(value_name = "A")]
    file: Source,
    /// The sparse matrix B, for spgemm (A, or its transpose where A is not square, unless given)
    #[arg(value_name = "B")]
    right: Option<Source>,
    /// The product
    #[arg(long, value_parser = crate::args::operations(), default_value = "spmm")]
    operation: Operation,
    /// Columns of B, for spmm, or of X and Y, for sddmm (required)
    #[arg(long, visible_alias = "depth", value_name = "N", allow_negative_numbers = true)]
    columns: Option<usize>,
    /// How often the product would be computed
    #[arg(long, value_name = "K", default_value_t = 1, allow_negative_numbers = true)]
    calls: u64,
    /// Time every candidate as well, including row orders on GPUs, next to the predicted times of
    /// the device
    #[arg(long)]
    measure: bool,
    /// Seed of generated matrices
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,
    #[command(flatten)]
    layout: DenseLayout,
    #[command(flatten)]
    types: Types,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    ranked: Ranked,
    #[command(flatten)]
    ranks: mpi::Ranks,
    #[command(flatten)]
    printing: Printing,
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
    device: String,
    algorithm: String,
    source: String,
    reason: String,
    order: Option<Order>,
    plan_ms: Number,
    candidates: Vec<Considered>,
    workspace_bytes: usize,
    config: serde_json::Value,
    facts: serde_json::Value,
}

/// Plans and prints the explanation.
pub fn run(args: &Args) -> Result {
    check(args)?;
    at_least_one("calls", args.calls)?;
    if !args.ranks.mpi_ranks.is_empty() {
        return mpi::forecast(&mpi::Forecast {
            file: &args.file,
            right: args.right.as_ref(),
            operation: args.operation,
            columns: args.columns.unwrap_or(1),
            seed: args.seed,
            types: &args.types,
            choice: &args.choice,
            ranks: &args.ranks,
            ranked: args.ranked,
            printing: args.printing,
        });
    }
    if args.ranked.mpi {
        return mpi::plan(&mpi::Plan {
            file: &args.file,
            right: args.right.as_ref(),
            operation: args.operation,
            columns: args.columns.unwrap_or(1),
            calls: args.calls,
            seed: args.seed,
            types: &args.types,
            choice: &args.choice,
            ranked: args.ranked,
            printing: args.printing,
        });
    }
    let device = args.choice.device()?;
    let (explanation, plan_ms) = with_types!(&args.types, |T, I, O| {
        let Args { choice, printing, seed, .. } = args;
        let layout = args.layout.layout();
        let refine = |problem: Problem| choice.refine(problem);
        match args.operation {
            Operation::Spmm => {
                let a = device.threads().run(|| args.file.read::<T, I, O>(*seed, *printing))?;
                let columns = args.columns.unwrap_or(1);
                let problem = Problem::spmm(&a.view()).columns(columns).layouts(layout, layout);
                let problem = refine(problem);
                explained(args, &device, &|d, calls| {
                    let problem = problem.clone().calls(calls);
                    let request = SpmmRequest { pattern: PatternRef::from(&a), problem };
                    Ok(request.plan::<T, _>(d)?.explain().clone())
                })?
            }
            Operation::Spmv => {
                let a = device.threads().run(|| args.file.read::<T, I, O>(*seed, *printing))?;
                let problem = refine(Problem::spmv(&a.view()));
                explained(args, &device, &|d, calls| {
                    let problem = problem.clone().calls(calls);
                    let request = SpmvRequest { pattern: PatternRef::from(&a), problem };
                    Ok(request.plan::<T, _>(d)?.explain().clone())
                })?
            }
            Operation::Sddmm => {
                let a = device.threads().run(|| args.file.read::<T, I, O>(*seed, *printing))?;
                let request = a.pattern().sddmm(args.columns.unwrap_or(1)).layouts(layout, layout);
                let problem = refine(request.problem);
                explained(args, &device, &|d, calls| {
                    let problem = problem.clone().calls(calls);
                    let request = SddmmRequest { pattern: PatternRef::from(&a), problem };
                    Ok(request.plan::<T, _>(d)?.explain().clone())
                })?
            }
            Operation::Spgemm => {
                let read = || {
                    Operands::<T, I, O>::choose(
                        &args.file,
                        args.right.as_ref(),
                        choice.transpose,
                        *seed,
                        *printing,
                    )
                };
                let operands = device.threads().run(read)?;
                let (a, b) = (&operands.a, operands.b());
                let problem = refine(Problem::spgemm(&a.view(), &b.view()));
                explained(args, &device, &|d, calls| {
                    let problem = problem.clone().calls(calls);
                    Ok(operands.request(&problem).plan::<T, _>(d)?.explain().clone())
                })?
            }
            Operation::Softmax | Operation::Attention => {
                return Err(only_a_library(args.operation));
            }
        }
    });
    let text = format!("{explanation}\nplan       {plan_ms:.3} ms\n");
    output::print(args.printing, &report(args, &explanation, plan_ms)?, &text)?;
    Ok(Outcome::Done)
}

/// Plans on a device for a number of calls.
type Explain<'a> = &'a dyn Fn(&Device, u64) -> Result<Explanation>;

// Calls for measured plans: so many that any preparation pays.
const MANY: u64 = 1_000_000_000;

/// The explanation of the plan on `device` with the milliseconds of planning, the predicted times
/// of the candidates and, with `--measure`, their times.
fn explained(args: &Args, device: &Device, explain: Explain<'_>) -> Result<(Explanation, f64)> {
    let (mut explanation, plan_ms) = measure::once(|| explain(device, args.calls))?;
    let calls = if args.measure { MANY } else { args.calls };
    let by = |chooser, calls| Ok(explain(&device.clone().choose(chooser), calls)?.considered);
    // Planned for one call, for which row orders are not computed and tried; the predictions are
    // the same.
    let predicted = || match by(Chooser::Predictor, 1) {
        Err(Failure::Library(Error::Unsupported { .. })) => Ok(Vec::new()),
        Err(Failure::Library(e)) => {
            output::note(args.printing, &format!("no predicted times: {e}"));
            Ok(Vec::new())
        }
        other => other,
    };
    if !args.measure {
        // A chooser that used candidates has already listed them. With `--order` there are none, as
        // candidates have their own row orders.
        if explanation.considered.is_empty() && args.choice.order.is_none() {
            explanation.considered = predicted()?;
        }
        return Ok((explanation, plan_ms));
    }
    let predicted = predicted()?;
    let mut all = by(Chooser::Autotune, calls)?;
    for one in predicted {
        match all.iter_mut().find(|c| c.candidate == one.candidate) {
            Some(measured) => measured.predicted_ms = one.predicted_ms,
            None => all.push(one),
        }
    }
    explanation.considered = all;
    Ok((explanation, plan_ms))
}

/// The error for an operation that the command does not compute.
fn only_a_library(operation: Operation) -> Failure {
    Failure::Library(Error::Unsupported {
        problem: operation.to_string(),
        backend: "the command".into(),
        reason: "it is available in the library only".into(),
        nearest: format!("Pattern::{operation} in Rust"),
    })
}

/// Rejects options that have no effect on the plan.
fn check(args: &Args) -> Result<()> {
    let operation = args.operation;
    let dense = matches!(operation, Operation::Spmm | Operation::Sddmm);
    let words = match () {
        () if dense && args.columns.is_none() => {
            format!("columns: --columns N is needed to plan {operation}")
        }
        () if !dense && args.columns.is_some() => {
            format!("columns: {operation} takes none, they are those of spmm and sddmm")
        }
        () if !dense && args.layout.layout.is_some() => {
            format!("layout: {operation} has no dense matrix, it is that of spmm and sddmm")
        }
        () if operation != Operation::Spgemm && args.right.is_some() => {
            format!("B: {operation} takes none, it is the sparse one of spgemm")
        }
        () if args.measure && args.choice.order.is_some() => {
            "measure: candidates are timed in orders of their own, leave --order out".to_string()
        }
        () if args.choice.algorithm == AlgorithmArg::All => format!(
            "algorithm: a plan is of one, name it or leave it to auto; gustav {operation} \
             --algorithm all runs them all"
        ),
        () => return Ok(()),
    };
    Err(Failure::Request(words))
}

fn report(args: &Args, e: &Explanation, plan_ms: f64) -> Result<Report> {
    let Explanation { problem, choice, .. } = e;
    Ok(Report {
        operation: problem.operation,
        file: args.file.to_string(),
        rows: problem.rows,
        cols: problem.cols,
        nnz: problem.nnz,
        columns: problem.columns,
        dtype: problem.dtype.to_string(),
        device: e.device.clone(),
        algorithm: choice.algorithm.to_string(),
        source: choice.algorithm.source().into(),
        reason: choice.reason.clone(),
        order: e.order.map(|o| o.order),
        plan_ms: Number(plan_ms),
        candidates: e.considered.clone(),
        workspace_bytes: e.workspace_bytes,
        config: output::value(&choice.config)?,
        facts: output::value(&e.facts)?,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use clap::Parser;
    use gustav::Csr;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// How many plans a command line makes if the first is chosen among `among` candidates, and how
    /// many candidates are listed.
    fn plans(line: &str, among: usize) -> (usize, usize) {
        let args =
            Line::parse_from(format!("plan gen:grid5:3x3 --columns 4 {line}").split(' ')).args;
        let a = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let (device, made) = (Device::cpu(), Cell::new(0));
        let explain = |_: &Device, _| {
            let plan = a.pattern().spmm(4).plan::<f32, _>(&device)?;
            made.set(made.get() + 1);
            let (predicted_ms, measured_ms) = (Some(1.0), None);
            let one =
                |k| Considered { candidate: format!("row-split#{k}"), predicted_ms, measured_ms };
            // The predictor has three.
            let count = if made.get() == 1 { among } else { 3 };
            Ok(Explanation { considered: (0..count).map(one).collect(), ..plan.explain().clone() })
        };
        let (explanation, _) = explained(&args, &device, &explain).expect("a plan");
        (made.get(), explanation.considered.len())
    }

    #[test]
    fn predictions_are_made_only_if_they_are_listed() {
        assert_eq!(plans("--calls 9", 0), (2, 3));
        assert_eq!(plans("--calls 9", 5), (1, 5), "the chooser used candidates");
        assert_eq!(plans("--order dcsr", 0), (1, 0), "the order would be computed twice");
    }
}
