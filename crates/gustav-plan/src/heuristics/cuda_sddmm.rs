//! Which SDDMM algorithm on a GPU, and its tuning.
//!
//! A cost model, in picoseconds on a full device: what gathering a row of Y costs for every nonzero, what a position
//! of a dense tile costs, and what part of the gathers blocks of rows leave. Its parameters were fitted to sweeps on
//! an H200 over the real matrices of corpus and corpus-fit.

use gustav_core::{Problem, Result};

use super::cuda_spmm::{height, inspects};
use crate::{Algorithm, DeviceProfile, RowLengths, RowSimilarity};

/// Fixed cost of a nonzero and cost of a byte of its row of Y, gathered.
const GATHER: Line = Line { fixed: 1.0, of_byte: 0.085 };
/// The same in 16 bits.
const GATHER_16_BIT: Line = Line { fixed: 3.0, of_byte: 0.105 };
/// Fixed cost of a position of a dense tile and cost of a byte of its row of Y, by scalar products.
const DENSE: Line = Line { fixed: 0.5, of_byte: 0.015 };
/// The same on tensor cores.
const DENSE_TENSOR: Line = Line { fixed: 1.6, of_byte: 0.006 };
/// Positions of a dense tile.
const TILE: f64 = 64.0 * 64.0;
/// What another algorithm has to gain before it is taken.
const GAIN: f64 = 1.1;
/// Distinct columns per nonzero up to which blocks of rows pay, ...
const SHARED: f64 = 0.6;
/// ... largest ratio of the longest row to the mean, ...
const ALIKE: f64 = 5.3;
/// ... and least mean nonzeros of a row.
const ALIKE_MEAN: f64 = 12.4;
/// Threads of a multiprocessor with which a device counts as full.
const THREADS: f64 = 768.0;
/// Parts of a block at most.
const MOST_PARTS: f64 = 8.0;

/// A cost that grows with the bytes of a row.
struct Line {
    fixed: f64,
    of_byte: f64,
}

impl Line {
    fn at(&self, bytes: f64) -> f64 {
        self.fixed + self.of_byte * bytes
    }
}

/// A tuning configuration of one algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// `nonzero-split`, `row-block` or `dense-tiles`.
    pub algorithm: Algorithm,
    /// Rows of a block, for `row-block`, ...
    pub height: u32,
    /// ... and parts of it.
    pub parts: u32,
    /// Why, in one sentence.
    pub reason: String,
}

/// The tuning for `problem` on a device with `profile`.
///
/// # Errors
/// Those of `rows` and `similarity`, which are called where sharing loads could pay.
pub fn choose<'r>(
    problem: &Problem,
    profile: &DeviceProfile,
    has_tensor_cores: bool,
    rows: impl FnOnce() -> Result<&'r RowLengths>,
    similarity: impl FnOnce() -> Result<RowSimilarity>,
) -> Result<Tuning> {
    let split =
        |reason: String| Tuning { algorithm: Algorithm::NonzeroSplit, height: 1, parts: 1, reason };
    if !inspects(problem, profile) {
        return Ok(split(format!("not inspected for {} calls", problem.calls)));
    }
    let bytes = (problem.columns * problem.dtype.bytes()) as f64;
    let gather = if problem.dtype.bytes() == 2 { GATHER_16_BIT } else { GATHER }.at(bytes);
    let density = density(problem);
    if !problem.dtype.is_integer() {
        let idle = (profile.units as f64 * TILE / positions(problem)).max(1.0);
        let dense = if has_tensor_cores { DENSE_TENSOR } else { DENSE }.at(bytes) * idle;
        if density * gather > GAIN * dense {
            let reason = format!(
                "{:.0} % of all positions are nonzeros: whole tiles cost less than gathering rows of Y",
                100.0 * density
            );
            return Ok(Tuning { algorithm: Algorithm::DenseTiles, ..split(reason) });
        }
    }
    let rows = rows()?;
    let mean = rows.mean_filled();
    if mean >= ALIKE_MEAN && rows.max() as f64 <= ALIKE * mean {
        let similarity = similarity()?;
        let tuning = row_block(problem, profile, &similarity);
        let distinct = distinct(&similarity, tuning.height);
        if distinct <= SHARED {
            return Ok(tuning);
        }
        return Ok(split(format!(
            "{} neighbouring rows have {distinct:.2} distinct columns per nonzero: they share few rows of Y",
            tuning.height
        )));
    }
    Ok(split(format!(
        "rows of {mean:.1} nonzeros on average but for empty ones, {} at most: equal numbers of nonzeros",
        rows.max()
    )))
}

/// The tuning of `row-block`: the height that shares most, in as many parts as fill the device.
pub fn row_block(problem: &Problem, profile: &DeviceProfile, similarity: &RowSimilarity) -> Tuning {
    let height = height(similarity, problem.dtype.bytes());
    let lanes = ((problem.columns * problem.dtype.bytes()) as f64 / 16.0).clamp(1.0, 32.0);
    let threads = problem.rows as f64 / f64::from(height) * lanes;
    let wanted = (profile.units as f64 * THREADS / threads.max(1.0)).clamp(1.0, MOST_PARTS);
    Tuning {
        algorithm: Algorithm::RowBlock,
        height,
        parts: wanted.ceil() as u32,
        reason: format!(
            "{height} neighbouring rows have {:.2} distinct columns per nonzero: they share loads of Y",
            distinct(similarity, height)
        ),
    }
}

fn distinct(similarity: &RowSimilarity, height: u32) -> f64 {
    similarity.distinct[height as usize - 2]
}

fn positions(problem: &Problem) -> f64 {
    (problem.rows as f64 * problem.cols as f64).max(1.0)
}

fn density(problem: &Problem) -> f64 {
    problem.nnz as f64 / positions(problem)
}
