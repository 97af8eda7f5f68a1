//! Schedules: host side of `kernels/schedule/`.

#[cfg(test)]
pub(crate) mod items;
pub(crate) mod lengths;
#[cfg(test)]
pub(crate) mod partitions;
pub(crate) mod pattern;
mod row_blocks;
pub(crate) mod row_order;
mod segment_nonzeros;
mod segments;
mod tile_nonzeros;
mod tiles;

pub(crate) use row_blocks::RowBlocks;
pub(crate) use segment_nonzeros::SegmentNonzeros;
pub(crate) use segments::{Listing, Segments, Target};
pub(crate) use tile_nonzeros::TileNonzeros;
pub(crate) use tiles::{CLASSES, Cutting, TileSegments};

/// Levels of the tree in which the parts of a cut row are added (`kernels/schedule/fix_up.cuh`): 32
/// parts a node, of fewer than 2³⁰ parts.
pub(crate) const LEVELS: usize = 6;
