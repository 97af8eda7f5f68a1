//! Checks of arrays of the caller; errors name the first position that is wrong.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Error, Index, Result, parallel};

// Arrays shorter than this are checked on the calling thread.
const PARALLEL: usize = 1 << 16;

/// Checks the two arrays of a pattern with `nmajor` rows and `nminor` columns.
///
/// # Errors
/// [`Error::Length`], [`Error::Offsets`] or [`Error::Index`] for the first position that is wrong.
pub fn pattern<I: Index, O: Index>(
    nmajor: usize,
    nminor: usize,
    offsets: &[O],
    indices: &[I],
) -> Result<()> {
    let expected = nmajor.checked_add(1).ok_or(Error::Overflow {
        what: "rows",
        need: nmajor as u128 + 1,
        index_type: O::TYPE,
    })?;
    length("row offsets", expected, offsets.len())?;
    if offsets[0].to_usize() != 0 {
        return Err(Error::Offsets {
            row: 0,
            found: offsets[0].to_usize() as u64,
            expected: "0".into(),
            reason: "the first offset must be 0",
        });
    }
    let back = first(nmajor, |rows| {
        let ends = &offsets[rows.start + 1..=rows.end];
        offsets[rows].iter().zip(ends).map(|(start, end)| start > end)
    });
    if let Some(row) = back {
        return Err(Error::Offsets {
            row,
            found: offsets[row + 1].to_usize() as u64,
            expected: format!("at least {}", offsets[row]),
            reason: "offsets must not go back",
        });
    }
    let last = offsets[nmajor].to_usize();
    if last != indices.len() {
        return Err(Error::Offsets {
            row: nmajor,
            found: last as u64,
            expected: format!("{}, the number of column indices", indices.len()),
            reason: "the last offset must equal the number of entries",
        });
    }
    if let Some(position) = not_below(nminor, indices) {
        let row = offsets.partition_point(|o| o.to_usize() <= position) - 1;
        let value = indices[position].to_usize() as u64;
        return Err(Error::Index { row, position, value, bound: nminor });
    }
    Ok(())
}

/// Checks that every index is below `bound`.
///
/// # Errors
/// [`Error::Index`] with the position in place of the row.
pub fn indices<I: Index>(bound: usize, indices: &[I]) -> Result<()> {
    match not_below(bound, indices) {
        None => Ok(()),
        Some(position) => Err(Error::Index {
            row: position,
            position,
            value: indices[position].to_usize() as u64,
            bound,
        }),
    }
}

/// Checks the length of an array.
///
/// # Errors
/// [`Error::Length`].
pub fn length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}

/// The first index that is not below `bound`.
fn not_below<I: Index>(bound: usize, indices: &[I]) -> Option<usize> {
    // Compared in their own type, of which a register holds most. All are below a bound that it does not have.
    let bound = I::try_from_usize(bound, "a bound").ok()?;
    first(indices.len(), |range| indices[range].iter().map(move |index| *index >= bound))
}

/// The first of `len` positions that is wrong, as `wrong` says of each of a range.
fn first<W: Iterator<Item = bool>>(
    len: usize,
    wrong: impl Fn(Range<usize>) -> W + Sync,
) -> Option<usize> {
    let chunks = len.div_ceil(PARALLEL);
    let range = |c: usize| c * PARALLEL..len.min((c + 1) * PARALLEL);
    let chunk = AtomicUsize::new(chunks);
    parallel::each(chunks, |c| {
        // A scan for any fault, without branches: usually there is none.
        if c < chunk.load(Ordering::Relaxed) && wrong(range(c)).fold(false, |any, one| any | one) {
            chunk.fetch_min(c, Ordering::Relaxed);
        }
    });
    let chunk = Some(chunk.into_inner()).filter(|chunk| *chunk < chunks)?;
    wrong(range(chunk)).position(|one| one).map(|k| range(chunk).start + k)
}
