//! Choosing by prediction: the model for this GPU, the features of the matrix.

use gustav_core::{Error, Index, Problem, Result, Scalar};
use gustav_cuda::spmm;
use gustav_plan::Features;
use gustav_plan::orders::WarpShape;
use gustav_plan::predictor::{Candidate, Inputs, Kind, Model};

use super::DeviceCsr;
use crate::explain::{Considered, Told};

/// The candidate that the model for this GPU takes among those that compute `problem`, and what it
/// says of all.
///
/// # Errors
/// [`Error::Unsupported`] when there is no model for the GPU, or none of its candidates computes
/// `problem`; what reading the model and the pattern runs into.
pub(super) fn spmm<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    problem: &Problem,
) -> Result<(Candidate, Told)> {
    let device = &a.device().profile().name;
    let model = Model::of_device(device, problem.columns)?;
    let host = a.download()?;
    let inputs = match model.sees_costs() {
        true => Inputs::with_costs(&host.view(), &model.candidates)?,
        false => Features::new(&host.view(), WarpShape::default())?.into(),
    };
    let scores = model.predict(&inputs).scores;
    let mut ranked: Vec<(f64, Candidate)> =
        scores.into_iter().zip(model.candidates.iter().copied()).collect();
    let regression = model.kind == Kind::Regression;
    let towards = |score: f64| if regression { score } else { -score };
    ranked.sort_by(|a, b| towards(a.0).total_cmp(&towards(b.0)));
    let computes = |c: &Candidate| {
        let entry = spmm::catalog().iter().find(|e| e.algorithm == c.algorithm);
        entry.is_some_and(|e| (e.supports)(problem).is_ok()) && config(c, problem).is_ok()
    };
    let chosen = ranked.iter().map(|(_, c)| *c).find(computes);
    let chosen = chosen.ok_or_else(|| Error::Unsupported {
        problem: problem.to_string(),
        backend: format!("the predictor for {device}"),
        reason: "none of its candidates does".into(),
        nearest: "the chooser auto".into(),
    })?;
    let columns = model.columns;
    let score = ranked.iter().find(|(_, c)| *c == chosen).map_or(0.0, |(score, _)| *score);
    let reason = match model.kind {
        Kind::Regression => format!("predicted for {columns} columns: {chosen}, {score:.4} ms"),
        Kind::Softmax => {
            format!(
                "predicted for {columns} columns: {chosen}, the fastest with probability {score:.2}"
            )
        }
    };
    let considered = |(score, candidate): &(f64, Candidate)| Considered {
        candidate: candidate.to_string(),
        predicted_ms: regression.then_some(*score),
        measured_ms: None,
    };
    Ok((chosen, Told { reason, considered: ranked.iter().map(considered).collect() }))
}

/// The configuration of a candidate for `problem`; `None` leaves it to the algorithm's own rules.
///
/// # Errors
/// [`Error::Argument`] when there are not so many.
pub(super) fn config(candidate: &Candidate, problem: &Problem) -> Result<Option<spmm::Config>> {
    let Some(place) = candidate.config else { return Ok(None) };
    let known = spmm::Config::candidates(candidate.algorithm, problem);
    let count = known.len();
    let found = known.into_iter().nth(place).ok_or_else(|| Error::Argument {
        name: "configuration",
        found: candidate.to_string(),
        expected: format!("a place below {count}, the number that autotuning tries"),
    })?;
    Ok(Some(found))
}
