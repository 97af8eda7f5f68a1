//! How columns are written down: by segments of consecutive rows, each in its own way.

use std::ops::Range;

use gustav_core::{Buffer, CsrView, Index, Result, Scalar};
use rayon::prelude::*;

use crate::schedule::Share;

/// Consecutive rows whose columns are written in one way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Segment {
    pub(crate) rows: Range<usize>,
    pub(crate) code: Code,
}

/// How the columns of a segment are written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Code {
    /// Every row has its columns at the same distances from the row's own number: `len`
    /// distances from `first` in [`Encoded::distances`]. Grids and bands.
    Shift { first: usize, len: usize },
    /// Windows of [`Encoded::width`] columns: two 16-bit codes each, the first column less
    /// `base`, and a mask of the columns that are there; a row's windows hold its entries in
    /// order. They start at code `first`. Runs, blocks, nearly full rows.
    Windows { first: usize, base: usize },
    /// Each entry's column less `base`, at the entry's own position in the codes.
    Narrow { base: usize, flat: bool },
    /// The caller's own indices.
    Plain { flat: bool },
}

/// The columns of a matrix, written down.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) segments: Vec<Segment>,
    /// Ends of the segments of each share.
    pub(crate) shares: Vec<usize>,
    pub(crate) codes: Buffer<u16>,
    pub(crate) distances: Vec<isize>,
    /// Bit k: entry k is the last of its row. For segments that are `flat`: taken a vector of
    /// entries at a time, whatever rows they belong to.
    pub(crate) last: Buffer<u8>,
    /// Columns of a window.
    pub(crate) width: usize,
}

/// What the kernels of an instruction set make worth while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Columns of a window: the lanes of a vector.
    pub(crate) width: usize,
    /// Whether masks can spread values over windows, and sum vectors that hold many rows.
    pub(crate) masks: bool,
}

// Most rows of a segment that is not a shift: bounds the sums that a flat one holds back.
pub(crate) const ROWS: usize = 512;
// Fewest rows of a shift.
const SHIFT_ROWS: usize = 16;
// Fewest entries of a window, on average.
const WINDOW_ENTRIES: usize = 4;
const NARROW: usize = 1 << 16;

impl Encoded {
    pub(crate) fn new<T: Scalar, I: Index, O: Index>(
        a: &CsrView<'_, T, I, O>,
        shares: &[Share],
        limits: Limits,
    ) -> Result<Self> {
        let surveys: Vec<Vec<(Segment, Vec<isize>)>> =
            shares.par_iter().map(|share| survey(a, share, limits)).collect();
        let (mut segments, mut ends, mut distances) = (Vec::new(), Vec::new(), Vec::new());
        let mut latest = 0..0;
        for survey in surveys {
            for (mut segment, shift) in survey {
                if let Code::Shift { first, .. } = &mut segment.code {
                    if distances[latest.clone()] != shift {
                        latest = distances.len()..distances.len() + shift.len();
                        distances.extend(shift);
                    }
                    *first = latest.start;
                }
                segments.push(segment);
            }
            ends.push(segments.len());
        }
        let coded = segments.iter().any(|s| s.code.is_coded());
        let flat = segments.iter().any(|s| s.code.is_flat());
        let mut encoded = Encoded {
            segments,
            shares: ends,
            codes: Buffer::zeroed(if coded { a.nnz() } else { 0 }, "index codes")?,
            distances,
            last: Buffer::zeroed(if flat { a.nnz() / 8 + 8 } else { 0 }, "row ends")?,
            width: limits.width,
        };
        if coded {
            encoded.write(a);
        }
        if flat {
            for row in (0..a.nrows()).filter(|&r| a.row_len(r) > 0) {
                let last = a.row_range(row).end - 1;
                encoded.last[last / 8] |= 1 << (last % 8);
            }
        }
        Ok(encoded)
    }

    /// Writes the codes of every segment at its entries' positions.
    fn write<T: Scalar, I: Index, O: Index>(&mut self, a: &CsrView<'_, T, I, O>) {
        let width = self.width;
        let (mut rest, mut at): (&mut [u16], usize) = (&mut self.codes, 0);
        let mut pieces = Vec::with_capacity(self.segments.len());
        for segment in self.segments.iter().filter(|s| s.code.is_coded()) {
            let entries = entries(a, &segment.rows);
            let codes;
            (_, rest) = rest.split_at_mut(entries.start - at);
            (codes, rest) = rest.split_at_mut(entries.len());
            at = entries.end;
            pieces.push((segment, codes));
        }
        pieces.into_par_iter().with_min_len(16).for_each(|(segment, codes)| match segment.code {
            Code::Narrow { base, .. } => {
                let columns = &a.indices()[entries(a, &segment.rows)];
                for (code, column) in codes.iter_mut().zip(columns) {
                    *code = (column.to_usize() - base) as u16;
                }
            }
            Code::Windows { base, .. } => {
                let mut codes = codes.chunks_exact_mut(2);
                for row in segment.rows.clone() {
                    windows(a.row(row).0, width, |first, mask| {
                        if let Some(code) = codes.next() {
                            code[0] = (first - base) as u16;
                            code[1] = mask;
                        }
                    });
                }
            }
            _ => {}
        });
    }

    /// The segments of share `share`.
    pub(crate) fn of_share(&self, share: usize) -> &[Segment] {
        let start = if share == 0 { 0 } else { self.shares[share - 1] };
        &self.segments[start..self.shares[share]]
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.segments)
            + size_of_val(&*self.shares)
            + size_of_val(&*self.codes)
            + size_of_val(&*self.distances)
            + size_of_val(&*self.last)
    }
}

impl Code {
    fn is_coded(&self) -> bool {
        matches!(self, Code::Windows { .. } | Code::Narrow { .. })
    }

    fn is_flat(&self) -> bool {
        matches!(self, Code::Narrow { flat: true, .. } | Code::Plain { flat: true })
    }
}

fn entries<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    rows: &Range<usize>,
) -> Range<usize> {
    a.offsets()[rows.start].to_usize()..a.offsets()[rows.end].to_usize()
}

/// Covers the increasing `columns` with windows of `width`, greedily.
fn windows<I: Index>(columns: &[I], width: usize, mut window: impl FnMut(usize, u16)) {
    let mut k = 0;
    while k < columns.len() {
        let (first, mut mask) = (columns[k].to_usize(), 0);
        while k < columns.len() && columns[k].to_usize() - first < width {
            mask |= 1 << (columns[k].to_usize() - first);
            k += 1;
        }
        window(first, mask);
    }
}

/// The segments of a share's whole rows: shifts first, the rest by what fits. Distances of
/// shifts come with them.
fn survey<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    share: &Share,
    limits: Limits,
) -> Vec<(Segment, Vec<isize>)> {
    let mut found = Vec::new();
    let rows = share.whole_rows(a.offsets());
    let mut open = rows.start;
    let mut row = rows.start;
    while row < rows.end {
        let mut end = row + 1;
        while end < rows.end && shifted(a.row(end - 1).0, a.row(end).0) {
            end += 1;
        }
        if end - row >= SHIFT_ROWS && a.row_len(row) > 0 {
            others(a, open..row, limits, &mut found);
            let columns = a.row(row).0;
            let distances = columns.iter().map(|c| c.to_usize() as isize - row as isize).collect();
            let code = Code::Shift { first: 0, len: columns.len() };
            found.push((Segment { rows: row..end, code }, distances));
            open = end;
        }
        row = end;
    }
    others(a, open..rows.end, limits, &mut found);
    found
}

fn shifted<I: Index>(row: &[I], next: &[I]) -> bool {
    row.len() == next.len() && row.iter().zip(next).all(|(a, b)| a.to_usize() + 1 == b.to_usize())
}

fn others<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    rows: Range<usize>,
    limits: Limits,
    found: &mut Vec<(Segment, Vec<isize>)>,
) {
    let mut start = rows.start;
    while start < rows.end {
        let end = rows.end.min(start + ROWS);
        found.push((Segment { rows: start..end, code: code(a, start..end, limits) }, Vec::new()));
        start = end;
    }
}

/// The way to write rows that are no shift.
fn code<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    rows: Range<usize>,
    limits: Limits,
) -> Code {
    let entries = entries(a, &rows);
    let columns = &a.indices()[entries.clone()];
    let base = columns.iter().min().map_or(0, |c| c.to_usize());
    let last = columns.iter().max().map_or(0, |c| c.to_usize());
    // Vectors that hold many rows cost a scan; vectors that hold one row cost its remainder.
    let flat = limits.masks && entries.len() < rows.len() * limits.width * 2;
    if last - base >= NARROW {
        return Code::Plain { flat };
    }
    if limits.masks && rows.clone().all(|r| a.row(r).0.is_sorted_by(|a, b| a < b)) {
        let mut count = 0;
        for row in rows.clone() {
            windows(a.row(row).0, limits.width, |_, _| count += 1);
        }
        if count * WINDOW_ENTRIES <= entries.len() {
            return Code::Windows { first: entries.start, base };
        }
    }
    Code::Narrow { base, flat }
}
