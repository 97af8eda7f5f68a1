//! The kernels that sum at the positions of a pattern, see `kernels/spgemm/masked.cu`.

use std::sync::Arc;

use gustav_core::{Error, Index, Problem, Result, Scalar};
use gustav_plan::heuristics::masked::Work;

use crate::device::{Device, DeviceBuffer, Event, Stream};
use crate::jit::{Request, source};
use crate::launch::Kernel;
use crate::matrix::DeviceCsr;
use crate::product::sparse_operands::{Matrix, Operands, Output};
use crate::spgemm::binned::merged;
use crate::spgemm::types::Types;

// Threads of a CTA, and of one that shares a task or weighs rows, as in the kernels.
const BLOCK: u32 = 128;
const SHARING: u32 = 256;
// Positions of the smallest tasks, as a power of two.
const LEAST: u32 = 6;
// CTAs for every multiprocessor, before they take more rows each.
const CTAS: u64 = 32;
// Positions that a warp finds in all of C, as in the kernel.
const FOUND: u64 = 256;
// CTAs for every multiprocessor that take tasks one after another, and warps.
const RESIDENT: u64 = 8;
const WARPS: u64 = 32;
// Rows for every multiprocessor, below which a warp takes fewer products of a row alone.
const ROWS: u64 = 64;
const ALONE: [u32; 2] = [1024, 4096];
// Words of counters, and some of them, see `masked/arguments.cuh`.
const COUNTERS: usize = 17;
const CUT: usize = 5;
const TASKS: usize = 6;
const TAKEN: u64 = 7;
const PRODUCTS: usize = 8;
// Entries that a thread looks at for descents.
const LOOKS: u64 = 8;
// Mean positions of a row up to which 8 lanes move them to C.
const SHORT: u64 = 16;

/// The source with its parameters.
pub(crate) fn request(types: Types) -> Request {
    types
        .of_arrays(request!("spgemm/masked.cu").with_block::<Arguments>())
        .with("SEMIRING", source::semiring(types.semiring))
        .with("LEAST", LEAST)
}

parameter_block! {
    /// The parameter of every kernel.
    pub(super) struct Arguments {
        pub a: Matrix,
        pub b: Matrix,
        pub c: Output,
        position_offsets: *const Offset,
        positions: *const Index,
        /// Of every position: its value, and whether it has an intermediate product; the latter may be missing.
        pub values: *mut Out,
        pub met: *mut u8,
        rows: u64,
        /// Rows and entries of B, positions of all rows.
        rows_b: u64,
        nnz_b: u64,
        count: u64,
        alpha: u64,
        /// Three arrays with memory for all rows.
        lists: *mut u32,
        /// A row above the number of the task among its tasks and 4 bits for the logarithm of their
        /// positions.
        tasks: *mut u64,
        /// Zeros at the start.
        counters: *mut u64,
        /// CTAs that weigh rows; those after them look for descents.
        weighing: u32,
        /// Products of a row that a warp takes alone, and tasks that keep the device busy.
        alone: u32,
        busy: u32,
        /// Products of rows that a thread merges, with few rows of B and with many, at most.
        merged_few: u32,
        merged_many: u32,
        /// Whether columns of B's rows increase.
        ordered: u32,
        /// Whether a sum must be in A's order.
        in_order: u32,
    }
}

impl Arguments {
    /// A of so many rows, B, and the positions of a pattern; C has no arrays yet.
    pub(super) fn at<I, O>(
        a: Matrix,
        b: Matrix,
        rows: usize,
        offsets: &DeviceBuffer<O>,
        positions: &DeviceBuffer<I>,
    ) -> Self {
        Arguments {
            a,
            b,
            position_offsets: offsets.address(),
            positions: positions.address(),
            rows: rows as u64,
            count: positions.len() as u64,
            ..Arguments::default()
        }
    }
}

/// The kernels, and the lists of rows and tasks of a pattern.
pub(in crate::spgemm) struct MaskedSums {
    kernels: Arc<Kernels>,
    multiprocessors: u64,
    in_order: bool,
    /// Counters, the tasks, and the lists of rows by kernel: two lists in each of three arrays.
    lists: DeviceBuffer<u64>,
    tasks: usize,
    listed: Listed,
    /// Whether rows are cut into tasks.
    cut: bool,
}

/// Whether the lists are there.
#[derive(Clone, Copy)]
enum Listed {
    No,
    Queued,
    /// And what was counted.
    Counted([u64; COUNTERS]),
}

/// The compiled kernels, and streams beside the device's own, so that kernels for different rows run at
/// once.
struct Kernels {
    weigh: Kernel<Arguments>,
    cut: Kernel<Arguments>,
    /// Those that sum, the slowest first.
    sums: [Sums; 6],
    keep: [Kernel<Arguments>; 2],
    find: Kernel<Arguments>,
    side: [Stream; 2],
    begun: Event,
    ended: [Event; 2],
}

/// A kernel that sums at the positions of rows or tasks.
struct Sums {
    kernel: Kernel<Arguments>,
    threads: u32,
    /// The counter of what it has, and how many a CTA has at once.
    of: usize,
    each: u64,
}

// Lists whose kernels write positions with a product and no others.
const MERGED: [usize; 2] = [0, 1];

impl Kernels {
    fn new(device: &Device, types: Types, in_order: bool) -> Result<Self> {
        let module = device.module(&request(types))?;
        let sums = |name, threads, of, each| {
            Ok::<_, Error>(Sums { kernel: module.kernel(name)?, threads, of, each })
        };
        let [merged_few, merged_many] = MERGED;
        Ok(Kernels {
            weigh: module.kernel(c"weigh")?,
            cut: module.kernel(c"cut")?,
            sums: [
                match in_order {
                    true => sums(c"many", BLOCK, TASKS, 1)?,
                    false => sums(c"shared", SHARING, TASKS, 1)?,
                },
                sums(c"few", BLOCK, 3, 4)?,
                sums(c"search_32", BLOCK, 4, 4)?,
                sums(c"search_8", BLOCK, 2, 16)?,
                sums(c"merged_many", BLOCK, merged_many, 128)?,
                sums(c"merged_few", BLOCK, merged_few, 128)?,
            ],
            keep: [module.kernel(c"keep_8")?, module.kernel(c"keep_32")?],
            find: module.kernel(c"find")?,
            side: [device.new_stream()?, device.new_stream()?],
            begun: Event::untimed(device)?,
            ended: [Event::untimed(device)?, Event::untimed(device)?],
        })
    }
}

impl MaskedSums {
    /// Compiled for the types of `problem`; sums are in A's order where it is promised.
    pub(in crate::spgemm) fn new(device: &Device, problem: &Problem) -> Result<Self> {
        let (types, in_order) = (Types::of(problem), problem.deterministic);
        let key = format!("{types:?} {in_order}");
        Ok(MaskedSums {
            kernels: device.cached(&key, || Kernels::new(device, types, in_order))?,
            multiprocessors: device.profile().multiprocessors as u64,
            in_order,
            lists: DeviceBuffer::queued(device, 0, "")?,
            tasks: 0,
            listed: Listed::No,
            cut: false,
        })
    }

    /// Allocates memory for a pattern of up to `count` positions in `rows` rows.
    pub(in crate::spgemm) fn prepare(
        &mut self,
        device: &Device,
        rows: usize,
        count: usize,
    ) -> Result<()> {
        self.tasks = tasks_of(rows, count);
        let words = words_of(rows, count);
        self.lists = DeviceBuffer::queued(device, words, "rows of a product at given positions")?;
        self.forget();
        Ok(())
    }

    /// Bytes on the device for a pattern of so many positions in so many rows.
    pub(in crate::spgemm) fn bytes_of(rows: usize, count: usize) -> usize {
        8 * words_of(rows, count)
    }

    /// Makes ready for another pattern of no more rows and positions.
    pub(in crate::spgemm) fn forget(&mut self) {
        (self.listed, self.cut) = (Listed::No, false);
    }

    /// Bytes on the device.
    pub(in crate::spgemm) fn bytes(&self) -> usize {
        self.lists.bytes()
    }

    /// Queues the values at all positions of rows of `c` from `first` on, as many as `o` has and
    /// increasing: every sum in A's order where rows of B increase, which `ordered` says.
    ///
    /// # Safety
    /// The operands and `c` are valid until the stream has done the work, and of one product with not
    /// more positions than were prepared for.
    pub(in crate::spgemm) unsafe fn fill<T: Scalar, I: Index, O: Index>(
        &mut self,
        stream: &Stream,
        o: &Operands,
        c: &DeviceCsr<T, I, O>,
        first: usize,
        ordered: bool,
    ) -> Result<()> {
        let position_offsets = c.offsets().address() + (first * size_of::<O>()) as u64;
        let arguments = of(o, c.offsets(), c.indices(), ordered);
        let arguments = Arguments { values: c.values().address(), position_offsets, ..arguments };
        // SAFETY: the caller's promise; the values are as many as the positions.
        unsafe { self.sum(stream, &arguments) }
    }

    /// Queues listing the rows, by the patterns alone, and where `looks` says so a look whether columns of B
    /// and of the mask increase.
    ///
    /// # Safety
    /// As [`MaskedSums::sum`].
    pub(super) unsafe fn list(
        &mut self,
        stream: &Stream,
        arguments: &Arguments,
        looks: bool,
    ) -> Result<()> {
        let weighing = self.grid(arguments.rows, u64::from(SHARING)).0;
        let longer = (arguments.nnz_b + arguments.rows_b).max(arguments.count + arguments.rows);
        let looking = if looks { longer.div_ceil(LOOKS * u64::from(SHARING)) } else { 0 };
        let looking = looking.min(RESIDENT * self.multiprocessors);
        let arguments = Arguments { weighing: weighing as u32, ..self.complete(arguments) };
        // SAFETY: the words are the first of the lists.
        unsafe {
            DeviceBuffer::<u64>::borrowed(self.lists.device(), arguments.counters, COUNTERS)
                .fill(0, stream)?;
            self.kernels.weigh.launch(stream, (weighing + looking, 1), SHARING, &arguments)?;
        }
        (self.listed, self.cut) = (Listed::Queued, false);
        Ok(())
    }

    /// What was counted of the lists, and whether columns of B and of the mask increase. Waits for that.
    pub(super) fn counted(&mut self) -> Result<(Work, [bool; 2])> {
        let mut counters = [0; COUNTERS];
        self.lists.read_at(0, &mut counters)?;
        self.listed = Listed::Counted(counters);
        let [.., few, many, searched_8, table, searched_32, cut, of_b, of_mask] = counters;
        let work = Work {
            products: counters[PRODUCTS],
            merged: few + many,
            searched: searched_8 + searched_32,
            table,
            cut,
            cut_rows: counters[CUT],
        };
        Ok((work, [of_b == 0, of_mask == 0]))
    }

    /// Queues the sums at all positions, of the first pattern or of positions of it. Where positions are
    /// counted, C's offsets begin with zeros.
    ///
    /// # Safety
    /// What the arguments name is valid until the stream has done the work, and there are not more
    /// positions than were prepared for.
    pub(super) unsafe fn sum(&mut self, stream: &Stream, arguments: &Arguments) -> Result<()> {
        if let Listed::No = self.listed {
            // SAFETY: the caller's promise.
            unsafe { self.list(stream, arguments, false)? };
        }
        let arguments = self.complete(arguments);
        let most = |of| match &self.listed {
            Listed::Counted(counters) if of != TASKS => counters[of],
            Listed::Counted(counters) if counters[CUT] == 0 => 0,
            _ if of == TASKS => self.tasks as u64,
            _ => arguments.rows,
        };
        let cut = match self.cut {
            false => most(CUT),
            true => 0,
        };
        // SAFETY: the words are counters.
        unsafe {
            if self.cut {
                let taken = arguments.counters + 8 * TAKEN;
                DeviceBuffer::<u64>::borrowed(self.lists.device(), taken, 1).fill(0, stream)?;
            } else if cut > 0 {
                let grid = self.grid(cut, u64::from(BLOCK / 32));
                self.kernels.cut.launch(stream, grid, BLOCK, &arguments)?;
            }
            let merged = MERGED.into_iter().any(|of| most(of) > 0);
            if merged && arguments.met != 0 {
                DeviceBuffer::<u8>::borrowed(
                    self.lists.device(),
                    arguments.met,
                    arguments.count as usize,
                )
                .fill(0, stream)?;
            }
        }
        let k = &self.kernels;
        let filled: Vec<_> = k.sums.iter().filter(|sums| most(sums.of) > 0).collect();
        let side = &k.side[..filled.len().saturating_sub(1).min(k.side.len())];
        if !side.is_empty() {
            stream.mark(&k.begun)?;
            side.iter().try_for_each(|side| side.wait(&k.begun))?;
        }
        let streams = [stream].into_iter().chain(side).cycle();
        let launched = filled.into_iter().zip(streams).try_for_each(|(sums, on)| {
            let grid = match sums.of {
                TASKS => (most(TASKS).min(RESIDENT * self.multiprocessors), 1),
                of => self.grid(most(of), sums.each),
            };
            // SAFETY: as above.
            unsafe { sums.kernel.launch(on, grid, sums.threads, &arguments) }
        });
        // After an error too: the device's own stream frees what they use.
        let joined = side.iter().zip(&k.ended).try_for_each(|(side, ended)| {
            side.mark(ended)?;
            stream.wait(ended)
        });
        self.cut = true;
        launched.and(joined)
    }

    /// Queues looking up the positions in all of C, which the arguments have in position of B.
    ///
    /// # Safety
    /// As [`MaskedSums::sum`].
    pub(super) unsafe fn find(&self, stream: &Stream, arguments: &Arguments) -> Result<()> {
        // SAFETY: the rest is the caller's promise.
        unsafe {
            let grid = self.grid(arguments.count, u64::from(BLOCK / 32) * FOUND);
            self.kernels.find.launch(stream, grid, BLOCK, arguments)
        }
    }

    /// Queues moving the positions with a product to C.
    ///
    /// # Safety
    /// As [`MaskedSums::sum`].
    pub(super) unsafe fn keep(&self, stream: &Stream, arguments: &Arguments) -> Result<()> {
        // SAFETY: the rest is the caller's promise.
        unsafe {
            let short = arguments.count <= SHORT * arguments.rows;
            let ([eight, warp], lanes) = (&self.kernels.keep, if short { 8 } else { 32 });
            let grid = self.grid(arguments.rows, u64::from(BLOCK / lanes));
            let kernel = if short { eight } else { warp };
            kernel.launch(stream, grid, BLOCK, arguments)
        }
    }

    /// The arguments with what is the same for all patterns.
    fn complete(&self, arguments: &Arguments) -> Arguments {
        let counters = self.lists.address();
        let tasks = counters + 8 * COUNTERS as u64;
        let (rows, multiprocessors) = (arguments.rows, self.multiprocessors);
        let each = if self.in_order { WARPS } else { RESIDENT };
        let [merged_few, merged_many] = merged(rows as usize, multiprocessors as usize);
        Arguments {
            lists: tasks + 8 * self.tasks as u64,
            tasks,
            counters,
            alone: ALONE[usize::from(rows >= ROWS * multiprocessors)],
            busy: (each * multiprocessors) as u32,
            merged_few,
            merged_many,
            in_order: u32::from(self.in_order),
            ..*arguments
        }
    }

    /// CTAs for so many rows, `each` of them at once.
    fn grid(&self, rows: u64, each: u64) -> (u64, u64) {
        (rows.div_ceil(each).min(CTAS * self.multiprocessors), 1)
    }
}

/// Tasks of so many positions at most: every row may waste most of its last one.
fn tasks_of(rows: usize, count: usize) -> usize {
    rows.min(count) + (count >> LEAST)
}

/// Words of counters, tasks and lists.
fn words_of(rows: usize, count: usize) -> usize {
    COUNTERS + tasks_of(rows, count) + (3 * rows).div_ceil(2)
}

/// The operands, of which B may have increasing rows, and the positions of a pattern.
pub(super) fn of<I, O>(
    o: &Operands,
    offsets: &DeviceBuffer<O>,
    positions: &DeviceBuffer<I>,
    ordered: bool,
) -> Arguments {
    let at = Arguments::at(o.a.into(), o.b.into(), o.a.rows, offsets, positions);
    let (rows_b, nnz_b) = (o.b.rows as u64, o.b.nnz as u64);
    Arguments { rows_b, nnz_b, alpha: o.alpha, ordered: u32::from(ordered), ..at }
}
