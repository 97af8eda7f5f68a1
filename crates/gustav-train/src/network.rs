//! The network as candle tensors, and its loss.

use candle_core::{D, Device, Result, Tensor, Var};
use candle_nn::{Linear, Module, ops::log_softmax};
use gustav_plan::predictor::{Kind, Layer, Training};

use crate::data::TrainingData;

// The error of a time is proportional to the time up to e to this power, then to its logarithm, so
// that gradients stay finite.
const FAR: f64 = 4.0;

/// Fully connected layers, in f64.
pub(super) struct Network {
    layers: Vec<Linear>,
    /// Weights and bias of each layer, which `layers` shares.
    variables: Vec<(Var, Var)>,
}

impl Network {
    pub(super) fn new(layers: &[Layer]) -> Result<Self> {
        let variables = |Layer { weights, bias }: &Layer| {
            let shape = (bias.len(), weights[0].len());
            let weights = Tensor::from_vec(weights.concat(), shape, &Device::Cpu)?;
            let bias = Tensor::new(bias.as_slice(), &Device::Cpu)?;
            Ok((Var::from_tensor(&weights)?, Var::from_tensor(&bias)?))
        };
        let variables: Vec<(Var, Var)> = layers.iter().map(variables).collect::<Result<_>>()?;
        let linear = |(weights, bias): &(Var, Var)| {
            Linear::new(weights.as_tensor().clone(), Some(bias.as_tensor().clone()))
        };
        Ok(Network { layers: variables.iter().map(linear).collect(), variables })
    }

    /// The trainable variables.
    pub(super) fn variables(&self) -> Vec<Var> {
        self.variables.iter().flat_map(|(weights, bias)| [weights.clone(), bias.clone()]).collect()
    }

    /// The current layers.
    pub(super) fn layers(&self) -> Result<Vec<Layer>> {
        let layer = |(weights, bias): &(Var, Var)| {
            Ok(Layer { weights: weights.to_vec2()?, bias: bias.to_vec1()? })
        };
        self.variables.iter().map(layer).collect()
    }

    /// Mean loss of a batch, and the squared weights.
    pub(super) fn loss(&self, batch: &TrainingData, training: &Training) -> Result<Tensor> {
        let outputs = self.forward(&batch.inputs)?;
        let each = match training.kind {
            Kind::Regression => percentage_error(&outputs, &batch.targets)?,
            Kind::Softmax => {
                (log_softmax(&outputs, D::Minus1)? * &batch.targets)?.sum_keepdim(1)?.neg()?
            }
        };
        let mut loss = (each * &batch.weights)?.mean_all()?;
        for (weights, _) in &self.variables {
            loss = (loss + (weights.sqr()?.sum_all()? * training.l2)?)?;
        }
        Ok(loss)
    }

    fn forward(&self, inputs: &Tensor) -> Result<Tensor> {
        let mut outputs = inputs.clone();
        for (k, layer) in self.layers.iter().enumerate() {
            outputs = layer.forward(&if k == 0 { outputs } else { outputs.relu()? })?;
        }
        Ok(outputs)
    }
}

/// Mean of |found − measured| ÷ measured of each row of logarithms.
fn percentage_error(found: &Tensor, measured: &Tensor) -> Result<Tensor> {
    let apart = (found - measured)?;
    // The tangent of e^apart at `near`, a constant for the gradient: equal to e^apart up to ±`FAR`,
    // linear beyond.
    let near = apart.clamp(-FAR, FAR)?.detach();
    let ratio = (near.exp()? * ((apart - near)? + 1.0)?)?;
    (ratio - 1.0)?.abs()?.mean_keepdim(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_times_worked_by_hand() {
        let measured = Tensor::new(&[[0.0, 0.0], [1.0, 1.0]], &Device::Cpu).expect("goals");
        let ln2 = std::f64::consts::LN_2;
        let found = Tensor::new(&[[ln2, -ln2], [1.0 + FAR + 2.0, 1.0 - FAR - 2.0]], &Device::Cpu);
        let found = Var::from_tensor(&found.expect("outputs")).expect("a variable");
        let errors = percentage_error(&found, &measured).expect("errors");
        let slopes = errors.sum_all().and_then(|sum| sum.backward()).expect("slopes");
        let slopes = slopes.get(&found).expect("slopes of the outputs");
        let numbers = |t: &Tensor| t.flatten_all().and_then(|t| t.to_vec1::<f64>()).expect("f64");
        // Twice and half the time; beyond e^±4 the tangent.
        let (most, least) = (FAR.exp(), (-FAR).exp());
        let expected = [0.75, 0.5 * ((3.0 * most - 1.0) + (least + 1.0))];
        let steep = [1.0, -0.25, 0.5 * most, -0.5 * least];
        let near = |a: &[f64], b: &[f64]| {
            a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12 * b.abs().max(1.0))
        };
        assert!(near(&numbers(&errors), &expected), "{errors}, expected {expected:?}");
        assert!(near(&numbers(slopes), &steep), "{slopes}, expected {steep:?}");
    }
}
