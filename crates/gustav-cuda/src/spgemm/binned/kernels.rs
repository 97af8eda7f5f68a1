//! The kernels of `binned`: how they are compiled and launched.

use std::ffi::CStr;
use std::sync::Arc;

use gustav_core::{DType, IndexType, Problem, Result, SemiringKind};

use super::Config;
use super::bins::{
    Accumulator, BINS, BLOCK, Bin, Counters, MEDIUM_ENTRIES, NUMERIC, SMALL, SMALL_ENTRIES, TINY,
    TINY_TEAM, Team, WORDS,
};
use crate::jit::Request;
use crate::kernel::{Kernel, Module};
use crate::spgemm::operands::Operands;
use crate::stream::Stream;
use crate::{Device, source};

// Threads of the analysis' CTAs, and of the scan's, where a thread has so many rows.
const ANALYSIS: u32 = 256;
const SCAN: u32 = 256;
const ITEMS: u32 = 4;
// Nonzeros of a mean row that a lane of the analysis counts.
const PER_LANE: usize = 4;
// CTAs of the analysis for every multiprocessor, before they take more rows each.
const CTAS: usize = 8;
// Rows with more products get their range of columns.
const RANGED: u32 = 64;
// Most columns, products and entries of rows that a warp has a mask for.
const NARROW: u32 = 32_768;
const NARROW_PRODUCTS: u32 = 4096;
const NARROW_ENTRIES: u32 = 512;
// Rows of so many columns are rather sorted than ranked by a CTA.
const MEDIUM_WIDTH: u32 = 65_536;
// Most products and entries of rows of the smaller CTAs.
const WIDE_PRODUCTS: u32 = 32_768;
const WIDE_ENTRIES: u32 = 4096;
const HUGE_ENTRIES: u32 = 12_288;
// Fewest products of rows with a sum for every column, and products of a nonzero of theirs.
const DENSE_PRODUCTS: u32 = 4096;
const DENSE_MEAN: u32 = 128;
const VAST_MEAN: u32 = 512;
// Threads of the largest CTAs.
const GIANT_TEAM: u32 = 1024;
// Bytes of sums for every column with which several CTAs fit on a multiprocessor.
const DENSE_BYTES: u32 = 64 << 10;
// Bytes of shared memory with which too few of the smaller CTAs fit on a multiprocessor.
const CROWDED: usize = 56 << 10;
// Shared memory that kernels declare themselves.
const DECLARED: usize = 1024;

/// The parameter of every kernel, see `kernels/spgemm/arguments.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arguments {
    pub a_offsets: u64,
    pub a_indices: u64,
    pub a_values: u64,
    pub b_offsets: u64,
    pub b_indices: u64,
    pub b_values: u64,
    pub c_offsets: u64,
    pub c_indices: u64,
    pub c_values: u64,
    products: u64,
    low: u64,
    width: u64,
    sizes: u64,
    lists: u64,
    pub counters: u64,
    tiles: u64,
    pub bits: u64,
    rows: u64,
    rows_b: u64,
    columns: u64,
    nnz_b: u64,
    pub alpha: u64,
    pub first: u64,
    bin: u32,
    count: u32,
    words: u32,
    entries: u32,
    log_lanes: u32,
    tile: u32,
    pub ordered: u32,
    sorted: u32,
    pub bit_words: u32,
    unused: u32,
}

impl Arguments {
    /// Another A and B of the same patterns.
    pub(super) fn set_operands(&mut self, o: &Operands) {
        (self.a_offsets, self.a_indices, self.a_values) = (o.a.offsets, o.a.indices, o.a.values);
        (self.b_offsets, self.b_indices, self.b_values) = (o.b.offsets, o.b.indices, o.b.values);
    }
}

/// Where things are in the workspace, in words of 8 bytes.
pub(super) struct Layout {
    /// All of it.
    pub words: usize,
    /// Words from the counters on that kernels expect to be zero.
    pub zeroed: usize,
    rows: usize,
    offset_words: usize,
}

impl Layout {
    /// The arguments that have their place at `at`, and the operands.
    pub(super) fn arguments(&self, at: u64, o: &Operands, problem: &Problem) -> Arguments {
        let counters = at + 8 * self.offset_words as u64;
        let per_row = counters + 8 * self.zeroed as u64;
        let place = |number: u64| per_row + 4 * number * self.rows as u64;
        let mut arguments = Arguments {
            c_offsets: at,
            counters,
            tiles: counters + 8 * WORDS as u64,
            products: place(0),
            low: place(1),
            width: place(2),
            sizes: place(3),
            lists: place(4),
            rows: o.a.rows as u64,
            rows_b: o.b.rows as u64,
            columns: o.b.cols as u64,
            nnz_b: o.b.nnz as u64,
            sorted: u32::from(problem.sorted),
            ..Arguments::default()
        };
        arguments.set_operands(o);
        arguments
    }
}

/// What a device and a type of sums allow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of shared memory that a launch may ask for.
    pub shared: usize,
    /// Bytes of a sum.
    pub sum: usize,
}

/// The files of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Analysis,
    Symbolic,
    Offsets,
    Numeric,
}

/// A file with its parameters.
pub(crate) fn request(
    file: Source,
    dtype: DType,
    (index, offset): (IndexType, IndexType),
    semiring: SemiringKind,
    config: Config,
    limits: Limits,
) -> Request {
    let request = match file {
        Source::Analysis => {
            let text = include_str!("../../../kernels/spgemm/analysis.cu");
            Request::new("spgemm/analysis.cu", text)
        }
        Source::Symbolic => {
            let text = include_str!("../../../kernels/spgemm/symbolic.cu");
            Request::new("spgemm/symbolic.cu", text)
        }
        Source::Offsets => {
            let text = include_str!("../../../kernels/spgemm/offsets.cu");
            Request::new("spgemm/offsets.cu", text)
        }
        Source::Numeric => {
            let text = include_str!("../../../kernels/spgemm/numeric.cu");
            Request::new("spgemm/numeric.cu", text)
        }
    };
    // Only the numeric phase knows values.
    let dtype = if file == Source::Numeric { dtype } else { DType::F32 };
    let request = request
        .with("INDEX", index)
        .with("OFFSET", offset)
        .with("VALUE", dtype)
        .with("BINS", BINS)
        .with("TINY", TINY);
    // A sum and a bit, rounded up.
    let bytes = limits.sum as u32 + 1;
    match file {
        Source::Analysis => request
            .with("BLOCK", ANALYSIS)
            .with("RANGED", RANGED)
            .with("SMALL", SMALL)
            .with("NARROW", NARROW)
            .with("NARROW_PRODUCTS", NARROW_PRODUCTS)
            .with("WIDE_PRODUCTS", WIDE_PRODUCTS),
        Source::Symbolic => request
            .with("BLOCK", BLOCK)
            .with("TINY_TEAM", TINY_TEAM)
            .with("TINY_LOG", (2 * TINY).ilog2())
            .with("SMALL_LOG", (2 * SMALL).ilog2())
            .with("WIDE_TEAM", config.wide)
            .with("HUGE_TEAM", config.huge),
        Source::Offsets => request
            .with("BLOCK", SCAN)
            .with("ITEMS", ITEMS)
            .with("SMALL_ENTRIES", SMALL_ENTRIES)
            .with("MEDIUM_ENTRIES", MEDIUM_ENTRIES)
            .with("MEDIUM_WIDTH", MEDIUM_WIDTH)
            .with("NARROW", NARROW)
            .with("NARROW_PRODUCTS", NARROW_PRODUCTS)
            .with("NARROW_ENTRIES", NARROW_ENTRIES)
            .with("WIDE_PRODUCTS", WIDE_PRODUCTS)
            .with("WIDE_ENTRIES", WIDE_ENTRIES)
            .with("HUGE_ENTRIES", HUGE_ENTRIES)
            .with("DENSE_PRODUCTS", DENSE_PRODUCTS)
            .with("DENSE_MEAN", DENSE_MEAN)
            .with("VAST_MEAN", VAST_MEAN)
            .with("DENSE", DENSE_BYTES / bytes)
            .with("VAST", limits.shared as u32 / bytes / 32 * 32),
        Source::Numeric => request
            .with("SEMIRING", source::semiring(semiring))
            .with("BLOCK", BLOCK)
            .with("TINY_TEAM", TINY_TEAM)
            .with("TINY_LOG", (2 * TINY).ilog2())
            .with("SMALL_ENTRIES", SMALL_ENTRIES)
            .with("MEDIUM_ENTRIES", MEDIUM_ENTRIES)
            .with("WIDE_TEAM", config.wide)
            .with("HUGE_TEAM", config.huge)
            .with("GIANT_TEAM", GIANT_TEAM)
            .with("DENSE_TEAM", config.dense),
    }
}

/// The compiled files, for one problem's types.
pub(super) struct Kernels {
    config: Config,
    limits: Limits,
    ctas: usize,
    /// Streams beside the device's own, so that bins run at once.
    side: [Stream; 2],
    analysis: Arc<Module>,
    symbolic: Arc<Module>,
    offsets: Arc<Module>,
    numeric: Arc<Module>,
}

impl Kernels {
    pub(super) fn new(device: &Device, problem: &Problem, config: Config) -> Result<Self> {
        let profile = device.profile();
        let sum = problem.dtype.bytes().max(4);
        let limits = Limits { shared: profile.shared_bytes_per_cta - DECLARED, sum };
        let module = |file| {
            let types = (problem.index_type, problem.offset_type);
            device.module(&request(file, problem.dtype, types, problem.semiring, config, limits))
        };
        Ok(Kernels {
            config,
            limits,
            ctas: CTAS * profile.multiprocessors,
            side: [device.new_stream()?, device.new_stream()?],
            analysis: module(Source::Analysis)?,
            symbolic: module(Source::Symbolic)?,
            offsets: module(Source::Offsets)?,
            numeric: module(Source::Numeric)?,
        })
    }

    /// Calls `launch` with every bin, the largest rows first, and a stream for it; `main` waits for
    /// all of them.
    pub(super) fn on_streams(
        &self,
        main: &Stream,
        counters: &Counters,
        bins: usize,
        mut launch: impl FnMut(usize, &Stream) -> Result<()>,
    ) -> Result<()> {
        let filled: Vec<_> = (0..bins).rev().filter(|bin| counters.rows(*bin) > 0).collect();
        let begun = main.record()?;
        let side = &self.side[..filled.len().saturating_sub(1).min(self.side.len())];
        for stream in side {
            stream.wait(&begun)?;
        }
        for (turn, bin) in filled.into_iter().enumerate() {
            let place = turn % (side.len() + 1);
            launch(bin, side.get(place).unwrap_or(main))?;
        }
        side.iter().try_for_each(|stream| main.wait(&stream.record()?))
    }

    /// Bytes of the workspace for so many rows of `o`.
    pub(super) fn bytes(&self, rows: usize, o: &Operands) -> usize {
        8 * self.layout(rows, o.offset_type).words
    }

    /// The workspace for a product with so many rows.
    pub(super) fn layout(&self, rows: usize, offset: IndexType) -> Layout {
        let offset_words = ((rows + 1) * offset.bytes()).div_ceil(8);
        let zeroed = WORDS + rows.div_ceil((SCAN * ITEMS) as usize);
        let lists = NUMERIC.len().div_ceil(2);
        let words = offset_words + zeroed + (rows * (4 + lists)).div_ceil(2);
        Layout { words, zeroed, rows, offset_words }
    }

    /// Queues the analysis of A's rows and B's order.
    ///
    /// # Safety
    /// The addresses in `arguments` are valid for what they describe until the work is done.
    pub(super) unsafe fn analyse(
        &self,
        stream: &Stream,
        arguments: &mut Arguments,
        o: &Operands,
    ) -> Result<()> {
        let rows = o.a.rows.max(1);
        let lanes = o.a.nnz.div_ceil(PER_LANE * rows).clamp(1, 32);
        arguments.log_lanes = lanes.next_power_of_two().ilog2();
        let least = ANALYSIS as usize >> arguments.log_lanes;
        let tile = rows.div_ceil(self.ctas).next_power_of_two().clamp(least, ANALYSIS as usize);
        arguments.tile = tile as u32;
        // SAFETY: `Arguments` is the kernels' parameter; the addresses are the caller's promise.
        unsafe {
            if arguments.ordered != 0 {
                let most = (o.b.nnz.max(o.b.rows)).div_ceil(ANALYSIS as usize);
                let grid = most.min(self.ctas) as u64;
                let descents = self.analysis.kernel(c"descents")?;
                descents.launch(stream, (grid, 1), ANALYSIS, &*arguments)?;
            }
            let grid = o.a.rows.div_ceil(tile) as u64;
            self.analysis.kernel(c"analyse")?.launch(stream, (grid, 1), ANALYSIS, &*arguments)
        }
    }

    /// Queues the scan of the rows' sizes.
    ///
    /// # Safety
    /// As [`Kernels::analyse`].
    pub(super) unsafe fn offsets(&self, stream: &Stream, arguments: &Arguments) -> Result<()> {
        let grid = arguments.rows.div_ceil(u64::from(SCAN * ITEMS)).max(1);
        // SAFETY: as above.
        unsafe { self.offsets.kernel(c"offsets")?.launch(stream, (grid, 1), SCAN, arguments) }
    }

    /// Queues setting the bits of B's entries.
    ///
    /// # Safety
    /// As [`Kernels::analyse`].
    pub(super) unsafe fn bits(&self, stream: &Stream, arguments: &Arguments) -> Result<()> {
        let grid = arguments.rows_b.div_ceil(u64::from(BLOCK / 32));
        // SAFETY: as above.
        unsafe { self.symbolic.kernel(c"bits")?.launch(stream, (grid, 1), BLOCK, arguments) }
    }

    /// Queues the symbolic phase of one bin.
    ///
    /// # Safety
    /// As [`Kernels::analyse`].
    pub(super) unsafe fn count(
        &self,
        stream: &Stream,
        arguments: &Arguments,
        counters: &Counters,
        number: usize,
        bin: &Bin,
    ) -> Result<()> {
        let mut arguments = *arguments;
        let teams = self.teams(bin.team);
        let shared = match bin.accumulator {
            Accumulator::Table { entries } => teams * 8 * entries as usize,
            Accumulator::None => 0,
            _ => {
                let words = counters.widest(number).div_ceil(32);
                arguments.words = words.min(self.limits.shared / 4 / teams) as u32;
                teams * 4 * arguments.words as usize
            }
        };
        // SAFETY: as above.
        unsafe { self.launch(&self.symbolic, stream, arguments, counters, number, bin, shared) }
    }

    /// Queues the numeric phase of one bin.
    ///
    /// # Safety
    /// As [`Kernels::analyse`].
    pub(super) unsafe fn sum(
        &self,
        stream: &Stream,
        arguments: &Arguments,
        counters: &Counters,
        number: usize,
        bin: &Bin,
    ) -> Result<()> {
        let mut arguments = *arguments;
        let (teams, sum) = (self.teams(bin.team), self.limits.sum);
        let words = counters.widest(number).div_ceil(32);
        let shared = match bin.accumulator {
            Accumulator::None => 0,
            Accumulator::Table { entries } => teams * (entries as usize * (8 + 2 * (sum + 4)) + 8),
            Accumulator::Dense => {
                arguments.words = words as u32;
                words * (32 * sum + 4)
            }
            Accumulator::Mask => {
                let room = self.limits.shared / teams;
                // At least a quarter for sums.
                let words = words.min(room / 4 * 3 / 8);
                let entries = counters.largest(number).min((room - 8 * words) / sum);
                // Even, so that every team's sums are aligned.
                let entries = entries.next_multiple_of(2).min((room - 8 * words) / sum / 2 * 2);
                (arguments.words, arguments.entries) = (words as u32, entries as u32);
                teams * (8 * words + sum * entries)
            }
        };
        // SAFETY: as above.
        unsafe { self.launch(&self.numeric, stream, arguments, counters, number, bin, shared) }
    }

    #[allow(clippy::too_many_arguments)]
    unsafe fn launch(
        &self,
        module: &Arc<Module>,
        stream: &Stream,
        mut arguments: Arguments,
        counters: &Counters,
        number: usize,
        bin: &Bin,
        shared: usize,
    ) -> Result<()> {
        arguments.bin = number as u32;
        arguments.count = counters.rows(number);
        if arguments.count == 0 {
            return Ok(());
        }
        // Where few CTAs fit on a multiprocessor they should be large.
        let crowded = bin.team == Team::Wide && shared > CROWDED;
        let (name, team) = if crowded { (c"huge", Team::Huge) } else { (bin.kernel, bin.team) };
        let kernel = kernel(module, name, shared)?;
        let grid = u64::from(arguments.count).div_ceil(self.teams(team) as u64);
        let block = self.block(team);
        // SAFETY: as above.
        unsafe { kernel.launch_with_shared(stream, (grid, 1), block, shared, &arguments) }
    }

    /// Threads of a bin's CTAs.
    fn block(&self, team: Team) -> u32 {
        match team {
            Team::Lanes(_) => BLOCK,
            Team::Wide => self.config.wide,
            Team::Huge => self.config.huge,
            Team::Giant => GIANT_TEAM,
            Team::Dense => self.config.dense,
        }
    }

    /// Rows that such a CTA works on at once.
    fn teams(&self, team: Team) -> usize {
        match team {
            Team::Lanes(lanes) => (BLOCK / lanes) as usize,
            _ => 1,
        }
    }
}

/// A kernel that may ask for `shared` bytes.
fn kernel(module: &Arc<Module>, name: &CStr, shared: usize) -> Result<Kernel> {
    // What every launch may ask for unsaid.
    const UNSAID: usize = 47 << 10;
    let kernel = module.kernel(name)?;
    if shared > UNSAID {
        kernel.allow_shared(shared)?;
    }
    Ok(kernel)
}
