//! Fully connected layers.

use serde::{Deserialize, Serialize};

/// One layer: outputs = weights · inputs + bias.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// A row of weights for each output.
    pub weights: Vec<Vec<f64>>,
    /// What is added to each output.
    pub bias: Vec<f64>,
}

impl Layer {
    /// Number of inputs; 0 for a layer without outputs.
    pub fn inputs(&self) -> usize {
        self.weights.first().map_or(0, Vec::len)
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    pub(super) fn forward(&self, inputs: &[f64]) -> Vec<f64> {
        let sum = |(row, bias): (&Vec<f64>, &f64)| {
            bias + row.iter().zip(inputs).map(|(w, x)| w * x).sum::<f64>()
        };
        self.weights.iter().zip(&self.bias).map(sum).collect()
    }
}

/// What every layer puts out, the last one last; between layers, what is negative becomes 0.
pub(super) fn forward(layers: &[Layer], inputs: &[f64]) -> Vec<Vec<f64>> {
    let mut outputs: Vec<Vec<f64>> = Vec::with_capacity(layers.len());
    for (k, layer) in layers.iter().enumerate() {
        let mut out = layer.forward(outputs.last().map_or(inputs, Vec::as_slice));
        if k + 1 < layers.len() {
            out.iter_mut().for_each(|x| *x = x.max(0.0));
        }
        outputs.push(out);
    }
    outputs
}
