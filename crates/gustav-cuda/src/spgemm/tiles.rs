//! Tiles of matrices in host memory: cut from the operands of a product, and joined to its result.

use std::ops::Range;

use gustav_core::buffer::{Buffer, try_vec};
use gustav_core::parallel::{self, Shared};
use gustav_core::{Csr, CsrView, Error, Index, Result, Scalar};

/// Fewest rows to a task.
const ROWS: usize = 64;

/// Numbers of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub rows: usize,
    pub cols: usize,
}

impl Grid {
    /// Twice as many tiles: of rows, or of columns where every row is a tile or `by_columns` says so and there are more.
    pub(super) fn doubled(self, m: usize, n: usize, by_columns: bool) -> Option<Grid> {
        let Grid { rows, cols } = self;
        let of_rows = (rows < m).then(|| Grid { rows: (2 * rows).min(m), cols });
        let of_columns = (cols < n).then(|| Grid { rows, cols: (2 * cols).min(n) });
        if by_columns { of_columns.or(of_rows) } else { of_rows.or(of_columns) }
    }
}

/// Part `k` of `count` nearly equal parts of `0..len`.
pub(super) fn part(len: usize, count: usize, k: usize) -> Range<usize> {
    let at = |k: usize| (len as u128 * k as u128 / count as u128) as usize;
    at(k)..at(k + 1)
}

/// Prefix sums, in place.
fn sums(mut lengths: Vec<usize>) -> Vec<usize> {
    let mut sum = 0;
    for length in &mut lengths {
        sum += std::mem::replace(length, sum);
    }
    lengths
}

/// `of(i)` for each of `count` rows, and a 0 at the end.
fn of_rows(
    count: usize,
    what: &'static str,
    of: impl Fn(usize) -> usize + Sync,
) -> Result<Vec<usize>> {
    let mut found = try_vec::<usize>(count + 1, what)?;
    found.resize(count + 1, 0);
    parallel::each_mut(&mut found[..count], ROWS, |i, to| *to = of(i));
    Ok(found)
}

/// Doubles the number of tiles until operands and result (dense and in CSR) fit in `budget`, as far as is known before:
/// nonzeros of B, and products, are taken to be spread over the columns evenly.
///
/// Columns are cut while nonzeros of B take more than half of it beside B's offsets: rows of C in tiles of rows follow one
/// another, those in tiles of columns have to be interleaved.
pub(super) fn cut<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    b: &CsrView<'_, T, I, O>,
    budget: usize,
) -> Result<Grid> {
    let (m, n) = (a.nrows(), b.ncols());
    let (value, entry, offset) = (size_of::<T>(), size_of::<T>() + size_of::<I>(), size_of::<O>());
    let products = sums(of_rows(m, "products of rows", |i| {
        a.row(i).0.iter().map(|k| b.row_len(k.to_usize())).sum()
    })?);
    let bytes = |count: usize, each: usize| count as u128 * each as u128;
    let (budget, offsets_of_b) = (budget as u128, bytes(b.nrows() + 1, offset));
    let mut grid = Grid { rows: 1, cols: 1 };
    loop {
        let Grid { rows, cols } = grid;
        let of_b = bytes(b.nnz().div_ceil(cols), entry);
        let (mut of_a, mut of_c) = (0, 0);
        for k in 0..rows {
            let tile = part(m, rows, k);
            let offsets = bytes(tile.len() + 1, offset);
            let nnz = a.offsets()[tile.end].to_usize() - a.offsets()[tile.start].to_usize();
            of_a = of_a.max(bytes(nnz, entry) + offsets);
            let dense = tile.len().saturating_mul(n.div_ceil(cols));
            let made = (products[tile.end] - products[tile.start]).div_ceil(cols);
            of_c = of_c.max(bytes(dense, value) + bytes(dense.min(made), entry) + offsets);
        }
        let needed = of_a + offsets_of_b + of_b + of_c;
        if needed <= budget {
            return Ok(grid);
        }
        let by_columns = of_b > offsets_of_b && of_b + offsets_of_b > budget / 2;
        grid = grid.doubled(m, n, by_columns).ok_or(Error::OutOfMemory {
            what: match offsets_of_b > budget / 2 {
                true => "the row offsets of B, a row of A and an element of C on the device",
                false => "one row times one column on the device",
            },
            needed,
            available: Some(budget as u64),
        })?;
    }
}

/// Offsets of rows `rows` of `m`, from 0 on.
pub(super) fn offsets_of<T: Scalar, I: Index, O: Index>(
    m: &CsrView<'_, T, I, O>,
    rows: Range<usize>,
) -> Result<Vec<O>> {
    let mut offsets = try_vec::<O>(rows.len() + 1, "row offsets of a tile")?;
    let own = &m.offsets()[rows.start..=rows.end];
    offsets.extend(own.iter().map(|at| O::truncate(at.to_usize() - own[0].to_usize())));
    Ok(offsets)
}

/// Rows `rows` of `m`, in place but for their `offsets`.
pub(super) fn rows_of<'a, T: Scalar, I: Index, O: Index>(
    m: &CsrView<'a, T, I, O>,
    rows: Range<usize>,
    offsets: &'a [O],
) -> Result<CsrView<'a, T, I, O>> {
    let at = |row: usize| m.offsets()[row].to_usize();
    let of_nonzeros = at(rows.start)..at(rows.end);
    let (indices, values) =
        (&m.indices()[of_nonzeros.clone()], &m.values().as_slice()[of_nonzeros]);
    CsrView::new(rows.len(), m.ncols(), offsets, indices, values)
}

/// Columns `columns` of `m`, counted from the first of them.
pub(super) fn columns_of<T: Scalar, I: Index, O: Index>(
    m: &CsrView<'_, T, I, O>,
    columns: Range<usize>,
) -> Result<Csr<T, I, O>> {
    let inside = |j: &I| columns.contains(&j.to_usize());
    let lengths = of_rows(m.nrows(), "row lengths of a tile", |i| {
        m.row(i).0.iter().filter(|j| inside(j)).count()
    })?;
    filled(columns.len(), lengths, |i, row| {
        let (own, of) = m.row(i);
        for (j, value) in own.iter().zip(of).filter(|(j, _)| inside(j)) {
            row.put(I::truncate(j.to_usize() - columns.start), *value);
        }
    })
}

/// C, m × n, from its tiles, column after column of tiles.
///
/// # Errors
/// [`Error::Overflow`] when its entries outnumber the type of offsets.
pub(super) fn join<T: Scalar, I: Index, O: Index>(
    Grid { rows, cols }: Grid,
    (m, n): (usize, usize),
    tiles: &[Csr<T, I, O>],
) -> Result<Csr<T, I, O>> {
    // The tile of rows of each row.
    let mut tile_of = try_vec::<usize>(m, "tiles of rows")?;
    for row in 0..rows {
        tile_of.extend(part(m, rows, row).map(|_| row));
    }
    let parts = |i: usize| {
        let row = tile_of[i];
        let within = i - part(m, rows, row).start;
        (0..cols).map(move |col| (col, within, &tiles[col * rows + row]))
    };
    let lengths = of_rows(m, "row lengths of C", |i| {
        parts(i).map(|(_, within, tile)| tile.view().row_len(within)).sum()
    })?;
    filled(n, lengths, |i, row| {
        for (col, within, tile) in parts(i) {
            let (first, view) = (part(n, cols, col).start, tile.view());
            let (own, of) = view.row(within);
            for (j, value) in own.iter().zip(of) {
                row.put(I::truncate(j.to_usize() + first), *value);
            }
        }
    })
}

/// A row that is filled.
struct Row<'a, T, I> {
    at: usize,
    end: usize,
    indices: Shared<'a, I>,
    values: Shared<'a, T>,
}

impl<T, I> Row<'_, T, I> {
    /// The next entry.
    ///
    /// # Panics
    /// When the row has no place for it.
    #[inline(always)]
    fn put(&mut self, column: I, value: T) {
        assert!(self.at < self.end, "a row of a tile has more entries than were counted");
        // SAFETY: starts of rows are prefix sums of lengths, so that the elements from one to the next are this row's, within
        // the arrays, and one task fills it.
        unsafe {
            self.indices.put(self.at, column);
            self.values.put(self.at, value);
        }
        self.at += 1;
    }
}

/// The matrix with these lengths of rows, and a 0 behind them, of which `fill(i, row)` puts the entries of row i.
///
/// # Panics
/// When it puts another number of them.
fn filled<T: Scalar, I: Index, O: Index>(
    columns: usize,
    lengths: Vec<usize>,
    fill: impl Fn(usize, &mut Row<'_, T, I>) + Sync,
) -> Result<Csr<T, I, O>> {
    let starts = sums(lengths);
    let (rows, nnz) = (starts.len() - 1, starts[starts.len() - 1]);
    let mut offsets = try_vec::<O>(rows + 1, "row offsets")?;
    for start in &starts {
        offsets.push(O::try_from_usize(*start, "row offset")?);
    }
    let mut indices = Buffer::<I>::uninit(nnz, "column indices")?;
    let mut values = Buffer::<T>::uninit(nnz, "values")?;
    let (to_indices, to_values) = (indices.shared(), values.shared());
    parallel::ranges(rows, ROWS, |range| {
        for i in range {
            let (at, end) = (starts[i], starts[i + 1]);
            let mut row = Row { at, end, indices: to_indices, values: to_values };
            fill(i, &mut row);
            assert!(row.at == end, "a row of a tile has fewer entries than were counted");
        }
    });
    // SAFETY: every row put as many as there are up to the start of the next.
    let (indices, values) = unsafe { (indices.assume_init(nnz), values.assume_init(nnz)) };
    Csr::new(rows, columns, offsets, indices, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_grow_until_every_tile_is_one_element() {
        for by_columns in [false, true] {
            let mut grid = Grid { rows: 1, cols: 1 };
            let mut seen = 0;
            while let Some(finer) = grid.doubled(5, 9, by_columns) {
                assert!(finer.rows * finer.cols > grid.rows * grid.cols);
                grid = finer;
                seen += 1;
            }
            assert_eq!((grid, seen), (Grid { rows: 5, cols: 9 }, 7));
        }
    }

    #[test]
    fn a_smaller_budget_needs_more_tiles_and_one_element_must_fit() {
        let a = Csr::<f32>::new(4, 4, vec![0, 4, 8, 12, 16], [0, 1, 2, 3].repeat(4), vec![1.0; 16]);
        let a = a.expect("a full matrix");
        let tiles = |budget| cut(&a.view(), &a.view(), budget).map(|g| g.rows * g.cols);
        assert_eq!(tiles(1 << 20).expect("all fits"), 1);
        let (some, more) = (tiles(300).expect("tiles"), tiles(160).expect("tiles"));
        assert!(1 < some && some < more, "{some} {more}");
        let error = tiles(40).expect_err("B's offsets do not fit");
        assert!(matches!(error, Error::OutOfMemory { available: Some(40), .. }), "{error}");
    }

    #[test]
    fn columns_are_cut_only_while_b_takes_most_of_the_memory() {
        let a = Csr::<f32>::new(4, 4, vec![0, 4, 8, 12, 16], [0, 1, 2, 3].repeat(4), vec![1.0; 16]);
        let a = a.expect("a full matrix");
        let grid = |budget| cut(&a.view(), &a.view(), budget).expect("tiles");
        // B takes 148 bytes.
        assert_eq!(grid(400), Grid { rows: 2, cols: 1 });
        assert!(grid(200).cols > 1);
        // Offsets of B alone take more than half of it: more columns would not help.
        let b = Csr::<f32>::new(100, 64, vec![0; 101], Vec::new(), Vec::new()).expect("no entries");
        let a = Csr::<f32>::new(64, 100, vec![0; 65], Vec::new(), Vec::new()).expect("no entries");
        let found = cut(&a.view(), &b.view(), 64 * 4 + 2 * 8 + 101 * 4).expect("tiles");
        assert_eq!(found, Grid { rows: 64, cols: 1 });
    }

    #[test]
    fn numbers_of_bytes_do_not_overflow() {
        let a = Csr::<f64, u64, u64>::new(2, 1, vec![0, 1, 1], vec![0], vec![1.0]).expect("A");
        let b = Csr::<f64, u64, u64>::new(1, 1 << 62, vec![0, 1], vec![5], vec![1.0]).expect("B");
        let found = cut(&a.view(), &b.view(), 1 << 20).expect("tiles");
        assert!(found.cols > 1 << 40, "{found:?}");
    }

    fn small() -> Csr<f64> {
        Csr::new(3, 5, vec![0, 2, 2, 5], vec![0, 4, 3, 1, 2], vec![1., 2., 3., 4., 5.])
            .expect("a matrix")
    }

    #[test]
    fn tiles_of_a_matrix_are_its_own_entries() {
        let a = small();
        let tile = columns_of(&a.view(), 1..4).expect("columns");
        assert_eq!(
            (tile.offsets(), tile.indices()),
            ([0, 0, 0, 3].as_slice(), [2, 0, 1].as_slice())
        );
        assert_eq!(tile.values(), [3., 4., 5.]);
        let offsets = offsets_of(&a.view(), 1..3).expect("offsets");
        let view = a.view();
        let tile = rows_of(&view, 1..3, &offsets).expect("rows");
        assert_eq!((tile.nrows(), tile.indices()), (2, [3, 1, 2].as_slice()));
        let offsets = offsets_of(&a.view(), 3..3).expect("offsets");
        assert_eq!(rows_of(&view, 3..3, &offsets).expect("no rows").nnz(), 0);
    }

    fn tiles(a: &Csr<f64>, Grid { rows, cols }: Grid) -> Vec<Csr<f64>> {
        let mut tiles = Vec::new();
        for col in 0..cols {
            let of_columns = columns_of(&a.view(), part(a.ncols(), cols, col)).expect("columns");
            for row in 0..rows {
                let (view, of) = (of_columns.view(), part(a.nrows(), rows, row));
                let offsets = offsets_of(&view, of.clone()).expect("offsets");
                let tile = rows_of(&view, of, &offsets).expect("rows");
                tiles.push(tile.to_owned().expect("a tile"));
            }
        }
        tiles
    }

    #[test]
    fn a_matrix_is_joined_from_its_tiles() {
        // Enough rows for several tasks; their columns increase, so that joined rows are those of before.
        let (m, n) = (1000, 64);
        let lengths: Vec<usize> = (0..m).map(|i| (i * 7) % 13).collect();
        let mut offsets = vec![0];
        for length in &lengths {
            offsets.push(offsets.last().unwrap_or(&0) + *length as u32);
        }
        let indices: Vec<u32> =
            lengths.iter().flat_map(|l| (0..*l).map(|k| (k * 5) as u32)).collect();
        let values: Vec<f64> = (0..indices.len()).map(|k| k as f64).collect();
        let a = Csr::<f64>::new(m, n, offsets, indices, values).expect("a matrix");
        for (rows, cols) in [(1, 1), (3, 1), (1, 5), (16, 4), (1000, 64)] {
            let grid = Grid { rows, cols };
            let joined: Csr<f64> = join(grid, (m, n), &tiles(&a, grid)).expect("C");
            let parts =
                |c: &Csr<f64>| (c.offsets().to_vec(), c.indices().to_vec(), c.values().to_vec());
            assert_eq!(parts(&joined), parts(&a), "{rows} x {cols} tiles");
        }
        let unsorted = small();
        let grid = Grid { rows: 2, cols: 1 };
        let joined: Csr<f64> = join(grid, (3, 5), &tiles(&unsorted, grid)).expect("C");
        assert_eq!(joined.indices(), unsorted.indices());
        for (m, n) in [(0, 5), (5, 0), (0, 0)] {
            let none = Csr::<f64>::empty(m, n).expect("an empty matrix");
            let grid =
                cut(&none.view(), &Csr::empty(n, m).expect("B").view(), 1 << 10).expect("tiles");
            let joined: Csr<f64> = join(grid, (m, n), &tiles(&none, grid)).expect("C");
            assert_eq!((joined.nrows(), joined.ncols(), joined.nnz()), (m, n, 0));
        }
    }

    #[test]
    fn more_entries_than_offsets_count_are_an_error() {
        let lengths = vec![1usize << 31, 1 << 31, 0];
        let made = filled::<f32, u32, u32>(1, lengths, |_, _| {});
        assert!(matches!(made, Err(Error::Overflow { .. })), "{made:?}");
    }
}
