//! Inputs that have mean 0 and deviation 1 over a table.

use super::{Inputs, Table};

/// How the inputs of a network are standardised: (input − mean) ÷ deviation, of the first inputs of [`Inputs::names`],
/// features as ln(1 + feature).
#[derive(Clone, Debug, PartialEq)]
pub struct Standardisation {
    pub(super) mean: Vec<f64>,
    pub(super) deviation: Vec<f64>,
}

impl Standardisation {
    /// That of the first `inputs` inputs over the matrices of `table`; ones that do not vary get a deviation of 1. At
    /// least one and at most all inputs of the table are taken.
    pub fn new(table: &Table, inputs: usize) -> Self {
        let inputs = inputs.clamp(1, table.inputs());
        let raw: Vec<_> = table.cases().iter().map(|c| c.inputs.logs()).collect();
        let count = raw.len() as f64;
        let mean: Vec<f64> =
            (0..inputs).map(|k| raw.iter().map(|r| r[k]).sum::<f64>() / count).collect();
        let deviation = |k: usize| {
            let variance = raw.iter().map(|r| (r[k] - mean[k]).powi(2)).sum::<f64>() / count;
            if variance > 1e-12 { variance.sqrt() } else { 1.0 }
        };
        Standardisation { deviation: (0..inputs).map(deviation).collect(), mean }
    }

    /// How many inputs are read.
    pub fn inputs(&self) -> usize {
        self.mean.len()
    }

    /// The standardised inputs; missing costs are taken as equal to the first candidate's.
    pub fn apply(&self, inputs: &Inputs) -> Vec<f64> {
        let logs = inputs.logs().into_iter().chain(std::iter::repeat(0.0));
        let standard = logs.zip(&self.mean).zip(&self.deviation);
        standard.map(|((x, mean), deviation)| (x - mean) / deviation).collect()
    }

    /// What is wrong with numbers of a file.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(k) = self.deviation.iter().position(|d| *d <= 0.0) {
            let found = self.deviation[k];
            return Err(format!("deviation: number {k} is {found}, expected more than 0"));
        }
        match self.mean.iter().chain(&self.deviation).all(|x| x.is_finite()) {
            true => Ok(()),
            false => Err("a number is not finite".into()),
        }
    }
}
