//! A peer process as the one who multiplies for a program.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;

use gustav_core::{Csr, Dense, Error, Pattern, Result};
use serde_json::{Value, json};

use super::algebra::{Host, Shape};
use super::engine::{Engine, Spmm};
use crate::engine::{Matrix, PeerProcess, failed, lacks};

/// A peer that is given A. B and C pass through files, which is no part of the program: a product takes what the
/// peer says that it took.
pub(super) struct Child<'p> {
    name: String,
    /// Until its product is made: it has one at a time.
    process: Option<&'p mut PeerProcess>,
    a: &'p Csr<f32>,
    /// Milliseconds in products.
    spent: Rc<Cell<f64>>,
}

impl<'p> Child<'p> {
    /// `process` as an engine of products of `a`, and the milliseconds that it spends in them.
    pub fn new(process: &'p mut PeerProcess, a: &'p Csr<f32>) -> (Self, Rc<Cell<f64>>) {
        let spent = Rc::new(Cell::new(0.0));
        let name = process.name().to_owned();
        (Child { name, process: Some(process), a, spent: spent.clone() }, spent)
    }
}

impl<'p> Engine<'p, Host> for Child<'p> {
    fn spmm(&mut self, _: &Pattern, shape: Shape) -> Result<Spmm<'p, Host>> {
        let a = self.a;
        let process = self.process.take().filter(|_| !shape.transpose).ok_or_else(|| {
            lacks(&self.name, "it has one product at a time, of A as it is".into())
        })?;
        process.forget()?;
        process.matrix(Matrix::A, a.view())?;
        process.pool(&vec![0f32; a.ncols() * shape.columns])?;
        process.ask(&json!({
            "do": "prepare", "operation": "spmm", "a": "a", "b": Value::Null,
            "columns": shape.columns, "sorted": false, "semiring": shape.semiring.name(),
        }))?;
        let (process, spent) = (RefCell::new(process), self.spent.clone());
        Ok(Box::new(move |_: &Vec<f32>, b: &Dense<f32>, c: &mut Dense<f32>| {
            let ms = multiply(&mut process.borrow_mut(), b, c)?;
            spent.set(spent.get() + ms);
            Ok(())
        }))
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// C = A·B; returns the milliseconds of the product.
fn multiply(process: &mut PeerProcess, b: &Dense<f32>, c: &mut Dense<f32>) -> Result<f64> {
    let [from, to] = ["b", "c"].map(|name| process.folder().join(name));
    let io = |path: &Path, action| {
        let path = path.to_path_buf();
        move |source| Error::Io { path, action, source }
    };
    std::fs::write(&from, bytemuck::cast_slice(b.data())).map_err(io(&from, "write"))?;
    let answer = process.ask(&json!({ "do": "multiply", "b": from, "c": to }))?;
    let bytes = std::fs::read(&to).map_err(io(&to, "read"))?;
    let ms = milliseconds(process, &answer)?;
    let out: &mut [u8] = bytemuck::cast_slice_mut(c.data_mut());
    if bytes.len() != out.len() {
        let words = format!("a product of {} bytes, not {}", bytes.len(), out.len());
        return Err(failed(process.name(), words));
    }
    out.copy_from_slice(&bytes);
    Ok(ms)
}

/// The time in an answer.
pub(super) fn milliseconds(process: &PeerProcess, answer: &Value) -> Result<f64> {
    let ms = answer.get("ms").and_then(Value::as_f64).filter(|ms| *ms >= 0.0);
    ms.ok_or_else(|| failed(process.name(), format!("no time in {answer}")))
}
