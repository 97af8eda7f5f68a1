//! Accumulators for one row of C: a dense array of sums with a byte flag per column, a list of the
//! columns that occur, or the slot of every column in the row itself. Each is allocated when a
//! product first needs it.

use gustav_core::{Arith, Buffer, Result};

use super::slots::Slots;

/// Columns per block of flags: the size of one vector of bytes.
pub(super) const BLOCK: usize = 64;

/// The parts of an accumulator that a product uses.
#[derive(Clone, Copy)]
pub(super) struct Needs {
    pub sums: bool,
    pub flags: bool,
    pub lists: bool,
    pub slots: bool,
}

impl Needs {
    /// To count entries.
    pub const COUNT: Self = Needs { sums: false, flags: true, lists: true, slots: false };
    /// To add up sums of a known pattern.
    pub const REFILL: Self = Needs { sums: true, flags: false, lists: false, slots: false };

    /// Bytes for `columns` columns and sums of `sum` bytes.
    pub fn bytes(self, columns: usize, sum: usize) -> usize {
        let parts = [(self.sums, sum), (self.flags, 1), (self.lists, 8), (self.slots, 4)];
        padded(columns)
            * parts.iter().map(|(used, bytes)| usize::from(*used) * bytes).sum::<usize>()
    }
}

/// Accumulator of one thread. Between rows every sum is the semiring's zero and every flag 0.
pub(super) struct Accumulator<A> {
    columns: usize,
    zero: A,
    pub sums: Buffer<A>,
    pub flags: Buffer<u8>,
    pub list: Buffer<u32>,
    pub spare: Buffer<u32>,
    pub slots: Slots,
}

impl<A: Arith> Accumulator<A> {
    /// For `columns` columns; takes no memory yet.
    pub fn new(columns: usize) -> Result<Self> {
        Ok(Accumulator {
            columns: padded(columns),
            zero: A::zero(),
            sums: Buffer::zeroed(0, SUMS)?,
            flags: Buffer::zeroed(0, FLAGS)?,
            list: Buffer::zeroed(0, LIST)?,
            spare: Buffer::zeroed(0, LIST)?,
            slots: Slots::new(0)?,
        })
    }

    /// Allocates what is needed, and makes `zero` the value of an empty sum.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn prepare(&mut self, zero: A, needs: Needs) -> Result<()> {
        let n = self.columns;
        if needs.sums && self.sums.len() < n {
            self.sums = Buffer::zeroed(n, SUMS)?;
            self.zero = A::zero();
        }
        if needs.flags && self.flags.len() < n {
            self.flags = Buffer::zeroed(n, FLAGS)?;
        }
        if needs.lists && self.spare.len() < n {
            self.list = Buffer::zeroed(n, LIST)?;
            self.spare = Buffer::zeroed(n, LIST)?;
        }
        if needs.slots && self.slots.columns() < n {
            self.slots = Slots::new(n)?;
        }
        if self.zero != zero {
            self.sums.fill(zero);
            self.zero = zero;
        }
        Ok(())
    }
}

const SUMS: &str = "accumulator";
const FLAGS: &str = "accumulator flags";
const LIST: &str = "accumulator columns";

fn padded(columns: usize) -> usize {
    columns.next_multiple_of(BLOCK) + BLOCK
}
