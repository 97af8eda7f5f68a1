//! The encoding of columns: segments of consecutive rows, each with a code of its own.

use std::ops::Range;

use gustav_core::{Buffer, Index, Result, parallel};

use super::survey::{Limits, slice_lengths, survey, windows};

/// The pattern of a matrix.
#[derive(Clone, Copy)]
pub(super) struct Pattern<'a, O> {
    pub(super) offsets: &'a [O],
    pub(super) indices: &'a [u32],
}

impl<O: Index> Pattern<'_, O> {
    pub(super) fn nrows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Positions of the entries of `row`.
    pub(super) fn row_range(&self, row: usize) -> Range<usize> {
        self.offsets[row].to_usize()..self.offsets[row + 1].to_usize()
    }

    pub(super) fn row_len(&self, row: usize) -> usize {
        self.row_range(row).len()
    }

    /// Columns of `row`.
    pub(super) fn row(&self, row: usize) -> &[u32] {
        &self.indices[self.row_range(row)]
    }

    /// Positions of the entries of `rows`.
    pub(super) fn entries(&self, rows: &Range<usize>) -> Range<usize> {
        self.offsets[rows.start].to_usize()..self.offsets[rows.end].to_usize()
    }
}

/// Consecutive rows whose columns are encoded in the same way.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Segment {
    pub(super) rows: Range<usize>,
    pub(super) code: Code,
}

/// The encoding of the columns of a segment.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Code {
    /// Every row has its columns at the same distances from the row's own number: `len` distances
    /// from position `first` of [`Encoded::distances`]. For grids and bands.
    Shift { first: usize, len: usize },
    /// Windows of [`Limits::width`] columns: two 16-bit codes each, the first column minus `base`
    /// and a mask of the columns that are stored; a row's windows hold its entries in order. They
    /// start at code `first`. For nearly full rows. With `runs`, the columns of every window are
    /// consecutive: dense blocks.
    Windows { first: usize, base: usize, runs: bool },
    /// The column of each entry minus `base`, at the position of the entry in [`Encoded::codes`].
    Narrow { base: usize, walk: Walk },
    /// The caller's own indices.
    Plain { walk: Walk },
    /// Slices of [`Limits::width`] rows: of each slice the first columns of all its rows, then the
    /// second ones, and so on, padded with `base`, which is masked out. `len` columns minus `base`
    /// from position `first` of [`Encoded::narrow`] or [`Encoded::wide`]. For short rows of similar
    /// length, whatever the order of their columns (cf. SELL-C-σ: Kreutzer et al. 2014).
    Slices { first: usize, len: usize, base: usize, narrow: bool },
}

/// The order in which a kernel processes the entries of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    /// A row at a time.
    Rows,
    /// The same, with single loads from x in place of gathers.
    Loads,
    /// Neighbouring rows with the same columns together.
    Alike,
    /// A vector of entries at a time, whatever rows they belong to.
    Flat,
}

/// The encoded columns of a matrix.
#[derive(Debug)]
pub(super) struct Encoded {
    segments: Vec<Segment>,
    /// For each partition the end of its segments.
    partitions: Vec<usize>,
    pub(super) codes: Buffer<u16>,
    /// Columns of slices with 16-bit codes.
    pub(super) narrow: Buffer<u16>,
    /// Columns of the other slices.
    pub(super) wide: Buffer<u32>,
    pub(super) distances: Vec<isize>,
    /// For [`Walk::Flat`]. Bit k: entry k is the last of its row.
    pub(super) last: Buffer<u8>,
    /// For [`Walk::Flat`]. Bit r: row r has entries.
    pub(super) filled: Buffer<u8>,
    /// For [`Walk::Alike`]. Bit r: row r has the columns of row r - 1.
    pub(super) alike: Buffer<u8>,
}

impl Encoded {
    pub(super) fn new<O: Index>(
        a: Pattern<'_, O>,
        partitions: &[Range<usize>],
        limits: Limits,
    ) -> Result<Self> {
        let a = &a;
        let surveys = parallel::map(partitions.len(), |s| survey(a, partitions[s].clone(), limits));
        let (mut segments, mut ends, mut distances) = (Vec::new(), Vec::new(), Vec::new());
        let mut latest = 0..0;
        let (mut narrow, mut wide) = (0, 0);
        for survey in surveys {
            for (mut segment, shift) in survey {
                if let Code::Shift { first, .. } = &mut segment.code {
                    if distances[latest.clone()] != shift {
                        latest = distances.len()..distances.len() + shift.len();
                        distances.extend(shift);
                    }
                    *first = latest.start;
                }
                if let Code::Slices { first, len, narrow: close, .. } = &mut segment.code {
                    let end = if *close { &mut narrow } else { &mut wide };
                    *first = *end;
                    *end += *len;
                }
                segments.push(segment);
            }
            ends.push(segments.len());
        }
        let nnz = a.indices.len();
        let any = |is: fn(&Code) -> bool| segments.iter().any(|s| is(&s.code));
        let len_if = |needed: bool, len: usize| if needed { len } else { 0 };
        let coded = any(|code| matches!(code, Code::Windows { .. } | Code::Narrow { .. }));
        let flat = any(|code| code.walk() == Some(Walk::Flat));
        let alike = any(|code| code.walk() == Some(Walk::Alike));
        let mut encoded = Encoded {
            codes: Buffer::zeroed(len_if(coded, nnz), "index codes")?,
            narrow: Buffer::zeroed(narrow, "index codes of slices")?,
            wide: Buffer::zeroed(wide, "wide index codes of slices")?,
            last: Buffer::zeroed(len_if(flat, nnz / 8 + SPARE), "row ends")?,
            filled: Buffer::zeroed(len_if(flat, a.nrows() / 8 + SPARE), "filled rows")?,
            alike: Buffer::zeroed(len_if(alike, a.nrows() / 8 + SPARE), "rows alike")?,
            segments,
            partitions: ends,
            distances,
        };
        let Encoded { codes, narrow, wide, segments, .. } = &mut encoded;
        let entries = |segment: &Segment| match segment.code {
            Code::Windows { .. } | Code::Narrow { .. } => Some(a.entries(&segment.rows)),
            _ => None,
        };
        let slices = |close: bool| {
            move |segment: &Segment| match segment.code {
                Code::Slices { first, len, narrow, .. } if narrow == close => {
                    Some(first..first + len)
                }
                _ => None,
            }
        };
        write(a, segments, limits.width, entries, codes);
        write(a, segments, limits.width, slices(true), narrow);
        write(a, segments, limits.width, slices(false), wide);
        if flat {
            for row in (0..a.nrows()).filter(|&r| a.row_len(r) > 0) {
                set(&mut encoded.last, a.row_range(row).end - 1);
                set(&mut encoded.filled, row);
            }
        }
        if alike {
            for row in (1..a.nrows()).filter(|&r| a.row(r - 1) == a.row(r)) {
                set(&mut encoded.alike, row);
            }
        }
        Ok(encoded)
    }

    /// The segments of partition `partition`.
    pub(super) fn of_partition(&self, partition: usize) -> &[Segment] {
        let start = if partition == 0 { 0 } else { self.partitions[partition - 1] };
        &self.segments[start..self.partitions[partition]]
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.segments)
            + size_of_val(&*self.partitions)
            + size_of_val(&*self.codes)
            + size_of_val(&*self.narrow)
            + size_of_val(&*self.wide)
            + size_of_val(&*self.distances)
            + size_of_val(&*self.last)
            + size_of_val(&*self.filled)
            + size_of_val(&*self.alike)
    }
}

impl Code {
    fn walk(&self) -> Option<Walk> {
        match self {
            Code::Narrow { walk, .. } | Code::Plain { walk } => Some(*walk),
            _ => None,
        }
    }
}

/// An element of the codes.
trait Element: Default + Send {
    fn from(column: usize) -> Self;
}

impl Element for u16 {
    fn from(column: usize) -> Self {
        column as u16
    }
}

impl Element for u32 {
    fn from(column: usize) -> Self {
        column as u32
    }
}

/// Writes the codes of the segments for which `range` returns their range in `codes`; ranges
/// ascend.
fn write<O: Index, E: Element>(
    a: &Pattern<'_, O>,
    segments: &[Segment],
    width: usize,
    range: impl Fn(&Segment) -> Option<Range<usize>>,
    codes: &mut [E],
) {
    let (mut rest, mut at) = (codes, 0);
    let mut outputs = Vec::new();
    for segment in segments {
        let Some(range) = range(segment) else { continue };
        let codes;
        (_, rest) = rest.split_at_mut(range.start - at);
        (codes, rest) = rest.split_at_mut(range.len());
        at = range.end;
        outputs.push((segment, codes));
    }
    parallel::each_mut(&mut outputs, 16, |_, (segment, codes)| match segment.code {
        Code::Narrow { base, .. } => {
            for (code, column) in codes.iter_mut().zip(&a.indices[a.entries(&segment.rows)]) {
                *code = E::from(column.to_usize() - base);
            }
        }
        Code::Slices { base, .. } => slices(a, &segment.rows, base, width, codes),
        Code::Windows { base, runs, .. } => {
            let mut codes = codes.chunks_exact_mut(2);
            for row in segment.rows.clone() {
                windows(a.row(row), width, runs, |first, mask| {
                    if let Some(code) = codes.next() {
                        code[0] = E::from(first - base);
                        code[1] = E::from(usize::from(mask));
                    }
                });
            }
        }
        Code::Shift { .. } | Code::Plain { .. } => {}
    });
}

/// Writes the columns of slices into zeroed `codes`.
fn slices<O: Index, E: Element>(
    a: &Pattern<'_, O>,
    rows: &Range<usize>,
    base: usize,
    width: usize,
    mut codes: &mut [E],
) {
    for (first, len) in rows.clone().step_by(width).zip(slice_lengths(a, rows, width)) {
        let slice;
        (slice, codes) = codes.split_at_mut(len * width);
        for (lane, row) in (first..rows.end.min(first + width)).enumerate() {
            for (code, column) in slice.iter_mut().skip(lane).step_by(width).zip(a.row(row)) {
                *code = E::from(column.to_usize() - base);
            }
        }
    }
}

// Bitmaps are read 32 bits at a time, from any byte.
const SPARE: usize = 8;

fn set(bits: &mut [u8], at: usize) {
    bits[at / 8] |= 1 << (at % 8);
}
