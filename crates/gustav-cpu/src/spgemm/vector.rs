//! The operations on accumulators that instruction sets accelerate: draining in order, and sorting
//! columns.

use gustav_core::Arith;

use super::accumulator::BLOCK;
use super::radix;

/// An instruction set. The default methods are plain Rust; implementations replace some of them.
///
/// The output pointers are valid for [`BLOCK`] elements past the last one written.
pub(super) trait Vector: Copy + Send + Sync {
    /// Moves all flagged columns of the blocks that hold `first..=last` to `columns` and `sums` in
    /// ascending order, resets their sums to `zero` and their flags to 0, and returns how many
    /// there were.
    ///
    /// # Safety
    /// The accumulator has whole blocks up to `last`; the outputs hold as many columns as are
    /// flagged.
    #[inline(always)]
    unsafe fn drain<A: Arith>(
        zero: A,
        flags: *mut u8,
        sums: *mut A,
        first: usize,
        last: usize,
        to_columns: *mut u32,
        to_sums: *mut A,
    ) -> usize {
        let mut n = 0;
        for block in first / BLOCK..=last / BLOCK {
            for word in block * 8..block * 8 + 8 {
                // SAFETY: whole blocks are in bounds, and eight flags make a word.
                unsafe {
                    let at = flags.add(word * 8).cast::<[u8; 8]>();
                    let mut bits = u64::from_le_bytes(at.read());
                    if bits == 0 {
                        continue;
                    }
                    at.write([0; 8]);
                    while bits != 0 {
                        let column = word * 8 + bits.trailing_zeros() as usize / 8;
                        bits &= bits - 1;
                        to_columns.add(n).write(column as u32);
                        to_sums.add(n).write(sums.add(column).replace(zero));
                        n += 1;
                    }
                }
            }
        }
        n
    }

    /// Sorts distinct columns, all below 2^32 - 1; `spare` is as long.
    #[inline(always)]
    fn sort(list: &mut [u32], spare: &mut [u32]) {
        radix::sort(list, spare);
    }
}

/// Plain Rust, compiled for whatever instruction set the caller enables.
#[derive(Clone, Copy)]
pub(super) struct Scalar;

impl Vector for Scalar {}
