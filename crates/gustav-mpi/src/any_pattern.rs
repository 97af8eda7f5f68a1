//! Patterns over ranks without their index types: what is made of them is compiled once, in this crate.

use gustav_core::{AnyPattern, Buffer, Index, PatternRef, Result, with_pattern};

use crate::{DistPattern, Ordered, Partition, Ranks};

/// A [`DistPattern`] of any index types.
pub(crate) struct AnyDistPattern<'p> {
    /// The ranks.
    pub ranks: &'p Ranks,
    /// Which rows each rank has.
    pub rows: &'p Partition,
    /// Which columns each rank has.
    pub columns: &'p Partition,
    /// Nonzeros of all ranks.
    pub nnz: usize,
    /// This rank's rows, over all columns.
    pub local: AnyPattern<'p>,
    /// The order that its rows were brought into.
    pub order: Option<&'p Ordered>,
}

impl AnyDistPattern<'_> {
    /// Offsets of this rank's rows.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn offsets(&self) -> Result<Buffer<u64>> {
        with_pattern!(&self.local, |local| {
            let offsets = local.view().offsets();
            let mut wide = Buffer::zeroed(offsets.len(), "row offsets")?;
            wide.iter_mut().zip(offsets).for_each(|(to, from)| *to = from.to_usize() as u64);
            Ok(wide)
        })
    }
}

impl<'p, I: Index, O: Index> From<&'p DistPattern<I, O>> for AnyDistPattern<'p> {
    fn from(pattern: &'p DistPattern<I, O>) -> Self {
        AnyDistPattern {
            ranks: pattern.ranks(),
            rows: pattern.rows(),
            columns: pattern.columns(),
            nnz: pattern.nnz(),
            local: PatternRef::from(pattern.local()).into(),
            order: pattern.order(),
        }
    }
}
