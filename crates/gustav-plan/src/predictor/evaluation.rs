//! How good choices are, in the measures of the row orders study (§V-D).

use std::collections::BTreeMap;
use std::fmt::Display;

use super::{Selector, Table};

// Edges of the histogram of losses, as fractions of the oracle's time.
const EDGES: [f64; 6] = [0.0, 0.02, 0.04, 0.1, 0.25, 0.5];

/// Choices compared with the oracle, which always takes the fastest candidate. Gains are relative
/// to the first candidate. Loss is 1 − the oracle's time ÷ the chosen time.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Evaluation {
    /// Matrices.
    pub cases: usize,
    /// Names of the candidates.
    pub candidates: Vec<String>,
    /// Fraction of the matrices for which the fastest was chosen.
    pub right: f64,
    /// The same for always choosing the candidate that is the fastest most often.
    pub commonest: f64,
    /// Mean of the oracle's time over the chosen time.
    pub oracle_share: f64,
    /// Mean of the first candidate's time over the chosen time.
    pub gain: f64,
    /// The same for the oracle.
    pub oracle_gain: f64,
    /// (gain − 1) ÷ (oracle gain − 1); 1 where there is nothing to gain.
    pub gain_ratio: f64,
    /// Mean loss.
    pub mean_loss: f64,
    /// Largest loss.
    pub worst_loss: f64,
    /// Number of matrices, by fastest (rows) and chosen candidate (columns).
    pub confusion: Vec<Vec<usize>>,
    /// Mean losses of the same matrices, 0 where there are none.
    pub confusion_loss: Vec<Vec<f64>>,
    /// Number of matrices with no loss, and with a loss of at most 2, 4, 10, 25, 50 % and more.
    pub losses: [usize; 7],
    /// By source: number of matrices, and the fraction for which the fastest was chosen.
    pub by_source: BTreeMap<String, (usize, f64)>,
}

impl Evaluation {
    /// Evaluates the choices of `chooser` on `table`.
    pub fn new(table: &Table, chooser: &impl Selector) -> Self {
        let (count, n) = (table.cases().len() as f64, table.candidates().len());
        let mut confusion = vec![vec![0; n]; n];
        let mut confusion_loss = vec![vec![0.0; n]; n];
        let mut losses = [0; 7];
        let mut by_source = BTreeMap::<String, (usize, f64)>::new();
        let (mut right, mut share, mut gain, mut oracle_gain) = (0.0, 0.0, 0.0, 0.0);
        let mut worst_loss = 0f64;
        for case in table.cases() {
            let (best, chosen) = (case.oracle(), chooser.choose(&case.inputs).min(n - 1));
            let hit = f64::from(u8::from(best == chosen));
            let oracle_share = case.ms[best] / case.ms[chosen];
            let loss = 1.0 - oracle_share;
            right += hit;
            share += oracle_share;
            gain += case.ms[0] / case.ms[chosen];
            oracle_gain += case.ms[0] / case.ms[best];
            worst_loss = worst_loss.max(loss);
            confusion[best][chosen] += 1;
            confusion_loss[best][chosen] += loss;
            losses[EDGES.iter().filter(|edge| loss > **edge).count()] += 1;
            let source = by_source.entry(case.source.clone()).or_default();
            *source = (source.0 + 1, source.1 + hit);
        }
        for (loss, count) in confusion_loss.iter_mut().flatten().zip(confusion.iter().flatten()) {
            *loss /= f64::from((*count).max(1) as u32);
        }
        by_source.values_mut().for_each(|(count, right)| *right /= *count as f64);
        let (gain, oracle_gain) = (gain / count, oracle_gain / count);
        let nothing = oracle_gain - 1.0 < 1e-9;
        Evaluation {
            cases: table.cases().len(),
            candidates: table.candidates().iter().map(ToString::to_string).collect(),
            right: right / count,
            commonest: table.wins().into_iter().max().unwrap_or(0) as f64 / count,
            oracle_share: share / count,
            gain,
            oracle_gain,
            gain_ratio: if nothing { 1.0 } else { (gain - 1.0) / (oracle_gain - 1.0) },
            mean_loss: 1.0 - share / count,
            worst_loss,
            confusion,
            confusion_loss,
            losses,
            by_source,
        }
    }
}

impl Display for Evaluation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = |x: f64| 100.0 * x;
        writeln!(
            f,
            "right {:.1}% of {} (always the commonest: {:.1}%), oracle's time over chosen {:.3}",
            percent(self.right),
            self.cases,
            percent(self.commonest),
            self.oracle_share,
        )?;
        writeln!(
            f,
            "gain {:.3} of the oracle's {:.3} (ratio {:.2}), loss {:.1}% in the mean, {:.1}% at worst",
            self.gain,
            self.oracle_gain,
            self.gain_ratio,
            percent(self.mean_loss),
            percent(self.worst_loss),
        )?;
        for (k, name) in self.candidates.iter().enumerate() {
            write!(f, "{name:<36}")?;
            for (count, loss) in self.confusion[k].iter().zip(&self.confusion_loss[k]) {
                write!(f, "{count:>6} ({:>4.1}%)", percent(*loss))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
