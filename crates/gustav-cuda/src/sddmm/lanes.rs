//! How the lanes of a group hold a row of X or Y.

use gustav_core::IndexType;

use crate::jit::{Request, source};
use crate::product::sampled::Operands;
use crate::product::tile::{Tile, widest};

/// Vectors of a row for every lane of a group, and what loads of them may assume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lanes {
    /// Elements of a load of X and Y.
    pub(crate) vector: u32,
    /// Lanes of a group, and vectors of each lane in a panel of the depth.
    pub(crate) lanes: u32,
    pub(crate) tiles: u32,
    /// Tiles, from the first, of which no lane lacks elements in any panel.
    pub(crate) whole: u32,
    /// Whether a panel holds the whole depth.
    pub(crate) one_panel: bool,
    /// Holds the bytes between rows of X, and of Y.
    pub(crate) stride: IndexType,
}

impl Lanes {
    /// For rows as the operands have them, at most `most_tiles` vectors of each for a lane.
    pub(super) fn new(o: &Operands, most_tiles: u32) -> Self {
        let vectors = o.depth.div_ceil(vector(o) as usize).max(1);
        Self::of(o, vectors.next_power_of_two().min(32) as u32, most_tiles)
    }

    /// The same for groups of `lanes` lanes.
    pub(super) fn of(o: &Operands, lanes: u32, most_tiles: u32) -> Self {
        let vector = vector(o);
        let vectors = o.depth.div_ceil(vector as usize).max(1) as u64;
        let tiles = vectors.div_ceil(lanes.into()).min(most_tiles.into()) as u32;
        Lanes {
            vector,
            lanes,
            tiles,
            // Rows without elements have no address.
            whole: if o.depth == 0 { 0 } else { Tile { lanes, tiles }.whole(vector, o.depth) },
            one_panel: vectors <= u64::from(lanes * tiles),
            stride: source::stride(o.ldx.max(o.ldy), o.dtype.bytes(), 0),
        }
    }

    /// `request` with these parameters.
    pub(super) fn describe(&self, request: Request) -> Request {
        request
            .with("STRIDE", self.stride)
            .with("VECTOR", self.vector)
            .with("LANES", self.lanes)
            .with("TILES", self.tiles)
            .with("WHOLE", self.whole)
            .with("ONE_PANEL", self.one_panel)
    }
}

/// The widest loads that the depth, leading dimensions and addresses of X and Y allow.
pub(super) fn vector(o: &Operands) -> u32 {
    let aligned = |address: u64, ld: usize| {
        let values = widest(o.dtype, ld as u64);
        let addressed = (address & address.wrapping_neg()) / o.dtype.bytes() as u64;
        if address == 0 { values } else { values.min(addressed.min(16) as u32) }
    };
    let next = |distance: usize| match o.batch.count {
        1 => 16,
        _ => widest(o.dtype, distance as u64),
    };
    widest(o.dtype, o.depth as u64)
        .min(aligned(o.x, o.ldx))
        .min(aligned(o.y, o.ldy))
        .min(next(o.batch.b))
        .min(next(o.batch.c))
}
