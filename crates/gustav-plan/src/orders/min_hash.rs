//! `min-hash`: rows by four min-hashes of their column sets. Two rows have the same min-hash with
//! the probability that a column of either is a column of both, so sorting by min-hash groups rows
//! that share columns; the second to fourth min-hash separate rows that are equal in the first ones
//! by chance.

use gustav_core::buffer::try_vec;
use gustav_core::{Index, Result, parallel};

use super::row_order::Arrangement;
use super::view::{RowView, sorted_by};
use crate::mix::mix;

const HASHES: usize = 4;

pub(super) fn arrange<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    let a = view.a;
    let mut least = try_vec(a.nrows(), "min-hashes")?;
    least.resize(a.nrows(), [u32::MAX; HASHES]);
    parallel::each_mut(&mut least, 1 << 8, |row, least| {
        *least = min_hashes(a.row(row).iter().map(|c| c.to_usize()), 0);
    });
    Ok(Arrangement::striped(sorted_by(a.nrows(), |row| least[row as usize])?))
}

/// `N` min-hashes of a set, with the hash functions from number `from` on; all ones for an empty
/// set.
pub(super) fn min_hashes<const N: usize>(set: impl Iterator<Item = usize>, from: u64) -> [u32; N] {
    let mut least = [u32::MAX; N];
    for element in set {
        for (k, least) in (from..).zip(&mut least) {
            *least = (*least).min(hash(element as u64, k));
        }
    }
    least
}

/// Element under hash function number `k`, in 32 bits.
pub(super) fn hash(element: u64, k: u64) -> u32 {
    mix(element, k) as u32
}
