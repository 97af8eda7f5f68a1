//! `segmented`: rows cut into segments, one group of lanes a segment, two gathered rows for every
//! nonzero. See `kernels/attention/segmented.cu`.

use gustav_core::{DType, IndexType, Operation, Problem, Result};
use gustav_plan::RowLengths;

use crate::device::{Counters, Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::product::check_config;
use crate::product::tile::{accumulator, widest};
use crate::schedule::pattern::Pattern;
use crate::schedule::{LEVELS, Listing, Segments, Target};

/// How nonzeros are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Nonzeros of a group whose rows are loaded at once: 2, 4 or 8.
    pub chunk: u32,
    /// Vectors of a lane in the longest row that it gathers, as few lanes allow: 1 to 8.
    pub tiles: u32,
    /// Threads of a CTA: a power of two from 32 to 1024.
    pub block: u32,
    /// Rows with as many nonzeros are cut: a power of two from 32 to 4096.
    pub longest: u32,
}

/// Any attention in floating point.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    problem.check_heads("segmented on CUDA", Operation::Attention)
}

/// Every configuration that is worth timing.
pub(super) fn configs(_: &Problem) -> Vec<Config> {
    let shapes = [(2, 2), (4, 2), (4, 1), (2, 1)];
    let of = |longest| {
        shapes.map(|(chunk, tiles)| Config { chunk, tiles, block: BLOCK, longest: longest as u32 })
    };
    [LEAST, MOST].into_iter().flat_map(of).collect()
}

const BLOCK: u32 = 128;
// Rows of a window of the list, in which they go by length, and nonzeros of those at its head.
const WINDOW: u32 = 256;
// A part of a cut row has at most the nonzeros of a group, if all had equally many, over this: the
// last groups should not wait for it.
const BALANCE: f64 = 1.5;
// Powers of two between which rows are cut: shorter parts cost more to merge than they balance.
const LEAST: u64 = 64;
const MOST: u64 = 512;
// Groups of a multiprocessor that are resident at once: about 640 threads, 8 lanes each.
const GROUPS: usize = 80;
// Nanoseconds from asking for the rows of two nonzeros to having added them, nearly whatever their
// width, and bytes that a multiprocessor gathers from L2, and reads from memory, in a nanosecond:
// of an H200.
const WAIT: f64 = 900.0;
const GATHERED: f64 = 61.0;
const READ: f64 = 32.0;

impl Config {
    /// The configuration that suits a pattern with rows of `lengths` on a device with so many
    /// multiprocessors, and why.
    ///
    /// Where the device gathers everything in less time than one group takes for the longest part
    /// of a row, groups have twice the lanes and twice the nonzeros at once, if a row of an operand
    /// has work for them: they take half the time for a part, and more for all of them.
    pub(super) fn choose(
        multiprocessors: usize,
        problem: &Problem,
        lengths: &RowLengths,
    ) -> (Self, String) {
        let multiprocessors = multiprocessors.max(1) as f64;
        let (nnz, heads) = (problem.nnz as f64, problem.batch as f64);
        let per_group = nnz * heads / (multiprocessors * GROUPS as f64);
        let longest = 1 << ((per_group / BALANCE) as u64).clamp(LEAST, MOST).ilog2();
        let (left, right) = (problem.columns, problem.value_columns);
        let bytes = heads * ((left + right) * problem.dtype.bytes()) as f64 / multiprocessors;
        let rows = (problem.rows + problem.cols) as f64;
        let all_ns = bytes * (nnz / GATHERED + rows / READ);
        let part = lengths.max().min(longest as usize);
        let part_ns = part as f64 / 2.0 * WAIT;
        let vectors = left.max(right) as u32 / widest(problem.dtype, (left | right) as u64);
        let config = Config { chunk: 2, tiles: 2, block: BLOCK, longest };
        if all_ns < part_ns && vectors <= 32 {
            let reason = format!(
                "wide groups of lanes, as {part} nonzeros of one row would take longer than all \
                 gathers; rows are cut at {longest} nonzeros"
            );
            return (Config { chunk: 4, tiles: 1, ..config }, reason);
        }
        let reason =
            format!("rows are cut at {longest} nonzeros, so that no group is the last for long");
        (config, reason)
    }

    fn check(&self) -> Result<()> {
        let fits = [2, 4, 8].contains(&self.chunk)
            && (1..=8).contains(&self.tiles)
            && self.block.is_power_of_two()
            && (32..=1024).contains(&self.block)
            && Segments::cuts_at(self.longest);
        check_config(
            "config of segmented",
            self,
            fits,
            "chunks of 2, 4 or 8 nonzeros, 1 to 8 tiles, CTAs of 32 to 1024 threads, a power of two, and rows \
             cut at 32 to 4096 nonzeros, a power of two",
        )
    }
}

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pass {
    /// O, by rows.
    Forward,
    /// The gradients of Q and the bias, by rows.
    Rows,
    /// The gradients of K and V, by columns.
    Columns,
}

impl Pass {
    const fn name(self) -> &'static str {
        match self {
            Pass::Forward => "FORWARD",
            Pass::Rows => "ROWS",
            Pass::Columns => "COLUMNS",
        }
    }

    /// Whether sums of the width of left and of right rows are made.
    const fn sums(self) -> (bool, bool) {
        match self {
            Pass::Forward => (false, true),
            Pass::Rows => (true, false),
            Pass::Columns => (true, true),
        }
    }
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    pub(crate) pass: Pass,
    pub(crate) dtype: DType,
    pub(crate) index: IndexType,
    pub(crate) offset: IndexType,
    pub(crate) position: IndexType,
    /// Elements of a load.
    pub(crate) vector: u32,
    pub(crate) lanes: u32,
    /// Vectors of a lane in left and in right rows.
    pub(crate) left: u32,
    pub(crate) right: u32,
    pub(crate) biased: bool,
}

// Registers of a thread beside rows and sums.
const OTHER_REGISTERS: u32 = 38;
// With fewer, the pass over the columns spills in its loop.
const OTHER_REGISTERS_BY_COLUMNS: u32 = 46;

impl Variant {
    fn new(config: Config, pass: Pass, o: &Operands) -> Self {
        let places =
            [o.own_left, o.own_right, o.left, o.right, o.result, o.left_result, o.right_result];
        let divides = |vector: u32, number: u64| vector.min(widest(o.dtype, number));
        let vector =
            places.iter().fold(widest(o.dtype, (o.depth | o.value_depth) as u64), |v, place| {
                let bytes = o.dtype.bytes() as u64;
                [place.address / bytes, place.row, place.head]
                    .into_iter()
                    .filter(|n| *n > 0)
                    .fold(v, divides)
            });
        let vectors = |columns: usize| (columns as u32).div_ceil(vector).max(1);
        let (left, right) = (vectors(o.depth), vectors(o.value_depth));
        let lanes = left.max(right).div_ceil(config.tiles).next_power_of_two();
        let lanes = lanes.clamp(config.chunk, 32);
        Variant {
            config,
            pass,
            dtype: o.dtype,
            index: o.index_type,
            offset: o.offset_type,
            position: if o.nnz < 1 << 31 { IndexType::U32 } else { IndexType::U64 },
            vector,
            lanes,
            left: left.div_ceil(lanes),
            right: right.div_ceil(lanes),
            biased: o.bias != 0 && pass != Pass::Columns,
        }
    }

    /// Threads of a multiprocessor that the registers of a kernel must allow: as many as rows in
    /// flight and sums leave.
    fn resident(&self) -> u32 {
        let words = |bytes: usize| (self.vector * bytes as u32).div_ceil(4);
        let row = words(self.dtype.bytes()) * (self.left + self.right);
        let (left, right) = self.pass.sums();
        let sums = words(accumulator(self.dtype).bytes())
            * (u32::from(left) * self.left + u32::from(right) * self.right);
        let (own, others) = match self.pass {
            Pass::Forward | Pass::Rows => (row, OTHER_REGISTERS),
            Pass::Columns => (0, OTHER_REGISTERS_BY_COLUMNS),
        };
        let registers = self.config.chunk * row + own + sums + others;
        let threads = (65_536 / registers).clamp(256, 768) / 128 * 128;
        threads.max(self.config.block)
    }

    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        request!("attention/segmented.cu")
            .with_block::<Arguments>()
            .with("VALUE", self.dtype)
            .with("INDEX", self.index)
            .with("OFFSET", self.offset)
            .with("POSITION", self.position)
            .with("PASS", self.pass.name())
            .with("BLOCK", self.config.block)
            .with("RESIDENT", self.resident())
            .with("VECTOR", self.vector)
            .with("LANES", self.lanes)
            .with("LEFT", self.left)
            .with("RIGHT", self.right)
            .with("CHUNK", self.config.chunk)
            .with("BIASED", self.biased)
            .with("LEVELS", LEVELS)
    }
}

parameter_block! {
    /// Rows that are read, of all heads.
    pub(crate) struct Matrix {
        pub(crate) address: *const Value,
        /// Values from a row to the next.
        pub(crate) row: u64,
        /// Values from a head to the next.
        pub(crate) head: u64,
    }

    /// Rows that are written, of all heads.
    pub(crate) struct MatrixMut {
        pub(crate) address: *mut Value,
        pub(crate) row: u64,
        pub(crate) head: u64,
    }

    struct Arguments {
        indices: *const Index,
        /// Positions in A of the nonzeros (COLUMNS).
        positions: *const Offset,
        segments: *const u64,
        /// The cut row of each slot, two words.
        slot_rows: *const u64,
        /// Segments.
        count: u64,
        /// The heads of this launch: from the first to before the end.
        first_head: u64,
        end_head: u64,
        /// Of A.
        rows: u64,
        own_left: Matrix,
        own_right: Matrix,
        left: Matrix,
        right: Matrix,
        /// O (ROWS).
        result: Matrix,
        left_result: MatrixMut,
        right_result: MatrixMut,
        bias: *const Value,
        bias_head: u64,
        bias_nonzero: u64,
        /// Null when it is not asked for.
        bias_gradient: *mut Value,
        gradient_head: u64,
        gradient_nonzero: u64,
        /// Logarithms of the sums of exponentials, of every head and row; null when FORWARD need
        /// not keep them.
        lse: *mut Accum,
        /// Weight and slope of every nonzero of the launch's heads, which ROWS leaves for COLUMNS.
        weights: *mut Accum,
        nonzeros: u64,
        partials: *mut Accum,
        /// Largest score and sum of exponentials of every part (FORWARD).
        states: *mut Accum,
        arrivals: *mut u32,
        slots: u64,
        depth: u64,
        value_depth: u64,
        scale: u64,
        negative_slope: u64,
    }
}

/// Addresses, distances and sizes of a pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands {
    pub indices: u64,
    pub positions: u64,
    pub index_type: IndexType,
    pub offset_type: IndexType,
    pub dtype: DType,
    /// The heads of a launch: from the first to before the end.
    pub first_head: usize,
    pub end_head: usize,
    /// Rows of A.
    pub rows: usize,
    pub nnz: usize,
    pub depth: usize,
    pub value_depth: usize,
    pub own_left: Matrix,
    pub own_right: Matrix,
    pub left: Matrix,
    pub right: Matrix,
    pub result: Matrix,
    pub left_result: Matrix,
    pub right_result: Matrix,
    pub bias: u64,
    pub bias_strides: (usize, usize),
    pub bias_gradient: u64,
    pub gradient_strides: (usize, usize),
    pub lse: u64,
    pub weights: u64,
    pub scale: u64,
    pub negative_slope: u64,
}

impl From<Matrix> for MatrixMut {
    fn from(Matrix { address, row, head }: Matrix) -> Self {
        MatrixMut { address, row, head }
    }
}

const MOST_HEADS: u64 = 65_535;

// Most bytes of the weights that ROWS leaves for COLUMNS, unless one head has more.
const WEIGHTS_BYTES: usize = 256 << 20;

/// Heads whose gradients are computed together, in groups that are as even as can be.
pub(super) fn heads_at_once(problem: &Problem) -> usize {
    let bytes = problem.nnz.saturating_mul(2 * accumulator(problem.dtype).bytes());
    let most = (WEIGHTS_BYTES / bytes.max(1)).max(1);
    let heads = problem.batch.max(1);
    heads.div_ceil(heads.div_ceil(most))
}

/// The schedule of a pass on the device, memory for the parts of cut rows, and the compiled kernel.
pub(crate) struct Prepared {
    config: Config,
    pass: Pass,
    segments: Segments,
    arrivals: Counters,
    partials: DeviceBuffer<u64>,
    states: DeviceBuffer<u64>,
    slots: usize,
    kernel: Option<(Variant, Kernel<Arguments>)>,
}

impl Prepared {
    /// Cuts the rows of `pattern`: A's, or those of Aᵀ for [`Pass::Columns`], as `problem` says.
    pub(crate) fn new(
        pattern: &Pattern<'_>,
        problem: &Problem,
        pass: Pass,
        config: Config,
    ) -> Result<Self> {
        config.check()?;
        let device = pattern.device();
        let Config { longest, .. } = config;
        let listing = Listing { longest, first: Segments::first_of(longest), window: WINDOW };
        let segments = Segments::new(pattern, problem, listing, Target::Slot)?;
        let slots = segments.slots();
        let (left, right) = pass.sums();
        let width =
            usize::from(left) * problem.columns + usize::from(right) * problem.value_columns;
        let capacity = slots.saturating_mul(problem.batch);
        let words =
            |values: usize| values.saturating_mul(accumulator(problem.dtype).bytes()).div_ceil(8);
        let states = if pass == Pass::Forward { capacity.saturating_mul(2) } else { 0 };
        Ok(Prepared {
            config,
            pass,
            arrivals: Counters::new(device, capacity.saturating_mul(LEVELS), "arrivals of parts")?,
            partials: DeviceBuffer::queued(
                device,
                words(capacity.saturating_mul(width)),
                "sums of cut rows",
            )?,
            states: DeviceBuffer::queued(
                device,
                words(states),
                "sums of exponentials of cut rows",
            )?,
            segments,
            slots,
            kernel: None,
        })
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> usize {
        self.segments.bytes() + self.arrivals.bytes() + self.partials.bytes() + self.states.bytes()
    }

    /// Compiles what `operands` need, unless that has been done.
    pub(crate) fn compile(&mut self, device: &Device, o: &Operands) -> Result<()> {
        let variant = Variant::new(self.config, self.pass, o);
        if self.kernel.as_ref().is_none_or(|(compiled, _)| *compiled != variant) {
            let kernel = device.kernel(&variant, c"attention", || variant.request())?;
            self.kernel = Some((variant, kernel));
        }
        Ok(())
    }

    /// Queues the pass.
    ///
    /// # Safety
    /// The addresses in `operands` are valid until the stream has done the work, and the pattern is
    /// the one that this was prepared for.
    pub(crate) unsafe fn launch(
        &mut self,
        device: &Device,
        stream: &Stream,
        o: &Operands,
    ) -> Result<()> {
        self.compile(device, o)?;
        let Some((variant, kernel)) = &self.kernel else { return Ok(()) };
        let Segments { list, slot_rows, count, .. } = &self.segments;
        self.segments.used_on(stream);
        self.arrivals.used_on(stream);
        self.partials.used_on(stream);
        self.states.used_on(stream);
        let arguments = Arguments {
            indices: o.indices,
            positions: o.positions,
            segments: list.address(),
            slot_rows: slot_rows.address(),
            count: *count as u64,
            first_head: o.first_head as u64,
            end_head: o.end_head as u64,
            rows: o.rows as u64,
            own_left: o.own_left,
            own_right: o.own_right,
            left: o.left,
            right: o.right,
            result: o.result,
            left_result: o.left_result.into(),
            right_result: o.right_result.into(),
            bias: o.bias,
            bias_head: o.bias_strides.0 as u64,
            bias_nonzero: o.bias_strides.1 as u64,
            bias_gradient: o.bias_gradient,
            gradient_head: o.gradient_strides.0 as u64,
            gradient_nonzero: o.gradient_strides.1 as u64,
            lse: o.lse,
            weights: o.weights,
            nonzeros: o.nnz as u64,
            partials: self.partials.address(),
            states: self.states.address(),
            arrivals: self.arrivals.address(),
            slots: self.slots as u64,
            depth: o.depth as u64,
            value_depth: o.value_depth as u64,
            scale: o.scale,
            negative_slope: o.negative_slope,
        };
        let groups = u64::from(self.config.block / variant.lanes);
        // Heads that share the gradient of a bias follow one another.
        let one_at_a_time = o.bias_gradient != 0 && o.gradient_strides.0 == 0;
        let heads = (arguments.end_head - arguments.first_head).min(MOST_HEADS);
        let heads = if one_at_a_time { 1 } else { heads };
        let grid = (arguments.count.div_ceil(groups), heads);
        // SAFETY: the operands are the caller's promise; the schedule covers the pattern.
        unsafe { kernel.launch_dependent(stream, grid, self.config.block, 0, &arguments) }
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::Pattern;

    use super::*;

    // Nonzeros at once of a group for so many rows, one of them long, and so many columns.
    fn chunk(rows: usize, columns: usize, dtype: DType) -> u32 {
        let lengths = (0..rows).map(|r| if r == 7 { 690 } else { r as u64 % 9 });
        let nnz = lengths.clone().sum::<u64>() as usize;
        let empty = Pattern::<u32, u32>::new(0, 0, vec![0], vec![]).expect("a pattern");
        let problem = empty.attention(columns).problem;
        let problem = Problem { rows, cols: rows, nnz, dtype, ..problem };
        Config::choose(132, &problem, &RowLengths::of(nnz, lengths)).0.chunk
    }

    #[test]
    fn groups_are_wide_where_the_longest_row_decides() {
        assert_eq!(chunk(900, 64, DType::F16), 4);
        assert_eq!(chunk(900, 256, DType::F16), 4);
        assert_eq!(chunk(500_000, 64, DType::F16), 2);
        // Longer rows, and those of narrow vectors, have work for as many lanes as there are.
        assert_eq!(chunk(900, 256, DType::F32), 2);
        assert_eq!(chunk(900, 127, DType::F16), 2);
    }

    #[test]
    fn heads_go_in_even_groups_that_fit() {
        let empty = Pattern::<u32, u32>::new(0, 0, vec![0], vec![]).expect("a pattern");
        let heads = |nnz: usize, batch: usize| {
            let problem = empty.attention(8).heads(batch).problem;
            heads_at_once(&Problem { nnz, dtype: DType::F32, ..problem })
        };
        assert_eq!([heads(0, 8), heads(1000, 8), heads(12 << 20, 8)], [8, 8, 2]);
        // Three would fit, and leave one alone.
        assert_eq!(heads(10 << 20, 4), 2);
        assert_eq!(heads(1 << 40, 4), 1);
    }
}
