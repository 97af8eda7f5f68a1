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
