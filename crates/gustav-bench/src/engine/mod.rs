//! Engines: Gustav, peers in child processes, and Rust crates.

#[cfg(feature = "peers")]
mod crates;
mod ours;
mod peer;
mod process;

use std::collections::BTreeMap;

use gustav_core::{Csr, CsrView, Operation, Result, Scalar};
use gustav_report::Layouts;

use crate::timing::Runner;

#[cfg(feature = "peers")]
pub(crate) use crates::{CrateValue, crate_engine};
pub(crate) use ours::{Ours, sparse_rows};
pub(crate) use peer::PeerEngine;
pub(crate) use process::{Matrix, PeerProcess, Program, failed, lacks};

/// A case with its operands.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a, T: Scalar> {
    pub operation: Operation,
    pub a: CsrView<'a, T>,
    /// The second factor of an SpGEMM.
    pub b: Option<CsrView<'a, T>>,
    /// Columns of B and C, of X and Y, or of a head; 1 for SpMV.
    pub columns: usize,
    /// Heads of an attention, whose columns are those of one; else 1.
    pub heads: usize,
    /// Whether the gradients of the operation are computed: those of B and of A's values, or of Q, K and V.
    pub gradients: bool,
    pub sorted: bool,
    /// The entries of a sparse C to compute; `None`: all.
    pub mask: Option<CsrView<'a, T>>,
    /// Layouts of B and C on a GPU.
    pub layouts: Layouts,
    /// Values of dense operands, row-major, one after another: [`dense_b`](Task::dense_b), [`dense_x`](Task::dense_x),
    /// [`dense_v`](Task::dense_v), [`dense_g`](Task::dense_g).
    pub pool: &'a [T],
}

impl<'a, T: Scalar> Task<'a, T> {
    /// Columns of a dense operand.
    pub fn width(&self) -> usize {
        self.columns * self.heads
    }

    /// Values of B, x, Y or K.
    pub fn dense_b(&self) -> &'a [T] {
        &self.pool[..self.a.ncols() * self.width()]
    }

    /// Values of X or Q, or of the gradient of C.
    pub fn dense_x(&self) -> &'a [T] {
        &self.pool[self.a.ncols() * self.width()..][..self.a.nrows() * self.width()]
    }

    /// Values of V.
    pub fn dense_v(&self) -> &'a [T] {
        let before = (self.a.ncols() + self.a.nrows()) * self.width();
        &self.pool[before..][..self.a.ncols() * self.width()]
    }

    /// Values of the gradient of O.
    pub fn dense_g(&self) -> &'a [T] {
        let before = (2 * self.a.ncols() + self.a.nrows()) * self.width();
        &self.pool[before..][..self.a.nrows() * self.width()]
    }

    /// Elements of a dense C.
    pub fn dense_c_len(&self) -> usize {
        self.a.nrows() * self.width()
    }

    /// Rows of dense operands that are read for every nonzero, wherever they are.
    pub fn gathers(&self) -> usize {
        match self.operation {
            Operation::Attention if self.gradients => 4,
            Operation::Attention => 2,
            _ if self.gradients => 2,
            _ => 1,
        }
    }
}

/// Rows of the pool, each of a dense operand's width, that the operands of `operation` take.
pub(crate) fn pool_rows(operation: Operation, gradients: bool, rows: usize, cols: usize) -> usize {
    match operation {
        Operation::Attention => 2 * (rows + cols),
        Operation::Sddmm => rows + cols,
        _ if gradients => rows + cols,
        _ => cols,
    }
}

/// A result, or some rows of it, for the oracle.
pub(crate) enum Outcome<T: Scalar> {
    /// Row-major.
    Dense(Vec<T>),
    /// The values of an SDDMM.
    Values(Vec<T>),
    Sparse(Csr<T, u64, u64>),
    /// The gradients of A's values and of B.
    OfSpmm {
        values: Vec<T>,
        b: Vec<T>,
    },
    /// The gradients of Q, K and V, beside O and the logarithms of the sums of exponentials that they were given.
    OfAttention(Box<AttentionOutcome<T>>),
}

/// Gradients of an attention, and what they were computed from.
pub(crate) struct AttentionOutcome<T: Scalar> {
    pub o: Vec<T>,
    pub lse: Vec<T::Accum>,
    pub of_q: Vec<T>,
    pub of_k: Vec<T>,
    pub of_v: Vec<T>,
}

/// Versions of an engine and the libraries that it uses, by name.
pub(crate) type Versions = BTreeMap<String, String>;

/// The version of Gustav.
pub(crate) fn our_version() -> Versions {
    [("gustav".into(), env!("CARGO_PKG_VERSION").into())].into()
}

/// Properties of a prepared engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared {
    pub plan_ms: Option<f64>,
    pub chosen: Option<String>,
    pub reason: Option<String>,
    pub products: Option<u64>,
    pub versions: Versions,
    /// Time to compute the features of A, for engines with a row order.
    pub features_ms: Option<f64>,
}

/// An engine prepared for a case.
pub(crate) trait Engine<T: Scalar>: Runner {
    /// The results of preparation.
    fn prepared(&self) -> &Prepared;
    /// Median time of an execution that reuses symbolic work, if the engine can.
    fn reuse_ms(&mut self) -> Result<Option<f64>> {
        Ok(None)
    }
    /// Median time of an execution with warm caches, if `run` starts with cold ones.
    fn hot_ms(&mut self) -> Result<Option<f64>> {
        Ok(None)
    }
    /// Median time of a single execution after a flush of caches, if `run` alternates between sets
    /// of operands.
    fn single_ms(&mut self) -> Result<Option<f64>> {
        Ok(None)
    }
    /// Whether a product waits for the one before it on the same stream when it reads what that one writes, if `run`
    /// alternates between sets of operands: without this, times in series are of products that overlap.
    fn waits(&mut self) -> Result<bool> {
        Ok(true)
    }
    /// From now on an empty launch separates products in series.
    fn separate(&mut self) {}
    /// Median time of one of `repeats` executions in series without these launches, if the engine has them.
    fn overlapping_ms(&mut self, _repeats: usize) -> Result<Option<f64>> {
        Ok(None)
    }
    /// Whether it holds a copy of the operands, which times with cold caches need.
    fn has_copy(&self) -> bool {
        false
    }
    /// Milliseconds of one execution on operands that were not accessed since the flush of the
    /// caches, right after an untimed one on their copy.
    fn cold_ms(&mut self) -> Result<f64> {
        self.run(0, 1).map(|ms| ms.iter().sum())
    }
    /// Median time of the part of an execution that converts the values of A to the algorithm's
    /// format, if there is one.
    fn convert_ms(&mut self) -> Result<Option<f64>> {
        Ok(None)
    }
    /// Most bytes of memory in use during an execution, operands and result included, and the bytes
    /// of the operands and twice the result, if the engine knows them.
    fn memory(&mut self) -> Result<Option<[u64; 2]>> {
        Ok(None)
    }
    /// One more execution from a poisoned C, and its `rows` (all when `None`).
    fn result(&mut self, rows: Option<&[usize]>) -> Result<Outcome<T>>;
    /// The same on the last set of operands, if several alternate.
    fn last_result(&mut self, _rows: Option<&[usize]>) -> Result<Option<Outcome<T>>> {
        Ok(None)
    }
}

/// Extracts rows of a row-major C.
pub(crate) fn dense_rows<T: Scalar>(c: &[T], columns: usize, rows: Option<&[usize]>) -> Vec<T> {
    match rows {
        None => c.to_vec(),
        Some(rows) => {
            rows.iter().flat_map(|&r| &c[r * columns..(r + 1) * columns]).copied().collect()
        }
    }
}

/// Extracts the values of rows with these offsets.
pub(crate) fn values_of<T: Scalar>(
    values: &[T],
    offsets: &[u32],
    rows: Option<&[usize]>,
) -> Vec<T> {
    let of_row = |row: &usize| &values[offsets[*row] as usize..offsets[row + 1] as usize];
    match rows {
        None => values.to_vec(),
        Some(rows) => rows.iter().flat_map(of_row).copied().collect(),
    }
}

/// Milliseconds of `work`, and its result.
pub(crate) fn timed<R>(work: impl FnOnce() -> R) -> (f64, R) {
    let start = std::time::Instant::now();
    let out = work();
    (start.elapsed().as_secs_f64() * 1e3, out)
}

/// NaN; types without one are not measured.
pub(crate) fn poison<T: Scalar>() -> T {
    T::from_f64(f64::NAN)
}

/// Name of a type in the protocol.
pub(crate) fn dtype_name<T: Scalar>() -> &'static str {
    <T as Scalar>::DTYPE.name()
}
