//! The operands of one execution as kernels see them: raw, row-major, checked beforehand.

use gustav_core::buffer::ALIGN;
use gustav_core::{Scalar, Semiring};

use crate::offsets::Offsets;

/// C = scale(α, A·B) ⊕ scale(β, C) with A in CSR, B and C row-major.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a, T: Scalar, I> {
    pub offsets: Offsets<'a>,
    pub indices: &'a [I],
    pub values: &'a [T],
    pub rows: usize,
    /// Columns of B and C.
    pub columns: usize,
    pub b: *const T,
    pub ldb: usize,
    pub c: *mut T,
    pub ldc: usize,
    pub alpha: T::Accum,
    pub beta: T::Accum,
    pub semiring: Semiring,
    /// The value of an empty sum.
    pub zero: T::Accum,
    /// Whether C is read at all.
    pub reads_c: bool,
    /// Whether sums are divided by the length of their row.
    pub mean: bool,
    /// Whether sums are written unchanged: α is one, C is not read, and there are no means.
    pub plain: bool,
    /// Whether and how C is written with streaming stores.
    pub streaming: Streaming,
    /// How many nonzeros before their use rows of B are prefetched, 0 for no prefetch.
    pub prefetch_distance: usize,
}

impl<'a, T: Scalar, I> Operands<'a, T, I> {
    /// The same for kernels that read no column indices.
    pub(super) fn without_indices(&self) -> Operands<'a, T, ()> {
        let Operands { offsets, values, rows, columns, b, ldb, c, ldc, .. } = *self;
        let Operands {
            alpha,
            beta,
            semiring,
            zero,
            reads_c,
            mean,
            plain,
            streaming,
            prefetch_distance,
            ..
        } = *self;
        Operands {
            offsets,
            indices: &[],
            values,
            rows,
            columns,
            b,
            ldb,
            c,
            ldc,
            alpha,
            beta,
            semiring,
            zero,
            reads_c,
            mean,
            plain,
            streaming,
            prefetch_distance,
        }
    }

    /// α of row `row`.
    #[inline(always)]
    pub(super) fn alpha_of(&self, row: usize) -> T::Accum {
        let length = if self.mean { self.offsets.row(row).len() } else { 0 };
        match length {
            0 => self.alpha,
            // No double rounding: f64 has more than twice the digits of f32.
            _ => T::Accum::from_f64(self.alpha.to_f64() / length as f64),
        }
    }

    /// The offsets, if they have 32 bits and rows are only summed and written: a simpler loop for
    /// very short rows, where every branch counts.
    #[inline(always)]
    pub(super) fn small(&self) -> Option<&[u32]> {
        match self.offsets {
            Offsets::U32(o)
                if self.plain && self.streaming == Streaming::No && self.prefetch_distance == 0 =>
            {
                Some(o)
            }
            _ => None,
        }
    }

    /// Which streaming stores C allows with vectors of `bytes`: they must cover its rows exactly,
    /// and the rows must fill whole cache lines, alone or with their neighbours.
    pub(super) fn streaming(&self, bytes: usize) -> Streaming {
        let row = self.columns * size_of::<T>();
        let pitch = self.ldc * size_of::<T>();
        let base = self.c as usize;
        if !row.is_multiple_of(bytes) {
            return Streaming::No;
        }
        if (base | pitch).is_multiple_of(bytes)
            && (pitch == row || (base | row | pitch).is_multiple_of(ALIGN))
        {
            return Streaming::Vectors;
        }
        if pitch == row && base.is_multiple_of(STREAM_BYTES) {
            Streaming::Bytes16
        } else {
            Streaming::No
        }
    }
}

/// How C is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Streaming {
    /// With ordinary stores.
    No,
    /// With streaming stores of whole vectors.
    Vectors,
    /// With streaming stores of 16 bytes: allocators guarantee no larger alignment of C.
    Bytes16,
}

// Bytes of the smallest streaming store.
const STREAM_BYTES: usize = 16;

// SAFETY: the pointers come from a shared slice of B and an exclusive one of C; kernels write each
// row of C from one thread at a time.
unsafe impl<T: Scalar, I: Sync> Sync for Operands<'_, T, I> {}
// SAFETY: as above.
unsafe impl<T: Scalar, I: Sync> Send for Operands<'_, T, I> {}
