//! Choosing by prediction: the model for this GPU, the features of the matrix.

use gustav_core::{Error, Index, Problem, Result, Scalar};
use gustav_cuda::spmm;
use gustav_plan::Features;
use gustav_plan::orders::WarpShape;
use gustav_plan::predictor::{Candidate, Kind, Model};

use super::DeviceCsr;

/// The candidate that the model for this GPU takes among those that compute `problem`, and the
/// reason.
///
/// # Errors
/// [`Error::Unsupported`] when there is no model for the GPU, or none of its candidates computes
/// `problem`; what reading the model and the pattern runs into.
pub(super) fn spmm<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    problem: &Problem,
) -> Result<(Candidate, String)> {
    let device = &a.device().profile().name;
    let model = Model::of_device(device, problem.columns)?;
    let features = Features::new(&a.download()?.view(), WarpShape::default())?;
    let scores = model.predict(&features).scores;
    let mut ranked: Vec<(f64, Candidate)> =
        scores.into_iter().zip(model.candidates.iter().copied()).collect();
    let (sign, unit) = match model.kind {
        Kind::Regression => (1.0, " ms"),
        Kind::Softmax => (-1.0, " of 1"),
    };
    ranked.sort_by(|a, b| (sign * a.0).total_cmp(&(sign * b.0)));
    let told: Vec<_> = ranked.iter().map(|(s, c)| format!("{c} {s:.4}{unit}")).collect();
    let computes = |c: &Candidate| {
        let entry = spmm::catalog().iter().find(|e| e.algorithm == c.algorithm);
        entry.is_some_and(|e| (e.supports)(problem).is_ok()) && config(c, problem).is_ok()
    };
    let chosen = ranked.iter().map(|(_, c)| *c).find(computes);
    let chosen = chosen.ok_or_else(|| Error::Unsupported {
        problem: problem.to_string(),
        backend: format!("the predictor for {device}"),
        reason: format!("it chooses among {} alone", told.join(", ")),
        nearest: "the chooser auto".into(),
    })?;
    let columns = model.columns;
    Ok((chosen, format!("predicted for {columns} columns: {}", told.join(", "))))
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
