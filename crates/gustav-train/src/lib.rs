//! Training of the networks of [`gustav_plan::predictor`] with candle's tensors, gradients and Adam optimiser, for a
//! whole number of passes over a table of measured times.
//!
//! It is a crate of its own so that nothing else is compiled anew with candle (`docs/decisions/0013-training.md`).

mod data;
mod initial;
mod network;

use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use gustav_core::{Error, Result};
use gustav_plan::predictor::{Layer, Model, Standardisation, Table, Training};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use crate::data::TrainingData;
use crate::network::Network;

// Batch size: matrices of one optimiser step.
const BATCH: usize = 16;

/// A model for `device` and `columns`, trained on `table`; `pass` is called after every pass. The
/// same table and training give the same model on one machine.
///
/// # Errors
/// [`Error::Device`] with candle's message, and [`Error::Format`] when weights have grown beyond all numbers.
pub fn train(
    table: &Table,
    training: &Training,
    device: &str,
    columns: usize,
    pass: impl FnMut(usize),
) -> Result<Model> {
    let standardisation = Standardisation::new(table, training.inputs);
    let failed =
        |e: candle_core::Error| Error::Device { action: "training", reason: e.to_string() };
    let mut layers = learn(table, training, &standardisation, pass).map_err(failed)?;
    layers.iter_mut().for_each(round);
    Model::new(device, columns, training.kind, table.candidates(), standardisation, layers)
}

/// The layers after all passes.
fn learn(
    table: &Table,
    training: &Training,
    standardisation: &Standardisation,
    mut pass: impl FnMut(usize),
) -> candle_core::Result<Vec<Layer>> {
    let data = TrainingData::new(table, training, standardisation)?;
    let mut random = Pcg64Mcg::seed_from_u64(training.seed);
    let layers = initial::layers(table, training, standardisation.inputs(), &mut random);
    let network = Network::new(&layers)?;
    // The loss includes the squared weights, as in the study; candle's weight decay is decoupled
    // from the loss, so it is off.
    let params = ParamsAdamW { lr: training.rate, weight_decay: 0.0, ..ParamsAdamW::default() };
    let mut steps = AdamW::new(network.variables(), params)?;
    let count = table.cases().len();
    for k in 0..training.passes {
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.shuffle(&mut random);
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
