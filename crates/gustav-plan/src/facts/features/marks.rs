//! The rows and warps that have requested each cache line so far: one mark for each line, never
//! cleared.

use std::ops::Range;

use gustav_core::buffer::try_vec;
use gustav_core::{Error, Index, IndexType, PatternView, Result, parallel};

use super::tally::Tally;
use crate::facts::cache_lines::Line;

/// The state of a cache line.
#[derive(Clone, Copy, Default)]
struct Mark {
    /// Number of the last row that requested it.
    row: u32,
    /// Rows that requested it.
    requests: u32,
    /// A bit for each of the first 32 warps: whether it requested the line.
    warps: u32,
}

/// Warps in one word of bits.
const WORD: usize = 32;
// Nonzeros of a row per line above which visiting each line once pays for finding where the next
// one begins.
const RUN: u64 = 4;

/// Lines that a row requests, and how many of them the previous row requested as well.
#[derive(Clone, Copy, Default)]
pub(super) struct Requested {
    pub lines: u32,
    pub both: u32,
}

/// The marks of all lines.
pub(super) struct Marks {
    line: Line,
    marks: Vec<Mark>,
    /// Bits of all other warps, `words` words for each line.
    further: Vec<u32>,
    words: usize,
    /// Number of warps Nw; row i belongs to warp i mod Nw.
    warps: usize,
    /// Number of the last row, as in [`Mark::row`].
    row: u32,
    /// Whether the last rows had several columns in the same line.
    runs: bool,
}

impl Marks {
    /// Marks for lines of `width` of the `columns` columns.
    ///
    /// # Errors
    /// [`Error::Argument`] for a width of 0, [`Error::Overflow`] for 2³¹ lines,
    /// [`Error::OutOfMemory`].
    pub fn new(columns: usize, width: usize, warps: usize) -> Result<Self> {
        let line = Line::new(width)?;
        let (lines, words) = (line.count(columns), warps.div_ceil(WORD).saturating_sub(1));
        counted("cache lines of a column, twice", lines)?;
        let mut marks = try_vec(lines, "marks of cache lines")?;
        marks.resize(lines, Mark::default());
        let mut further = try_vec(lines.saturating_mul(words), "marks of cache lines")?;
        further.resize(lines * words, 0);
        // The row before the first has number 1, which no mark holds.
        Ok(Marks { line, marks, further, words, warps, row: 1, runs: false })
    }

    /// Number of lines.
    pub fn lines(&self) -> usize {
        self.marks.len()
    }

    /// Marks a gap: the next rows do not follow the last ones.
    pub fn skip(&mut self) {
        self.row += 1;
    }

    /// Records the requests of rows `rows` of `a`.
    pub fn request<I: Index, O: Index>(
        &mut self,
        a: &PatternView<'_, I, O>,
        rows: Range<usize>,
        found: &mut [Requested],
    ) {
        let ends = &a.offsets()[rows.start..=rows.end];
        let nonzeros: usize = ends[rows.len()].to_usize() - ends[0].to_usize();
        let mut warp = rows.start % self.warps;
        let runs = self.runs;
        for (ends, found) in ends.windows(2).zip(&mut *found) {
            let columns = &a.indices()[ends[0].to_usize()..ends[1].to_usize()];
            self.row += 1;
            let bit = if warp < WORD { 1 << warp } else { self.request_further(columns, warp) };
            *found = match runs {
                true => self.touch::<I, true, true>(columns, bit),
                false => self.touch::<I, true, false>(columns, bit),
            };
            warp = if warp + 1 == self.warps { 0 } else { warp + 1 };
        }
        let lines: u64 = found.iter().map(|found| u64::from(found.lines)).sum();
        self.runs = nonzeros as u64 >= RUN * lines;
    }

    /// What [`Marks::request`] would return for the next row, without counting its requests.
    pub fn pass<I: Index>(&mut self, columns: &[I]) -> Requested {
        self.row += 1;
        self.touch::<I, false, false>(columns, 0)
    }

    #[inline(always)]
    fn touch<I: Index, const COUNTED: bool, const RUNS: bool>(
        &mut self,
        columns: &[I],
        warp: u32,
    ) -> Requested {
        let (row, line) = (self.row, self.line);
        let (mut found, mut last) = (Requested::default(), usize::MAX);
        for column in columns {
            let line = line.of(column.to_usize());
            if RUNS && line == last {
                continue;
            }
            last = line;
            // SAFETY: columns are below the number of columns, and every line has a mark.
            let mark = unsafe { self.marks.get_unchecked_mut(line) };
            let new = u32::from(mark.row != row);
            found.lines += new;
            found.both += u32::from(mark.row == row - 1);
            mark.row = row;
            if COUNTED {
                mark.requests += new;
                mark.warps |= warp;
            }
        }
        found
    }

    /// Records a request of a warp beyond the first word; returns 0 as its bit in the first word.
    fn request_further<I: Index>(&mut self, columns: &[I], warp: usize) -> u32 {
        let (word, bit) = (warp / WORD - 1, 1 << (warp % WORD));
        for column in columns {
            self.further[self.line.of(column.to_usize()) * self.words + word] |= bit;
        }
        0
    }

    /// Adds the marks of other rows.
    pub fn add(&mut self, others: &[&Marks]) {
        parallel::each_mut(&mut self.marks, 1 << 10, |line, mark| {
            for other in others.iter().map(|other| other.marks[line]) {
                mark.requests += other.requests;
                mark.warps |= other.warps;
            }
        });
        for other in others {
            self.further.iter_mut().zip(&other.further).for_each(|(bits, other)| *bits |= other);
        }
    }

    /// Requests of each line, across lines.
    pub fn requests(&self) -> Tally {
        Tally::of(self.marks.iter().map(|mark| u64::from(mark.requests)))
    }

    /// Lines that each warp has requested, across warps.
    pub fn lines_of_warps(&self) -> Tally {
        let mut counts = count_bits(self.marks.iter().map(|mark| mark.warps)).to_vec();
        for word in 0..self.words {
            let bits = self.further.iter().skip(word).step_by(self.words);
            counts.extend(count_bits(bits.copied()));
        }
        Tally::of(counts.into_iter().take(self.warps))
    }
}

/// How many of `words` have each bit set.
fn count_bits(words: impl Iterator<Item = u32>) -> [u64; WORD] {
    let mut counts = [0u32; WORD];
    for word in words {
        for (k, count) in counts.iter_mut().enumerate() {
            *count += u32::from(word & 1 << k != 0);
        }
    }
    counts.map(u64::from)
}

/// Checks that the sum of two numbers up to `need` fits in 32 bits.
///
/// # Errors
/// [`Error::Overflow`] from 2³¹ on.
pub(super) fn counted(what: &'static str, need: usize) -> Result<()> {
    match i32::try_from(need) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::Overflow { what, need: 2 * need as u128, index_type: IndexType::U32 }),
    }
}
