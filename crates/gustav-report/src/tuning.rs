//! Evaluations of a trained predictor and its rivals, as a file.

use std::collections::BTreeMap;
use std::path::Path;

use gustav_core::{Error, Result};
use gustav_plan::predictor::{Candidate, Case, Evaluation, Selector, Table};
use serde::{Deserialize, Serialize};

// An order is slower if it takes more than this times the time of rows as stored.
const SLOWER: f64 = 1.02;

/// The evaluation of rivals on matrices of sources on which none was trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneReport {
    /// The device.
    pub device: String,
    /// Columns of B.
    pub columns: usize,
    /// Number of training matrices and of test matrices.
    pub matrices: (usize, usize),
    /// Sources of the test matrices.
    pub tested_sources: Vec<String>,
    /// Matrices left out because a candidate has no time on them.
    pub left_out: Vec<String>,
    /// Each rival: `regression`, `softmax`, `softmax of losses`, all with all features and with
    /// `matrix-only` ones, `tree`, and `first`, which always takes the first candidate. If costs of
    /// the candidates are simulated, networks and tree `with costs` as well, and `simulation`,
    /// which takes the candidate of the least cost.
    pub rivals: BTreeMap<String, Evaluation>,
    /// Errors of the predicted times of every regression, in percent of the measured time: every
    /// candidate of every test matrix.
    pub errors: BTreeMap<String, Vec<f64>>,
    /// On how many training matrices each candidate is the fastest.
    pub classes: Vec<usize>,
    /// Mean loss of regressions by their hidden layers, if requested.
    pub topologies: Vec<(String, f64)>,
    /// Mean loss of every network on a fifth of the training sources, when it was trained on the others.
    #[serde(default)]
    pub validation: BTreeMap<String, f64>,
    /// Losses of every rival in five-fold cross-validation over the sources, if requested.
    #[serde(default)]
    pub folds: BTreeMap<String, Folded>,
    /// The network with the least mean loss in the validation.
    pub taken: String,
}

/// Algorithms whose orders the predictor of the row orders study chooses between.
const OF_THE_STUDY: [&str; 2] = ["output-stationary", "dcsr"];

impl TuneReport {
    /// Names of the candidates.
    pub(crate) fn candidates(&self) -> &[String] {
        self.rivals.get(&self.taken).map_or(&[], |evaluation| &evaluation.candidates)
    }

    /// Whether the candidates are those of the row orders study: its kernel as stored, in an order, and
    /// with DCSR.
    pub(crate) fn is_of_the_study(&self) -> bool {
        let algorithm = |name: &String| name.split('@').next().unwrap_or_default().to_owned();
        let mut algorithms = self.candidates().iter().map(algorithm);
        !self.candidates().is_empty()
            && algorithms.all(|name| OF_THE_STUDY.contains(&name.as_str()))
    }
}

/// A rival on every matrix, trained on sources other than the matrix's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Folded {
    /// Matrices.
    pub cases: usize,
    /// Fraction of them for which the fastest was chosen.
    pub right: f64,
    /// Mean loss.
    pub mean_loss: f64,
    /// Largest loss.
    pub worst_loss: f64,
    /// Mean loss if the first candidate is taken wherever it is faster: a lower bound for any rule
    /// that falls back on it.
    #[serde(default)]
    pub guarded_mean_loss: f64,
    /// Largest loss in that case.
    #[serde(default)]
    pub guarded_worst_loss: f64,
    /// Matrices for which a row order was chosen.
    #[serde(default)]
    pub ordered: usize,
    /// Of these, the matrices on which the same candidate with rows as stored is faster by more
    /// than 2 %.
    #[serde(default)]
    pub ordered_slower: usize,
}

impl Folded {
    /// Evaluates `chooser` on the matrices of `test`.
    pub fn new(test: &Table, chooser: &impl Selector) -> Self {
        let found = Evaluation::new(test, chooser);
        let guarded = |case: &Case| {
            let chosen = chooser.choose(&case.inputs).min(case.ms.len() - 1);
            1.0 - case.ms[case.oracle()] / case.ms[chosen].min(case.ms[0])
        };
        let guarded: Vec<f64> = test.cases().iter().map(guarded).collect();
        // Times in the chosen order, and with rows as stored.
        let ordered = |case: &Case| {
            let chosen = chooser.choose(&case.inputs).min(case.ms.len() - 1);
            let candidate = test.candidates()[chosen];
            let stored = Candidate { order: None, ..candidate };
            let stored = test.candidates().iter().position(|c| *c == stored);
            candidate.order.map(|_| (case.ms[chosen], stored.map(|place| case.ms[place])))
        };
        let ordered: Vec<_> = test.cases().iter().filter_map(ordered).collect();
        let slower = |(chosen, stored): &&(f64, Option<f64>)| {
            stored.is_some_and(|stored| *chosen > SLOWER * stored)
        };
        Folded {
            cases: found.cases,
            right: found.right,
            mean_loss: found.mean_loss,
            worst_loss: found.worst_loss,
            guarded_mean_loss: guarded.iter().sum::<f64>() / guarded.len() as f64,
            guarded_worst_loss: guarded.into_iter().fold(0.0, f64::max),
            ordered: ordered.len(),
            ordered_slower: ordered.iter().filter(slower).count(),
        }
    }

    /// Combined with another fold.
    #[must_use]
    pub fn and(self, fold: &Folded) -> Self {
        let cases = self.cases + fold.cases;
        let mean = |so_far: f64, new: f64| {
            (so_far * self.cases as f64 + new * fold.cases as f64) / cases as f64
        };
        Folded {
            cases,
            right: mean(self.right, fold.right),
            mean_loss: mean(self.mean_loss, fold.mean_loss),
            worst_loss: self.worst_loss.max(fold.worst_loss),
            guarded_mean_loss: mean(self.guarded_mean_loss, fold.guarded_mean_loss),
            guarded_worst_loss: self.guarded_worst_loss.max(fold.guarded_worst_loss),
            ordered: self.ordered + fold.ordered,
            ordered_slower: self.ordered_slower + fold.ordered_slower,
        }
    }
}

/// The report in a file, as `gustav tune --json` prints it.
///
/// # Errors
/// [`Error::Io`] when it cannot be read, [`Error::Format`] when it is not such a report.
pub fn read_tuning(path: &Path) -> Result<TuneReport> {
    let io = |source| Error::Io { path: path.into(), action: "read", source };
    let text = std::fs::read_to_string(path).map_err(io)?;
    serde_json::from_str(&text).map_err(|e| Error::Format {
        path: Some(path.into()),
        format: "tuning report",
        reason: format!("{e}; gustav tune --json prints one"),
    })
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;
    use gustav_plan::Features;
    use gustav_plan::orders::WarpShape;
    use gustav_plan::predictor::Inputs;

    use super::*;

    struct Always(usize);

    impl Selector for Always {
        fn choose(&self, _: &Inputs) -> usize {
            self.0
        }
    }

    #[test]
    fn orders_are_compared_with_rows_as_stored() {
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let inputs = Features::new(&eye.pattern().view(), WarpShape::default()).expect("features");
        let names = ["auto", "segmented", "segmented@lpt", "segmented#4@lpt"];
        let candidates = names.map(|name| name.parse::<Candidate>().expect("a name"));
        let case = |ordered: f64| {
            let (matrix, ms) = (format!("{ordered}"), vec![0.5, 1.0, ordered, 9.0]);
            Case { source: matrix.clone(), matrix, inputs: inputs.into(), ms }
        };
        let cases = [0.9, 1.01, 1.03, 2.0].map(case).to_vec();
        let table = Table::new(candidates.to_vec(), cases).expect("a table");
        let found = [0, 1, 2, 3].map(|place| {
            let folded = Folded::new(&table, &Always(place));
            (folded.ordered, folded.ordered_slower)
        });
        // The last candidate has no counterpart with rows as stored.
        assert_eq!(found, [(0, 0), (0, 0), (4, 2), (4, 0)]);
    }
}
