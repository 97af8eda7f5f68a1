//! Choosing by prediction: the model for this GPU reads the features of the matrix. A row order is
//! used only after a trial.

use gustav_core::{DType, Error, Index, Problem, Result, Scalar};
use gustav_cuda::spmm;
use gustav_plan::orders::WarpShape;
use gustav_plan::predictor::{Candidate, Inputs, Kind, Model, Prediction};
use gustav_plan::{Algorithm, Chooser, DeviceProfile, Features, Order, RowOrder};

use super::trial::trial;
use super::{DevicePattern, order};
use crate::Device;
use crate::explain::{Considered, OrderFacts, Report};

// Expected calls from which a candidate without a row order is tried as well.
const TRIAL_CALLS: u64 = 1000;

/// The candidate that the model for this GPU chooses.
pub(super) struct Predicted {
    candidate: Candidate,
    pub config: Option<spmm::Config>,
    /// The order of its rows, where it has one.
    pub order: Option<(RowOrder, OrderFacts)>,
    pub report: Report,
}

impl Predicted {
    /// What names the algorithm in a plan's options.
    pub(super) fn chooser(&self) -> Chooser {
        self.candidate.chooser()
    }
}

/// The best candidate according to the model, among those that compute `problem` and whose row
/// order is repaid by the expected calls, with the model's scores of all.
///
/// A candidate with a row order (with many expected calls: any candidate but `auto`) is used only
/// if a trial finds it faster than `auto`, than rows as stored and, for a row order, than the best
/// candidate without one. Otherwise the fastest of these is used. If the caller has set a row order
/// on `on`, only candidates without one of their own are considered, and no trial is made.
///
/// # Errors
/// [`Error::Unsupported`] when there is no model for the GPU, or none of its candidates computes
/// `problem`; errors of reading the model and the pattern, of building the order and of the trial.
pub(super) fn spmm<T: Scalar, I: Index, O: Index>(
    on: &Device,
    a: &DevicePattern<I, O>,
    problem: &Problem,
) -> Result<Predicted> {
    let (device, ordered) = (&a.device().profile().name, on.order().is_some());
    let model = Model::of_device(device, problem.columns)?;
    let host = a.download()?;
    let inputs = match model.sees_costs() {
        true => Inputs::with_costs(&host.view(), &model.candidates)?,
        false => Features::new(&host.view(), WarpShape::default())?.into(),
    };
    let Prediction { scores, ms, .. } = model.predict(&inputs);
    let mut ranked: Vec<(f64, Candidate)> =
        scores.into_iter().zip(model.candidates.iter().copied()).collect();
    let regression = model.kind == Kind::Regression;
    let towards = |score: f64| if regression { score } else { -score };
    ranked.sort_by(|a, b| towards(a.0).total_cmp(&towards(b.0)));
    let able: Vec<(f64, Candidate)> =
        ranked.iter().filter(|(_, c)| computes(c, problem, ordered)).copied().collect();
    let profile = a.device().planner_profile();
    let Some(((score, chosen), declined)) = first_repaid(&able, problem, &profile, regression)
    else {
        return Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: format!("the predictor for {device}"),
            reason: "none of its candidates does".into(),
            nearest: "the chooser auto".into(),
        });
    };
    let columns = model.columns;
    let mut reason = match model.kind {
        Kind::Regression => format!("predicted for {columns} columns: {chosen}, {score:.4} ms"),
        Kind::Softmax => {
            let count = model.candidates.len();
            format!(
                "predicted for {columns} columns: {chosen}, a share of {score:.2} among {count} candidates"
            )
        }
    };
    if let Some((candidate, calls)) = declined {
        reason += &format!("; {candidate} declined: about {calls:.0} calls would repay its order");
    }
    // Times are those of what was measured.
    let ms = ms.filter(|_| problem.columns == columns && problem.dtype == DType::F32);
    let index = |candidate: &Candidate| model.candidates.iter().position(|c| c == candidate);
    let considered = |(_, candidate): &(f64, Candidate)| Considered {
        candidate: candidate.to_string(),
        predicted_ms: ms.as_ref().zip(index(candidate)).map(|(ms, i)| ms[i]),
        measured_ms: None,
    };
    let mut considered: Vec<Considered> = ranked.iter().map(considered).collect();
    let costs = chosen.order.is_some();
    let (candidate, order) = match chosen {
        Candidate::AUTO => (chosen, None),
        _ if !costs && (ordered || problem.calls < TRIAL_CALLS) => (chosen, None),
        _ => {
            let next = able.iter().map(|(_, c)| *c).find(|c| c.order.is_none());
            let next = next.filter(|_| costs);
            let mut alternatives: Vec<_> = next.into_iter().chain([Candidate::AUTO]).collect();
            alternatives.dedup();
            let stored = Candidate::new(Algorithm::Segmented, Some(Order::Stored));
            if chosen != stored && computes(&stored, problem, ordered) {
                alternatives.push(stored);
            }
            let make = |order| order::made(on, order, &host.view(), problem.dtype);
            let trial = trial::<T, I, O>(a, problem, chosen, &alternatives, make)?;
            for measurement in trial.alternatives.iter().chain([&trial.predicted]) {
                let (name, measured_ms) =
                    (measurement.candidate.to_string(), measurement.seconds.map(|s| s * 1e3));
                match considered.iter_mut().find(|c| c.candidate == name) {
                    Some(one) => one.measured_ms = measured_ms,
                    None => considered.push(Considered {
                        candidate: name,
                        predicted_ms: None,
                        measured_ms,
                    }),
                }
            }
            reason += &format!("; {}", trial.explanation());
            let winner = trial.winner();
            (winner.candidate, winner.order)
        }
    };
    let config = config(&candidate, problem)?;
    Ok(Predicted { candidate, config, order, report: Report { reason, considered } })
}

/// Whether a candidate computes `problem`, with the row order of the caller if it has `ordered`
/// them.
fn computes(candidate: &Candidate, problem: &Problem, ordered: bool) -> bool {
    let entry = |algorithm| spmm::catalog().iter().find(|e| e.algorithm == algorithm);
    let able = |algorithm| {
        entry(algorithm).is_some_and(|e| (e.supports)(problem).is_ok())
            && (!ordered || spmm::takes_orders(algorithm))
    };
    let algorithm = candidate.algorithm.is_none_or(able);
    // Orders are made of the rows of A as stored.
    let excluded = candidate.order.is_some() && (ordered || problem.transpose_a);
    algorithm && !excluded && config(candidate, problem).is_ok()
}

/// A candidate with its score, and a candidate that was declined with the calls that would repay
/// its order.
type Repaid = ((f64, Candidate), Option<(Candidate, f64)>);

/// The first of `able` whose row order the calls of `problem` repay, or that has none; and the
/// first that was declined for its order, with the calls that would repay it. Scores of a
/// regression are milliseconds.
fn first_repaid(
    able: &[(f64, Candidate)],
    problem: &Problem,
    profile: &DeviceProfile,
    regression: bool,
) -> Option<Repaid> {
    let stored = able.iter().find(|(_, c)| c.order.is_none());
    let repaid = |score: f64, candidate: &Candidate| {
        let saved_ms = stored.filter(|_| regression).map(|(stored, _)| stored - score);
        let calls = |order: Order| order.repaying_calls(problem, profile, saved_ms);
        candidate.order.map_or(0.0, calls)
    };
    let mut declined = None;
    for (score, candidate) in able {
        let calls = repaid(*score, candidate);
        if calls <= problem.calls as f64 {
            return Some(((*score, *candidate), declined));
        }
        declined = declined.or(Some((*candidate, calls)));
    }
    // All of them have an order.
    able.first().map(|first| (*first, None))
}

/// The configuration of a candidate for `problem`; `None` leaves it to the algorithm's own rules.
///
/// # Errors
/// [`Error::Argument`] when there are not so many.
pub(super) fn config(candidate: &Candidate, problem: &Problem) -> Result<Option<spmm::Config>> {
    let (Some(algorithm), Some(index)) = (candidate.algorithm, candidate.config) else {
        return Ok(None);
    };
    let configs = spmm::Config::candidates(algorithm, problem);
    let count = configs.len();
    let found = configs.into_iter().nth(index).ok_or_else(|| Error::Argument {
        name: "configuration",
        found: candidate.to_string(),
        expected: format!("a place below {count}, the number that autotuning tries"),
    })?;
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    fn chosen(scores: &[(f64, &str)], calls: u64, regression: bool) -> (String, Option<String>) {
        let able: Vec<_> = scores.iter().map(|(s, c)| (*s, c.parse().expect("a name"))).collect();
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let problem = Problem::spmm(&eye.view()).columns(128).calls(calls);
        let problem = Problem { rows: 100_000, nnz: 1_000_000, ..problem };
        let (l2_bytes, llc_bytes) = (60 << 20, 60 << 20);
        let name = "a GPU".into();
        let profile = DeviceProfile { name, units: 132, lanes: 32, l2_bytes, llc_bytes };
        let ((_, chosen), declined) =
            first_repaid(&able, &problem, &profile, regression).expect("one");
        (chosen.to_string(), declined.map(|(c, _)| c.to_string()))
    }

    #[test]
    fn an_order_of_the_caller_leaves_what_takes_rows_in_it() {
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let problem = Problem::spmm(&eye.view()).columns(128);
        let able = |name: &str| {
            let candidate = name.parse().expect("a name");
            [false, true].map(|ordered| computes(&candidate, &problem, ordered))
        };
        for name in ["auto", "segmented", "segmented#4"] {
            assert_eq!(able(name), [true, true], "{name}");
        }
        for name in ["row-block", "even-shares", "segmented@min-hash"] {
            assert_eq!(able(name), [true, false], "{name}");
        }
        let problem = problem.clone().transpose_a(true);
        let ordered = "segmented@min-hash".parse().expect("a name");
        assert!(!computes(&ordered, &problem, false), "columns of A in an order");
        assert_eq!(able("segmented#4000"), [false, false]);
    }

    #[test]
    fn orders_are_declined_where_calls_do_not_repay_them() {
        let likely = [(0.6, "segmented@min-hash"), (0.3, "row-block"), (0.1, "segmented")];
        let order = || "segmented@min-hash".to_owned();
        assert_eq!(chosen(&likely, 1, false), ("row-block".into(), Some(order())));
        assert_eq!(chosen(&likely, 100_000_000, false), (order(), None));
        let by_rules = [(0.6, "segmented@min-hash"), (0.4, "auto")];
        assert_eq!(chosen(&by_rules, 1, false), ("auto".into(), Some(order())));
        // A regression knows what is saved: 8.8 ms of making, 0.1 ms a call.
        let times = [(0.1, "segmented@min-hash"), (0.2, "segmented")];
        assert_eq!(chosen(&times, 80, true), ("segmented".into(), Some(order())));
        assert_eq!(chosen(&times, 100, true), (order(), None));
        assert_eq!(chosen(&likely[..1], 1, false), (order(), None));
    }
}
