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
pub(crate) use process::{Matrix, PeerProcess, failed, lacks};

/// A case with its operands.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a, T: Scalar> {
    pub operation: Operation,
    pub a: CsrView<'a, T>,
    /// The second factor of an SpGEMM.
    pub b: Option<CsrView<'a, T>>,
    /// Columns of B and C, or of X and Y; 1 for SpMV.
    pub columns: usize,
    pub sorted: bool,
    /// The entries of a sparse C to compute; `None`: all.
    pub mask: Option<CsrView<'a, T>>,
    /// Layouts of B and C on a GPU.
    pub layouts: Layouts,
    /// Values of B, row-major, of x, or of Y: the first `a.ncols() * columns` of the pool; for
    /// SDDMM followed by X, `a.nrows() * columns`.
    pub pool: &'a [T],
}

impl<'a, T: Scalar> Task<'a, T> {
    /// Values of B or x.
    pub fn dense_b(&self) -> &'a [T] {
        &self.pool[..self.a.ncols() * self.columns]
    }

    /// Values of X, row-major, of an SDDMM.
    pub fn dense_x(&self) -> &'a [T] {
        &self.pool[self.a.ncols() * self.columns..][..self.a.nrows() * self.columns]
    }

    /// Elements of a dense C.
    pub fn dense_c_len(&self) -> usize {
        self.a.nrows() * self.columns
    }
}

/// A result, or some rows of it, for the oracle.
pub(crate) enum Outcome<T: Scalar> {
    /// Row-major.
    Dense(Vec<T>),
    /// The values of an SDDMM.
    Values(Vec<T>),
    Sparse(Csr<T, u64, u64>),
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
