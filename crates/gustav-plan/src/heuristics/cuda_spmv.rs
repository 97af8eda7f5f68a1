//! The configurations of SpMV on a GPU among which the [cost model](crate::cost) chooses, and when counting row
//! lengths pays.
//!
//! Of 29 measured configurations, a dozen are left: taken one after another so that the fastest of them lost least on
//! the matrices of suite `choice` that may be fitted to.

use gustav_core::Problem;

/// Cost of inspecting the rows, in nonzeros and row starts of each thread of the device; ...
const INSPECTION_COST: f64 = 600.0;
/// ... and what the inspection saves of every execution, even of an empty product.
const INSPECTION_GAIN: f64 = 24.0;

/// A tuning configuration of `segmented` with rows in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InOrder {
    /// Lanes that share a row.
    pub lanes: u32,
    /// Rows with more nonzeros than this are cut.
    pub longest: u32,
    /// Most nonzeros of a part of a cut row.
    pub part: u32,
}

/// A tuning configuration of `segmented` with segments from a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Lanes that share a segment.
    pub lanes: u32,
    /// Most nonzeros of a segment.
    pub longest: u32,
}

/// A tuning configuration of `even-shares`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvenShares {
    /// Row starts and nonzeros for each thread.
    pub items: u32,
    /// Threads of a CTA.
    pub threads: u32,
    /// Threads of a multiprocessor that the registers of a kernel must allow.
    pub resident: u32,
}

/// Rows in their order, by the fewest lanes first.
pub fn in_order() -> [InOrder; 6] {
    let rows = |(lanes, longest, part)| InOrder { lanes, longest, part };
    [(1, 32, 256), (2, 32, 256), (4, 64, 256), (8, 128, 256), (16, 512, 1024), (32, 512, 256)]
        .map(rows)
}

/// Segments from a list.
pub fn listed() -> [Listed; 2] {
    [256, 1024].map(|longest| Listed { lanes: 32, longest })
}

/// Equal partitions.
pub fn even_shares() -> [EvenShares; 4] {
    let shape = |(items, threads, resident)| EvenShares { items, threads, resident };
    [(4, 128, 2048), (4, 256, 2048), (4, 512, 2048), (8, 256, 1024)].map(shape)
}

/// Whether the expected calls repay inspecting the rows, on a device with `resident` resident
/// threads. The inspection takes about the same time for every matrix and saves about the same
/// fraction of every execution, more of a short one.
pub fn inspects(problem: &Problem, resident: usize) -> bool {
    let items = (problem.nnz + problem.output_rows()) as f64 / resident as f64;
    problem.calls > 1 && problem.calls as f64 * (items + INSPECTION_GAIN) >= INSPECTION_COST
}
