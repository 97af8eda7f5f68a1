//! Training: back-propagation with Adam, in whole numbers of passes over the table.

use super::model::softmax;
use super::{Inputs, Kind, Layer, Model, Prediction, Table, network};
use crate::Features;
use crate::mix::mix;

/// What chooses a candidate.
pub trait Chooses {
    /// Place of the candidate that it takes for a matrix of which this is known.
    fn choose(&self, inputs: &Inputs) -> usize;
}

impl Chooses for Model {
    fn choose(&self, inputs: &Inputs) -> usize {
        let Prediction { best, .. } = self.predict(inputs);
        best
    }
}

/// How a network is trained. The default has the source's numbers where it names them: two hidden
/// layers of 64 and 32, L2, weights of classes inverse to how often they are the fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// What the outputs are; the loss is the mean absolute percentage error of times, or the
    /// cross entropy.
    pub kind: Kind,
    /// Neurons of the hidden layers.
    pub hidden: Vec<usize>,
    /// Values that it sees, from the first of [`Inputs::names`] on: [`Features::COUNT`],
    /// [`Features::MATRIX_ONLY`], or all that the table has, costs included.
    pub inputs: usize,
    /// Passes over the table.
    pub passes: usize,
    /// Step of Adam.
    pub rate: f64,
    /// Factor of the squared weights in the loss.
    pub l2: f64,
    /// Whether classes weigh inverse to how often they are the fastest.
    pub weighted: bool,
    /// How a softmax network takes candidates that are nearly as fast as the fastest: each should have a
    /// share in proportion to e to the power of −(what it loses of the fastest's speed ÷ this); 0 for the
    /// fastest alone, as in the source.
    pub tolerance: f64,
    /// Where the weights begin and in which order matrices come.
    pub seed: u64,
}

impl Default for Training {
    fn default() -> Self {
        Training {
            kind: Kind::Regression,
            hidden: vec![64, 32],
            inputs: Features::COUNT,
            passes: 400,
            rate: 1e-3,
            l2: 1e-4,
            weighted: true,
            tolerance: 0.0,
            seed: 1,
        }
    }
}

impl Training {
    /// A softmax network that learns what each candidate loses, not the fastest one alone: where many
    /// candidates are near to each other, which of them is the fastest is chance.
    #[must_use]
    pub fn by_losses(self) -> Self {
        Training { kind: Kind::Softmax, l2: 1e-3, weighted: false, tolerance: 0.1, ..self }
    }
}

// Matrices of a step.
const BATCH: usize = 16;
// Adam's memory of gradients and of their squares, and what keeps it from dividing by 0.
const BETA: (f64, f64) = (0.9, 0.999);
const EPSILON: f64 = 1e-8;
// Times are not told apart beyond e to this power; gradients stay finite.
const FAR: f64 = 4.0;

/// A model for `device` and `columns`, trained on `table`; `pass` is told of every pass that is
/// done. The same table and training give the same model.
pub fn train(
    table: &Table,
    training: &Training,
    device: &str,
    columns: usize,
    mut pass: impl FnMut(usize),
) -> Model {
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
    model.layers = beginning(table, training, inputs);
    let rows: Vec<Row> = rows(table, training, &model);
    let mut steps = Steps::new(&model.layers);
    for k in 0..training.passes {
        let mut turns: Vec<usize> = (0..rows.len()).collect();
        turns.sort_by_key(|row| mix(*row as u64, training.seed.wrapping_add(k as u64)));
        for batch in turns.chunks(BATCH) {
            let mut gradient = zeros(&model.layers);
            for row in batch {
                back(&model.layers, &rows[*row], training.kind, &mut gradient);
            }
            let share = 1.0 / batch.len() as f64;
            steps.take(&mut model.layers, &gradient, share, training);
        }
        pass(k + 1);
    }
    round(&mut model);
    model
}

/// Rounds weights to six decimals, which keeps files small.
fn round(model: &mut Model) {
    for Layer { weights, bias } in &mut model.layers {
        let all = weights.iter_mut().flatten().chain(bias);
        all.for_each(|x| *x = (*x * 1e6).round() / 1e6);
    }
}

/// What the network sees of a matrix and should say.
struct Row {
    inputs: Vec<f64>,
    /// Natural logarithms of milliseconds, or the shares of a softmax.
    goal: Vec<f64>,
    weight: f64,
}

fn rows(table: &Table, training: &Training, model: &Model) -> Vec<Row> {
    let wins = table.wins();
    let classes = wins.iter().filter(|w| **w > 0).count() as f64;
    let even = table.cases().len() as f64 / classes;
    let row = |case: &super::Case| {
        let fastest = case.oracle();
        Row {
            inputs: model.standardised(&case.inputs),
            goal: match training.kind {
                Kind::Regression => case.ms.iter().map(|ms| ms.ln()).collect(),
                Kind::Softmax => shares(&case.ms, fastest, training.tolerance),
            },
            weight: if training.weighted { even / wins[fastest] as f64 } else { 1.0 },
        }
    };
    table.cases().iter().map(row).collect()
}

/// The share that each candidate should have.
fn shares(ms: &[f64], fastest: usize, tolerance: f64) -> Vec<f64> {
    let losses = ms.iter().map(|time| 1.0 - ms[fastest] / time);
    let mut goal: Vec<f64> = match tolerance > 0.0 {
        true => losses.map(|loss| -loss / tolerance).collect(),
        false => {
            (0..ms.len()).map(|k| if k == fastest { 0.0 } else { f64::NEG_INFINITY }).collect()
        }
    };
    softmax(&mut goal);
    goal
}

/// Mean and deviation of the inputs; inputs that do not vary are left out by a deviation of 1.
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

/// Uniform weights of the variance that keeps signals alive (He et al. 2015); the outputs begin
/// with the mean of what they should be.
fn beginning(table: &Table, training: &Training, inputs: usize) -> Vec<Layer> {
    let mut widths = vec![inputs];
    widths.extend(&training.hidden);
    widths.push(table.candidates().len());
    let mut drawn = 0;
    let mut uniform = || {
        drawn += 1;
        (mix(drawn, training.seed) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
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

fn zeros(layers: &[Layer]) -> Vec<Layer> {
    let zero = |l: &Layer| Layer {
        weights: vec![vec![0.0; l.inputs()]; l.outputs()],
        bias: vec![0.0; l.outputs()],
    };
    layers.iter().map(zero).collect()
}

/// Adds the gradient of a row's loss.
fn back(layers: &[Layer], row: &Row, kind: Kind, gradient: &mut [Layer]) {
    let outputs = network::forward(layers, &row.inputs);
    let Some(last) = outputs.last() else { return };
    let mut delta: Vec<f64> = match kind {
        Kind::Regression => {
            let slope = |(out, log_ms): (&f64, &f64)| {
                let ratio = (out - log_ms).clamp(-FAR, FAR).exp();
                row.weight * ratio * (ratio - 1.0).signum() / last.len() as f64
            };
            last.iter().zip(&row.goal).map(slope).collect()
        }
        Kind::Softmax => {
            let mut delta = last.clone();
            softmax(&mut delta);
            delta.iter_mut().zip(&row.goal).for_each(|(d, goal)| *d = (*d - goal) * row.weight);
            delta
        }
    };
    for k in (0..layers.len()).rev() {
        let inputs = if k == 0 { &row.inputs } else { &outputs[k - 1] };
        let mut before = vec![0.0; inputs.len()];
        for (j, d) in delta.iter().enumerate() {
            gradient[k].bias[j] += d;
            for (i, x) in inputs.iter().enumerate() {
                gradient[k].weights[j][i] += d * x;
                before[i] += d * layers[k].weights[j][i];
            }
        }
        // What was cut off at 0 has no slope.
        before.iter_mut().zip(inputs).for_each(|(b, x)| *b *= f64::from(u8::from(*x > 0.0)));
        delta = before;
    }
}

/// Adam (Kingma, Ba 2015).
struct Steps {
    first: Vec<Layer>,
    second: Vec<Layer>,
    count: i32,
}

impl Steps {
    fn new(layers: &[Layer]) -> Self {
        Steps { first: zeros(layers), second: zeros(layers), count: 0 }
    }

    /// One step down `gradient`, times `share`.
    fn take(&mut self, layers: &mut [Layer], gradient: &[Layer], share: f64, t: &Training) {
        self.count += 1;
        let unbiased = (1.0 - BETA.0.powi(self.count), 1.0 - BETA.1.powi(self.count));
        let step = |x: &mut f64, m: &mut f64, v: &mut f64, g: f64| {
            *m = BETA.0 * *m + (1.0 - BETA.0) * g;
            *v = BETA.1 * *v + (1.0 - BETA.1) * g * g;
            *x -= t.rate * (*m / unbiased.0) / ((*v / unbiased.1).sqrt() + EPSILON);
        };
        for (k, layer) in layers.iter_mut().enumerate() {
            let (m, v, g) = (&mut self.first[k], &mut self.second[k], &gradient[k]);
            for j in 0..layer.bias.len() {
                step(&mut layer.bias[j], &mut m.bias[j], &mut v.bias[j], share * g.bias[j]);
                for i in 0..layer.weights[j].len() {
                    let x = &mut layer.weights[j][i];
                    let slope = share * g.weights[j][i] + 2.0 * t.l2 * *x;
                    step(x, &mut m.weights[j][i], &mut v.weights[j][i], slope);
                }
            }
        }
    }
}
