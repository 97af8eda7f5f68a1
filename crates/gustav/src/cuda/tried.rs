//! A row order that was predicted, tried beside what is done without one.

use gustav_core::{Error, Index, Problem, Result, Scalar, SemiringKind};
use gustav_cuda::spmm;
use gustav_plan::RowOrder;
use gustav_plan::predictor::Candidate;

use super::tune::Trials;
use super::{DeviceCsr, predict};
use crate::explain::OrderFacts;

/// What became of a row order that was predicted.
#[derive(Default)]
pub(super) struct Tried {
    /// The order, where it was made.
    pub order: Option<(RowOrder, OrderFacts)>,
    /// Seconds in it; `None` where that could not be run.
    pub ordered: Option<f64>,
    /// Those without an order, and their seconds.
    pub stored: Vec<(Candidate, Option<f64>)>,
    /// Why nothing was run.
    untried: Option<&'static str>,
}

impl Tried {
    /// The fastest without an order, the first where none ran.
    pub(super) fn fastest(&self) -> (Candidate, Option<f64>) {
        let seconds = |of: &(Candidate, Option<f64>)| of.1.unwrap_or(f64::INFINITY);
        let fastest = self.stored.iter().min_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        fastest.copied().unwrap_or((Candidate::AUTO, None))
    }

    /// Whether the order is no slower than all of them, or the only one that runs.
    pub(super) fn keeps(&self) -> bool {
        match (self.ordered, self.fastest().1) {
            (Some(ordered), Some(stored)) => ordered <= stored,
            (ordered, _) => ordered.is_some(),
        }
    }

    /// The same in words.
    pub(super) fn words(&self) -> String {
        let (stored, seconds) = self.fastest();
        match (self.ordered, seconds, self.untried) {
            (_, _, Some(why)) => format!("not tried, for {why}: {stored} is taken"),
            (Some(ordered), Some(seconds), _) => {
                let [ms, stored_ms] = [ordered, seconds].map(|seconds| seconds * 1e3);
                let taken = if self.keeps() { "" } else { ", which is taken" };
                format!("tried, {ms:.4} ms where {stored} takes {stored_ms:.4} ms{taken}")
            }
            (Some(_), None, _) => format!("tried, but {stored} could not be"),
            (None, ..) => format!("it could not be tried, {stored} is taken"),
        }
    }
}

/// A few products in the row order that `order` makes, beside as many of every one that is `stored`, without an order.
///
/// # Errors
/// Those of making the order, of plans and of products, but for what a trial passes over.
pub(super) fn tried<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    problem: &Problem,
    (ordered, order): (&Candidate, impl FnOnce() -> Result<(RowOrder, OrderFacts)>),
    stored: &[Candidate],
) -> Result<Tried> {
    let none = |stored: &Candidate| (*stored, None);
    let untried = |why| {
        let stored = stored.iter().map(none).collect();
        Ok(Tried { untried: Some(why), stored, ..Tried::default() })
    };
    if let Some(why) = untriable(problem) {
        return untried(why);
    }
    let mut trials = match Trials::new(a, problem) {
        Ok(trials) => trials,
        Err(Error::OutOfMemory { .. }) => return untried("there is no memory for another B and C"),
        Err(e) => return Err(e),
    };
    let mut seconds = |candidate: &Candidate, order| {
        let (chooser, config) = (candidate.chooser(), predict::config(candidate, problem)?);
        match trials.seconds(&spmm::Options { chooser, config, order }) {
            Ok(seconds) => Ok(Some(seconds)),
            Err(Error::Unsupported { .. } | Error::OutOfMemory { .. }) => Ok(None),
            Err(e) => Err(e),
        }
    };
    let stored = stored.iter().map(|one| Ok((*one, seconds(one, None)?))).collect::<Result<_>>()?;
    let order = order()?;
    let ordered = seconds(ordered, Some(&order.0))?;
    Ok(Tried { order: Some(order), ordered, stored, untried: None })
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

    #[test]
    fn an_order_is_kept_where_it_is_no_slower() {
        let stored: Candidate = "segmented".parse().expect("a name");
        let found = |ordered, seconds| {
            let tried = Tried { ordered, stored: vec![(stored, seconds)], ..Tried::default() };
            (tried.keeps(), tried.words())
        };
        let faster = "tried, 0.9000 ms where segmented takes 1.0000 ms";
        assert_eq!(found(Some(0.9e-3), Some(1e-3)), (true, faster.into()));
        let slower = "tried, 1.2000 ms where segmented takes 1.0000 ms, which is taken";
        assert_eq!(found(Some(1.2e-3), Some(1e-3)), (false, slower.into()));
        assert!(found(Some(0.0), Some(0.0)).0 && found(Some(1.0), None).0);
        assert!(!found(None, Some(1.0)).0 && !found(None, None).0);
        // All without an order count.
        let stored = vec![(stored, Some(1e-3)), (Candidate::AUTO, Some(0.8e-3))];
        let tried = Tried { ordered: Some(0.9e-3), stored, ..Tried::default() };
        let rules = "tried, 0.9000 ms where auto takes 0.8000 ms, which is taken";
        assert_eq!((tried.keeps(), tried.words()), (false, rules.into()));
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
