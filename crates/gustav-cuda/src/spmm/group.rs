//! Host side of `kernels/spmm/group.cuh`: what `segmented` and `even-shares` have in common.

use gustav_core::{DType, IndexType, Problem, Result, Semiring};

use crate::device::{Counters, Device, DeviceBuffer, Stream};
use crate::jit::{Request, source};
use crate::product::operands;
use crate::product::tile::{Tile, accumulator};

// Levels of the tree in which the parts of a cut row are added.
const LEVELS: usize = 6;

/// What a group's kernel is compiled for beyond its tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Types {
    pub(crate) dtype: DType,
    pub(crate) out: DType,
    pub(crate) index: IndexType,
    pub(crate) offset: IndexType,
    pub(crate) semiring: Semiring,
    pub(crate) stride: IndexType,
    pub(crate) position: IndexType,
    pub(crate) whole: u32,
    pub(crate) wide_a: bool,
    pub(crate) steps: u8,
}

impl Types {
    /// For operands whose columns are taken in panels of `tile` over vectors of `vector` values.
    pub(super) fn new(o: &operands::Operands, tile: Tile, vector: u32) -> Self {
        let items = o.nnz.saturating_add(o.rows);
        Types {
            dtype: o.dtype,
            out: o.dtype_c,
            index: o.index_type,
            offset: o.offset_type,
            semiring: o.semiring,
            stride: source::narrowest((o.ldb as u64).max(o.inner as u64)),
            position: if items < 1 << 31 { IndexType::U32 } else { IndexType::U64 },
            whole: tile.whole(vector, o.columns),
            wide_a: (o.indices | o.values).is_multiple_of(16),
            steps: o.steps,
        }
    }

    /// `request` with these parameters.
    pub(super) fn describe(&self, request: Request) -> Request {
        request
            .with("VALUE", self.dtype)
            .with("OUT", self.out)
            .with("INDEX", self.index)
            .with("OFFSET", self.offset)
            .with("SEMIRING", source::semiring(self.semiring))
            .with("STRIDE", self.stride)
            .with("POSITION", self.position)
            .with("WHOLE", self.whole)
            .with("WIDE_A", self.wide_a)
            .with("STEPS", self.steps)
    }
}

parameter_block! {
    /// `Operands` of the header.
    pub(super) struct Operands {
        offsets: *const Offset,
        indices: *const Index,
        values: *const Value,
        b: *const Value,
        c: *mut Out,
        partials: *mut Accum,
        /// Arrived parts, LEVELS counters for each slot and panel; zero between launches.
        arrivals: *mut u32,
        /// Of partials.
        slots: u64,
        nonzeros: u64,
        columns: u64,
        ldb: u64,
        ldc: u64,
        alpha: u64,
        beta: u64,
        bias: *const Accum,
    }
}

/// Partial sums of cut rows, and counters of the parts that have arrived.
pub(super) struct CarryOutWorkspace {
    arrivals: Counters,
    partials: DeviceBuffer<u64>,
    slots: usize,
}

impl CarryOutWorkspace {
    /// Queues allocating a workspace for `slots` parts on the device's stream, to be waited for by the caller.
    /// `panel` is the width of a panel in columns for a vector of so many values: operands of any alignment fit.
    pub(super) fn new(
        device: &Device,
        problem: &Problem,
        slots: usize,
        panel: impl Fn(u32) -> u64,
    ) -> Result<Self> {
        let panels = [1, 2, 4, 8].map(|vector| (problem.columns as u64).div_ceil(panel(vector)));
        let panels = panels.into_iter().max().unwrap_or(1) as usize;
        let arrivals = slots.saturating_mul(LEVELS * panels);
        let arrivals = Counters::new(device, arrivals, "arrivals of parts")?;
        // Sums are at most eight bytes wide.
        let partials = slots
            .saturating_mul(problem.columns)
            .saturating_mul(accumulator(problem.dtype).bytes());
        let partials = DeviceBuffer::queued(device, partials.div_ceil(8), "sums of cut rows")?;
        Ok(CarryOutWorkspace { arrivals, partials, slots })
    }

    /// Bytes on the device.
    pub(super) fn bytes(&self) -> usize {
        self.arrivals.bytes() + self.partials.bytes()
    }

    pub(super) fn used_on(&self, stream: &Stream) {
        self.arrivals.used_on(stream);
        self.partials.used_on(stream);
    }

    /// The kernel's operands.
    pub(super) fn arguments(&self, o: &operands::Operands) -> Operands {
        Operands {
            offsets: o.offsets,
            indices: o.indices,
            values: o.values,
            b: o.b,
            c: o.c,
            partials: self.partials.address(),
            arrivals: self.arrivals.address(),
            slots: self.slots as u64,
            nonzeros: o.nnz as u64,
            columns: o.columns as u64,
            ldb: o.ldb as u64,
            ldc: o.ldc as u64,
            alpha: o.alpha,
            beta: o.beta,
            bias: o.bias,
        }
    }
}
