//! Which nonzeros belong together: host side of `kernels/schedule/`.

pub(crate) mod lengths;
mod row_blocks;
mod segments;
mod tiles;

pub(crate) use row_blocks::RowBlocks;
pub(crate) use segments::{Listing, Segments, Target};
pub(crate) use tiles::{CLASSES, Cutting};
