//! The boundary of generic code: vector kernels are compiled in this crate, once for f32 and once
//! for f64, and not again in programs that use it.

use gustav_core::IndexSlice;

use super::compressed_index::kernel::{Part, Partition};
use super::lanes::{Element, dispatch};
use super::rows::{Dot, Rows, TypedRows};
use crate::arch::Isa;

/// The vector kernels of a type.
pub(crate) trait Compiled: Element {
    /// Finishes whole rows.
    ///
    /// # Safety
    /// The instruction set is available; indices are in bounds of x, rows of y, and no other thread
    /// accesses these rows during the call.
    unsafe fn rows(isa: Isa, rows: Rows<'_, Self>);

    /// The sum over a part of a row.
    ///
    /// # Safety
    /// As [`Compiled::rows`].
    unsafe fn dot(isa: Isa, part: Dot<'_, Self>) -> Self;

    /// Finishes the whole rows of a partition of a compressed matrix.
    ///
    /// # Safety
    /// As [`Compiled::rows`].
    unsafe fn partition(isa: Isa, part: Part<'_, Self>);
}

macro_rules! compiled {
    ($($t:ty),*) => {$(
        impl Compiled for $t {
            unsafe fn rows(isa: Isa, rows: Rows<'_, $t>) {
                match rows.offsets {
                    IndexSlice::U32(offsets) => dispatch(isa, TypedRows { rows, offsets }),
                    IndexSlice::U64(offsets) => dispatch(isa, TypedRows { rows, offsets }),
                }
            }

            unsafe fn dot(isa: Isa, part: Dot<'_, $t>) -> $t {
                dispatch(isa, part)
            }

            unsafe fn partition(isa: Isa, part: Part<'_, $t>) {
                match part.columns.offsets() {
                    IndexSlice::U32(offsets) => dispatch(isa, Partition::new(part, offsets)),
                    IndexSlice::U64(offsets) => dispatch(isa, Partition::new(part, offsets)),
                }
            }
        }
    )*};
}

compiled!(f32, f64);
