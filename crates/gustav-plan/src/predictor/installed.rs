//! The models of a device: those that `gustav tune` installed, and those shipped with the crate.

use std::path::PathBuf;

use gustav_core::{Error, Result};

use super::Model;
use crate::installed::{folder, plain};

/// Texts of model files, by device and columns of B; trained on suite `catalog`.
const SHIPPED: &[(&str, usize, &str)] = &[
    ("NVIDIA H200", 32, include_str!("../../models/nvidia-h200-32.json")),
    ("NVIDIA H200", 64, include_str!("../../models/nvidia-h200-64.json")),
    ("NVIDIA H200", 128, include_str!("../../models/nvidia-h200-128.json")),
    ("NVIDIA H200", 256, include_str!("../../models/nvidia-h200-256.json")),
];

impl Model {
    /// The model that is shipped for `device` and the nearest number of columns.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a device without one.
    pub fn shipped(device: &str, columns: usize) -> Result<Self> {
        let own = SHIPPED.iter().filter(|(name, ..)| plain(name) == plain(device));
        match own.min_by(|a, b| distance(a.1, columns).total_cmp(&distance(b.1, columns))) {
            Some((_, _, text)) => Self::from_text(text),
            None => Err(Error::Unsupported {
                problem: format!("predictions for {device}"),
                backend: "the predictor".into(),
                reason: "no model has been trained for this device".into(),
                nearest: "gustav tune, which trains one in a build with the feature train, or the \
                          chooser auto"
                    .into(),
            }),
        }
    }

    /// The path at which the model of `device` for this number of columns is installed, in the
    /// user's configuration folder; `None` if the system has none.
    pub fn place(device: &str, columns: usize) -> Option<PathBuf> {
        Some(folder("predictor")?.join(format!("{}-{columns}.json", plain(device))))
    }

    /// The model for `device` and the number of columns nearest to `columns`: an installed one,
    /// else a shipped one.
    ///
    /// # Errors
    /// As [`Model::read`] for an installed file, [`Error::Format`] for a model of another device or
    /// number of columns than its name says, else as [`Model::shipped`].
    pub fn of_device(device: &str, columns: usize) -> Result<Self> {
        let files =
            folder("predictor").and_then(|f| std::fs::read_dir(f).ok()).into_iter().flatten();
        let measured = files.flatten().filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            let rest = name.strip_prefix(&plain(device))?.strip_prefix('-')?;
            Some((rest.strip_suffix(".json")?.parse::<usize>().ok()?, file.path()))
        });
        let nearest = measured.min_by(|a, b| {
            let by_distance = distance(a.0, columns).total_cmp(&distance(b.0, columns));
            by_distance.then(a.0.cmp(&b.0))
        });
        match nearest {
            Some((measured, path)) => {
                let model = Self::read(&path)?;
                if plain(&model.device) == plain(device) && model.columns == measured {
                    return Ok(model);
                }
                let reason = format!(
                    "it is for {} and {} columns, but its name says otherwise; gustav tune --install \
                     writes a correct one, or remove it",
                    model.device, model.columns
                );
                Err(Error::Format { path: Some(path), format: "predictor model", reason })
            }
            None => Self::shipped(device, columns),
        }
    }
}

/// The distance of two numbers of columns, by their ratio.
fn distance(a: usize, b: usize) -> f64 {
    ((a.max(1) as f64) / b.max(1) as f64).ln().abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_model_is_read_and_carries_its_names() {
        for (device, columns, text) in SHIPPED {
            let model = Model::from_text(text).expect("a model");
            assert_eq!((model.device.as_str(), model.columns), (*device, *columns));
            let nearest = Model::shipped(device, columns + 1).expect("a model");
            assert_eq!(nearest.columns, *columns);
        }
        assert!(matches!(Model::shipped("a GPU", 64), Err(Error::Unsupported { .. })));
    }

    #[test]
    fn columns_are_near_by_their_ratio() {
        assert!(distance(32, 64) == distance(64, 32) && distance(128, 64) < distance(64, 16));
    }
}
