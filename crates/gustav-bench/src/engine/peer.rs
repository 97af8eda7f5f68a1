//! A peer process prepared for one case.

use std::path::Path;

use gustav_core::{Buffer, Csr, Error, Operation, Result, Scalar};
use serde_json::{Value, json};

use super::{Engine, Outcome, PeerProcess, Prepared, Task};
use super::{failed, lacks};
use crate::timing::Runner;

/// A peer process with its prepared product.
pub(crate) struct PeerEngine<'a, T: Scalar> {
    process: &'a mut PeerProcess,
    task: Task<'a, T>,
    prepared: Prepared,
    has_copy: bool,
}

impl<'a, T: Scalar> PeerEngine<'a, T> {
    /// Lets the peer prepare the product of the matrices and values that it was sent, and with
    /// `copy` also that of a copy of them.
    ///
    /// # Errors
    /// The peer's own.
    pub fn prepare(
        process: &'a mut PeerProcess,
        task: Task<'a, T>,
        copy: bool,
        b_is_a: bool,
    ) -> Result<Self> {
        if !process.takes(task.layouts) {
            let reason = format!("it has no {} products", task.layouts.name());
            return Err(lacks(process.name(), reason));
        }
        let b = match (task.operation, b_is_a) {
            (Operation::Spgemm, true) => json!("a"),
            (Operation::Spgemm, false) => json!("b"),
            _ => Value::Null,
        };
        let answer = process.ask(&json!({
            "do": "prepare", "operation": task.operation.name(), "a": "a", "b": b,
            "columns": task.columns, "sorted": task.sorted, "copy": copy,
            "heads": task.heads, "gradients": task.gradients, "layouts": task.layouts.name(),
        }))?;
        // Peers without support for copies omit the key.
        let has_copy = answer.get("copy").and_then(Value::as_bool).unwrap_or(false);
        let plan_ms = answer.get("prepare_ms").and_then(Value::as_f64);
        let chosen = answer.get("chosen").and_then(Value::as_str).map(str::to_owned);
        let versions = process.versions().clone();
        let prepared = Prepared { plan_ms, chosen, versions, ..Prepared::default() };
        Ok(PeerEngine { process, task, prepared, has_copy })
    }
}

impl<T: Scalar> PeerEngine<'_, T> {
    /// Sends a `run` and returns the times in the answer.
    fn times(&mut self, request: &Value) -> Result<Vec<f64>> {
        let answer = self.process.ask(request)?;
        let times = answer.get("ms").cloned().unwrap_or_default();
        serde_json::from_value(times)
            .map_err(|e| failed(self.process.name(), format!("no times in {answer}: {e}")))
    }
}

impl<T: Scalar> Runner for PeerEngine<'_, T> {
    fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
        self.times(&json!({ "do": "run", "wake": wake, "repeats": repeats }))
    }

    fn yield_memory(&mut self) -> Result<()> {
        self.process.ask(&json!({ "do": "trim" })).map(|_| ())
    }
}

impl<T: Scalar> Engine<T> for PeerEngine<'_, T> {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn has_copy(&self) -> bool {
        self.has_copy
    }

    fn cold_ms(&mut self) -> Result<f64> {
        let times = self.times(&json!({ "do": "run", "copy": true, "wake": 0, "repeats": 1 }))?;
        Ok(times.iter().sum())
    }

    fn result(&mut self, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        let folder = self.process.folder().to_path_buf();
        let list = folder.join("rows");
        if let Some(rows) = rows {
            let rows: Vec<u64> = rows.iter().map(|&r| r as u64).collect();
            std::fs::write(&list, bytemuck::cast_slice(&rows)).map_err(|source| Error::Io {
                path: list.clone(),
                action: "write",
                source,
            })?;
        }
        let rows_file = rows.map(|_| &list);
        self.process.ask(&json!({ "do": "result", "folder": folder, "rows": rows_file }))?;
        let values = read::<T>(&folder.join("values"))?;
        if self.task.gradients {
            let mut values = values;
            let b = values.split_off(self.task.a.nnz().min(values.len()));
            return Ok(Outcome::OfSpmm { values, b });
        }
        match self.task.operation {
            Operation::Spgemm => {}
            Operation::Sddmm => return Ok(Outcome::Values(values)),
            _ => return Ok(Outcome::Dense(values)),
        }
        let offsets = read::<u64>(&folder.join("offsets"))?;
        let indices = read::<u64>(&folder.join("indices"))?;
        let count = rows.map_or(self.task.a.nrows(), <[usize]>::len);
        let cols = self.task.b.map_or(0, |b| b.ncols());
        Csr::new(count, cols, offsets, indices, values).map(Outcome::Sparse)
    }
}

/// A raw little-endian array, and the file removed.
fn read<T: bytemuck::Pod>(path: &Path) -> Result<Vec<T>> {
    let io = |source| Error::Io { path: path.into(), action: "read", source };
    let bytes = std::fs::read(path).map_err(io)?;
    std::fs::remove_file(path).map_err(io)?;
    let count = bytes.len() / size_of::<T>();
    let mut out = Buffer::<T>::zeroed(count, "result of a peer")?;
    bytemuck::cast_slice_mut(&mut out).copy_from_slice(&bytes[..count * size_of::<T>()]);
    Ok(out.into_vec())
}

#[cfg(test)]
mod tests {
    use gustav_report::Layouts;

    use super::super::Program;
    use super::*;

    /// Answers every `prepare` with the layouts that it was asked for.
    const PEER: &str = r#"
import json, sys
def say(**v): print(json.dumps(v), flush=True)
say(ready=True)
for line in sys.stdin:
    m = json.loads(line)
    if m["do"] == "hello": say(**HELLO)
    elif m["do"] == "prepare": say(error="asked for " + m["layouts"], unsupported=True)
    else: break
"#;

    #[test]
    #[ignore = "needs python3, which stands in for a peer"]
    fn layouts_are_asked_of_peers_that_have_them() {
        let folder = tempfile::tempdir().unwrap();
        let a = Csr::<f32>::new(1, 1, vec![0, 1], vec![0], vec![1.0]).unwrap();
        let answer = |hello: &str, layouts: Layouts| {
            let script = folder.path().join("peer.py");
            std::fs::write(&script, PEER.replace("HELLO", hello)).unwrap();
            let program =
                Program::Python { interpreter: "python3", script: Some(&script), library: None };
            let mut process = PeerProcess::start("mine", program, 1, folder.path()).unwrap();
            let task = Task {
                operation: Operation::Spmm,
                a: a.view(),
                b: None,
                columns: 1,
                heads: 1,
                gradients: false,
                sorted: false,
                mask: None,
                layouts,
                pool: &[1.0],
            };
            PeerEngine::prepare(&mut process, task, false, false).err().unwrap().to_string()
        };
        let (row_major, column_major) = (Layouts::RowMajor, Layouts::ColumnMajor);
        let both = r#"{"layouts": ["row-major", "column-major"]}"#;
        for (hello, layouts, words) in [
            ("{}", row_major, "asked for row-major"),
            ("{}", column_major, "it has no column-major products"),
            (both, column_major, "asked for column-major"),
        ] {
            let found = answer(hello, layouts);
            assert!(found.contains(words), "{found}");
        }
    }
}
