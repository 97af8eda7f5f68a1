//! Training with candle's tensors, gradients and Adam optimiser, for a whole number of passes over
//! the table.

mod data;
mod initial;
mod network;

use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use gustav_core::{Error, Result};

use self::data::TrainingData;
use self::network::Network;
use super::{Layer, Model, Table, Training};
use crate::mix::mix;

// Batch size: matrices of one optimiser step.
const BATCH: usize = 16;

/// A model for `device` and `columns`, trained on `table`; `pass` is called after every pass. The
/// same table and training give the same model on one machine.
///
/// # Errors
/// [`Error::Device`] with candle's message.
pub fn train(
    table: &Table,
    training: &Training,
    device: &str,
    columns: usize,
    pass: impl FnMut(usize),
) -> Result<Model> {
    let inputs = training.inputs.clamp(1, table.inputs());
    let mut model = Model {
        device: device.into(),
        columns,
        kind: training.kind,
        candidates: table.candidates().to_vec(),
        inputs,
        mean: vec![0.0; inputs],
        deviation: vec![1.0; inputs],
        layers: Vec::new(),
        times: Vec::new(),
    };
    standardise(&mut model, table);
    let failed =
        |e: candle_core::Error| Error::Device { action: "training", reason: e.to_string() };
    model.layers = learn(table, training, &model, pass).map_err(failed)?;
    model.layers.iter_mut().for_each(round);
    Ok(model)
}

/// Mean and deviation of the inputs; inputs that do not vary get a deviation of 1.
fn standardise(model: &mut Model, table: &Table) {
    let raw: Vec<_> = table.cases().iter().map(|c| model.standardised(&c.inputs)).collect();
    let count = raw.len() as f64;
    for k in 0..model.inputs {
        let mean = raw.iter().map(|r| r[k]).sum::<f64>() / count;
        let variance = raw.iter().map(|r| (r[k] - mean).powi(2)).sum::<f64>() / count;
        model.mean[k] = mean;
        model.deviation[k] = if variance > 1e-12 { variance.sqrt() } else { 1.0 };
    }
}

/// The layers after all passes.
fn learn(
    table: &Table,
    training: &Training,
    model: &Model,
    mut pass: impl FnMut(usize),
) -> candle_core::Result<Vec<Layer>> {
    let data = TrainingData::new(table, training, model)?;
    let network = Network::new(&initial::layers(table, training, model.inputs))?;
    // The loss includes the squared weights, as in the study; candle's weight decay is decoupled
    // from the loss, so it is off.
    let params = ParamsAdamW { lr: training.rate, weight_decay: 0.0, ..ParamsAdamW::default() };
    let mut steps = AdamW::new(network.variables(), params)?;
    let count = table.cases().len();
    for k in 0..training.passes {
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.sort_by_key(|row| mix(u64::from(*row), training.seed.wrapping_add(k as u64)));
        let shuffled = data.in_order(order)?;
        for start in (0..count).step_by(BATCH) {
            let batch = shuffled.part(start, BATCH.min(count - start))?;
            steps.backward_step(&network.loss(&batch, training)?)?;
        }
        pass(k + 1);
    }
    network.layers()
}

/// Rounds weights to six decimals, for smaller files.
fn round(layer: &mut Layer) {
    let all = layer.weights.iter_mut().flatten().chain(&mut layer.bias);
    all.for_each(|x| *x = (*x * 1e6).round() / 1e6);
}
