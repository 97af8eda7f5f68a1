//! Host side of `kernels/spmm/group.cuh`: the common part of `segmented` and `even-shares`.

use gustav_core::{DType, Extremum, IndexType, Problem, Result, Semiring};

use crate::device::{Counters, Device, DeviceBuffer, Stream};
use crate::jit::{Request, source};
use crate::product::operands;
use crate::product::tile::{Tile, accumulator};
use crate::schedule::LEVELS;

/// The parameters that a group's kernel is compiled for, besides its tile.
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
    pub(crate) extremum: Option<Extremum>,
    pub(crate) winner: Option<IndexType>,
    pub(crate) filtered: bool,
    pub(crate) batched: bool,
}

impl Types {
    /// For operands in panels of `tile` with vectors of `vector` values.
    pub(super) fn new(o: &operands::Operands, tile: Tile, vector: u32) -> Self {
        Types {
            dtype: o.dtype,
            out: o.dtype_c,
            index: o.index_type,
            offset: o.offset_type,
            semiring: o.semiring,
            stride: source::stride(o.ldb, o.dtype.bytes(), o.inner),
            position: position(o.nnz, o.rows),
            whole: tile.whole(vector, o.columns),
            wide_a: (o.indices | o.values | (o.batch.values * o.dtype.bytes()) as u64)
                .is_multiple_of(16),
            steps: o.steps,
            extremum: o.extremum,
            winner: o.winner,
            filtered: o.filtered,
            batched: o.batch.count > 1,
        }
    }

    /// `request` with these parameters.
    pub(super) fn describe(&self, request: Request) -> Request {
        request
            .with("VALUE", self.dtype)
            .with("OUT", self.out)
            .with("INDEX", self.index)
            .with("OFFSET", self.offset)
            .with("SEMIRING", source::reduction(self.semiring, self.extremum))
            .with("WINNERS", self.winner.is_some() && !self.filtered)
            .with("FILTERED", self.filtered)
            .with("BATCHED", self.batched)
            .with("WINNER", self.winner.unwrap_or(IndexType::U32))
            .with("STRIDE", self.stride)
            .with("POSITION", self.position)
            .with("WHOLE", self.whole)
            .with("WIDE_A", self.wide_a)
            .with("STEPS", self.steps)
            .with("LEVELS", LEVELS)
    }
}

/// The type that holds any position in A.
fn position(nnz: usize, rows: usize) -> IndexType {
    if nnz.saturating_add(rows) < 1 << 31 { IndexType::U32 } else { IndexType::U64 }
}

parameter_block! {
    /// `Operands` of the header.
    pub(super) struct Operands {
        indices: *const Index,
        values: *const Value,
        b: *const Value,
        c: *mut Out,
        nonzeros: u64,
        columns: u64,
        ldb: u64,
        ldc: u64,
        alpha: u64,
        beta: u64,
        bias: *const Accum,
        offsets: *const Offset,
        partials: *mut Accum,
        /// Counters of stored parts, LEVELS for each slot and panel; zero between launches.
        arrivals: *mut u32,
        /// Number of slots of `partials`.
        slots: u64,
        /// For max and min with winners: the position of the winner of each partial.
        positions: *mut Position,
        /// The position in A of the winner of each element of C, or of B if winners filter;
        /// row-major and packed.
        winners: *mut Winner,
        /// Positions in A of the nonzeros of op(A); null if they are the same.
        permutation: *const Offset,
        /// Distance in values from the arrays of one product of a batch to those of the next.
        next_values: u64,
        next_b: u64,
        next_c: u64,
    }
}

/// Partial sums of cut rows, with the positions of winners for max and min, and counters of stored
/// parts.
pub(super) struct CarryOutWorkspace {
    arrivals: Counters,
    partials: DeviceBuffer<u64>,
    /// Bytes of the sums in `partials`; positions follow them.
    sums: usize,
    slots: usize,
}

impl CarryOutWorkspace {
    /// Queues the allocation of a workspace for `slots` parts on the device's stream; the caller
    /// orders its uses. `panel` returns the columns of a panel for a vector width: the workspace
    /// suffices for operands of any alignment.
    pub(super) fn new(
        device: &Device,
        problem: &Problem,
        slots: usize,
        panel: impl Fn(u32) -> u64,
    ) -> Result<Self> {
        let panels = [1, 2, 4, 8].map(|vector| (problem.columns as u64).div_ceil(panel(vector)));
        let panels = panels.into_iter().max().unwrap_or(1) as usize;
        let arrivals = slots.saturating_mul(LEVELS * panels).saturating_mul(problem.batch);
        let arrivals = Counters::new(device, arrivals, "arrivals of parts")?;
        let elements = slots.saturating_mul(problem.columns).saturating_mul(problem.batch);
        let bytes = |each: usize| elements.saturating_mul(each).div_ceil(16).saturating_mul(16);
        let sums = bytes(accumulator(problem.dtype).bytes());
        let positions = match problem.extremum {
            Some(_) => bytes(position(problem.nnz, problem.output_rows()).bytes()),
            None => 0,
        };
        let partials = sums.saturating_add(positions) / 8;
        let partials = DeviceBuffer::queued(device, partials, "sums of cut rows")?;
        Ok(CarryOutWorkspace { arrivals, partials, sums, slots })
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
            positions: self.partials.address() + self.sums as u64,
            winners: o.winners,
            permutation: o.permutation,
            next_values: o.batch.values as u64,
            next_b: o.batch.b as u64,
            next_c: o.batch.c as u64,
        }
    }
}
