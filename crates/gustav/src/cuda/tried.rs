//! A row order that was predicted, tried beside what costs nothing to make.

use gustav_core::{Error, Index, Problem, Result, Scalar, SemiringKind};
use gustav_cuda::spmm;
use gustav_plan::predictor::Candidate;
use gustav_plan::{Order, RowOrder};

use super::tune::Trials;
use super::{DeviceCsr, predict};
use crate::explain::OrderFacts;

// An order that takes more than this part of the time without it does not earn what it costs to make; times of
// the same plan differ by as much.
const EARNS: f64 = 0.99;

/// A row order, and what making it took.
type Made = (RowOrder, OrderFacts);

/// A candidate as it was run.
pub(super) struct Ran {
    pub candidate: Candidate,
    /// Its order, where it has one that was made.
    pub order: Option<Made>,
    /// Seconds of a product; `None` where it could not be run.
    pub seconds: Option<f64>,
}

impl Ran {
    fn not(candidate: Candidate) -> Self {
        Ran { candidate, order: None, seconds: None }
    }
}

/// What became of a row order that was predicted.
pub(super) struct Tried {
    /// What was predicted.
    pub ordered: Ran,
    /// What stood beside it: rows as stored, or as rules list them.
    pub rivals: Vec<Ran>,
    /// Why nothing was run.
    untried: Option<&'static str>,
}

impl Tried {
    /// Place of the fastest rival, the first where none ran.
    fn fastest(&self) -> Option<usize> {
        let seconds = |i: &usize| self.rivals[*i].seconds.unwrap_or(f64::INFINITY);
        (0..self.rivals.len()).min_by(|a, b| seconds(a).total_cmp(&seconds(b)))
    }

    /// Whether the order earns its keep beside all rivals, or is the only one that runs.
    fn keeps(&self) -> bool {
        match (self.ordered.seconds, self.fastest().and_then(|i| self.rivals[i].seconds)) {
            (Some(ordered), Some(least)) => ordered <= EARNS * least,
            (ordered, _) => ordered.is_some(),
        }
    }

    /// What is taken.
    pub(super) fn taken(mut self) -> Ran {
        match self.fastest() {
            Some(rival) if !self.keeps() => self.rivals.swap_remove(rival),
            None if !self.keeps() => Ran::not(Candidate::AUTO),
            _ => self.ordered,
        }
    }

    /// The same in words.
    pub(super) fn words(&self) -> String {
        let fastest = self.fastest().map(|i| &self.rivals[i]);
        let rival = fastest.map_or(Candidate::AUTO, |rival| rival.candidate);
        match (self.ordered.seconds, fastest.and_then(|rival| rival.seconds), self.untried) {
            (_, _, Some(why)) => format!("not tried, for {why}: {rival} is taken"),
            (Some(ordered), Some(least), _) => {
                let [ms, rival_ms] = [ordered, least].map(|seconds| seconds * 1e3);
                let taken = if self.keeps() { "" } else { ", which is taken" };
                format!("tried, {ms:.4} ms where {rival} takes {rival_ms:.4} ms{taken}")
            }
            (Some(_), None, _) => format!("tried, but {rival} could not be"),
            (None, ..) => format!("it could not be tried, {rival} is taken"),
        }
    }
}

/// A few products of `ordered`, a candidate with a row order, beside as many of every one of `rivals`; `make`
/// makes an order.
///
/// # Errors
/// Those of making orders, of plans and of products, but for what a trial passes over.
pub(super) fn tried<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    problem: &Problem,
    ordered: Candidate,
    rivals: &[Candidate],
    make: impl Fn(Order) -> Result<Made>,
) -> Result<Tried> {
    let untried = |why| {
        let rivals = rivals.iter().copied().map(Ran::not).collect();
        Ok(Tried { ordered: Ran::not(ordered), rivals, untried: Some(why) })
    };
    if let Some(why) = untriable(problem) {
        return untried(why);
    }
    let mut trials = match Trials::new(a, problem) {
        Ok(trials) => trials,
        Err(Error::OutOfMemory { .. }) => return untried("there is no memory for another B and C"),
        Err(e) => return Err(e),
    };
    let mut run = |candidate: Candidate| {
        let order = candidate.order.map(&make).transpose()?;
        let (chooser, config) = (candidate.chooser(), predict::config(&candidate, problem)?);
        let rows = order.as_ref().map(|(order, _)| order);
        let seconds = match trials.seconds(&spmm::Options { chooser, config, order: rows }) {
            Ok(seconds) => Some(seconds),
            Err(Error::Unsupported { .. } | Error::OutOfMemory { .. }) => None,
            Err(e) => return Err(e),
        };
        Ok(Ran { candidate, order, seconds })
    };
    let rivals = rivals.iter().map(|rival| run(*rival)).collect::<Result<_>>()?;
    Ok(Tried { ordered: run(ordered)?, rivals, untried: None })
}

/// Why a product is not one to choose by trial.
fn untriable(problem: &Problem) -> Option<&'static str> {
    if problem.deterministic {
        Some("a deterministic choice does not go by times")
    } else if problem.semiring != SemiringKind::PlusTimes {
        Some("trials are of plus-times")
    } else if [problem.output_rows(), problem.columns, problem.nnz].contains(&0) {
        Some("there is nothing to multiply")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    fn ran(name: &str, seconds: Option<f64>) -> Ran {
        Ran { seconds, ..Ran::not(name.parse().expect("a name")) }
    }

    #[test]
    fn an_order_is_kept_where_it_is_faster() {
        let found = |ordered, rivals: &[(&str, Option<f64>)]| {
            let rivals = rivals.iter().map(|(name, seconds)| ran(name, *seconds)).collect();
            let ordered = ran("segmented@min-hash", ordered);
            let tried = Tried { ordered, rivals, untried: None };
            let words = tried.words();
            (tried.taken().candidate.to_string(), words)
        };
        let order = || "segmented@min-hash".to_owned();
        let beside = |seconds| [("segmented", seconds)];
        let faster = "tried, 0.9000 ms where segmented takes 1.0000 ms";
        assert_eq!(found(Some(0.9e-3), &beside(Some(1e-3))), (order(), faster.into()));
        let slower = "tried, 1.2000 ms where segmented takes 1.0000 ms, which is taken";
        assert_eq!(found(Some(1.2e-3), &beside(Some(1e-3))), ("segmented".into(), slower.into()));
        // Level is not enough; nothing to compare with is.
        assert_eq!(found(Some(0.995), &beside(Some(1.0))).0, "segmented");
        assert_eq!(found(Some(0.985), &beside(Some(1.0))).0, order());
        assert_eq!(found(Some(1.0), &beside(None)).0, order());
        assert_eq!(found(None, &beside(Some(1.0))).0, "segmented");
        assert_eq!(found(None, &[]).0, "auto");
        // All rivals count.
        let rivals =
            [("auto", Some(1e-3)), ("segmented@stored", Some(0.8e-3)), ("segmented", None)];
        let stored = "tried, 0.9000 ms where segmented@stored takes 0.8000 ms, which is taken";
        assert_eq!(found(Some(0.9e-3), &rivals), ("segmented@stored".into(), stored.into()));
    }

    #[test]
    fn nothing_is_tried_where_times_may_not_choose_or_say_nothing() {
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let problem = Problem::spmm(&eye.view()).columns(128);
        assert_eq!(untriable(&problem), None);
        for other in [
            problem.clone().deterministic(true),
            problem.clone().semiring(SemiringKind::MinPlus),
            problem.clone().columns(0),
            Problem { nnz: 0, ..problem },
        ] {
            assert!(untriable(&other).is_some(), "{other}");
        }
    }
}
