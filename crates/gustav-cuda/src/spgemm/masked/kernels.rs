//! The kernels that sum at the places of a pattern, see `kernels/spgemm/masked.cu`.

use gustav_core::{DType, Index, IndexType, Problem, Result, Scalar, SemiringKind};

use super::super::operands::Operands;
use crate::jit::Request;
use crate::kernel::Kernel;
use crate::stream::Stream;
use crate::{Device, DeviceBuffer, DeviceCsr, source};

// Threads of a CTA, and of one that shares a task, as in the kernels.
const BLOCK: u32 = 128;
const SHARING: u32 = 256;
// Places of the smallest tasks, as a power of two.
const LEAST: u32 = 6;
// CTAs for every multiprocessor, before they take more rows each.
const CTAS: u64 = 32;
// CTAs for every multiprocessor that take tasks one after another.
const RESIDENT: u64 = 8;

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
    tasks: u64,
    task_count: u64,
    taken: u64,
    pub ordered: u32,
    in_order: u32,
}

/// The kernels.
pub(in crate::spgemm) struct Places {
    few: Kernel,
    /// What computes the tasks: rows of many places or products, a part each.
    tasks: Kernel,
    keep: Kernel,
    multiprocessors: u64,
    in_order: bool,
    /// How many tasks there are, how many are taken, and the tasks.
    list: DeviceBuffer<u64>,
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
        Ok(Places {
            few: module.kernel(c"few")?,
            tasks: module.kernel(if in_order { c"many" } else { c"shared" })?,
            keep: module.kernel(c"keep")?,
            multiprocessors: device.profile().multiprocessors as u64,
            in_order,
            list: DeviceBuffer::queued(device, 0, "")?,
        })
    }

    /// Makes room for a pattern of up to `count` places in `rows` rows.
    pub(in crate::spgemm) fn prepare(
        &mut self,
        device: &Device,
        rows: usize,
        count: usize,
    ) -> Result<()> {
        // Every row may waste most of its last task.
        let most = 2 + rows.min(count) + (count >> LEAST);
        self.list = DeviceBuffer::queued(device, most, "tasks of a product at given places")?;
        Ok(())
    }

    /// Bytes on the device.
    pub(in crate::spgemm) fn bytes(&self) -> usize {
        self.list.bytes()
    }

    /// Queues the values at all places of `c`, whose rows increase: every sum in A's order where those
    /// of B do, which `ordered` says.
    ///
    /// # Safety
    /// The operands and `c` are valid until the stream has done the work, and of one product with not
    /// more places than were prepared for.
    pub(in crate::spgemm) unsafe fn fill<T: Scalar, I: Index, O: Index>(
        &self,
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

    /// Queues the sums at all places. Where places are counted, `c_offsets` begins with zeros.
    ///
    /// # Safety
    /// What the arguments name is valid until the stream has done the work, and there are not more
    /// places than were prepared for.
    pub(super) unsafe fn sum(&self, stream: &Stream, arguments: &Arguments) -> Result<()> {
        let [task_count, taken, tasks] = [0, 8, 16].map(|at| self.list.address() + at);
        let in_order = u32::from(self.in_order);
        let arguments = Arguments { tasks, task_count, taken, in_order, ..*arguments };
        let (rows, resident) = (self.grid(arguments.rows), RESIDENT * self.multiprocessors);
        let threads = if self.in_order { BLOCK } else { SHARING };
        let most = (self.list.len() as u64).saturating_sub(2).min(resident);
        // SAFETY: the words are the first of the list, which has room for all tasks; `Arguments` is
        // the kernels' parameter.
        unsafe {
            DeviceBuffer::<u64>::borrowed(self.list.device(), task_count, 2).fill(0, stream)?;
            self.few.launch(stream, rows, BLOCK, &arguments)?;
            self.tasks.launch(stream, (most, 1), threads, &arguments)
        }
    }

    /// Queues moving the places that were met to C.
    ///
    /// # Safety
    /// As [`Places::sum`].
    pub(super) unsafe fn keep(&self, stream: &Stream, arguments: &Arguments) -> Result<()> {
        // SAFETY: `Arguments` is the kernel's parameter; the rest is the caller's promise.
        unsafe { self.keep.launch(stream, self.grid(arguments.rows), BLOCK, arguments) }
    }

    fn grid(&self, rows: u64) -> (u64, u64) {
        (rows.div_ceil(u64::from(BLOCK / 32)).min(CTAS * self.multiprocessors), 1)
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
