//! The cache lines of a column of B that each row of A reads (the study of row permutations,
//! §III-B). The study has a bit mask for each row; here the set bits are stored as lists.

use gustav_core::buffer::try_vec;
use gustav_core::parallel::Shared;
use gustav_core::{Buffer, Error, Index, IndexType, PatternView, Result, parallel};

// Rows of one task.
const ROWS: usize = 1 << 10;

/// Maps columns to cache lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    width: usize,
    // log2 of the width, if it is a power of two.
    shift: Option<u32>,
}

impl Line {
    /// Lines of `width` columns.
    ///
    /// # Errors
    /// [`Error::Argument`] for a width of 0.
    pub fn new(width: usize) -> Result<Self> {
        if width == 0 {
            return Err(Error::Argument {
                name: "columns of a cache line",
                found: "0".into(),
                expected: "at least 1".into(),
            });
        }
        Ok(Line { width, shift: width.is_power_of_two().then(|| width.trailing_zeros()) })
    }

    /// The line of a column.
    #[inline(always)]
    pub fn of(self, column: usize) -> usize {
        match self.shift {
            Some(bits) => column >> bits,
            None => column / self.width,
        }
    }

    /// How many lines `columns` columns have.
    #[inline(always)]
    pub fn count(self, columns: usize) -> usize {
        let full = self.of(columns);
        full + usize::from(full * self.width < columns)
    }

    /// The distinct lines of a row's columns, ascending. `scratch` is used for rows that are not
    /// sorted.
    #[inline(always)]
    pub fn each<I: Index>(
        self,
        columns: &[I],
        scratch: &mut Vec<usize>,
        mut work: impl FnMut(usize),
    ) {
        let mut last = usize::MAX;
        let mut next = |line| {
            if line != last {
                last = line;
                work(line);
            }
        };
        if columns.is_sorted() {
            columns.iter().for_each(|c| next(self.of(c.to_usize())));
        } else {
            scratch.clear();
            scratch.extend(columns.iter().map(|c| self.of(c.to_usize())));
            scratch.sort_unstable();
            scratch.iter().copied().for_each(next);
        }
    }
}

/// For each row, the distinct cache lines of a column of B that it reads, ascending.
#[derive(Clone, Debug)]
pub struct CacheLines {
    count: usize,
    offsets: Vec<usize>,
    lines: Buffer<u32>,
}

impl CacheLines {
    /// The lines of `a`'s rows, where a line holds `width` consecutive values of a column of B.
    ///
    /// # Errors
    /// [`Error::Argument`] for a width of 0, [`Error::Overflow`] for more than 2³² lines,
    /// [`Error::OutOfMemory`].
    pub fn new<I: Index, O: Index>(a: &PatternView<'_, I, O>, width: usize) -> Result<Self> {
        let line = Line::new(width)?;
        let (rows, count) = (a.nrows(), line.count(a.ncols()));
        if count > u32::MAX as usize {
            return Err(Error::Overflow {
                what: "cache lines of a column",
                need: count as u128,
                index_type: IndexType::U32,
            });
        }
        let mut offsets = try_vec(rows + 1, "offsets of cache lines")?;
        offsets.resize(rows + 1, 0usize);
        parallel::chunks_mut(&mut offsets[1..], ROWS, |k, chunk| {
            let mut scratch = Vec::new();
            for (row, found) in (k * ROWS..).zip(chunk) {
                line.each(a.row(row), &mut scratch, |_| *found += 1);
            }
        });
        for row in 0..rows {
            offsets[row + 1] += offsets[row];
        }
        let mut lines = Buffer::<u32>::zeroed(offsets[rows], "cache lines of rows")?;
        let shared = Shared::new(&mut lines);
        parallel::ranges(rows, ROWS, |range| {
            let mut scratch = Vec::new();
            for row in range {
                // SAFETY: the lists of rows are disjoint.
                let to = unsafe { shared.slice(offsets[row]..offsets[row + 1]) };
                let mut to = to.iter_mut();
                line.each(a.row(row), &mut scratch, |found| {
                    if let Some(to) = to.next() {
                        *to = found as u32;
                    }
                });
            }
        });
        Ok(CacheLines { count, offsets, lines })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of lines of a column of B.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Requests of all rows together: one request is one (row, line) pair.
    pub fn requests(&self) -> usize {
        self.lines.len()
    }

    /// The lines of a row, ascending.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.lines[self.offsets[row]..self.offsets[row + 1]]
    }

    /// Hamming distance between the masks of two rows: the number of lines that only one of them
    /// reads.
    pub fn distance(&self, r: usize, s: usize) -> usize {
        distance(self.row(r), self.row(s))
    }
}

/// The number of elements that only one of two ascending lists has.
pub(crate) fn distance<T: Ord + Copy>(a: &[T], b: &[T]) -> usize {
    let (mut i, mut j, mut both) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        both += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    a.len() + b.len() - 2 * both
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    fn matrix(rows: &[&[u32]], cols: usize) -> Csr<f32> {
        let mut offsets = vec![0u32];
        offsets.extend(rows.iter().scan(0, |end, r| {
            *end += r.len() as u32;
            Some(*end)
        }));
        let indices = rows.concat();
        let values = vec![1.0; indices.len()];
        Csr::new(rows.len(), cols, offsets, indices, values).unwrap()
    }

    #[test]
    fn lines_are_distinct_and_ascending_for_unsorted_rows_too() {
        let a = matrix(&[&[0, 1, 31, 32, 95], &[95, 3, 40, 2, 95], &[]], 100);
        let lines = CacheLines::new(&a.pattern().view(), 32).unwrap();
        assert_eq!((lines.rows(), lines.count(), lines.requests()), (3, 4, 6));
        assert_eq!([lines.row(0), lines.row(1), lines.row(2)], [&[0, 1, 2][..], &[0, 1, 2], &[]]);
        assert_eq!((lines.distance(0, 1), lines.distance(0, 2)), (0, 3));
        let lines = CacheLines::new(&a.pattern().view(), 3).unwrap();
        assert_eq!(lines.count(), 34);
        assert_eq!((lines.row(0), lines.row(1)), (&[0, 10, 31][..], &[0, 1, 13, 31][..]));
        assert_eq!(lines.distance(0, 1), 3);
    }

    #[test]
    fn lines_need_a_width() {
        let e = CacheLines::new(&matrix(&[&[0]], 1).pattern().view(), 0).unwrap_err();
        assert!(matches!(e, Error::Argument { .. }), "{e}");
    }
}
