//! Trained models: their files and their predictions.

use std::path::Path;

use gustav_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Candidate, Inputs, Layer, Standardisation, network};
use crate::Features;

const FORMAT: &str = "gustav-predictor";
const VERSION: u32 = 1;

/// The meaning of the outputs of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Natural logarithms of milliseconds; the smallest is chosen.
    Regression,
    /// Logits of being the fastest; the largest is chosen.
    Softmax,
}

/// A trained network with the standardisation of its inputs. Its file is JSON, described in
/// `docs/predictor.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "File", into = "File")]
pub struct Model {
    /// The device that it was trained for, by the driver's name.
    pub device: String,
    /// Columns of B that it was trained for.
    pub columns: usize,
    /// The meaning of its outputs.
    pub kind: Kind,
    /// The candidates, one for each output.
    pub candidates: Vec<Candidate>,
    standardisation: Standardisation,
    layers: Vec<Layer>,
    /// For a softmax: an optional second network on the same inputs that predicts times like a
    /// regression; empty for none.
    times: Vec<Layer>,
}

/// The layout of a model file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u32,
    device: String,
    columns: usize,
    kind: Kind,
    candidates: Vec<String>,
    inputs: Vec<String>,
    mean: Vec<f64>,
    deviation: Vec<f64>,
    layers: Vec<Layer>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    times: Vec<Layer>,
}

/// The prediction of a model for a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// One number for each candidate: predicted milliseconds, or probabilities that add up to 1,
    /// the largest for the candidate with the least expected loss.
    pub scores: Vec<f64>,
    /// Predicted milliseconds of each candidate, if the model predicts them.
    pub ms: Option<Vec<f64>>,
    /// Index of the chosen candidate.
    pub best: usize,
}

impl Model {
    /// A model for `device` and `columns` of B, with layers that were trained on inputs as `standardisation` gives
    /// them.
    ///
    /// # Errors
    /// [`Error::Format`] for shapes that do not fit one another, and numbers that are not finite.
    pub fn new(
        device: &str,
        columns: usize,
        kind: Kind,
        candidates: &[Candidate],
        standardisation: Standardisation,
        layers: Vec<Layer>,
    ) -> Result<Self> {
        let model = Model {
            device: device.into(),
            columns,
            kind,
            candidates: candidates.to_vec(),
            standardisation,
            layers,
            times: Vec::new(),
        };
        model.checked().map_err(malformed)
    }

    /// The model in the text of a file.
    ///
    /// # Errors
    /// [`Error::Format`] that says what is wrong and how to mend it.
    pub fn from_text(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|e| malformed(e.to_string()))
    }

    /// The model in a file.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read, and as [`Model::from_text`].
    pub fn read(path: &Path) -> Result<Self> {
        let io = |source| Error::Io { path: path.into(), action: "read", source };
        Self::from_text(&std::fs::read_to_string(path).map_err(io)?).map_err(|e| e.in_file(path))
    }

    /// The text of the file.
    ///
    /// # Errors
    /// [`Error::Format`] for a model with a number that JSON lacks.
    pub fn to_text(&self) -> Result<String> {
        let text = serde_json::to_string(self).map_err(|e| malformed(e.to_string()))?;
        // serde_json writes numbers that JSON lacks as null; reading the text back detects that.
        Self::from_text(&text).map(|_| text)
    }

    /// Whether it reads the costs of its candidates ([`Inputs::with_costs`]).
    pub fn sees_costs(&self) -> bool {
        self.standardisation.inputs() > Features::COUNT
    }

    /// The prediction for a matrix with these inputs; missing costs are taken as equal to the first
    /// candidate's.
    pub fn predict(&self, inputs: &Inputs) -> Prediction {
        let seen = self.standardisation.apply(inputs);
        let outputs = |layers: &[Layer]| network::forward(layers, &seen);
        let ms = |layers: &[Layer]| outputs(layers).into_iter().map(f64::exp).collect::<Vec<f64>>();
        let (scores, ms) = match self.kind {
            Kind::Regression => {
                let ms = ms(&self.layers);
                (ms.clone(), Some(ms))
            }
            Kind::Softmax => {
                let mut probabilities = outputs(&self.layers);
                softmax(&mut probabilities);
                (probabilities, (!self.times.is_empty()).then(|| ms(&self.times)))
            }
        };
        let towards = |s: f64| if self.kind == Kind::Regression { -s } else { s };
        let best = (0..scores.len()).rev();
        let best = best.max_by(|a, b| towards(scores[*a]).total_cmp(&towards(scores[*b])));
        Prediction { best: best.unwrap_or(0), scores, ms }
    }

    /// The same model with the times that `regression` predicts, which must be trained on the same
    /// table with the same inputs.
    ///
    /// # Errors
    /// [`Error::Argument`] for a `regression` with other inputs or candidates or that predicts no
    /// times, and if this model predicts times already.
    pub fn with_times(self, regression: &Model) -> Result<Self> {
        let same = self.standardisation == regression.standardisation;
        let kinds = (self.kind, regression.kind) == (Kind::Softmax, Kind::Regression);
        if !same || self.candidates != regression.candidates || !kinds {
            return Err(Error::Argument {
                name: "regression beside a model",
                found: format!(
                    "{:?} of {} inputs",
                    regression.kind,
                    regression.standardisation.inputs()
                ),
                expected: "one that was trained on the same table with the same inputs".into(),
            });
        }
        Ok(Model { times: regression.layers.clone(), ..self })
    }

    /// The model, if its parts fit one another.
    fn checked(self) -> Result<Self, String> {
        let inputs = self.standardisation.inputs();
        check_inputs(inputs, &self.candidates)?;
        self.standardisation.check()?;
        fits("layers", &self.layers, inputs, self.candidates.len())?;
        if !self.times.is_empty() {
            if self.kind == Kind::Regression {
                return Err("times: a regression predicts them by its layers, expected none".into());
            }
            fits("times", &self.times, inputs, self.candidates.len())?;
        }
        let layers = self.layers.iter().chain(&self.times);
        match layers.flat_map(|l| l.weights.iter().flatten().chain(&l.bias)).all(|x| x.is_finite())
        {
            true => Ok(self),
            false => Err("a number is not finite".into()),
        }
    }
}

/// Logits to probabilities.
fn softmax(logits: &mut [f64]) {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    logits.iter_mut().for_each(|x| *x = (*x - largest).exp());
    let sum: f64 = logits.iter().sum();
    logits.iter_mut().for_each(|x| *x /= sum);
}

fn malformed(reason: String) -> Error {
    let reason = format!("{reason}; gustav tune writes such files");
    Error::Format { path: None, format: "predictor model", reason }
}

impl From<Model> for File {
    fn from(m: Model) -> Self {
        File {
            format: FORMAT.into(),
            version: VERSION,
            device: m.device,
            columns: m.columns,
            kind: m.kind,
            inputs: Inputs::names(&m.candidates)
                .into_iter()
                .take(m.standardisation.inputs())
                .collect(),
            candidates: m.candidates.iter().map(Candidate::to_string).collect(),
            mean: m.standardisation.mean,
            deviation: m.standardisation.deviation,
            layers: m.layers,
            times: m.times,
        }
    }
}

impl TryFrom<File> for Model {
    type Error = String;

    fn try_from(f: File) -> Result<Self, String> {
        if f.format != FORMAT {
            return Err(format!("format: expected {FORMAT}, found {}", f.format));
        }
        if f.version != VERSION {
            return Err(format!("version: expected {VERSION}, found {}", f.version));
        }
        let candidates: Vec<Candidate> = f
            .candidates
            .iter()
            .map(|c| c.parse())
            .collect::<Result<_>>()
            .map_err(|e| e.to_string())?;
        let names = Inputs::names(&candidates);
        if f.inputs.is_empty() || !names.starts_with(&f.inputs) {
            return Err(format!("inputs: expected the first of {}", names.join(", ")));
        }
        check_inputs(f.inputs.len(), &candidates)?;
        for (name, found) in [("mean", f.mean.len()), ("deviation", f.deviation.len())] {
            if found != f.inputs.len() {
                let inputs = f.inputs.len();
                return Err(format!("{name}: expected {inputs} numbers, found {found}"));
            }
        }
        let model = Model {
            device: f.device,
            columns: f.columns,
            kind: f.kind,
            candidates,
            standardisation: Standardisation { mean: f.mean, deviation: f.deviation },
            layers: f.layers,
            times: f.times,
        };
        model.checked()
    }
}

/// Checks that a network for `candidates` can read so many inputs: some of the features, or all inputs.
fn check_inputs(inputs: usize, candidates: &[Candidate]) -> Result<(), String> {
    let (features, all) = (Features::COUNT, Inputs::count(candidates));
    match (1..=features).contains(&inputs) || inputs == all {
        true => Ok(()),
        false => Err(format!("inputs: expected 1 to {features}, or all {all}, found {inputs}")),
    }
}

/// Checks that the shapes of `layers` lead from `inputs` to `outputs`.
fn fits(name: &str, layers: &[Layer], inputs: usize, outputs: usize) -> Result<(), String> {
    let mut width = inputs;
    for (k, layer) in layers.iter().enumerate() {
        let rows = layer.weights.len();
        if rows != layer.bias.len() || rows == 0 {
            let bias = layer.bias.len();
            return Err(format!("{name}: layer {k}: {rows} rows of weights and {bias} of bias"));
        }
        if let Some(row) = layer.weights.iter().find(|row| row.len() != width) {
            return Err(format!(
                "{name}: layer {k}: expected {width} weights a row, found {}",
                row.len()
            ));
        }
        width = rows;
    }
    match layers.is_empty() || width != outputs {
        true => Err(format!("{name}: {width} outputs for {outputs} candidates")),
        false => Ok(()),
    }
}
