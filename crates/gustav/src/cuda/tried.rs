//! What was predicted, tried beside what the rules choose and rows as stored.

use gustav_core::{Error, Index, Problem, Result, Scalar, Semiring};
use gustav_cuda::spmm;
use gustav_plan::predictor::Candidate;
use gustav_plan::{Order, RowOrder};

use super::tune::Trials;
use super::{DevicePattern, predict};
use crate::explain::OrderFacts;

// What takes more than this part of its rivals' time is no gain: times of the same plan differ by as much.
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

/// What became of a prediction.
pub(super) struct Tried {
    pub predicted: Ran,
    /// What stood beside it, none of which costs anything to make.
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

    /// Whether the prediction earns its keep beside all rivals, or is the only one that runs; where none does,
    /// one without an order costs nothing.
    fn keeps(&self) -> bool {
        match (self.predicted.seconds, self.fastest().and_then(|i| self.rivals[i].seconds)) {
            (Some(predicted), Some(least)) => predicted <= EARNS * least,
            (None, None) => self.predicted.candidate.order.is_none(),
            (predicted, _) => predicted.is_some(),
        }
    }

    /// What is taken.
    pub(super) fn taken(mut self) -> Ran {
        match self.fastest() {
            Some(rival) if !self.keeps() => self.rivals.swap_remove(rival),
            None if !self.keeps() => Ran::not(Candidate::AUTO),
            _ => self.predicted,
        }
    }

    /// The same in words.
    pub(super) fn words(&self) -> String {
        let fastest = self.fastest().map(|i| &self.rivals[i]);
        let rival = fastest.map_or(Candidate::AUTO, |rival| rival.candidate);
        let instead = if self.keeps() { String::new() } else { format!(", {rival} is taken") };
        match (self.predicted.seconds, fastest.and_then(|rival| rival.seconds), self.untried) {
            (_, _, Some(why)) => format!("not tried, for {why}{instead}"),
            (Some(predicted), Some(least), _) => {
                let [ms, rival_ms] = [predicted, least].map(|seconds| seconds * 1e3);
                let little = if predicted < least { ", which is too little a gain" } else { "" };
                let instead = if self.keeps() { "" } else { &format!("{little}{instead}") };
                format!("tried, {ms:.4} ms where {rival} takes {rival_ms:.4} ms{instead}")
            }
            (Some(_), None, _) => format!("tried, but {rival} could not be"),
            (None, ..) => format!("it could not be tried{instead}"),
        }
    }
}

/// A few products of `predicted` beside as many of every one of `rivals`; `make` makes an order.
///
/// # Errors
/// Those of making orders, of plans and of products, but for what there is no memory for, or is not supported.
pub(super) fn tried<T: Scalar, I: Index, O: Index>(
    a: &DevicePattern<I, O>,
    problem: &Problem,
    predicted: Candidate,
    rivals: &[Candidate],
    make: impl Fn(Order) -> Result<Made>,
) -> Result<Tried> {
    let untried = |why| {
        let rivals = rivals.iter().copied().map(Ran::not).collect();
        Ok(Tried { predicted: Ran::not(predicted), rivals, untried: Some(why) })
    };
    if let Some(why) = untriable(problem) {
        return untried(why);
    }
    let mut trials = match Trials::<T, I, O>::new(a, problem) {
        Ok(trials) => trials,
        Err(Error::OutOfMemory { .. }) => return untried("there is no memory for another B and C"),
        Err(e) => return Err(e),
    };
    let mut run = |candidate: Candidate| {
        let order = match candidate.order.map(&make).transpose() {
            Ok(order) => order,
            Err(Error::OutOfMemory { .. }) => return Ok(Ran::not(candidate)),
            Err(e) => return Err(e),
        };
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
    Ok(Tried { predicted: run(predicted)?, rivals, untried: None })
}

/// Why a product is not one to choose by trial.
fn untriable(problem: &Problem) -> Option<&'static str> {
    if problem.deterministic {
        Some("a deterministic choice does not go by times")
    } else if problem.semiring != Semiring::PlusTimes {
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

    /// What is taken, and the words.
    fn found(
        predicted: (&str, Option<f64>),
        rivals: &[(&str, Option<f64>)],
        untried: Option<&'static str>,
    ) -> (String, String) {
        let rivals = rivals.iter().map(|(name, seconds)| ran(name, *seconds)).collect();
        let tried = Tried { predicted: ran(predicted.0, predicted.1), rivals, untried };
        let words = tried.words();
        (tried.taken().candidate.to_string(), words)
    }

    #[test]
    fn an_order_is_kept_where_it_is_faster() {
        let order = "segmented@min-hash";
        let beside = |ordered, seconds| found((order, ordered), &[("segmented", seconds)], None);
        let faster = "tried, 0.9000 ms where segmented takes 1.0000 ms";
        assert_eq!(beside(Some(0.9e-3), Some(1e-3)), (order.into(), faster.into()));
        let slower = "tried, 1.2000 ms where segmented takes 1.0000 ms, segmented is taken";
        assert_eq!(beside(Some(1.2e-3), Some(1e-3)), ("segmented".into(), slower.into()));
        // Level is not enough; nothing to compare with is.
        let level = "tried, 0.9950 ms where segmented takes 1.0000 ms, which is too little a gain, segmented is \
                     taken";
        assert_eq!(beside(Some(0.995e-3), Some(1e-3)), ("segmented".into(), level.into()));
        assert_eq!(beside(Some(0.985), Some(1.0)).0, order);
        assert_eq!(beside(Some(1.0), None).0, order);
        let refused = "it could not be tried, segmented is taken";
        assert_eq!(beside(None, Some(1.0)), ("segmented".into(), refused.into()));
        assert_eq!(found((order, None), &[], None).0, "auto");
        // All rivals count.
        let rivals =
            [("auto", Some(1e-3)), ("segmented@stored", Some(0.8e-3)), ("segmented", None)];
        let stored =
            "tried, 0.9000 ms where segmented@stored takes 0.8000 ms, segmented@stored is taken";
        let taken = ("segmented@stored".to_owned(), stored.to_owned());
        assert_eq!(found((order, Some(0.9e-3)), &rivals, None), taken);
    }

    #[test]
    fn what_costs_nothing_is_taken_untried_and_an_order_is_not() {
        let why = Some("trials are of plus-times");
        let untried = |name| found((name, None), &[("auto", None)], why);
        let words = "not tried, for trials are of plus-times";
        assert_eq!(untried("segmented#22"), ("segmented#22".into(), words.into()));
        let instead = format!("{words}, auto is taken");
        assert_eq!(untried("segmented@min-hash"), ("auto".into(), instead));
        assert_eq!(found(("segmented#22", Some(1.0)), &[("auto", Some(0.9))], None).0, "auto");
    }

    #[test]
    fn nothing_is_tried_where_times_may_not_choose_or_say_nothing() {
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let problem = Problem::spmm(&eye.view()).columns(128);
        assert_eq!(untriable(&problem), None);
        for other in [
            problem.clone().deterministic(true),
            problem.clone().semiring(Semiring::MinPlus),
            problem.clone().columns(0),
            Problem { nnz: 0, ..problem },
        ] {
            assert!(untriable(&other).is_some(), "{other}");
        }
    }
}
