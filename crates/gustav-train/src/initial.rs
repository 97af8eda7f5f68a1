//! Initial weights.

use gustav_plan::predictor::{Kind, Layer, Table, Training};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// Uniform weights whose variance preserves the variance of activations (He et al. 2015); the
/// biases of a regression's outputs are the means of the targets.
pub(super) fn layers(
    table: &Table,
    training: &Training,
    inputs: usize,
    random: &mut Pcg64Mcg,
) -> Vec<Layer> {
    let mut widths = vec![inputs];
    widths.extend(&training.hidden);
    widths.push(table.candidates().len());
    let mut uniform = || random.random_range(-1.0..1.0);
    let mut layers: Vec<Layer> = Vec::with_capacity(widths.len() - 1);
    for pair in widths.windows(2) {
        let scale = (6.0 / pair[0] as f64).sqrt();
        let weights = (0..pair[1]).map(|_| (0..pair[0]).map(|_| scale * uniform()).collect());
        layers.push(Layer { weights: weights.collect(), bias: vec![0.0; pair[1]] });
    }
    if let (Kind::Regression, Some(last)) = (training.kind, layers.last_mut()) {
        last.weights.iter_mut().flatten().for_each(|w| *w *= 0.1);
        for (k, bias) in last.bias.iter_mut().enumerate() {
            let logs = table.cases().iter().map(|c| c.ms[k].ln());
            *bias = logs.sum::<f64>() / table.cases().len() as f64;
        }
    }
    layers
}
