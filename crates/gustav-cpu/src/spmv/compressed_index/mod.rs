//! `compressed-index` (ours): the plan writes the column indices down in fewer bytes; values
//! stay where the caller holds them.
//!
//! SpMV reads a value and an index for every entry and does next to nothing with them, so the
//! bytes of the index, and the gather that needs it, are what there is to save. Segments of
//! rows are written each in its own way (see [`encode::Code`]): a grid's rows need no index at
//! all and are multiplied a vector of rows at a time, runs of columns need a mask for a whole
//! vector and no gather, the rest takes 16 bits where its columns lie close enough.

mod decode;
mod encode;
mod kernel;
#[cfg(target_arch = "x86_64")]
mod masked;
mod survey;

use bytemuck::cast_slice;
use gustav_core::{Arith, CsrView, DType, Index, IndexType, Result, Scalar, Semiring};

use super::epilogue::{Epilogue, Output};
use super::lanes::{Element, dispatch};
use super::rows::{Operands, vectorizes};
use super::shares::Shares;
use crate::arch::Isa;
use crate::{Threads, schedule};
use encode::Encoded;
use survey::Limits;

pub(crate) struct Compressed<A> {
    shares: Shares<A>,
    encoded: Encoded,
}

impl<A: Arith> Compressed<A> {
    pub(crate) fn new<T: Scalar<Accum = A>, I: Index, O: Index>(
        a: &CsrView<'_, T, I, O>,
        isa: Isa,
    ) -> Result<Self> {
        let shares = Shares::new(a.offsets(), schedule::merge_path)?;
        let vectors = I::TYPE == IndexType::U32 && matches!(T::DTYPE, DType::F32 | DType::F64);
        let limits =
            Limits { width: 64 / T::DTYPE.bytes().max(4), masks: isa == Isa::Avx512 && vectors };
        let encoded = Encoded::new(a, shares.shares(), limits)?;
        Ok(Compressed { shares, encoded })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.shares.bytes() + self.encoded.bytes()
    }

    pub(crate) fn execute<T: Scalar<Accum = A>, I: Index, O: Index, S: Semiring<A>>(
        &mut self,
        threads: &Threads,
        isa: Isa,
        operands: &Operands<'_, T, I, O>,
        epilogue: &Epilogue<A, S>,
        y: &mut [T],
    ) {
        let encoded = &self.encoded;
        self.shares.execute(threads, isa, operands, epilogue, y, |share, _, y| {
            // SAFETY: shares hold different rows.
            unsafe {
                if !vectorizes::<T, I, S>(operands.x.len()) {
                    decode::multiply(encoded, share, operands, epilogue, y);
                } else if T::DTYPE == DType::F32 {
                    vectors::<f32, T, I, O, S>(encoded, share, isa, operands, epilogue, y);
                } else {
                    vectors::<f64, T, I, O, S>(encoded, share, isa, operands, epilogue, y);
                }
            }
        });
    }
}

/// # Safety
/// The share's rows are in y, and no other thread touches them meanwhile.
unsafe fn vectors<E: Element, T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>(
    encoded: &Encoded,
    share: usize,
    isa: Isa,
    operands: &Operands<'_, T, I, O>,
    epilogue: &Epilogue<T::Accum, S>,
    y: Output<'_, T>,
) {
    let share = kernel::Share {
        encoded,
        share,
        offsets: operands.offsets,
        indices: cast_slice(operands.indices),
        values: cast_slice::<T, E>(operands.values),
        x: cast_slice::<T, E>(operands.x),
        finish: epilogue.finish(y),
    };
    dispatch(isa, share);
}
