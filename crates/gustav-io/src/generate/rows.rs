//! Patterns generated row by row, in parallel.

use std::ops::Range;

use gustav_core::{Buffer, Index, Result, buffer::try_vec, parallel};

use super::stream::{Purpose, Stream};

/// Rows of one parallel task.
const CHUNK: usize = 512;

/// Row offsets and column indices.
pub(crate) struct Pattern<I: Index, O: Index> {
    pub offsets: Vec<O>,
    pub indices: Buffer<I>,
}

/// Appends the columns of a row, given its number and its own stream.
pub(crate) type Row<'a> = dyn Fn(usize, &mut Stream, &mut Vec<usize>) + Sync + 'a;

/// Rows `rows` of the pattern whose row `r` has the columns that `row(r, stream, columns)` appends,
/// with a stream of its own for every row. `whole`: the rows of the whole pattern and the entries
/// to expect in them.
///
/// # Errors
/// [`Error::Overflow`](gustav_core::Error::Overflow) when the entries do not fit the offsets,
/// [`Error::OutOfMemory`](gustav_core::Error::OutOfMemory).
pub(crate) fn pattern<I: Index, O: Index>(
    rows: Range<usize>,
    (nrows, entries): (usize, Option<u128>),
    seed: u64,
    row: &Row<'_>,
) -> Result<Pattern<I, O>> {
    let mut offsets = try_vec::<O>(rows.len().saturating_add(1), "row offsets")?;
    // Fails here if there is too little memory, before the chunks are generated.
    let fraction = rows.len() as f64 / nrows.max(1) as f64;
    let expected = entries.map_or(0.0, |n| n as f64 * fraction);
    drop(try_vec::<I>(expected as usize, "column indices")?);
    let chunks: Vec<(Vec<usize>, Vec<I>)> = parallel::map(rows.len().div_ceil(CHUNK), |chunk| {
        let (mut lengths, mut indices, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        let first = rows.start + chunk * CHUNK;
        for r in first..rows.end.min(first + CHUNK) {
            columns.clear();
            row(r, &mut Stream::new(seed, Purpose::Columns, r as u64), &mut columns);
            lengths.push(columns.len());
            indices.extend(columns.iter().map(|&c| I::truncate(c)));
        }
        (lengths, indices)
    });
    let nnz = chunks.iter().map(|(_, indices)| indices.len()).sum();
    O::try_from_usize(nnz, "row offset")?;
    let mut sum = 0;
    offsets.push(O::default());
    for length in chunks.iter().flat_map(|(lengths, _)| lengths) {
        sum += length;
        offsets.push(O::truncate(sum));
    }
    let mut indices = Buffer::<I>::zeroed(nnz, "column indices")?;
    let mut rest = &mut indices[..];
    let mut parts = Vec::with_capacity(chunks.len());
    for (_, from) in &chunks {
        let (to, after) = rest.split_at_mut(from.len());
        parts.push((to, from));
        rest = after;
    }
    parallel::each_mut(&mut parts, 1, |_, (to, from)| to.copy_from_slice(from));
    Ok(Pattern { offsets, indices })
}
