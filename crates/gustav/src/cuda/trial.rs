//! A trial of the predicted candidate against what the rules choose and against rows as stored.

use gustav_core::{Error, Index, Problem, Result, Scalar, Semiring};
use gustav_cuda::spmm;
use gustav_plan::predictor::Candidate;
use gustav_plan::{Order, RowOrder};

use super::tune::Trials;
use super::{DevicePattern, predict};
use crate::explain::OrderFacts;

// Largest time of the prediction as a part of the best alternative's: two measurements of one plan
// differ by as much.
const MOST_OF_ALTERNATIVE: f64 = 0.99;

/// A row order, and what building it took.
type BuiltOrder = (RowOrder, OrderFacts);

/// The measured time of one candidate.
pub(super) struct Measurement {
    pub candidate: Candidate,
    /// Its row order, if one was built for it.
    pub order: Option<BuiltOrder>,
    /// Seconds of one product; `None` if it was not measured.
    pub seconds: Option<f64>,
}

impl Measurement {
    fn unmeasured(candidate: Candidate) -> Self {
        Measurement { candidate, order: None, seconds: None }
    }
}

/// The measurements of a predicted candidate and of its alternatives.
pub(super) struct Trial {
    pub predicted: Measurement,
    /// Candidates that need no order to be built.
    pub alternatives: Vec<Measurement>,
    /// Why nothing was measured, if so.
    skipped: Option<&'static str>,
}

impl Trial {
    /// Index of the fastest alternative; the first if none was measured.
    fn fastest(&self) -> Option<usize> {
        let seconds = |i: &usize| self.alternatives[*i].seconds.unwrap_or(f64::INFINITY);
        (0..self.alternatives.len()).min_by(|a, b| seconds(a).total_cmp(&seconds(b)))
    }

    /// Whether the prediction is used: it is faster than every alternative, or the only one that
    /// was measured. If none was, it is used if it has no row order.
    fn is_kept(&self) -> bool {
        match (self.predicted.seconds, self.fastest().and_then(|i| self.alternatives[i].seconds)) {
            (Some(predicted), Some(least)) => predicted <= MOST_OF_ALTERNATIVE * least,
            (None, None) => self.predicted.candidate.order.is_none(),
            (predicted, _) => predicted.is_some(),
        }
    }

    /// The candidate to use.
    pub(super) fn winner(mut self) -> Measurement {
        match self.fastest() {
            Some(alternative) if !self.is_kept() => self.alternatives.swap_remove(alternative),
            None if !self.is_kept() => Measurement::unmeasured(Candidate::AUTO),
            _ => self.predicted,
        }
    }

    /// The outcome in one sentence.
    pub(super) fn explanation(&self) -> String {
        let fastest = self.fastest().map(|i| &self.alternatives[i]);
        let alternative = fastest.map_or(Candidate::AUTO, |alternative| alternative.candidate);
        let instead =
            if self.is_kept() { String::new() } else { format!(", {alternative} is taken") };
        match (
            self.predicted.seconds,
            fastest.and_then(|alternative| alternative.seconds),
            self.skipped,
        ) {
            (_, _, Some(why)) => format!("not tried, for {why}{instead}"),
            (Some(predicted), Some(least), _) => {
                let [ms, alternative_ms] = [predicted, least].map(|seconds| seconds * 1e3);
                let too_small = if predicted < least { ", which is too little a gain" } else { "" };
                let instead = if self.is_kept() { "" } else { &format!("{too_small}{instead}") };
                format!(
                    "tried, {ms:.4} ms where {alternative} takes {alternative_ms:.4} ms{instead}"
                )
            }
            (Some(_), None, _) => format!("tried, but {alternative} could not be"),
            (None, ..) => format!("it could not be tried{instead}"),
        }
    }
}

/// Measures `predicted` and every one of `alternatives`; `make` builds a row order.
///
/// # Errors
/// Those of building orders, of plans and of products. A candidate that is unsupported or runs out
/// of memory is left unmeasured.
pub(super) fn trial<T: Scalar, I: Index, O: Index>(
    a: &DevicePattern<I, O>,
    problem: &Problem,
    predicted: Candidate,
    alternatives: &[Candidate],
    make: impl Fn(Order) -> Result<BuiltOrder>,
) -> Result<Trial> {
    let skipped = |why| {
        let alternatives = alternatives.iter().copied().map(Measurement::unmeasured).collect();
        Ok(Trial {
            predicted: Measurement::unmeasured(predicted),
            alternatives,
            skipped: Some(why),
        })
    };
    if let Some(why) = reason_to_skip(problem) {
        return skipped(why);
    }
    let mut trials = match Trials::<T, I, O>::new(a, problem) {
        Ok(trials) => trials,
        Err(Error::OutOfMemory { .. }) => return skipped("there is no memory for another B and C"),
        Err(e) => return Err(e),
    };
    let mut run = |candidate: Candidate| {
        let order = match candidate.order.map(&make).transpose() {
            Ok(order) => order,
            Err(Error::OutOfMemory { .. }) => return Ok(Measurement::unmeasured(candidate)),
            Err(e) => return Err(e),
        };
        let (chooser, config) = (candidate.chooser(), predict::config(&candidate, problem)?);
        let rows = order.as_ref().map(|(order, _)| order);
        let seconds = match trials.seconds(&spmm::Options { chooser, config, order: rows }) {
            Ok(seconds) => Some(seconds),
            Err(Error::Unsupported { .. } | Error::OutOfMemory { .. }) => None,
            Err(e) => return Err(e),
        };
        Ok(Measurement { candidate, order, seconds })
    };
    let alternatives =
        alternatives.iter().map(|alternative| run(*alternative)).collect::<Result<_>>()?;
    Ok(Trial { predicted: run(predicted)?, alternatives, skipped: None })
}

/// Why no trial is made for this problem, if so.
fn reason_to_skip(problem: &Problem) -> Option<&'static str> {
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

    fn measurement(name: &str, seconds: Option<f64>) -> Measurement {
        Measurement { seconds, ..Measurement::unmeasured(name.parse().expect("a name")) }
    }

    /// The winner's name, and the explanation.
    fn found(
        predicted: (&str, Option<f64>),
        alternatives: &[(&str, Option<f64>)],
        skipped: Option<&'static str>,
    ) -> (String, String) {
        let alternatives =
            alternatives.iter().map(|(name, seconds)| measurement(name, *seconds)).collect();
        let trial =
            Trial { predicted: measurement(predicted.0, predicted.1), alternatives, skipped };
        let explanation = trial.explanation();
        (trial.winner().candidate.to_string(), explanation)
    }

    #[test]
    fn an_order_is_kept_where_it_is_faster() {
        let order = "segmented@min-hash";
        let beside = |ordered, seconds| found((order, ordered), &[("segmented", seconds)], None);
        let faster = "tried, 0.9000 ms where segmented takes 1.0000 ms";
        assert_eq!(beside(Some(0.9e-3), Some(1e-3)), (order.into(), faster.into()));
        let slower = "tried, 1.2000 ms where segmented takes 1.0000 ms, segmented is taken";
        assert_eq!(beside(Some(1.2e-3), Some(1e-3)), ("segmented".into(), slower.into()));
        // An equal time is not enough; nothing to compare with is.
        let level = "tried, 0.9950 ms where segmented takes 1.0000 ms, which is too little a gain, segmented is \
                     taken";
        assert_eq!(beside(Some(0.995e-3), Some(1e-3)), ("segmented".into(), level.into()));
        assert_eq!(beside(Some(0.985), Some(1.0)).0, order);
        assert_eq!(beside(Some(1.0), None).0, order);
        let refused = "it could not be tried, segmented is taken";
        assert_eq!(beside(None, Some(1.0)), ("segmented".into(), refused.into()));
        assert_eq!(found((order, None), &[], None).0, "auto");
        // All alternatives count.
        let alternatives =
            [("auto", Some(1e-3)), ("segmented@stored", Some(0.8e-3)), ("segmented", None)];
        let stored =
            "tried, 0.9000 ms where segmented@stored takes 0.8000 ms, segmented@stored is taken";
        let winner = ("segmented@stored".to_owned(), stored.to_owned());
        assert_eq!(found((order, Some(0.9e-3)), &alternatives, None), winner);
    }

    #[test]
    fn what_costs_nothing_is_taken_untried_and_an_order_is_not() {
        let why = Some("trials are of plus-times");
        let skipped = |name| found((name, None), &[("auto", None)], why);
        let explanation = "not tried, for trials are of plus-times";
        assert_eq!(skipped("segmented#22"), ("segmented#22".into(), explanation.into()));
        let instead = format!("{explanation}, auto is taken");
        assert_eq!(skipped("segmented@min-hash"), ("auto".into(), instead));
        assert_eq!(found(("segmented#22", Some(1.0)), &[("auto", Some(0.9))], None).0, "auto");
    }

    #[test]
    fn nothing_is_tried_where_times_may_not_choose_or_say_nothing() {
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let problem = Problem::spmm(&eye.view()).columns(128);
        assert_eq!(reason_to_skip(&problem), None);
        for other in [
            problem.clone().deterministic(true),
            problem.clone().semiring(Semiring::MinPlus),
            problem.clone().columns(0),
            Problem { nnz: 0, ..problem },
        ] {
            assert!(reason_to_skip(&other).is_some(), "{other}");
        }
    }
}
