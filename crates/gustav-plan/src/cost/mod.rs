//! The cost model: what limits a product, and the time that follows.
//!
//! A configuration of a kernel does work of several kinds: bytes from memory, bytes gathered from L2, instructions,
//! steps that depend on each other. Each amount over a nominal rate of the device is a time, a [`Bound`], which counts
//! times a parameter: what the kernel takes of that bound, 0 where it is hidden behind others. Bounds are of three
//! [kinds](Kind): what every execution takes, what is spread over the whole device, and what one group does alone. The
//! times of a kind add up. The last two overlap: the longer of them counts, and where they are about equal somewhat
//! more.
//!
//! Parameters are fitted by `bench/fit_cost_model.py` to records of suite `choice`, never by hand. They are kept for
//! each size of values and each [`Class`] of schedules.

mod calibration;
pub mod cpu_spmm;
mod facts;
mod lengths;
mod parameters;
pub mod spmm;
pub mod spmv;

use serde::{Deserialize, Serialize};

use crate::Algorithm;

pub use calibration::{Calibration, Resource, Sample};
pub use facts::{Facts, HostFacts};
pub use lengths::{LengthCounts, Lengths};
pub(crate) use parameters::VECTOR_BYTES;
pub use parameters::{CpuParameters, Fitted, OfClass, OfProduct, Parameters};

/// The exponent of the norm in which times of the whole device and of one group are added: the sum at 1, the greater
/// one at infinity. Of 1, 1.5, 2, 3 and 4, choices on families held out of the fit lost least at 3.
const OVERLAP: f64 = 3.0;

/// What takes time. Amounts are in microseconds at nominal rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Every execution: a launch and its end. One microsecond.
    Execution,
    /// Bytes of A, B and C, each once, at the bandwidth of memory.
    Memory,
    /// Bytes of rows of B that L2 does not hold, at the bandwidth of memory.
    Misses,
    /// Every execution of this class of schedules. One microsecond.
    Class,
    /// Steps of all groups of lanes, one microsecond each, over the groups that are resident.
    Latency,
    /// Steps of the group with most work, one microsecond each.
    Chain,
    /// Instructions of the group with most work, one after another.
    Serial,
    /// Multiplications and additions, at the issue rate of the device; of some schedules with loads of B.
    Arithmetic,
    /// Instructions that load and broadcast A, at the issue rate.
    Indices,
    /// Beginnings and ends of segments, at the issue rate.
    Segments,
    /// Stores of C and reductions among subgroups, at the issue rate.
    Stores,
    /// Bytes of rows of C that several parts of a row store for the fix-up.
    Parts,
    /// Whether rows are cut. One microsecond.
    Cut,
    /// Parts of the longest row, which one group adds up: a tenth of a microsecond each.
    FixUp,
    /// Bytes of rows of B, one for each nonzero, at the bandwidth of L2.
    Gather,
    /// Bytes of tiles of B that are copied to shared memory, at the bandwidth of L2.
    Copies,
    /// Bytes of tiles that are copied while nothing is multiplied, at the bandwidth of L2.
    Exposed,
    /// Tiles that a multiprocessor takes one after another, one microsecond each.
    Tiles,
    /// Bytes of rows of B from shared memory, one for each nonzero.
    Shared,
    /// Bytes of rows of C that segments add by atomic reductions, at the bandwidth of L2.
    Reductions,
    /// Nonzeros of the longest segment, ten nanoseconds each.
    Longest,
    /// Lines of A that the loads of a warp touch, at the issue rate.
    Lines,
    /// Steps in which groups of lanes wait for longer rows of their warp, one microsecond each, over the groups that are
    /// resident.
    Waiting,
    /// Instructions of these steps, at the issue rate.
    Idle,
}

impl Bound {
    /// Its name in records, parameter files and explanations.
    pub fn name(self) -> &'static str {
        match self {
            Bound::Execution => "execution",
            Bound::Memory => "memory",
            Bound::Misses => "misses",
            Bound::Class => "class",
            Bound::Latency => "latency",
            Bound::Chain => "chain",
            Bound::Serial => "serial",
            Bound::Arithmetic => "arithmetic",
            Bound::Indices => "indices",
            Bound::Segments => "segments",
            Bound::Stores => "stores",
            Bound::Parts => "parts",
            Bound::Cut => "cut",
            Bound::FixUp => "fix-up",
            Bound::Gather => "gather",
            Bound::Copies => "copies",
            Bound::Exposed => "exposed",
            Bound::Tiles => "tiles",
            Bound::Shared => "shared",
            Bound::Reductions => "reductions",
            Bound::Longest => "longest",
            Bound::Lines => "lines",
            Bound::Waiting => "waiting",
            Bound::Idle => "idle",
        }
    }

    /// What it is a limit of.
    pub fn kind(self) -> Kind {
        match self {
            Bound::Execution | Bound::Class | Bound::Cut => Kind::Constant,
            Bound::Chain | Bound::Serial | Bound::FixUp | Bound::Longest | Bound::Tiles => {
                Kind::Path
            }
            _ => Kind::Throughput,
        }
    }

    /// Whether its parameter is the same for all classes of schedules.
    pub fn is_common(self) -> bool {
        matches!(self, Bound::Execution | Bound::Memory | Bound::Misses)
    }
}

/// What a bound is a limit of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every execution takes it.
    Constant,
    /// Work that is spread over the whole device.
    Throughput,
    /// Work of one group of lanes or one multiprocessor, one step after another.
    Path,
}

/// Schedules whose kernels share parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// `segmented` with four rows of B and more in flight, in registers.
    ManyLoads,
    /// `segmented` with fewer loads in flight, and more threads.
    FewLoads,
    /// `segmented` with rows of B copied to shared memory.
    Staged,
    /// The same, with few lanes that hold a whole row.
    Copied,
    /// `segmented` with a CTA per segment.
    CtaPerSegment,
    /// `segmented`, with loads of 8 bytes where rows of B are vectors of 16.
    HalfVectors,
    /// `segmented` with several segments per group, one after another, and a group for each long one.
    SeveralSegments,
    /// The same, where subgroups share the long ones.
    SharedHead,
    /// `segmented` with several segments per group at once.
    SegmentsAtOnce,
    /// `row-block` with two rows.
    #[serde(rename = "row-block-2")]
    RowBlock2,
    /// `row-block` with three rows.
    #[serde(rename = "row-block-3")]
    RowBlock3,
    /// `row-block` with four rows.
    #[serde(rename = "row-block-4")]
    RowBlock4,
    /// `b-stationary`.
    BStationary,
    /// `tensor`.
    Tensor,
    /// SpMV by `segmented` with rows in their order.
    VectorInOrder,
    /// SpMV by `segmented` with a list of segments.
    VectorListed,
    /// SpMV by `even-shares`.
    VectorEvenShares,
    /// `row-split` on a CPU.
    CpuRowSplit,
    /// `nonzero-split` on a CPU.
    CpuNonzeroSplit,
    /// `row-block` on a CPU.
    CpuRowBlock,
    /// `column-panel` on a CPU.
    CpuColumnPanel,
}

/// The bounds of a configuration, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// The class of its schedule.
    pub class: Class,
    /// Bounds that are not 0.
    pub terms: Vec<(Bound, f64)>,
}

impl Bounds {
    /// The predicted time for values of `bytes` bytes, and the part of each bound.
    pub fn predict(&self, parameters: Fitted<'_>, bytes: usize) -> Predicted {
        let parameters = parameters.of_class(bytes, self.class);
        let part = |&(bound, us): &(Bound, f64)| (bound, us * parameters.of(bound));
        let mut parts: Vec<_> = self.terms.iter().map(part).collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let sum = |kind| parts.iter().filter(|(b, _)| b.kind() == kind).map(|p| p.1).sum::<f64>();
        let us = together([Kind::Constant, Kind::Throughput, Kind::Path].map(sum));
        Predicted { us, measured: parameters.measured, parts }
    }
}

/// The time of an execution, of the sums of its times of each kind: the last two overlap.
fn together([constant, throughput, path]: [f64; 3]) -> f64 {
    constant + (throughput.powf(OVERLAP) + path.powf(OVERLAP)).powf(1.0 / OVERLAP)
}

/// A predicted time.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// Microseconds.
    pub us: f64,
    /// Whether the class was measured with values of this size: other predictions rank configurations, by the
    /// parameters of another size, and are no times.
    pub measured: bool,
    /// The part of each bound in microseconds, the largest first.
    pub parts: Vec<(Bound, f64)>,
}

impl Predicted {
    /// This time as the least of a ranking, beside the next of another algorithm.
    pub fn beside(&self, next: Option<(Algorithm, &Predicted)>) -> String {
        match next {
            Some((other, time)) if self.measured && time.measured => {
                format!(
                    "predicted at {self}; the fastest of another algorithm, {other}, at {:.1} µs",
                    time.us
                )
            }
            _ => format!("predicted at {self}"),
        }
    }
}

impl std::fmt::Display for Predicted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.measured {
            return f.write_str("the least, by the parameters of another size of values");
        }
        write!(f, "{:.1} µs", self.us)?;
        let largest = self.parts.iter().take(3).filter(|p| p.1 > 0.0);
        let named: Vec<_> =
            largest.map(|(bound, us)| format!("{} {us:.1}", bound.name())).collect();
        if named.is_empty() { Ok(()) } else { write!(f, " ({})", named.join(", ")) }
    }
}
