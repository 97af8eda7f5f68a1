//! The kernels that sum at the places of a pattern, see `kernels/spgemm/masked.cu`.

use std::sync::Arc;

use gustav_core::{DType, Index, IndexType, Problem, Result, Scalar, SemiringKind};

use super::super::operands::Operands;
use crate::jit::Request;
use crate::kernel::Kernel;
use crate::stream::Stream;
use crate::{Device, DeviceBuffer, DeviceCsr, source};

// Threads of a CTA, and of one that shares a task or weighs rows, as in the kernels.
const BLOCK: u32 = 128;
const SHARING: u32 = 256;
// Rows that such a CTA weighs at once.
const WEIGHED: u64 = 32;
// Places of the smallest tasks, as a power of two.
const LEAST: u32 = 6;
// CTAs for every multiprocessor, before they take more rows each.
const CTAS: u64 = 32;
// CTAs for every multiprocessor that take tasks one after another, and warps.
const RESIDENT: u64 = 8;
const WARPS: u64 = 32;
// Rows for every multiprocessor, below which a warp takes fewer products of a row alone.
const ROWS: u64 = 64;
const ALONE: [u32; 2] = [1024, 4096];
// Words of counters, and the one of tasks that are taken.
const COUNTERS: usize = 7;
const TAKEN: u64 = 6;

/// What the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Types {
    pub dtype: DType,
    /// Of the values of C.
    pub out: DType,
    pub index: IndexType,
    pub offset: IndexType,
    pub semiring: SemiringKind,
}

/// The source with its parameters.
pub(crate) fn request(types: Types) -> Request {
    Request::new("spgemm/masked.cu", include_str!("../../../kernels/spgemm/masked.cu"))
        .with("INDEX", types.index)
        .with("OFFSET", types.offset)
        .with("VALUE", types.dtype)
        .with("OUT", types.out)
        .with("SEMIRING", source::semiring(types.semiring))
        .with("LEAST", LEAST)
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Arguments {
    a_offsets: u64,
    a_indices: u64,
    a_values: u64,
    b_offsets: u64,
    b_indices: u64,
    b_values: u64,
    places_offsets: u64,
    places: u64,
    pub values: u64,
    pub met: u64,
    pub c_offsets: u64,
    pub c_indices: u64,
    pub c_values: u64,
    rows: u64,
    alpha: u64,
    near: u64,
    far: u64,
    tasks: u64,
    counters: u64,
    alone: u32,
    busy: u32,
    pub ordered: u32,
    in_order: u32,
}

/// The kernels, and what they know of a pattern.
pub(in crate::spgemm) struct Places {
    kernels: Kernels,
    /// Streams beside the device's own, so that kernels for different rows run at once.
    side: Arc<[Stream; 2]>,
    multiprocessors: u64,
    in_order: bool,
    /// Rows by what suits them, two lists in an array each.
    near: DeviceBuffer<u32>,
    far: DeviceBuffer<u32>,
    /// How many there are of everything, and the tasks.
    tasks: DeviceBuffer<u64>,
    /// Whether the lists are there.
    listed: bool,
}

struct Kernels {
    weigh: Kernel,
    cut: Kernel,
    search_8: Kernel,
    search_32: Kernel,
    few: Kernel,
    tasks: Kernel,
    keep: Kernel,
}

impl Places {
    /// Compiled for the types of `problem`; sums are in A's order where it is promised.
    pub(in crate::spgemm) fn new(device: &Device, problem: &Problem) -> Result<Self> {
        let module = device.module(&request(Types {
            dtype: problem.dtype,
            out: problem.output,
            index: problem.index_type,
            offset: problem.offset_type,
            semiring: problem.semiring,
        }))?;
        let in_order = problem.deterministic;
        let kernels = Kernels {
            weigh: module.kernel(c"weigh")?,
            cut: module.kernel(c"cut")?,
            search_8: module.kernel(c"search_8")?,
            search_32: module.kernel(c"search_32")?,
            few: module.kernel(c"few")?,
            tasks: module.kernel(if in_order { c"many" } else { c"shared" })?,
            keep: module.kernel(c"keep")?,
        };
        Ok(Places {
            kernels,
            side: device.kept("masked", || Ok([device.new_stream()?, device.new_stream()?]))?,
            multiprocessors: device.profile().multiprocessors as u64,
            in_order,
            near: DeviceBuffer::queued(device, 0, "")?,
            far: DeviceBuffer::queued(device, 0, "")?,
            tasks: DeviceBuffer::queued(device, 0, "")?,
            listed: false,
        })
    }

    /// Makes room for a pattern of up to `count` places in `rows` rows.
    pub(in crate::spgemm) fn prepare(
        &mut self,
        device: &Device,
        rows: usize,
        count: usize,
    ) -> Result<()> {
        let what = "rows of a product at given places";
        self.near = DeviceBuffer::queued(device, rows, what)?;
        self.far = DeviceBuffer::queued(device, rows, what)?;
        // Every row may waste most of its last task.
        let most = COUNTERS + rows.min(count) + (count >> LEAST);
        self.tasks = DeviceBuffer::queued(device, most, "tasks of a product at given places")?;
        self.listed = false;
        Ok(())
    }

    /// Bytes on the device.
    pub(in crate::spgemm) fn bytes(&self) -> usize {
        self.near.bytes() + self.far.bytes() + self.tasks.bytes()
    }

    /// Queues the values at all places of `c`, whose rows increase: every sum in A's order where those
    /// of B do, which `ordered` says.
    ///
    /// # Safety
    /// The operands and `c` are valid until the stream has done the work, and of one product with not
    /// more places than were prepared for.
    pub(in crate::spgemm) unsafe fn fill<T: Scalar, I: Index, O: Index>(
        &mut self,
        stream: &Stream,
        o: &Operands,
        c: &DeviceCsr<T, I, O>,
        ordered: bool,
    ) -> Result<()> {
        let arguments = Arguments {
            values: c.values().address(),
            ordered: u32::from(ordered),
            ..of(o, c.offsets(), c.indices())
        };
        // SAFETY: the caller's promise; the values are as many as the places.
        unsafe { self.sum(stream, &arguments) }
    }

    /// Queues the sums at all places, of the first pattern or of places of it. Where places are
    /// counted, `c_offsets` begins with zeros.
    ///
    /// # Safety
    /// What the arguments name is valid until the stream has done the work, and there are not more
    /// places than were prepared for.
    pub(super) unsafe fn sum(&mut self, stream: &Stream, arguments: &Arguments) -> Result<()> {
        let counters = self.tasks.address();
        let resident = RESIDENT * self.multiprocessors;
        let busy = if self.in_order { WARPS * self.multiprocessors } else { resident };
        let arguments = Arguments {
            near: self.near.address(),
            far: self.far.address(),
            tasks: counters + 8 * COUNTERS as u64,
            counters,
            alone: ALONE[usize::from(arguments.rows >= ROWS * self.multiprocessors)],
            busy: busy as u32,
            in_order: u32::from(self.in_order),
            ..*arguments
        };
        let rows = arguments.rows;
        let (k, [first, second]) = (&self.kernels, &*self.side);
        let (zero, zeros) = match self.listed {
            true => (TAKEN, 1),
            false => (0, COUNTERS),
        };
        // SAFETY: the words are the first of the tasks, which have room for all; `Arguments` is the
        // kernels' parameter.
        unsafe {
            DeviceBuffer::<u64>::borrowed(self.tasks.device(), counters + 8 * zero, zeros)
                .fill(0, stream)?;
            if !self.listed {
                k.weigh.launch(stream, self.grid(rows, WEIGHED), SHARING, &arguments)?;
                k.cut.launch(stream, self.grid(rows, u64::from(BLOCK / 32)), BLOCK, &arguments)?;
            }
            let begun = stream.record()?;
            first.wait(&begun)?;
            second.wait(&begun)?;
            let threads = if self.in_order { BLOCK } else { SHARING };
            let most = (self.tasks.len() as u64).saturating_sub(COUNTERS as u64).min(resident);
            k.tasks.launch(stream, (most, 1), threads, &arguments)?;
            k.few.launch(first, self.grid(rows, u64::from(BLOCK / 32)), BLOCK, &arguments)?;
            k.search_32.launch(
                second,
                self.grid(rows, u64::from(BLOCK / 32)),
                BLOCK,
                &arguments,
            )?;
            k.search_8.launch(second, self.grid(rows, u64::from(BLOCK / 8)), BLOCK, &arguments)?;
        }
        self.listed = true;
        stream.wait(&first.record()?)?;
        stream.wait(&second.record()?)
    }

    /// Queues moving the places that were met to C.
    ///
    /// # Safety
    /// As [`Places::sum`].
    pub(super) unsafe fn keep(&self, stream: &Stream, arguments: &Arguments) -> Result<()> {
        // SAFETY: `Arguments` is the kernel's parameter; the rest is the caller's promise.
        unsafe {
            let grid = self.grid(arguments.rows, u64::from(BLOCK / 32));
            self.kernels.keep.launch(stream, grid, BLOCK, arguments)
        }
    }

    /// CTAs for so many rows, `each` of them at once.
    fn grid(&self, rows: u64, each: u64) -> (u64, u64) {
        (rows.div_ceil(each).min(CTAS * self.multiprocessors), 1)
    }
}

/// The operands, and the places of a pattern.
pub(super) fn of<I, O>(
    o: &Operands,
    offsets: &DeviceBuffer<O>,
    places: &DeviceBuffer<I>,
) -> Arguments {
    Arguments {
        a_offsets: o.a.offsets,
        a_indices: o.a.indices,
        a_values: o.a.values,
        b_offsets: o.b.offsets,
        b_indices: o.b.indices,
        b_values: o.b.values,
        places_offsets: offsets.address(),
        places: places.address(),
        rows: o.a.rows as u64,
        alpha: o.alpha,
        ..Arguments::default()
    }
}
