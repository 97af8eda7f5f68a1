//! Attention: O = softmax(leaky(scale·Q·Kᵀ + bias))·V over the nonzeros of every row of a pattern, and its
//! gradients.
//!
//! `schedule` cuts the nonzeros into parts of about the same work, `segmented` has the kernels, and
//! `row_sums` the sums that they make.

pub(crate) mod compiled;
pub(crate) mod exponential;
mod gradients;
pub(crate) mod operands;
mod plan;
mod row_sums;
pub(crate) mod schedule;
pub(crate) mod segmented;

pub use gradients::AttentionGradientsPlan;
pub use operands::{AttentionCall, AttentionGradients, AttentionGradientsCall, AttentionInputs};
pub use plan::AttentionPlan;

use gustav_core::{Error, Operation, Problem, Result};
use gustav_plan::{Algorithm, Choice, Chooser};

use crate::catalog::{Entry, autotune_elsewhere};
use crate::{Config, Options};

/// The attention algorithms of this backend.
pub fn catalog() -> &'static [Entry] {
    &CATALOG
}

static CATALOG: [Entry; 1] = [Entry { algorithm: Algorithm::Segmented, supports }];

fn supports(problem: &Problem) -> Result<()> {
    check(problem, Operation::Attention)
}

/// `problem` is of `operation`, as a request describes it.
pub(crate) fn check(problem: &Problem, operation: Operation) -> Result<()> {
    problem.check_heads(&format!("the CPU's {operation}"), operation)
}

/// The one algorithm, where `options` allow it.
pub(crate) fn choose(
    problem: &Problem,
    options: &Options,
    prefetch_distance: usize,
) -> Result<Choice<Config>> {
    let algorithm = Algorithm::Segmented;
    match options.chooser {
        Chooser::Named(Algorithm::Segmented) | Chooser::Auto => {}
        Chooser::Named(_) | Chooser::MeanRowLength => {
            return Err(Error::Unsupported {
                problem: problem.to_string(),
                backend: format!("the CPU's {}", problem.operation),
                reason: "it has one algorithm".into(),
                nearest: algorithm.name().into(),
            });
        }
        _ => return Err(autotune_elsewhere(problem)),
    }
    let (isa, threads) = (options.isa()?, options.threads.count());
    let config = Config { isa, threads, tile: None, streaming: false, prefetch_distance };
    let reason = "parts of about as many nonzeros, long rows cut, where the pattern says".into();
    Ok(Choice { algorithm, config, reason })
}
