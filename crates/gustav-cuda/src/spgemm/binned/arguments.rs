//! The parameter block of the kernels, and the layout of the workspace.

use std::ops::Range;

use gustav_core::Problem;

use super::bins::WORDS;
use super::request::{ITEMS, SCAN};
use crate::device::Device;
use crate::product::sparse_operands::{Matrix, Operands, Output};

// Rows per multiprocessor that fill it with a warp or a CTA for each row, with a thread for some
// rows, and with a thread for each row.
const FULL_OF_WARPS: usize = 64;
const FULL_OF_SOME: usize = 128;
const FULL_OF_THREADS: usize = 512;
// Most products of a row that a thread merges, from few rows of B and from many, by how full the
// device is.
const MERGED_FEW: [u32; 3] = [0, 32, 64];
const MERGED_MANY: [u32; 3] = [0, 0, 160];
// Most products of a row with a bitmask of a warp, and of the smaller CTA; for few rows and for
// many.
const NARROW: [u32; 2] = [1024, 4096];
const WIDE: [u32; 2] = [8192, 32_768];
// Rows with at least 1/`CUT_PARTS` of A's nonzeros are cut, if they have `CUT` nonzeros; `CUT_FEW`
// if there are fewer rows than multiprocessors.
const CUT_PARTS: usize = 512;
const CUT: usize = 4096;
const CUT_FEW: usize = 256;
// Column ranges are stored in granules, numbered in 16 bits: most granules, and log2 of the columns
// of the smallest granule.
const GRANULES: u64 = 1 << 16;
const LEAST_GRANULE: u32 = 5;

/// Most products of a row that a thread merges, from few rows of B and from many, for `rows` rows.
pub(in crate::spgemm) fn merged(rows: usize, multiprocessors: usize) -> [u32; 2] {
    let fills = |most: usize| usize::from(rows >= most * multiprocessors);
    let threads = fills(FULL_OF_SOME) + fills(FULL_OF_THREADS);
    [MERGED_FEW[threads], MERGED_MANY[threads]]
}

parameter_block! {
    /// The parameter of every kernel, see `kernels/spgemm/arguments.cuh`.
    pub(in crate::spgemm) struct Arguments {
        pub a: Matrix,
        pub b: Matrix,
        pub c: Output,
        /// For every row its range of columns, see `Range`, and its products and bin, see `Cost`.
        /// Its number of entries is in `c.offsets`, at the next index, until the scan computes
        /// offsets.
        ranges: *mut u32,
        costs: *mut u16,
        /// Rows of a phase, by bin.
        pub list: *mut u32,
        pub counters: *mut u64,
        /// Host memory for the counters; the word after them is written last.
        pub report: *mut u64,
        /// For every tile of the scan its sum and the sum of all tiles up to it.
        tiles: *mut u64,
        /// B as bitmasks, `bit_words` words per row, if it is dense enough.
        pub bits: *mut u32,
        /// For `slots` rows cut into chunks: the row numbers, the finished chunks, their bits and
        /// sums.
        pub slot_rows: *mut u32,
        pub ended: *mut u32,
        pub found_bits: *mut u32,
        pub found_sums: *mut void,
        pub rows: u64,
        pub rows_b: u64,
        pub columns: u64,
        nnz_b: u64,
        pub alpha: u64,
        /// Entries of C before the rows of this part.
        pub first: u64,
        /// Of a launch: its first row in the list, the number of rows, and per thread group the
        /// words of the bitmask and the entries that shared memory holds.
        pub begin: u32,
        pub count: u32,
        pub words: u32,
        pub entries: u32,
        /// Of the analysis: log2 of the lanes of a row, rows of a CTA.
        pub log_lanes: u32,
        pub tile: u32,
        /// Whether columns of B's rows strictly increase; whether those of C must.
        pub ordered: u32,
        sorted: u32,
        pub bit_words: u32,
        /// Limits of the bins: most products that a thread merges from few rows of B and from many,
        /// most products for a bitmask of a warp and of the smaller CTA; fewest nonzeros of rows
        /// cut into chunks.
        merged_few: u32,
        merged_many: u32,
        narrow: u32,
        wide: u32,
        cut: u32,
        pub slots: u32,
        /// Fewest products per entry of full rows, which have a bin of their own; 0 for no such
        /// bin.
        pub full: u32,
        /// log2 of the columns of a granule.
        log_granule: u32,
        /// Number of the report, written after the counters.
        pub report_number: u32,
    }
}

impl Arguments {
    /// Arguments for the operands alone; rows of B are assumed to increase.
    pub(in crate::spgemm) fn of(o: &Operands) -> Self {
        Arguments {
            a: o.a.into(),
            b: o.b.into(),
            rows: o.a.rows as u64,
            rows_b: o.b.rows as u64,
            columns: o.b.cols as u64,
            nnz_b: o.b.nnz as u64,
            alpha: o.alpha,
            count: u32::try_from(o.a.rows).unwrap_or(u32::MAX),
            ordered: 1,
            ..Arguments::default()
        }
    }

    /// Sets another A and B of the same patterns.
    pub(in crate::spgemm) fn set_operands(&mut self, o: &Operands) {
        (self.a, self.b) = (o.a.into(), o.b.into());
    }
}

/// Layout of the workspace, in words of 8 bytes.
pub(super) struct Layout {
    /// Size of the workspace.
    pub words: usize,
    /// Words that must be zero, from the counters of the symbolic phase on: these, the counters of
    /// the numeric phase and the tiles of the scan.
    pub zeroed: usize,
    rows: usize,
}

impl Layout {
    /// The layout for `rows` rows.
    pub(super) fn new(rows: usize) -> Self {
        // At least one tile: its CTA writes the first offset.
        let zeroed = 2 * WORDS + rows.div_ceil((SCAN * ITEMS) as usize).max(1);
        // Per row an entry of the list and a range of 4 bytes each, and a cost of 2 bytes.
        let words = zeroed + (rows * (4 + 4 + 2)).div_ceil(8);
        Layout { words, zeroed, rows }
    }

    /// Bytes of the workspace.
    pub(super) fn bytes(&self) -> usize {
        8 * self.words
    }

    /// The bytes of a list of `rows` rows.
    pub(super) fn list(&self, rows: usize) -> Range<usize> {
        let begin = 8 * self.zeroed;
        begin..begin + 4 * rows
    }

    /// The bytes of the ranges and costs of all rows, which follow a list of all rows.
    pub(super) fn ranges_and_costs(&self) -> Range<usize> {
        let begin = self.list(self.rows).end;
        begin..begin + (4 + 2) * self.rows
    }

    /// Addresses of the counters of both phases in a workspace at `at`.
    pub(super) fn counters(&self, at: u64) -> [u64; 2] {
        [at, at + 8 * WORDS as u64]
    }

    /// The parameter block of a workspace at `at`, with C's offsets at `offsets`, and of the
    /// operands.
    pub(super) fn arguments(
        &self,
        at: u64,
        offsets: u64,
        device: &Device,
        o: &Operands,
        problem: &Problem,
    ) -> Arguments {
        let granules = |log: u32| (o.b.cols as u64).div_ceil(1 << log);
        let log_granule = (LEAST_GRANULE..).find(|log| granules(*log) <= GRANULES);
        let multiprocessors = device.profile().multiprocessors;
        let warps = usize::from(self.rows >= FULL_OF_WARPS * multiprocessors);
        let [merged_few, merged_many] = merged(self.rows, multiprocessors);
        let few = self.rows < multiprocessors;
        let cut = if few { CUT_FEW } else { o.a.nnz.div_ceil(CUT_PARTS).max(CUT) };
        let mut arguments = Arguments {
            c: Output { offsets, ..Output::default() },
            log_granule: log_granule.unwrap_or(LEAST_GRANULE),
            sorted: u32::from(problem.sorted),
            merged_few,
            merged_many,
            narrow: NARROW[warps],
            wide: WIDE[warps],
            cut: u32::try_from(cut).unwrap_or(u32::MAX),
            ..Arguments::of(o)
        };
        self.set_addresses(at, &mut arguments);
        arguments
    }

    /// Sets the addresses of a workspace at `at`.
    pub(super) fn set_addresses(&self, at: u64, arguments: &mut Arguments) {
        let [counters, numeric] = self.counters(at);
        arguments.counters = counters;
        arguments.tiles = numeric + 8 * WORDS as u64;
        arguments.list = at + 8 * self.zeroed as u64;
        arguments.ranges = arguments.list + 4 * self.rows as u64;
        arguments.costs = arguments.ranges + 4 * self.rows as u64;
    }
}
