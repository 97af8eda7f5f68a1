//! The bins of both phases, and their counters.

use std::ffi::CStr;

/// Most bins of a phase, as in `kernels/spgemm/arguments.cuh`.
pub(super) const BINS: usize = 14;

/// Counters that kernels report to the host.
pub(super) const REPORTED: usize = 3 * BINS + 3;

/// All counters: those, and the ones with which CTAs synchronise.
pub(super) const WORDS: usize = REPORTED + 2 + BINS;

/// The accumulator of a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accumulator {
    /// A hash table.
    Table { entries: u32 },
    /// A bitmask; in the numeric phase with sums by rank.
    Mask,
    /// A sum for every column.
    Dense,
    /// A sum for every column, in as many copies as fit in shared memory.
    Copies,
    /// None: rows of B are copied, merged, or combined as bitmasks.
    None,
}

/// The threads of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadGroup {
    /// Some threads of a CTA.
    Lanes(u32),
    /// A CTA of the configuration's smaller size.
    Wide,
    /// A CTA of the configuration's larger size.
    Huge,
    /// A CTA of the largest size.
    Giant,
    /// A CTA of the configuration's size for dense accumulators.
    Dense,
    /// Several CTAs of the smaller size.
    SeveralCtas,
}

/// A bin: its kernel, the threads of a row, and the accumulator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bin {
    pub kernel: &'static CStr,
    pub group: ThreadGroup,
    pub accumulator: Accumulator,
}

const fn bin(kernel: &'static CStr, group: ThreadGroup, accumulator: Accumulator) -> Bin {
    Bin { kernel, group, accumulator }
}

/// For rows that are computed from bitmasks of B's rows, in place of their own bin.
pub(super) const UNITED: Bin = bin(c"united", ThreadGroup::Wide, Accumulator::None);

/// Threads of the largest CTAs.
pub(super) const GIANT_GROUP: u32 = 1024;
/// Threads of CTAs with several rows, or with one row in a hash table.
pub(super) const BLOCK: u32 = 128;
/// Threads of the smallest rows.
pub(super) const TINY_GROUP: u32 = 8;
/// Most products of the smallest rows.
pub(super) const TINY: u32 = 32;
/// Most products of rows that are counted in a hash table of a warp.
pub(super) const SMALL: u32 = 512;
/// Most entries of rows that are summed in a hash table of a warp.
pub(super) const SMALL_ENTRIES: u32 = 128;
/// Most entries of rows that are summed in a hash table of a CTA.
pub(super) const MEDIUM_ENTRIES: u32 = 512;

/// The bins of the symbolic phase, in the order of `kernels/spgemm/analysis.cu`.
pub(super) const SYMBOLIC: [Bin; 8] = [
    bin(c"merged_few", ThreadGroup::Lanes(1), Accumulator::None),
    bin(c"merged_many", ThreadGroup::Lanes(1), Accumulator::None),
    bin(c"tiny", ThreadGroup::Lanes(TINY_GROUP), Accumulator::Table { entries: TINY }),
    bin(c"small", ThreadGroup::Lanes(32), Accumulator::Table { entries: SMALL }),
    bin(c"narrow", ThreadGroup::Lanes(32), Accumulator::Mask),
    bin(c"wide", ThreadGroup::Wide, Accumulator::Mask),
    bin(c"huge", ThreadGroup::Huge, Accumulator::Mask),
    bin(c"cut", ThreadGroup::SeveralCtas, Accumulator::Copies),
];

/// The bins of rows of many products, for which bitmasks of B are faster.
pub(super) const LARGE: [usize; 2] = [5, 6];

/// The bins of the numeric phase, in the order of `kernels/spgemm/offsets.cu`.
pub(super) const NUMERIC: [Bin; 13] = [
    bin(c"merged_few", ThreadGroup::Lanes(1), Accumulator::None),
    bin(c"merged_many", ThreadGroup::Lanes(1), Accumulator::None),
    bin(c"tiny", ThreadGroup::Lanes(TINY_GROUP), Accumulator::Table { entries: TINY }),
    bin(c"small", ThreadGroup::Lanes(32), Accumulator::Table { entries: SMALL_ENTRIES }),
    bin(c"medium", ThreadGroup::Lanes(BLOCK), Accumulator::Table { entries: MEDIUM_ENTRIES }),
    bin(c"narrow", ThreadGroup::Lanes(32), Accumulator::Mask),
    bin(c"wide", ThreadGroup::Wide, Accumulator::Mask),
    bin(c"huge", ThreadGroup::Huge, Accumulator::Mask),
    bin(c"giant", ThreadGroup::Giant, Accumulator::Mask),
    bin(c"dense", ThreadGroup::Dense, Accumulator::Dense),
    bin(c"vast", ThreadGroup::Huge, Accumulator::Dense),
    bin(c"copy", ThreadGroup::Lanes(32), Accumulator::None),
    bin(c"cut", ThreadGroup::SeveralCtas, Accumulator::Copies),
];

/// The bin after those: full rows, which `dense-output` computes if B is packed for it.
pub(super) const FULL: usize = NUMERIC.len();

/// Counters from the device: for every bin the rows, the widest and the largest row, then totals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counters(pub [u64; REPORTED]);

impl Counters {
    /// Rows of a bin.
    pub(super) fn rows(&self, bin: usize) -> u32 {
        u32::try_from(self.0[bin]).unwrap_or(u32::MAX)
    }

    /// Rows of the bins before it: its first position in the list.
    pub(super) fn begin(&self, bin: usize) -> u32 {
        (0..bin).map(|bin| self.rows(bin)).sum()
    }

    /// Columns between the first and the last of the widest row.
    pub(super) fn widest(&self, bin: usize) -> usize {
        self.0[BINS + bin] as usize
    }

    /// Products (symbolic) or entries (numeric) of the largest row.
    pub(super) fn largest(&self, bin: usize) -> usize {
        self.0[2 * BINS + bin] as usize
    }

    /// Intermediate products.
    pub(super) fn products(&self) -> u64 {
        self.0[3 * BINS]
    }

    /// Entries of C.
    pub(super) fn entries(&self) -> u64 {
        self.0[3 * BINS + 1]
    }

    /// Entries of B whose column is not larger than the one before in the row.
    pub(super) fn descents(&self) -> u64 {
        self.0[3 * BINS + 2]
    }
}
