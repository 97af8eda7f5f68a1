//! A peer process that trains a network of its own, from the same data and first parameters.

use std::path::{Path, PathBuf};

use gustav_core::{Csr, Error, Result};
use serde_json::{Value, json};

use super::child::milliseconds;
use super::program::Program;
use super::training::{CLASSES, Data, EPOCHS};
use crate::engine::{Matrix, PeerProcess, failed};

/// A peer with a network.
pub(super) struct Network<'p> {
    process: &'p mut PeerProcess,
    losses: Vec<f32>,
    /// Milliseconds of the last training, by the peer's clock.
    pub ms: f64,
}

impl<'p> Network<'p> {
    /// Gives the peer the graph `a`, and the data of `program`.
    ///
    /// # Errors
    /// The peer's own, for a network that it lacks too; files that cannot be written.
    pub fn new(
        process: &'p mut PeerProcess,
        program: &str,
        a: &Csr<f32>,
        data: &Data,
    ) -> Result<Self> {
        process.forget()?;
        process.matrix(Matrix::A, a.view())?;
        let folder = process.folder().to_path_buf();
        let file = |name: &str, bytes: &[u8]| -> Result<PathBuf> {
            let path = folder.join(name);
            write(&path, bytes)?;
            Ok(path)
        };
        let parameters = data.parameters.iter().enumerate().map(|(k, p)| {
            let values = file(&format!("parameter-{k}"), bytemuck::cast_slice(&p.values))?;
            Ok(json!({ "rows": p.rows, "columns": p.columns, "values": values }))
        });
        let parameters: Vec<Value> = parameters.collect::<Result<_>>()?;
        let features = file("features", bytemuck::cast_slice(&data.features.values))?;
        let labels = file("labels", bytemuck::cast_slice(&data.labels))?;
        process.ask(&json!({
            "do": "network", "program": program, "a": "a", "features": features,
            "columns": data.features.columns, "classes": CLASSES, "labels": labels,
            "parameters": parameters, "epochs": EPOCHS,
        }))?;
        std::fs::remove_file(features).ok();
        Ok(Network { process, losses: Vec::new(), ms: 0.0 })
    }
}

impl Program for Network<'_> {
    fn run(&mut self) -> Result<()> {
        let answer = self.process.ask(&json!({ "do": "train" }))?;
        self.ms = milliseconds(self.process, &answer)?;
        let losses = answer.get("losses").cloned().unwrap_or_default();
        self.losses = serde_json::from_value(losses)
            .map_err(|e| failed(self.process.name(), format!("no losses in {answer}: {e}")))?;
        if self.losses.len() == EPOCHS {
            return Ok(());
        }
        let words = format!("{} losses of {EPOCHS} epochs", self.losses.len());
        Err(failed(self.process.name(), words))
    }

    fn result(&self) -> Result<Vec<f32>> {
        Ok(self.losses.clone())
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(|source| Error::Io {
        path: path.into(),
        action: "write",
        source,
    })
}
