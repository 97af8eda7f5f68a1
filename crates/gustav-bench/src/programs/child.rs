//! A peer process as the one who multiplies for a program.

use std::path::Path;
use std::time::Duration;

use gustav_core::{Csr, Dense, Error, Result};
use serde_json::{Value, json};

use super::engine::Engine;
use super::program::Program;
use crate::engine::{Matrix, PeerProcess, failed};

/// A peer that was given A. B and C pass through files, which is no part of the program: a product
/// takes what the peer says that it took.
pub(super) struct Child<'p> {
    process: &'p mut PeerProcess,
    spent: Duration,
}

impl<'p> Child<'p> {
    /// Has the peer prepare products of `a` with so many columns over the semiring of `program`.
    ///
    /// # Errors
    /// The peer's own, for a semiring that it lacks too.
    pub fn prepare(
        process: &'p mut PeerProcess,
        program: &Program,
        a: &Csr<f32>,
        columns: usize,
    ) -> Result<Self> {
        process.forget()?;
        process.matrix(Matrix::A, a.view())?;
        process.pool(&vec![0f32; a.ncols() * columns])?;
        process.ask(&json!({
            "do": "prepare", "operation": "spmm", "a": "a", "b": Value::Null,
            "columns": columns, "sorted": false, "semiring": program.semiring.name(),
        }))?;
        Ok(Child { process, spent: Duration::ZERO })
    }
}

impl Engine for Child<'_> {
    fn multiply(&mut self, _: &Csr<f32>, b: &Dense<f32>, c: &mut Dense<f32>) -> Result<()> {
        let [from, to] = ["b", "c"].map(|name| self.process.folder().join(name));
        let io = |path: &Path, action| {
            let path = path.to_path_buf();
            move |source| Error::Io { path, action, source }
        };
        std::fs::write(&from, bytemuck::cast_slice(b.data())).map_err(io(&from, "write"))?;
        let answer = self.process.ask(&json!({ "do": "multiply", "b": from, "c": to }))?;
        let bytes = std::fs::read(&to).map_err(io(&to, "read"))?;
        let words = |what: String| failed(self.process.name(), what);
        let ms = answer.get("ms").and_then(Value::as_f64).filter(|ms| *ms >= 0.0);
        let ms = ms.ok_or_else(|| words(format!("no time in {answer}")))?;
        let out: &mut [u8] = bytemuck::cast_slice_mut(c.data_mut());
        if bytes.len() != out.len() {
            return Err(words(format!("a product of {} bytes, not {}", bytes.len(), out.len())));
        }
        out.copy_from_slice(&bytes);
        self.spent += Duration::from_secs_f64(ms / 1e3);
        Ok(())
    }

    fn take_spent(&mut self) -> Duration {
        std::mem::take(&mut self.spent)
    }
}
