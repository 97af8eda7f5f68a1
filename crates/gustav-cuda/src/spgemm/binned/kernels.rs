//! The kernels of `binned`: how they are loaded and launched.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use gustav_core::{Problem, Result};

use super::Config;
use super::arguments::Arguments;
use super::bins::{
    Accumulator, BLOCK, Bin, Counters, GIANT_TEAM, NUMERIC, SYMBOLIC, Team, UNITED, WORDS,
};
use super::pieces::Pieces;
use super::request::{ANALYSIS, ITEMS, Limits, SCAN, Source, request};
use crate::kernel::{Kernel, Module};
use crate::spgemm::operands::Operands;
use crate::stream::Stream;
use crate::{Device, PinnedBuffer};

// Nonzeros of a mean row that a lane of the analysis counts.
const PER_LANE: usize = 4;
// Mean nonzeros of rows that have a CTA of the analysis each.
const LONG: usize = 1024;
// CTAs of the analysis for every multiprocessor, before they take more rows each.
const CTAS: usize = 8;
// Threads of a multiprocessor below which CTAs may be larger.
const THREADS: usize = 1024;
// Bytes of shared memory with which too few of the smaller CTAs fit on a multiprocessor.
const CROWDED: usize = 56 << 10;
// Bytes of shared memory that kernels declare themselves.
const DECLARED: usize = 1024;

/// The compiled files, for one problem's types.
pub(super) struct Kernels {
    config: Config,
    limits: Limits,
    multiprocessors: usize,
    /// Streams beside the device's own, so that bins run at once.
    side: [Stream; 2],
    analyse: Kernel,
    bits: Kernel,
    offsets: Kernel,
    symbolic: Phase,
    numeric: Phase,
    /// Where counters are read to.
    counters: Mutex<PinnedBuffer<u64>>,
}

/// The kernels of one phase by name.
struct Phase(Vec<(&'static CStr, Kernel)>);

impl Phase {
    /// The kernels of `bins` and of `more`.
    fn new(module: &Arc<Module>, bins: &[Bin], more: &[Bin], shared: usize) -> Result<Self> {
        let kernel = |bin: &Bin| {
            let kernel = module.kernel(bin.kernel)?;
            if !matches!(bin.accumulator, Accumulator::Table { .. } | Accumulator::None) {
                kernel.allow_shared(shared)?;
            }
            Ok((bin.kernel, kernel))
        };
        bins.iter().chain(more).map(kernel).collect::<Result<_>>().map(Phase)
    }

    fn kernel(&self, name: &CStr) -> Option<&Kernel> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, kernel)| kernel)
    }
}

// The largest CTA with a mask, which the symbolic phase has no bin for.
const GIANT: Bin = Bin { kernel: c"giant", team: Team::Giant, accumulator: Accumulator::Mask };

impl Kernels {
    pub(super) fn new(device: &Device, problem: &Problem, config: Config) -> Result<Self> {
        let profile = device.profile();
        let sum = problem.dtype.bytes().max(4);
        let limits = Limits { shared: profile.shared_bytes_per_cta - DECLARED, sum };
        let module = |file| {
            let values = (problem.dtype, problem.output);
            let indices = (problem.index_type, problem.offset_type);
            device.module(&request(file, values, indices, problem.semiring, config, limits))
        };
        let (symbolic, shared) = (module(Source::Symbolic)?, limits.shared);
        Ok(Kernels {
            config,
            limits,
            multiprocessors: profile.multiprocessors,
            side: [device.new_stream()?, device.new_stream()?],
            analyse: module(Source::Analysis)?.kernel(c"analyse")?,
            bits: symbolic.kernel(c"bits")?,
            offsets: module(Source::Offsets)?.kernel(c"offsets")?,
            symbolic: Phase::new(&symbolic, &SYMBOLIC, &[UNITED, GIANT], shared)?,
            numeric: Phase::new(&module(Source::Numeric)?, &NUMERIC, &[], shared)?,
            counters: Mutex::new(PinnedBuffer::zeroed(device, WORDS, "counters of an SpGEMM")?),
        })
    }

    /// What was counted at `at`, after the work queued on `stream`.
    ///
    /// # Safety
    /// Counters are there.
    pub(super) unsafe fn read(&self, stream: &Stream, at: u64) -> Result<Counters> {
        let mut buffer = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the caller's promise; the copy is waited for.
        unsafe { buffer.download(0..WORDS, at, stream)? };
        stream.synchronize()?;
        let mut words = [0; WORDS];
        words.copy_from_slice(&buffer);
        Ok(Counters(words))
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
        let side = &self.side[..filled.len().saturating_sub(1).min(self.side.len())];
        if !side.is_empty() {
            let begun = main.record()?;
            side.iter().try_for_each(|stream| stream.wait(&begun))?;
        }
        for (turn, bin) in filled.into_iter().enumerate() {
            let place = turn % (side.len() + 1);
            launch(bin, side.get(place).unwrap_or(main))?;
        }
        side.iter().try_for_each(|stream| main.wait(&stream.record()?))
    }

    /// Queues the analysis of A's rows, and with `looks` of B's order.
    ///
    /// # Safety
    /// The addresses in `arguments` are valid for what they describe until the work is done.
    pub(super) unsafe fn analyse(
        &self,
        stream: &Stream,
        arguments: &mut Arguments,
        o: &Operands,
    ) -> Result<()> {
        let (rows, ctas) = (o.a.rows.max(1), CTAS * self.multiprocessors);
        let mean = o.a.nnz.div_ceil(rows);
        let lanes = mean.div_ceil(PER_LANE).clamp(1, 32);
        arguments.log_lanes = lanes.next_power_of_two().ilog2();
        let least = if mean > LONG { 1 } else { ANALYSIS as usize >> arguments.log_lanes };
        let tile = rows.div_ceil(ctas).next_power_of_two().clamp(least, ANALYSIS as usize);
        arguments.tile = tile as u32;
        let mut grid = o.a.rows.div_ceil(tile);
        if arguments.looks != 0 {
            let most = (o.b.nnz.max(o.b.rows)).div_ceil(ANALYSIS as usize);
            grid = grid.max(most.min(ctas));
        }
        // SAFETY: `Arguments` is the kernels' parameter; the addresses are the caller's promise.
        unsafe { self.analyse.launch(stream, (grid as u64, 1), ANALYSIS, &*arguments) }
    }

    /// Queues the scan of the rows' sizes.
    ///
    /// # Safety
    /// As [`Kernels::analyse`].
    pub(super) unsafe fn offsets(&self, stream: &Stream, arguments: &Arguments) -> Result<()> {
        let grid = arguments.rows.div_ceil(u64::from(SCAN * ITEMS)).max(1);
        // SAFETY: as above.
        unsafe { self.offsets.launch(stream, (grid, 1), SCAN, arguments) }
    }

    /// Queues setting the bits of B's entries.
    ///
    /// # Safety
    /// As [`Kernels::analyse`].
    pub(super) unsafe fn bits(&self, stream: &Stream, arguments: &Arguments) -> Result<()> {
        let grid = arguments.rows_b.div_ceil(u64::from(BLOCK / 32));
        // SAFETY: as above.
        unsafe { self.bits.launch(stream, (grid, 1), BLOCK, arguments) }
    }

    /// The pieces that rows are cut into, where there are such rows; as [`Pieces::new`].
    pub(super) fn pieces(
        &self,
        device: &Device,
        symbolic: &Counters,
        most: Option<usize>,
    ) -> Result<Option<Pieces>> {
        let bin = SYMBOLIC.len() - 1;
        if symbolic.rows(bin) == 0 {
            return Ok(None);
        }
        let threads = self.config.wide as usize;
        Pieces::new(device, symbolic, bin, threads, self.limits, most).map(Some)
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
        pieces: Option<&Pieces>,
    ) -> Result<()> {
        let mut arguments = *arguments;
        let teams = self.teams(bin.team);
        let shared = match bin.accumulator {
            Accumulator::Table { entries } => teams * 8 * entries as usize,
            Accumulator::None => 0,
            Accumulator::Copies => pieces.map_or(0, Pieces::mask_bytes),
            Accumulator::Mask | Accumulator::Dense => {
                let words = counters.widest(number).div_ceil(32);
                arguments.words = words.min(self.limits.shared / 4 / teams) as u32;
                teams * 4 * arguments.words as usize
            }
        };
        let launch = Launch { counters, number, bin, shared, pieces };
        // SAFETY: as above.
        unsafe { self.launch(&self.symbolic, stream, arguments, launch) }
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
        pieces: Option<&Pieces>,
    ) -> Result<()> {
        let bin = &NUMERIC[number];
        let mut arguments = *arguments;
        let (teams, sum) = (self.teams(bin.team), self.limits.sum);
        let words = counters.widest(number).div_ceil(32);
        let shared = match bin.accumulator {
            Accumulator::None => 0,
            Accumulator::Table { entries } => teams * (entries as usize * (8 + 2 * (sum + 4)) + 8),
            Accumulator::Copies => pieces.map_or(0, Pieces::bytes_of_sums),
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
        let launch = Launch { counters, number, bin, shared, pieces };
        // SAFETY: as above.
        unsafe { self.launch(&self.numeric, stream, arguments, launch) }
    }

    unsafe fn launch(
        &self,
        phase: &Phase,
        stream: &Stream,
        mut arguments: Arguments,
        Launch { counters, number, bin, shared, pieces }: Launch<'_>,
    ) -> Result<()> {
        arguments.bin = number as u32;
        arguments.count = counters.rows(number);
        let mut across = 1;
        if bin.team == Team::Pieces {
            let Some(pieces) = pieces else { return Ok(()) };
            pieces.describe(&mut arguments);
            across = pieces.of_a_row();
        }
        let rows = arguments.count as usize;
        let (mut name, mut team) = (bin.kernel, bin.team);
        // Where few CTAs fit on a multiprocessor, or there are few, they should be large.
        let masked = bin.accumulator == Accumulator::Mask;
        let crowded = shared > CROWDED || self.is_empty(rows, self.config.huge);
        if masked && team == Team::Wide && crowded {
            (name, team) = (c"huge", Team::Huge);
        }
        if masked && team == Team::Huge && self.is_empty(rows, GIANT_TEAM) {
            (name, team) = (c"giant", Team::Giant);
        }
        let Some(kernel) = phase.kernel(name) else { return Ok(()) };
        let grid = match team {
            Team::Pieces => (across as u64, rows as u64),
            _ => (rows.div_ceil(self.teams(team)) as u64, 1),
        };
        // SAFETY: as above.
        unsafe { kernel.launch_with_shared(stream, grid, self.block(team), shared, &arguments) }
    }

    /// Whether `rows` CTAs of so many threads leave the chip half empty.
    fn is_empty(&self, rows: usize, threads: u32) -> bool {
        rows * threads as usize <= THREADS * self.multiprocessors
    }

    /// Threads of a bin's CTAs.
    fn block(&self, team: Team) -> u32 {
        match team {
            Team::Lanes(_) => BLOCK,
            Team::Wide | Team::Pieces => self.config.wide,
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

/// What a launch of one bin depends on.
struct Launch<'a> {
    counters: &'a Counters,
    number: usize,
    bin: &'a Bin,
    shared: usize,
    pieces: Option<&'a Pieces>,
}
