//! Lists of nonzeros whose values a kernel computes. See `kernels/sddmm/nonzeros.cuh`.

use gustav_core::{DType, IndexType};

use crate::jit::Request;
use crate::product::sampled::Operands;

/// Vectors of a lane at most: as many as registers hold of a chunk's rows of Y.
pub(super) const MOST_TILES: u32 = 2;

/// The types of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Types {
    pub(crate) dtype: DType,
    /// Of columns.
    pub(crate) index: IndexType,
    /// Of rows.
    pub(crate) row: IndexType,
    /// Of positions in the values.
    pub(crate) position: IndexType,
}

impl Types {
    /// `request` with these parameters.
    pub(super) fn describe(&self, request: Request) -> Request {
        request
            .with("VALUE", self.dtype)
            .with("INDEX", self.index)
            .with("ROW", self.row)
            .with("POSITION", self.position)
    }
}

parameter_block! {
    /// Nonzeros and the operands of their values.
    pub(super) struct List {
        columns: *const Index,
        rows: *const Row,
        /// Null where entry p is nonzero p.
        positions: *const Position,
        x: *const Value,
        y: *const Value,
        /// A factor of every nonzero, or null.
        factors: *const Value,
        values: *mut Value,
        pub nonzeros: u64,
        depth: u64,
        ldx: u64,
        ldy: u64,
        alpha: u64,
        beta: u64,
        /// Products, and values from the arrays of one to those of the next.
        pub batch: u64,
        next_x: u64,
        next_y: u64,
        next_factors: u64,
    }
}

impl List {
    /// The list in these arrays.
    pub(super) fn new(o: &Operands, columns: u64, rows: u64, positions: u64) -> Self {
        List {
            columns,
            rows,
            positions,
            x: o.x,
            y: o.y,
            factors: o.factors,
            values: o.values,
            nonzeros: o.nnz as u64,
            depth: o.depth as u64,
            ldx: o.ldx as u64,
            ldy: o.ldy as u64,
            alpha: o.alpha,
            beta: o.beta,
            batch: o.batch.count as u64,
            next_x: o.batch.c as u64,
            next_y: o.batch.b as u64,
            next_factors: o.batch.values as u64,
        }
    }
}
