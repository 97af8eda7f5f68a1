//! The training data as tensors: inputs, targets and weights.

use candle_core::{D, Device, Result, Tensor};
use candle_nn::ops::softmax;
use gustav_plan::predictor::{Case, Kind, Standardisation, Table, Training};

/// A row for each matrix.
pub(super) struct TrainingData {
    /// Standardised inputs, a column for each.
    pub(super) inputs: Tensor,
    /// Natural logarithms of milliseconds, or probabilities of a softmax: a column for each
    /// candidate.
    pub(super) targets: Tensor,
    /// Weight of each matrix, a column.
    pub(super) weights: Tensor,
}

impl TrainingData {
    /// All matrices of `table`.
    pub(super) fn new(
        table: &Table,
        training: &Training,
        standardisation: &Standardisation,
    ) -> Result<Self> {
        let wins = table.wins();
        let classes = wins.iter().filter(|w| **w > 0).count() as f64;
        let even = table.cases().len() as f64 / classes;
        let weight = |case: &Case| match training.weighted {
            true => even / wins[case.oracle()] as f64,
            false => 1.0,
        };
        let target = |case: &Case| match training.kind {
            Kind::Regression => case.ms.iter().map(|ms| ms.ln()).collect(),
            Kind::Softmax => target_logits(&case.ms, case.oracle(), training.tolerance),
        };
        let rows = |row: &dyn Fn(&Case) -> Vec<f64>| {
            let rows: Vec<Vec<f64>> = table.cases().iter().map(row).collect();
            let shape = (rows.len(), rows[0].len());
            Tensor::from_vec(rows.concat(), shape, &Device::Cpu)
        };
        let targets = rows(&target)?;
        Ok(TrainingData {
            inputs: rows(&|case| standardisation.apply(&case.inputs))?,
            targets: match training.kind {
                Kind::Regression => targets,
                Kind::Softmax => softmax(&targets, D::Minus1)?,
            },
            weights: rows(&|case| vec![weight(case)])?,
        })
    }

    /// The matrices with these numbers, in this order.
    pub(super) fn in_order(&self, order: Vec<u32>) -> Result<Self> {
        let order = Tensor::new(order, &Device::Cpu)?;
        self.each(|rows| rows.index_select(&order, 0))
    }

    /// `count` matrices from number `start` on.
    pub(super) fn part(&self, start: usize, count: usize) -> Result<Self> {
        self.each(|rows| rows.narrow(0, start, count))
    }

    fn each(&self, of: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Self> {
        let TrainingData { inputs, targets, weights } = self;
        Ok(TrainingData { inputs: of(inputs)?, targets: of(targets)?, weights: of(weights)? })
    }
}

/// What the target probability of each candidate is the softmax of.
fn target_logits(ms: &[f64], fastest: usize, tolerance: f64) -> Vec<f64> {
    let losses = ms.iter().map(|time| 1.0 - ms[fastest] / time);
    match tolerance > 0.0 {
        true => losses.map(|loss| -loss / tolerance).collect(),
        false => {
            (0..ms.len()).map(|k| if k == fastest { 0.0 } else { f64::NEG_INFINITY }).collect()
        }
    }
}
