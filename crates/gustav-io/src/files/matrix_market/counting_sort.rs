//! Triples in the order of the file → CSR, by a stable parallel counting sort.
//!
//! A row holds its entries in the order of the file, then the mirror images that symmetry
//! adds, in the order of the entries they mirror, for any number of threads.

use std::ops::Range;

use gustav_core::{Buffer, Csr, Index, Result, Scalar, buffer::try_vec, parallel};

use crate::files::pattern;
use crate::files::value::negated;

/// Entries in the order of the file; indices are within the matrix.
pub(crate) struct Triples<T: Scalar, I: Index> {
    pub rows: Buffer<I>,
    pub cols: Buffer<I>,
    /// `None` when all are 1.
    pub values: Option<Buffer<T>>,
    /// Whether rows never decrease.
    pub sorted: bool,
}

/// The value of the mirror image of an entry off the diagonal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mirror {
    /// The entry's value.
    Same,
    /// The entry's value negated; it was checked that this does not overflow.
    Negated,
}

/// The triples as CSR.
pub(super) fn csr<T: Scalar, I: Index, O: Index>(
    nrows: usize,
    ncols: usize,
    triples: Triples<T, I>,
    mirror: Option<Mirror>,
) -> Result<Csr<T, I, O>> {
    let stored = triples.rows.len();
    O::try_from_usize(stored, "entries")?;
    if triples.sorted && mirror.is_none() {
        let offsets = offsets_of_sorted(nrows, &triples.rows)?;
        let values = match triples.values {
            Some(values) => values,
            None => pattern::ones(stored)?,
        };
        // SAFETY: rows never decrease, the offsets count them, and the indices were checked.
        return Ok(unsafe { Csr::new_unchecked(nrows, ncols, offsets, triples.cols, values) });
    }
    let parts = Parts::new(nrows, stored, mirror.is_some());
    let (mut next, offsets) = count::<T, I, O>(nrows, &triples, &parts)?;
    let nnz = offsets[nrows].to_usize();
    let mut indices = Buffer::<I>::uninit(nnz, "column indices")?;
    let has_values = triples.values.is_some();
    let mut values = Buffer::<T>::uninit(if has_values { nnz } else { 0 }, "values")?;
    let (to_indices, to_values) = (indices.shared(), values.shared());
    let source = triples.values.as_deref().unwrap_or_default();
    parallel::each_mut(&mut next, 1, |p, next| {
        let part = &parts.list[p];
        for k in part.entries.clone() {
            let (row, col) = (triples.rows[k], triples.cols[k]);
            let (row, col) = if part.mirrored { (col, row) } else { (row, col) };
            if part.mirrored && row == col {
                continue;
            }
            let slot = &mut next[row.to_usize()];
            let at = slot.to_usize();
            *slot = O::truncate(at + 1);
            // SAFETY: the counts give every part its own positions in every row.
            unsafe {
                to_indices.put(at, col);
                if has_values {
                    let value = source[k];
                    let negate = part.mirrored && mirror == Some(Mirror::Negated);
                    let value = if negate { negated(value).unwrap_or_default() } else { value };
                    to_values.put(at, value);
                }
            }
        }
    });
    // SAFETY: the counts add up to nnz, and each counted position was written.
    unsafe {
        let indices = indices.assume_init(nnz);
        let values = if has_values { values.assume_init(nnz) } else { pattern::ones(nnz)? };
        Ok(Csr::new_unchecked(nrows, ncols, offsets, indices, values))
    }
}

/// Consecutive entries, as they are or mirrored, that one task counts and places.
struct Part {
    entries: Range<usize>,
    mirrored: bool,
}

struct Parts {
    list: Vec<Part>,
}

impl Parts {
    fn new(nrows: usize, stored: usize, mirrored: bool) -> Self {
        // Every part has a count per row, so there are at most as many parts as mean entries per
        // row.
        let parts = parallel::threads().min(stored / nrows.max(1) + 1).min(64);
        let cut = |p: usize| (stored as u128 * p as u128 / parts as u128) as usize;
        let half =
            |mirrored| (0..parts).map(move |p| Part { entries: cut(p)..cut(p + 1), mirrored });
        let mut list: Vec<Part> = half(false).collect();
        if mirrored {
            list.extend(half(true));
        }
        Parts { list }
    }
}

/// For every part and row the position of its first entry, and the row offsets.
fn count<T: Scalar, I: Index, O: Index>(
    nrows: usize,
    triples: &Triples<T, I>,
    parts: &Parts,
) -> Result<(Vec<Buffer<O>>, Buffer<O>)> {
    let mut counts = try_vec(parts.list.len(), "row counts")?;
    for _ in &parts.list {
        counts.push(Buffer::<O>::zeroed(nrows, "row counts")?);
    }
    parallel::each_mut(&mut counts, 1, |p, count| {
        let part = &parts.list[p];
        for k in part.entries.clone() {
            let (row, col) = (triples.rows[k], triples.cols[k]);
            if part.mirrored && row == col {
                continue;
            }
            let slot = &mut count[if part.mirrored { col } else { row }.to_usize()];
            *slot = O::truncate(slot.to_usize() + 1);
        }
    });
    let mut offsets = Buffer::<O>::zeroed(nrows.saturating_add(1), "row offsets")?;
    let mut sum = 0;
    for row in 0..nrows {
        for count in &mut counts {
            let here = count[row].to_usize();
            count[row] = O::truncate(sum);
            sum += here;
        }
        offsets[row + 1] = O::truncate(sum);
    }
    // A count is at most `stored`, which fits; only the sum of both halves may not.
    O::try_from_usize(sum, "entries after expanding symmetry")?;
    Ok((counts, offsets))
}

/// Row offsets of triples whose rows never decrease.
fn offsets_of_sorted<I: Index, O: Index>(nrows: usize, rows: &[I]) -> Result<Buffer<O>> {
    let mut offsets = Buffer::<O>::uninit(nrows.saturating_add(1), "row offsets")?;
    let to = offsets.shared();
    // Entry k begins all rows after that of entry k - 1, up to its own.
    let open = |k: usize| {
        let after = if k == 0 { 0 } else { rows[k - 1].to_usize() + 1 };
        let until = if k == rows.len() { nrows } else { rows[k].to_usize() };
        for row in after..=until {
            // SAFETY: rows never decrease, so each of 0..=nrows is begun by one entry (or by the
            // end).
            unsafe { to.put(row, O::truncate(k)) };
        }
    };
    parallel::ranges(rows.len() + 1, 1 << 14, |range| range.for_each(open));
    // SAFETY: every offset was written.
    Ok(unsafe { offsets.assume_init(nrows.saturating_add(1)) })
}
