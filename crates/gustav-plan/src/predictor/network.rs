//! Fully connected layers.

use serde::{Deserialize, Serialize};

/// One layer: outputs = weights · inputs + bias.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// A row of weights for each output.
    pub weights: Vec<Vec<f64>>,
    /// The bias of each output.
    pub bias: Vec<f64>,
}

impl Layer {
    fn forward(&self, inputs: &[f64]) -> Vec<f64> {
        let sum = |(row, bias): (&Vec<f64>, &f64)| {
            bias + row.iter().zip(inputs).map(|(w, x)| w * x).sum::<f64>()
        };
        self.weights.iter().zip(&self.bias).map(sum).collect()
    }
}

/// The outputs of the last layer, with ReLU between layers.
pub(super) fn forward(layers: &[Layer], inputs: &[f64]) -> Vec<f64> {
    let Some((last, hidden)) = layers.split_last() else { return Vec::new() };
    let cut = |inputs: Vec<f64>, layer: &Layer| -> Vec<f64> {
        layer.forward(&inputs).into_iter().map(|x| x.max(0.0)).collect()
    };
    last.forward(&hidden.iter().fold(inputs.to_vec(), cut))
}
