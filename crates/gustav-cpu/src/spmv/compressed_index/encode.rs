//! How columns are written down: by segments of consecutive rows, each in its own way.

use std::ops::Range;

use gustav_core::{Buffer, Index, Result, parallel};

use super::survey::{Limits, survey, windows};

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

/// Consecutive rows whose columns are written in one way.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Segment {
    pub(super) rows: Range<usize>,
    pub(super) code: Code,
}

/// How the columns of a segment are written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Code {
    /// Every row has its columns at the same distances from the row's own number: `len`
    /// distances from `first` in [`Encoded::distances`]. Grids and bands.
    Shift { first: usize, len: usize },
    /// Windows of [`Limits::width`] columns: two 16-bit codes each, the first column less
    /// `base`, and a mask of the columns that are there; a row's windows hold its entries in
    /// order. They start at code `first`. Nearly full rows; with `runs`, every mask is a run of
    /// ones: dense blocks.
    Windows { first: usize, base: usize, runs: bool },
    /// Each entry's column less `base`, at the entry's own position in the codes.
    Narrow { base: usize, walk: Walk },
    /// The caller's own indices, or for a walk that needs another order [`Encoded::wide`].
    Plain { walk: Walk },
}

/// How the entries of a segment are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    /// A row at a time.
    Rows,
    /// Neighbouring rows with the same columns together.
    Alike,
    /// A vector of entries at a time, whatever rows they belong to.
    Flat,
    /// Rows of this many entries each, as vectors over rows: of [`Limits::width`] rows (fewer
    /// at the end) the first columns stand together, then the second ones, and so on.
    Even(usize),
}

/// The columns of a matrix, written down.
#[derive(Debug)]
pub(super) struct Encoded {
    segments: Vec<Segment>,
    /// Ends of the segments of each share.
    shares: Vec<usize>,
    pub(super) codes: Buffer<u16>,
    /// Columns at the position of their entry, for even rows whose columns lie far apart.
    pub(super) wide: Buffer<u32>,
    pub(super) distances: Vec<isize>,
    /// For segments walked flat. Bit k: entry k is the last of its row.
    pub(super) last: Buffer<u8>,
    /// For segments walked flat. Bit r: row r has entries.
    pub(super) filled: Buffer<u8>,
    /// For rows taken together. Bit r: row r has the columns of row r - 1.
    pub(super) alike: Buffer<u8>,
}

impl Encoded {
    pub(super) fn new<O: Index>(
        a: Pattern<'_, O>,
        shares: &[Range<usize>],
        limits: Limits,
    ) -> Result<Self> {
        let a = &a;
        let surveys = parallel::map(shares.len(), |s| survey(a, shares[s].clone(), limits));
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
        let nnz = a.indices.len();
        let any = |is: fn(&Code) -> bool| segments.iter().any(|s| is(&s.code));
        let room = |needed: bool, len: usize| if needed { len } else { 0 };
        let coded = any(Code::is_coded);
        let wide = any(Code::is_wide);
        let flat = any(|code| code.walk() == Some(Walk::Flat));
        let alike = any(|code| code.walk() == Some(Walk::Alike));
        let mut encoded = Encoded {
            codes: Buffer::zeroed(room(coded, nnz), "index codes")?,
            wide: Buffer::zeroed(room(wide, nnz), "wide index codes")?,
            last: Buffer::zeroed(room(flat, nnz / 8 + SPARE), "row ends")?,
            filled: Buffer::zeroed(room(flat, a.nrows() / 8 + SPARE), "filled rows")?,
            alike: Buffer::zeroed(room(alike, a.nrows() / 8 + SPARE), "rows alike")?,
            segments,
            shares: ends,
            distances,
        };
        let Encoded { codes, wide, segments, .. } = &mut encoded;
        write(a, segments, limits.width, Code::is_coded, codes);
        write(a, segments, limits.width, Code::is_wide, wide);
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

    /// The segments of share `share`.
    pub(super) fn of_share(&self, share: usize) -> &[Segment] {
        let start = if share == 0 { 0 } else { self.shares[share - 1] };
        &self.segments[start..self.shares[share]]
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.segments)
            + size_of_val(&*self.shares)
            + size_of_val(&*self.codes)
            + size_of_val(&*self.wide)
            + size_of_val(&*self.distances)
            + size_of_val(&*self.last)
            + size_of_val(&*self.filled)
            + size_of_val(&*self.alike)
    }
}

impl Code {
    fn is_coded(&self) -> bool {
        matches!(self, Code::Windows { .. } | Code::Narrow { .. })
    }

    fn is_wide(&self) -> bool {
        matches!(self, Code::Plain { walk: Walk::Even(_) })
    }

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

/// Writes the codes of the segments that are `written` here, at their entries' positions.
fn write<O: Index, E: Element>(
    a: &Pattern<'_, O>,
    segments: &[Segment],
    width: usize,
    written: fn(&Code) -> bool,
    codes: &mut [E],
) {
    let (mut rest, mut at) = (codes, 0);
    let mut pieces = Vec::new();
    for segment in segments.iter().filter(|s| written(&s.code)) {
        let entries = a.entries(&segment.rows);
        let codes;
        (_, rest) = rest.split_at_mut(entries.start - at);
        (codes, rest) = rest.split_at_mut(entries.len());
        at = entries.end;
        pieces.push((segment, codes));
    }
    parallel::each_mut(&mut pieces, 16, |_, (segment, codes)| match segment.code {
        Code::Narrow { base, walk } => columns(a, &segment.rows, base, walk, width, codes),
        Code::Plain { walk } => columns(a, &segment.rows, 0, walk, width, codes),
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
        Code::Shift { .. } => {}
    });
}

/// Writes one code for every entry.
fn columns<O: Index, E: Element>(
    a: &Pattern<'_, O>,
    rows: &Range<usize>,
    base: usize,
    walk: Walk,
    width: usize,
    codes: &mut [E],
) {
    let code = |column: &u32| E::from(column.to_usize() - base);
    if let Walk::Even(len) = walk {
        for (first, codes) in rows.clone().step_by(width).zip(codes.chunks_mut(width * len)) {
            let n = codes.len() / len;
            for lane in 0..n {
                for (j, column) in a.row(first + lane).iter().enumerate() {
                    codes[j * n + lane] = code(column);
                }
            }
        }
    } else {
        for (to, column) in codes.iter_mut().zip(&a.indices[a.entries(rows)]) {
            *to = code(column);
        }
    }
}

// Bitmaps are read 32 bits at a time, from any byte.
const SPARE: usize = 8;

fn set(bits: &mut [u8], at: usize) {
    bits[at / 8] |= 1 << (at % 8);
}
