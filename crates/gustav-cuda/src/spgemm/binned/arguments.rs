//! The parameter block of the kernels, and the layout of the workspace.

use std::ops::Range;

use gustav_core::Problem;

use super::bins::WORDS;
use super::request::{ITEMS, SCAN};
use crate::device::Device;
use crate::product::sparse_operands::{Matrix, Operands, Output};

// Rows of a multiprocessor with which a CTA or a warp for each leaves it busy, and a thread for some
// and for all.
const FULL_OF_WARPS: usize = 64;
const FULL_OF_SOME: usize = 128;
const FULL_OF_THREADS: usize = 512;
// Products that a thread merges at most, of few rows of B and of many, by how full the device is.
const MERGED_FEW: [u32; 3] = [0, 32, 64];
const MERGED_MANY: [u32; 3] = [0, 0, 160];
// Products that a warp has a mask for, and a smaller CTA, at most, where rows are few and many.
const NARROW: [u32; 2] = [1024, 4096];
const WIDE: [u32; 2] = [8192, 32_768];
// Rows that have one of so many parts of A's nonzeros are cut, if they have as many as `CUT`; as many
// as `CUT_FEW` where there are fewer rows than multiprocessors.
const CUT_PARTS: usize = 512;
const CUT: usize = 4096;
const CUT_FEW: usize = 256;
// Granules of columns that are counted in 16 bits, and columns of the smallest ones as a power of two.
const GRANULES: u64 = 1 << 16;
const LEAST_GRANULE: u32 = 5;

/// Products that a thread merges at most, of few rows of B and of many, where there are so many rows.
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
        /// Of every row: its columns, see `Range`, and its products and bin, see `Cost`. Its
        /// entries are in `c.offsets`, at the next index, until the scan makes them offsets.
        ranges: *mut u32,
        costs: *mut u16,
        /// Rows of a phase, bin after bin.
        pub list: *mut u32,
        pub counters: *mut u64,
        /// Host memory for the counters; the word behind it is written last.
        pub report: *mut u64,
        /// Of every tile of the scan: what it and those before it hold.
        tiles: *mut u64,
        /// B as bits, `bit_words` words a row, where it is full enough.
        pub bits: *mut u32,
        /// Of `slots` rows cut into chunks: the row numbers, the chunks that have ended, their bits and sums.
        pub slot_rows: *mut u32,
        pub ended: *mut u32,
        pub found_bits: *mut u32,
        pub found_sums: *mut void,
        pub rows: u64,
        pub rows_b: u64,
        pub columns: u64,
        nnz_b: u64,
        pub alpha: u64,
        /// Entries of C before these rows.
        pub first: u64,
        /// Of a launch: where its rows are in the list, how many, and what shared memory fits
        /// for per thread group.
        pub begin: u32,
        pub count: u32,
        pub words: u32,
        pub entries: u32,
        /// Of the analysis: lanes of a row as a power of two, rows of a CTA.
        pub log_lanes: u32,
        pub tile: u32,
        /// Whether rows of B increase strictly; whether rows of C must.
        pub ordered: u32,
        sorted: u32,
        pub bit_words: u32,
        /// Of the bins: products that a thread merges of few rows of B and of many, that a warp and
        /// a smaller CTA have a mask for, at most; nonzeros of rows cut into chunks, at least.
        merged_few: u32,
        merged_many: u32,
        narrow: u32,
        wide: u32,
        cut: u32,
        pub slots: u32,
        /// Products of an entry of full rows with a bin of their own, at least; none where 0.
        pub full: u32,
        /// Columns of a granule of ranges as a power of two.
        log_granule: u32,
        /// Number of the report, which is written behind it.
        pub report_number: u32,
    }
}

impl Arguments {
    /// Of operands alone, whose rows of B increase; all rows of A are counted.
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

    /// Another A and B of the same patterns.
    pub(in crate::spgemm) fn set_operands(&mut self, o: &Operands) {
        (self.a, self.b) = (o.a.into(), o.b.into());
    }
}

/// Where things are in the workspace, in words of 8 bytes.
pub(super) struct Layout {
    /// All of it.
    pub words: usize,
    /// Words from the counters of the symbolic phase on that kernels expect to be zero: those, the
    /// counters of the numeric phase and the tiles of the scan.
    pub zeroed: usize,
    rows: usize,
}

impl Layout {
    /// Of a product with so many rows.
    pub(super) fn new(rows: usize) -> Self {
        // One tile even of no rows: its CTA writes the first offset.
        let zeroed = 2 * WORDS + rows.div_ceil((SCAN * ITEMS) as usize).max(1);
        // An entry of the list and a range, and a cost of half the size.
        let words = zeroed + (rows * (4 + 4 + 2)).div_ceil(8);
        Layout { words, zeroed, rows }
    }

    /// Bytes of the workspace.
    pub(super) fn bytes(&self) -> usize {
        8 * self.words
    }

    /// The bytes of a list of so many rows.
    pub(super) fn list(&self, rows: usize) -> Range<usize> {
        let begin = 8 * self.zeroed;
        begin..begin + 4 * rows
    }

    /// Those of columns and products of every row, which are behind a list of all rows.
    pub(super) fn ranges_and_costs(&self) -> Range<usize> {
        let begin = self.list(self.rows).end;
        begin..begin + (4 + 2) * self.rows
    }

    /// Where the counters of both phases are in a workspace at `at`.
    pub(super) fn counters(&self, at: u64) -> [u64; 2] {
        [at, at + 8 * WORDS as u64]
    }

    /// The parameter block of a workspace at `at`, with C's offsets at `offsets`, and of the operands.
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

    /// Tells kernels of a workspace at `at`.
    pub(super) fn set_addresses(&self, at: u64, arguments: &mut Arguments) {
        let [counters, numeric] = self.counters(at);
        arguments.counters = counters;
        arguments.tiles = numeric + 8 * WORDS as u64;
        arguments.list = at + 8 * self.zeroed as u64;
        arguments.ranges = arguments.list + 4 * self.rows as u64;
        arguments.costs = arguments.ranges + 4 * self.rows as u64;
    }
}
