//! The kernels that sum at the positions of a mask, see `kernels/spgemm/masked.cu`.

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

// Threads of a CTA: of most kernels, and of those that share a task or weigh rows, as in the kernel
// file.
const BLOCK: u32 = 128;
const SHARING: u32 = 256;
// log2 of the positions of the smallest tasks.
const LEAST: u32 = 6;
// Most CTAs per multiprocessor; larger matrices have more rows per CTA.
const CTAS: u64 = 32;
// Positions that a warp searches in all of C, as in the kernel file.
const FOUND: u64 = 256;
// Persistent CTAs per multiprocessor that take tasks, and persistent warps.
const RESIDENT: u64 = 8;
const WARPS: u64 = 32;
// Rows per multiprocessor below which a warp computes only rows of fewer products alone.
const ROWS: u64 = 64;
const ALONE: [u32; 2] = [1024, 4096];
// Number of counters, and the indices of some, see `masked/arguments.cuh`.
const COUNTERS: usize = 17;
const CUT: usize = 5;
const TASKS: usize = 6;
const TAKEN: u64 = 7;
const PRODUCTS: usize = 8;
// Entries that a thread checks for their order.
const LOOKS: u64 = 8;
// Mean positions of a row up to which 8 lanes copy them to C.
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
        /// For every position its value, and whether it has an intermediate product; the latter
        /// array is optional.
        pub values: *mut Out,
        pub present: *mut u8,
        rows: u64,
        /// Rows and entries of B, and positions of all rows.
        rows_b: u64,
        nnz_b: u64,
        count: u64,
        alpha: u64,
        /// Three arrays with memory for all rows.
        lists: *mut u32,
        /// For every task its row in the high bits, then its number among the row's tasks, then
        /// log2 of their positions in 4 bits.
        tasks: *mut u64,
        /// Zero at the start.
        counters: *mut u64,
        /// Number of CTAs that weigh rows; the CTAs after them check the order of entries.
        weighing: u32,
        /// Most products of a row that a warp computes alone, and number of tasks that keep the
        /// device busy.
        alone: u32,
        busy: u32,
        /// Most products of rows that a thread merges, with few rows of B and with many.
        merged_few: u32,
        merged_many: u32,
        /// Whether columns of B's rows increase.
        ordered: u32,
        /// Whether sums must be in A's order.
        in_order: u32,
    }
}

impl Arguments {
    /// Arguments for A with `rows` rows, B, and the positions of a mask; C has no arrays yet.
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

/// The kernels, and the lists of rows and tasks of a mask.
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

/// The state of the lists.
#[derive(Clone, Copy)]
enum Listed {
    No,
    Queued,
    /// Computed, with their counters.
    Counted([u64; COUNTERS]),
}

/// The compiled kernels, and streams beside the device's own, so that kernels for different rows
/// run concurrently.
struct Kernels {
    weigh: Kernel<Arguments>,
    cut: Kernel<Arguments>,
    /// The kernels that sum, the slowest first.
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
    /// The counter of its rows or tasks, and how many a CTA computes concurrently.
    of: usize,
    each: u64,
}

// Lists whose kernels write only positions with a product.
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
    /// Compiles for the types of `problem`; deterministic sums are in A's order.
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

    /// Allocates memory for a mask of up to `count` positions in `rows` rows.
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

    /// Bytes on the device for a mask of `count` positions in `rows` rows.
    pub(in crate::spgemm) fn bytes_of(rows: usize, count: usize) -> usize {
        8 * words_of(rows, count)
    }

    /// Resets the lists for another mask with no more rows and positions.
    pub(in crate::spgemm) fn forget(&mut self) {
        (self.listed, self.cut) = (Listed::No, false);
    }

    /// Bytes on the device.
    pub(in crate::spgemm) fn bytes(&self) -> usize {
        self.lists.bytes()
    }

    /// Queues the computation of the values of the rows of `c` from `first` on, as many rows as `o`
    /// has, with increasing columns. Sums are in A's order if rows of B increase (`ordered`).
    ///
    /// # Safety
    /// The operands and `c` are valid until the work is done, belong to one product, and there are
    /// no more positions than were prepared for.
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

    /// Queues the lists of rows, which depend on the patterns alone; with `looks` also a check of
    /// whether columns of B and of the mask increase.
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

    /// The counters of the lists, and whether columns of B and of the mask increase. Waits for
    /// them.
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

    /// Queues the sums at all positions, of the mask that was listed or of a subset of it. If
    /// positions are counted, C's offsets must be zero before.
    ///
    /// # Safety
    /// The arrays of the arguments are valid until the work is done, and there are no more
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
            if merged && arguments.present != 0 {
                DeviceBuffer::<u8>::borrowed(
                    self.lists.device(),
                    arguments.present,
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
        // Also after an error: their memory is freed on the device's own stream.
        let joined = side.iter().zip(&k.ended).try_for_each(|(side, ended)| {
            side.mark(ended)?;
            stream.wait(ended)
        });
        self.cut = true;
        launched.and(joined)
    }

    /// Queues the search for the positions in all of C, which the arguments hold in place of B.
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

    /// Queues the copy of the positions with a product to C.
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

    /// The arguments with the fields that do not depend on the mask.
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

    /// A grid for `rows` rows, `each` rows per CTA.
    fn grid(&self, rows: u64, each: u64) -> (u64, u64) {
        (rows.div_ceil(each).min(CTAS * self.multiprocessors), 1)
    }
}

/// Upper bound of the tasks: every row may waste most of its last one.
fn tasks_of(rows: usize, count: usize) -> usize {
    rows.min(count) + (count >> LEAST)
}

/// Words of counters, tasks and lists.
fn words_of(rows: usize, count: usize) -> usize {
    COUNTERS + tasks_of(rows, count) + (3 * rows).div_ceil(2)
}

/// Arguments of the operands and the positions of a mask; `ordered` if rows of B increase.
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
