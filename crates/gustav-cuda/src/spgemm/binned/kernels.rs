//! Loading and launching the kernels of `binned`.

use std::ffi::CStr;
use std::sync::Arc;

use gustav_core::Result;

use super::Config;
use super::arguments::Arguments;
use super::bins::{
    Accumulator, BLOCK, Bin, Counters, GIANT_GROUP, NUMERIC, SYMBOLIC, ThreadGroup, UNITED,
};
use super::report::Report;
use super::request::{ANALYSIS, ITEMS, LONG_ANALYSIS, Limits, SCAN, Source, request};
use super::split_rows::SplitRows;
use crate::device::{Device, Event, Stream};
use crate::launch::{Kernel, Module};
use crate::product::sparse_operands::Operands;
use crate::spgemm::types::Types;

// Nonzeros of a mean row per lane of the analysis.
const PER_LANE: usize = 4;
// Mean row length from which rows have a CTA of the analysis each.
const LONG: usize = 1024;
// Most CTAs of the analysis per multiprocessor; larger matrices have more rows per CTA.
const CTAS: usize = 8;
// Entries of B that a thread checks for their order.
const LOOKS: usize = 4;
// Approximate number of resident threads of a multiprocessor.
const RESIDENT: usize = 2048;
// Rows per multiprocessor below which merging rows, with a thread each, is slower than hash tables.
const FEW_MERGED: usize = 128;
// Threads per multiprocessor below which larger CTAs are used.
const THREADS: usize = 1024;
// Bytes of shared memory of a CTA above which too few of the smaller CTAs fit on a multiprocessor.
const CROWDED: usize = 56 << 10;
// Bytes of static shared memory of the kernels.
const DECLARED: usize = 1024;

/// The compiled files, for one problem's types.
pub(super) struct Kernels {
    config: Config,
    limits: Limits,
    multiprocessors: usize,
    /// Streams beside the device's own, so that bins run concurrently.
    side: [Stream; 2],
    /// Events: the begin, which they wait for, and their ends, which the device's stream waits for.
    begun: Event,
    ended: [Event; 2],
    analyse: Kernel<Arguments>,
    analyse_long: Kernel<Arguments>,
    list_rows: Kernel<Arguments>,
    bits: Kernel<Arguments>,
    offsets: Kernel<Arguments>,
    symbolic: Phase,
    numeric: Phase,
    clear_split_rows: Kernel<Arguments>,
    report: Report,
}

/// The kernels of one phase by name.
struct Phase(Vec<(&'static CStr, Kernel<Arguments>)>);

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

    fn kernel(&self, name: &CStr) -> Option<&Kernel<Arguments>> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, kernel)| kernel)
    }
}

// The largest CTA with a bitmask, for which the symbolic phase has no bin.
const GIANT: Bin =
    Bin { kernel: c"giant", group: ThreadGroup::Giant, accumulator: Accumulator::Mask };

impl Kernels {
    pub(super) fn new(device: &Device, types: Types, config: Config) -> Result<Self> {
        let profile = device.profile();
        let shared = profile.shared_bytes_per_cta - DECLARED;
        let limits = Limits { shared, sum: types.sum() };
        let module = |file| device.module(&request(file, types, config, limits));
        let (symbolic, shared) = (module(Source::Symbolic)?, limits.shared);
        let (analysis, numeric) = (module(Source::Analysis)?, module(Source::Numeric)?);
        Ok(Kernels {
            config,
            limits,
            multiprocessors: profile.multiprocessors,
            side: [device.new_stream()?, device.new_stream()?],
            begun: Event::untimed(device)?,
            ended: [Event::untimed(device)?, Event::untimed(device)?],
            analyse: analysis.kernel(c"analyse")?,
            analyse_long: analysis.kernel(c"analyse_long")?,
            list_rows: module(Source::RowList)?.kernel(c"list_rows")?,
            bits: symbolic.kernel(c"bits")?,
            offsets: module(Source::Offsets)?.kernel(c"offsets")?,
            symbolic: Phase::new(&symbolic, &SYMBOLIC, &[UNITED, GIANT], shared)?,
            numeric: Phase::new(&numeric, &NUMERIC, &[], shared)?,
            clear_split_rows: numeric.kernel(c"clear_split_rows")?,
            report: Report::new(device)?,
        })
    }

    /// Calls `launch` with every bin, the largest rows first, and its stream; `main` waits for all
    /// of them, also after an error, because their memory is freed on it.
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
            main.mark(&self.begun)?;
        }
        let launched = filled.into_iter().enumerate().try_for_each(|(k, bin)| {
            // The first bin is on the main stream and waits for nothing.
            let on = (k % (side.len() + 1)).checked_sub(1).map_or(main, |i| &side[i]);
            if (1..=side.len()).contains(&k) {
                on.wait(&self.begun)?;
            }
            launch(bin, on)
        });
        let joined = side.iter().zip(&self.ended).try_for_each(|(stream, ended)| {
            stream.mark(ended)?;
            main.wait(ended)
        });
        launched.and(joined)
    }

    /// Analyses A's rows, and the order of B's columns if B is assumed to be ordered; queues the
    /// list of A's rows by bin; returns the counters.
    ///
    /// # Safety
    /// The addresses in `arguments` are valid until the work is done.
    pub(super) unsafe fn analyse(
        &self,
        stream: &Stream,
        arguments: &mut Arguments,
        o: &Operands,
    ) -> Result<Counters> {
        let (rows, ctas) = (o.a.rows.max(1), CTAS * self.multiprocessors);
        let mean = o.a.nnz.div_ceil(rows);
        // More lanes per row if there are too few rows for the device.
        let idle = (RESIDENT * self.multiprocessors / rows).min(mean).max(1);
        let lanes = mean.div_ceil(PER_LANE).next_power_of_two().max(1 << idle.ilog2());
        arguments.log_lanes = lanes.min(32).ilog2();
        let long = mean > LONG;
        let (kernel, threads) =
            if long { (&self.analyse_long, LONG_ANALYSIS) } else { (&self.analyse, ANALYSIS) };
        let least = if long { 1 } else { ANALYSIS as usize >> arguments.log_lanes };
        let tile = rows.div_ceil(ctas).next_power_of_two().clamp(least, ANALYSIS as usize);
        arguments.tile = tile as u32;
        let looking = match arguments.ordered {
            0 => 0,
            _ => o.b.nnz.max(o.b.rows).div_ceil(LOOKS * threads as usize).min(ctas),
        };
        // At least one CTA, which writes the report.
        let grid = (o.a.rows.div_ceil(tile) + looking).max(1) as u64;
        // SAFETY: the caller's promise.
        unsafe { self.counted(stream, arguments, kernel, (grid, threads)) }
    }

    /// Computes offsets from the rows' numbers of entries and queues the list of rows by bin;
    /// returns the counters.
    ///
    /// # Safety
    /// As [`Kernels::analyse`].
    pub(super) unsafe fn offsets(
        &self,
        stream: &Stream,
        arguments: &mut Arguments,
    ) -> Result<Counters> {
        let grid = arguments.rows.div_ceil(u64::from(SCAN * ITEMS)).max(1);
        // SAFETY: the caller's promise.
        unsafe { self.counted(stream, arguments, &self.offsets, (grid, SCAN)) }
    }

    /// Launches a kernel that counts rows by bin, with a `grid` of (CTAs, threads), and queues the
    /// list of rows, which runs while the host reads the counters.
    ///
    /// # Safety
    /// As [`Kernels::analyse`].
    unsafe fn counted(
        &self,
        stream: &Stream,
        arguments: &mut Arguments,
        kernel: &Kernel<Arguments>,
        (grid, threads): (u64, u32),
    ) -> Result<Counters> {
        let listing = arguments.rows.div_ceil(u64::from(SCAN * ITEMS));
        self.report.after(stream, |report, number| {
            (arguments.report, arguments.report_number) = (report, number);
            // SAFETY: the addresses are the caller's promise.
            unsafe {
                kernel.launch(stream, (grid, 1), threads, &*arguments)?;
                self.list_rows.launch(stream, (listing, 1), SCAN, &*arguments)
            }
        })
    }

    /// Queues the computation of B's bitmasks.
    ///
    /// # Safety
    /// As [`Kernels::analyse`].
    pub(super) unsafe fn bits(&self, stream: &Stream, arguments: &Arguments) -> Result<()> {
        let grid = arguments.rows_b.div_ceil(u64::from(BLOCK / 32));
        // SAFETY: as above.
        unsafe { self.bits.launch(stream, (grid, 1), BLOCK, arguments) }
    }

    /// Plans the chunks of the longest rows, if there are any and `most` bytes suffice; queues
    /// clearing their sums.
    ///
    /// # Safety
    /// As [`Kernels::analyse`].
    pub(super) unsafe fn split_rows(
        &self,
        device: &Device,
        arguments: &Arguments,
        symbolic: &Counters,
        most: Option<usize>,
    ) -> Result<Option<SplitRows>> {
        let bin = SYMBOLIC.len() - 1;
        if symbolic.rows(bin) == 0 {
            return Ok(None);
        }
        let (threads, columns) = (self.config.wide as usize, arguments.columns as usize);
        let limits = self.limits;
        let split_rows = SplitRows::new(device, symbolic, bin, threads, limits, columns, most)?;
        let Some(split_rows) = split_rows else { return Ok(None) };
        let mut arguments = *arguments;
        split_rows.describe(&mut arguments);
        arguments.begin = symbolic.begin(bin);
        let grid = (split_rows.to_clear().div_ceil(BLOCK as usize) as u64, 1);
        // SAFETY: as above; the buffer has that size.
        unsafe { self.clear_split_rows.launch(device.stream(), grid, BLOCK, &arguments)? };
        Ok(Some(split_rows))
    }

    /// The bin whose kernel computes the rows of bin `number`. If rows that a thread each would
    /// merge are too few to fill the device, they take the first hash table that is large enough.
    /// Without memory for chunks, rows to be cut have a CTA each.
    pub(super) fn kernel_of<'b>(
        &self,
        bins: &'b [Bin],
        counters: &Counters,
        number: usize,
        split_rows: Option<&SplitRows>,
    ) -> &'b Bin {
        let own = &bins[number];
        if own.group == ThreadGroup::SeveralCtas && split_rows.is_none() {
            return bins.iter().find(|bin| bin.group == ThreadGroup::Huge).unwrap_or(own);
        }
        let few = (counters.rows(number) as usize) < FEW_MERGED * self.multiprocessors;
        if own.group != ThreadGroup::Lanes(1) || !few {
            return own;
        }
        let holds = |bin: &&Bin| match bin.accumulator {
            Accumulator::Table { entries } => entries as usize >= counters.largest(number),
            _ => false,
        };
        bins.iter().find(holds).unwrap_or(own)
    }

    /// Whether the numeric phase reads only the list of its rows.
    pub(super) fn needs_list_alone(
        &self,
        numeric: &Counters,
        split_rows: Option<&SplitRows>,
    ) -> bool {
        let filled = (0..NUMERIC.len()).filter(|number| numeric.rows(*number) > 0);
        let accumulator =
            |number| self.kernel_of(&NUMERIC, numeric, number, split_rows).accumulator;
        filled.map(accumulator).all(|accumulator| accumulator == Accumulator::None)
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
        split_rows: Option<&SplitRows>,
    ) -> Result<()> {
        let mut arguments = *arguments;
        let groups = self.groups(bin.group);
        let shared = match bin.accumulator {
            Accumulator::Table { entries } => groups * 8 * entries as usize,
            Accumulator::None => 0,
            Accumulator::Copies => split_rows.map_or(0, SplitRows::mask_bytes),
            Accumulator::Mask | Accumulator::Dense => {
                let words = counters.widest(number).div_ceil(32);
                arguments.words = words.min(self.limits.shared / 4 / groups) as u32;
                groups * 4 * arguments.words as usize
            }
        };
        let launch = Launch { counters, number, bin, shared, split_rows };
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
        split_rows: Option<&SplitRows>,
    ) -> Result<()> {
        let bin = self.kernel_of(&NUMERIC, counters, number, split_rows);
        let mut arguments = *arguments;
        let (groups, sum) = (self.groups(bin.group), self.limits.sum);
        let words = counters.widest(number).div_ceil(32);
        let shared = match bin.accumulator {
            Accumulator::None => 0,
            Accumulator::Table { entries } => groups * (entries as usize * (8 + 2 * (sum + 4)) + 8),
            Accumulator::Copies => split_rows.map_or(0, SplitRows::bytes_of_sums),
            Accumulator::Dense => {
                arguments.words = words as u32;
                words * (32 * sum + 4)
            }
            Accumulator::Mask => {
                let shared = self.limits.shared / groups;
                // Leaves at least a quarter for sums.
                let words = words.min(shared / 4 * 3 / 8);
                let entries = counters.largest(number).min((shared - 8 * words) / sum);
                // An even number, so that every thread group's sums are aligned.
                let entries = entries.next_multiple_of(2).min((shared - 8 * words) / sum / 2 * 2);
                (arguments.words, arguments.entries) = (words as u32, entries as u32);
                groups * (8 * words + sum * entries)
            }
        };
        let launch = Launch { counters, number, bin, shared, split_rows };
        // SAFETY: as above.
        unsafe { self.launch(&self.numeric, stream, arguments, launch) }
    }

    unsafe fn launch(
        &self,
        phase: &Phase,
        stream: &Stream,
        mut arguments: Arguments,
        Launch { counters, number, bin, shared, split_rows }: Launch<'_>,
    ) -> Result<()> {
        (arguments.begin, arguments.count) = (counters.begin(number), counters.rows(number));
        let mut across = 1;
        if bin.group == ThreadGroup::SeveralCtas {
            let Some(split_rows) = split_rows else { return Ok(()) };
            split_rows.describe(&mut arguments);
            across = split_rows.chunks_of_a_row();
        }
        let rows = arguments.count as usize;
        let (mut name, mut group) = (bin.kernel, bin.group);
        // If few CTAs fit on a multiprocessor, or there are few, larger ones are used.
        let masked = bin.accumulator == Accumulator::Mask;
        let crowded = shared > CROWDED || self.is_empty(rows, self.config.huge);
        if masked && group == ThreadGroup::Wide && crowded {
            (name, group) = (c"huge", ThreadGroup::Huge);
        }
        if masked && group == ThreadGroup::Huge && self.is_empty(rows, GIANT_GROUP) {
            (name, group) = (c"giant", ThreadGroup::Giant);
        }
        let Some(kernel) = phase.kernel(name) else { return Ok(()) };
        let grid = match group {
            ThreadGroup::SeveralCtas => (across as u64, rows as u64),
            _ => (rows.div_ceil(self.groups(group)) as u64, 1),
        };
        // SAFETY: as above.
        unsafe { kernel.launch_with_shared(stream, grid, self.block(group), shared, &arguments) }
    }

    /// Whether `rows` CTAs of `threads` threads fill less than half of the device.
    fn is_empty(&self, rows: usize, threads: u32) -> bool {
        rows * threads as usize <= THREADS * self.multiprocessors
    }

    /// Threads of a CTA of a bin.
    fn block(&self, group: ThreadGroup) -> u32 {
        match group {
            ThreadGroup::Lanes(_) => BLOCK,
            ThreadGroup::Wide | ThreadGroup::SeveralCtas => self.config.wide,
            ThreadGroup::Huge => self.config.huge,
            ThreadGroup::Giant => GIANT_GROUP,
            ThreadGroup::Dense => self.config.dense,
        }
    }

    /// Rows that such a CTA computes concurrently.
    fn groups(&self, group: ThreadGroup) -> usize {
        match group {
            ThreadGroup::Lanes(lanes) => (BLOCK / lanes) as usize,
            _ => 1,
        }
    }
}

/// The parameters of a launch of one bin.
struct Launch<'a> {
    counters: &'a Counters,
    number: usize,
    bin: &'a Bin,
    shared: usize,
    split_rows: Option<&'a SplitRows>,
}
