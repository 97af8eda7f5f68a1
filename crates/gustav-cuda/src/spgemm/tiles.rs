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
    /// Twice as many tiles, divided along their longer side.
    pub(super) fn halved(self, m: usize, n: usize) -> Option<Grid> {
        let Grid { rows, cols } = self;
        if n / cols >= m / rows {
            self.more_columns(n).or(self.more_rows(m))
        } else {
            self.more_rows(m)
        }
    }

    /// Twice as many tiles of rows.
    fn more_rows(self, m: usize) -> Option<Grid> {
        (self.rows < m).then(|| Grid { rows: (2 * self.rows).min(m), ..self })
    }

    /// Twice as many tiles of columns.
    fn more_columns(self, n: usize) -> Option<Grid> {
        (self.cols < n).then(|| Grid { cols: (2 * self.cols).min(n), ..self })
    }
}

/// Part `k` of `count` equal parts of `0..len`.
pub(super) fn part(len: usize, count: usize, k: usize) -> Range<usize> {
    let at = |k: usize| (len as u128 * k as u128 / count as u128) as usize;
    at(k)..at(k + 1)
}

/// Sums of the numbers before each; the last is that of all.
fn sums(mut lengths: Vec<usize>) -> Vec<usize> {
    let mut sum = 0;
    for length in &mut lengths {
        sum += std::mem::replace(length, sum);
    }
    lengths
}

/// `of(i)` for each of `count` rows, and 0 behind them.
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

/// The fewest tiles whose operands and result (dense and in CSR) fit in `budget`.
///
/// Columns are cut while B takes more than half of it: rows of C in tiles of rows follow one another, those in tiles of
/// columns have to be interleaved.
pub(super) fn cut<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    b: &CsrView<'_, T, I, O>,
    budget: usize,
) -> Result<Grid> {
    let (m, n) = (a.nrows(), b.ncols());
    let (value, entry) = (size_of::<T>(), size_of::<T>() + size_of::<I>());
    let products = sums(of_rows(m, "products of rows", |i| {
        a.row(i).0.iter().map(|k| b.row_len(k.to_usize())).sum()
    })?);
    let mut grid = Grid { rows: 1, cols: 1 };
    loop {
        let Grid { rows, cols } = grid;
        let of_b = b.nnz().div_ceil(cols) * entry + (b.nrows() + 1) * size_of::<O>();
        let (mut of_a, mut of_c) = (0, 0);
        for k in 0..rows {
            let tile = part(m, rows, k);
            let offsets = (tile.len() + 1) * size_of::<O>();
            let nnz = a.offsets()[tile.end].to_usize() - a.offsets()[tile.start].to_usize();
            of_a = of_a.max(nnz * entry + offsets);
            let dense = tile.len() * n.div_ceil(cols);
            let made = (products[tile.end] - products[tile.start]).div_ceil(cols);
            of_c = of_c.max(dense * value + dense.min(made) * entry + offsets);
        }
        if of_a + of_b + of_c <= budget {
            return Ok(grid);
        }
        let finer = match of_b > budget / 2 {
            true => grid.more_columns(n).or(grid.more_rows(m)),
            false => grid.more_rows(m).or(grid.more_columns(n)),
        };
        grid = finer.ok_or(Error::OutOfMemory {
            what: "one row times one column on the device",
            needed: (of_a + of_b + of_c) as u128,
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
    filled(columns.len(), sums(lengths), |i, row| {
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
    filled(n, sums(lengths), |i, row| {
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
        // SAFETY: the elements from the start of a row to that of the next are this row's, which one task fills.
        unsafe {
            self.indices.put(self.at, column);
            self.values.put(self.at, value);
        }
        self.at += 1;
    }
}

/// The matrix with these starts of rows, of which `fill(i, row)` puts the entries of row i.
///
/// # Panics
/// When it puts another number of them than the starts say.
fn filled<T: Scalar, I: Index, O: Index>(
    columns: usize,
    starts: Vec<usize>,
    fill: impl Fn(usize, &mut Row<'_, T, I>) + Sync,
) -> Result<Csr<T, I, O>> {
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
        let mut grid = Grid { rows: 1, cols: 1 };
        let mut seen = 0;
        while let Some(finer) = grid.halved(5, 9) {
            assert!(finer.rows * finer.cols > grid.rows * grid.cols);
            grid = finer;
            seen += 1;
        }
        assert_eq!((grid, seen), (Grid { rows: 5, cols: 9 }, 7));
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

    #[test]
    fn a_matrix_is_joined_from_its_tiles() {
        let a = small();
        for (rows, cols) in [(1, 1), (3, 1), (1, 5), (2, 2), (3, 5)] {
            let mut tiles = Vec::new();
            for col in 0..cols {
                let of_columns = columns_of(&a.view(), part(5, cols, col)).expect("columns");
                for row in 0..rows {
                    let of = part(3, rows, row);
                    let offsets = offsets_of(&of_columns.view(), of.clone()).expect("offsets");
                    let view = of_columns.view();
                    let tile = rows_of(&view, of, &offsets).expect("rows");
                    tiles.push(tile.to_owned().expect("a tile"));
                }
            }
            let joined = join(Grid { rows, cols }, (3, 5), &tiles).expect("C");
            let sorted = |c: &Csr<f64>| {
                let view = c.view();
                let of_row = |i| {
                    let (indices, values) = view.row(i);
                    let mut row: Vec<_> = indices.iter().copied().zip(values.to_vec()).collect();
                    row.sort_by_key(|(j, _)| *j);
                    row
                };
                (0..3).map(of_row).collect::<Vec<_>>()
            };
            assert_eq!(sorted(&joined), sorted(&a), "{rows} x {cols} tiles");
        }
    }
}
