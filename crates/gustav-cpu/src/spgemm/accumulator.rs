//! Where the sums of one row of C are kept: a dense array of sums with a byte flag per column,
//! and a list of the columns that were met.

use gustav_core::{Arith, Buffer, Result};

/// Columns per block of flags: what one vector of bytes holds.
pub(super) const BLOCK: usize = 64;

/// Accumulator of one thread. Between rows every sum is the semiring's zero and every flag 0.
pub(super) struct Accumulator<A> {
    zero: A,
    pub sums: Buffer<A>,
    pub flags: Buffer<u8>,
    pub list: Buffer<u32>,
    pub spare: Buffer<u32>,
}

impl<A: Arith> Accumulator<A> {
    /// Room for `columns` columns.
    pub fn new(columns: usize) -> Result<Self> {
        let padded = columns.next_multiple_of(BLOCK) + BLOCK;
        Ok(Accumulator {
            zero: A::zero(),
            sums: Buffer::zeroed(padded, "accumulator")?,
            flags: Buffer::zeroed(padded, "accumulator flags")?,
            list: Buffer::zeroed(padded, "accumulator columns")?,
            spare: Buffer::zeroed(padded, "accumulator columns")?,
        })
    }

    /// Makes `zero` the value of an empty sum.
    pub fn prepare(&mut self, zero: A) {
        if self.zero != zero {
            self.sums.fill(zero);
            self.zero = zero;
        }
    }

    /// Bytes for `columns` columns.
    pub fn bytes(columns: usize) -> usize {
        (columns.next_multiple_of(BLOCK) + BLOCK)
            * (size_of::<A>() + size_of::<u8>() + 2 * size_of::<u32>())
    }
}
