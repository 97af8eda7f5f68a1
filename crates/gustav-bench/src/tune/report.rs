//! How good a trained predictor and its rivals are, as a file says it.

use std::collections::BTreeMap;
use std::path::Path;

use gustav_core::{Error, Result};
use gustav_plan::predictor::Evaluation;
use serde::{Deserialize, Serialize};

/// How good the rivals are on matrices of sources that none was trained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneReport {
    /// The device that was measured.
    pub device: String,
    /// Columns of B.
    pub columns: usize,
    /// Matrices that were trained on, and tested on.
    pub matrices: (usize, usize),
    /// Sources of the matrices that were tested on.
    pub tested_sources: Vec<String>,
    /// Matrices left out, for want of a time of every candidate.
    pub left_out: Vec<String>,
    /// Each rival: `regression`, `softmax`, `softmax of losses`, all with all features and with
    /// `matrix-only` ones, `tree`, and `first`, which always takes the first candidate. Where costs of the candidates
    /// are simulated, networks and tree `with costs` as well, and `simulation`, which takes the
    /// candidate of the least cost.
    pub rivals: BTreeMap<String, Evaluation>,
    /// Of every regression the errors of its times on the matrices that it was tested on, in
    /// percent of the measured time: every candidate of every matrix.
    pub errors: BTreeMap<String, Vec<f64>>,
    /// How often each candidate is the fastest among the matrices that were trained on.
    pub classes: Vec<usize>,
    /// Mean loss of regressions by their hidden layers, when they were asked for.
    pub topologies: Vec<(String, f64)>,
    /// What every rival loses over five folds of the sources, when that was asked for.
    #[serde(default)]
    pub folds: BTreeMap<String, Folded>,
    /// The network with the least mean loss of those that see most: over the folds, else on the matrices
    /// that were tested on.
    pub taken: String,
}

/// A rival on every matrix, trained on sources other than the matrix's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Folded {
    /// Matrices.
    pub cases: usize,
    /// Share of them for which the fastest was chosen.
    pub right: f64,
    /// Mean loss.
    pub mean_loss: f64,
    /// Largest loss.
    pub worst_loss: f64,
    /// Mean loss, where the first candidate is taken instead wherever that is faster: no guard that
    /// falls back on it, whatever it goes by, loses less.
    #[serde(default)]
    pub guarded_mean_loss: f64,
    /// Largest loss of the same.
    #[serde(default)]
    pub guarded_worst_loss: f64,
    /// Matrices for which a row order was chosen.
    #[serde(default)]
    pub ordered: usize,
    /// Those of them on which the same candidate with rows as stored is faster by more than 2 %.
    #[serde(default)]
    pub ordered_slower: usize,
}

/// The report in a file, as `gustav tune --json` prints it.
///
/// # Errors
/// [`Error::Io`] when it cannot be read, [`Error::Format`] when it is no such report.
pub fn read_tuning(path: &Path) -> Result<TuneReport> {
    let io = |source| Error::Io { path: path.into(), action: "read", source };
    let text = std::fs::read_to_string(path).map_err(io)?;
    serde_json::from_str(&text).map_err(|e| Error::Format {
        path: Some(path.into()),
        format: "tuning report",
        reason: format!("{e}; gustav tune --json prints one"),
    })
}
