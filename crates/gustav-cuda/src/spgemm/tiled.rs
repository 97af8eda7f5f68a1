//! `tiled`: products larger than a device's memory, divided as by Chen et al. (2025, §7.2): B in
//! tiles of columns, C in tiles of rows and columns, computed one after another on the device.
//! Every tile is a product of its own, by the algorithm that the caller names or the planner
//! chooses.

use std::ops::{ControlFlow, Range};

use gustav_core::buffer::try_vec;
use gustav_core::{Csr, CsrView, Error, Index, Problem, Result, Scalar};

use super::plan::{Options, multiply as multiply_tile};
use crate::device::Device;
use crate::matrix::DeviceCsr;
use crate::product::Call;
pub use crate::product::sparse_method::Progress;

// Eighths of the free memory for which tiles are sized.
const EIGHTHS: usize = 7;

/// The size of tiles, and a progress callback.
#[derive(Default)]
pub struct Tiling<'a> {
    /// Bytes of device memory for which tiles are sized; `None` for most of the free memory.
    pub memory: Option<usize>,
    /// Called after every tile; [`ControlFlow::Break`] stops the product.
    pub progress: Option<&'a mut dyn FnMut(Progress) -> ControlFlow<()>>,
}

/// Numbers of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grid {
    rows: usize,
    cols: usize,
}

/// Checks that the product can be divided into tiles.
///
/// # Errors
/// [`Error::Unsupported`] for transposed A and for C in another type than A.
pub fn supports(problem: &Problem) -> Result<()> {
    problem.without_output("tiled on CUDA")?;
    if !problem.transpose_a {
        return Ok(());
    }
    let (backend, reason) = ("tiled on CUDA", "it cuts rows of A as stored");
    Err(crate::product::unsupported(problem, backend, reason, "Csr::transpose first"))
}

/// C = α·A·B for matrices in host memory, in as many tiles as the device's memory requires, one if
/// everything fits. If a tile does not fit after all, tiles are halved. All device memory is freed
/// when this returns, also after an error.
///
/// # Errors
/// [`Error::Cancelled`] when `progress` stopped it, [`Error::OutOfMemory`] when not even one row
/// times one column fits, [`Error::Unsupported`] for transposed A, [`Error::Overflow`] when the
/// entries of C outnumber the offset type, and as [`super::SpgemmPlan`].
pub fn multiply<T: Scalar, I: Index, O: Index>(
    device: &Device,
    (a, alpha, b): (CsrView<'_, T, I, O>, T::Accum, CsrView<'_, T, I, O>),
    problem: &Problem,
    options: &Options,
    mut tiling: Tiling<'_>,
) -> Result<Csr<T, I, O>> {
    supports(problem)?;
    if problem.inner() != b.nrows() {
        return Err(Error::Shape {
            op: "spgemm",
            expected: format!("B with {} rows", problem.inner()),
            found: format!("{} x {}", b.nrows(), b.ncols()),
        });
    }
    let free = device.memory()?.0 / 8 * EIGHTHS;
    let budget = tiling.memory.map_or(free, |cap| cap.min(free));
    let mut grid = cut(&a, &b, budget)?;
    loop {
        let run = Run { device, a, alpha, b, problem, options, grid };
        match run.multiply(&mut tiling) {
            Err(e @ Error::OutOfMemory { .. }) => match grid.halved(a.nrows(), b.ncols()) {
                Some(finer) => grid = finer,
                None => return Err(e),
            },
            other => return other,
        }
    }
}

impl Grid {
    /// Twice as many tiles, divided along their longer side.
    fn halved(self, m: usize, n: usize) -> Option<Grid> {
        let Grid { rows, cols } = self;
        let wide = n / cols >= m / rows;
        match (rows < m, cols < n) {
            (false, false) => None,
            (_, true) if wide || rows >= m => Some(Grid { rows, cols: (2 * cols).min(n) }),
            _ => Some(Grid { rows: (2 * rows).min(m), cols }),
        }
    }
}

/// Part `k` of `count` equal parts of `0..len`.
fn part(len: usize, count: usize, k: usize) -> Range<usize> {
    let at = |k: usize| (len as u128 * k as u128 / count as u128) as usize;
    at(k)..at(k + 1)
}

/// The fewest tiles whose operands and result (dense and in CSR) fit in `budget`.
fn cut<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    b: &CsrView<'_, T, I, O>,
    budget: usize,
) -> Result<Grid> {
    let (m, n) = (a.nrows(), b.ncols());
    let (value, entry) = (size_of::<T>(), size_of::<T>() + size_of::<I>());
    // Products up to row i.
    let mut products = try_vec::<u64>(m + 1, "products of rows")?;
    products.push(0);
    for i in 0..m {
        let own: usize = a.row(i).0.iter().map(|k| b.row_len(k.to_usize())).sum();
        products.push(products[i] + own as u64);
    }
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
            let made = (products[tile.end] - products[tile.start]).div_ceil(cols as u64);
            let nnz = dense.min(usize::try_from(made).unwrap_or(usize::MAX));
            of_c = of_c.max(dense * value + nnz * entry + offsets);
        }
        if of_a + of_b + of_c <= budget {
            return Ok(grid);
        }
        let finer = match of_b > of_c.max(of_a) && cols < n {
            true => Some(Grid { rows, cols: (2 * cols).min(n) }),
            false if of_a > of_c && rows < m => Some(Grid { rows: (2 * rows).min(m), cols }),
            false => grid.halved(m, n),
        };
        grid = finer.ok_or(Error::OutOfMemory {
            what: "one row times one column on the device",
            needed: (of_a + of_b + of_c) as u128,
            available: Some(budget as u64),
        })?;
    }
}

/// One attempt with one grid of tiles.
struct Run<'r, T: Scalar, I: Index, O: Index> {
    device: &'r Device,
    a: CsrView<'r, T, I, O>,
    alpha: T::Accum,
    b: CsrView<'r, T, I, O>,
    problem: &'r Problem,
    options: &'r Options,
    grid: Grid,
}

impl<T: Scalar, I: Index, O: Index> Run<'_, T, I, O> {
    fn multiply(&self, tiling: &mut Tiling<'_>) -> Result<Csr<T, I, O>> {
        let Grid { rows, cols } = self.grid;
        let mut done = Vec::new();
        for col in 0..cols {
            let columns = part(self.b.ncols(), cols, col);
            let b = match cols {
                1 => DeviceCsr::upload(self.device, &self.b)?,
                _ => DeviceCsr::upload(self.device, &columns_of(&self.b, columns)?.view())?,
            };
            for row in 0..rows {
                let a = rows_of(&self.a, part(self.a.nrows(), rows, row))?;
                let a = DeviceCsr::upload(self.device, &a.view())?;
                let problem = Problem {
                    rows: a.nrows(),
                    nnz: a.nnz(),
                    columns: b.ncols(),
                    nnz_b: Some(b.nnz()),
                    ..self.problem.clone()
                };
                let call = Call::new().alpha(self.alpha);
                let c = multiply_tile(&a, &b, &problem, self.options, call)?;
                done.push(c.download()?);
                let progress = Progress { done: done.len(), tiles: rows * cols };
                let go_on = tiling.progress.as_mut().map(|report| report(progress));
                if go_on == Some(ControlFlow::Break(())) && progress.done < progress.tiles {
                    let (done, of) = (progress.done, progress.tiles);
                    return Err(Error::Cancelled { what: "a tiled product", done, of });
                }
            }
        }
        self.join(done)
    }

    /// Joins C from its tiles, which are in column-major order.
    fn join(&self, mut tiles: Vec<Csr<T, I, O>>) -> Result<Csr<T, I, O>> {
        let Grid { rows, cols } = self.grid;
        if tiles.len() == 1 {
            return tiles.pop().ok_or(Error::Length { what: "tiles", expected: 1, found: 0 });
        }
        let (m, n) = (self.a.nrows(), self.b.ncols());
        let nnz = tiles.iter().map(Csr::nnz).sum();
        let mut offsets = try_vec::<O>(m + 1, "row offsets of C")?;
        let mut indices = try_vec::<I>(nnz, "column indices of C")?;
        let mut values = try_vec::<T>(nnz, "values of C")?;
        offsets.push(O::truncate(0));
        for row in 0..rows {
            for i in 0..part(m, rows, row).len() {
                for col in 0..cols {
                    let first = part(n, cols, col).start;
                    let tile = tiles[col * rows + row].view();
                    let (own, of) = tile.row(i);
                    indices.extend(own.iter().map(|j| I::truncate(j.to_usize() + first)));
                    values.extend_from_slice(of);
                }
                offsets.push(O::try_from_usize(indices.len(), "row offset")?);
            }
        }
        Csr::new(m, n, offsets, indices, values)
    }
}

/// Rows `rows` of `m`.
fn rows_of<T: Scalar, I: Index, O: Index>(
    m: &CsrView<'_, T, I, O>,
    rows: Range<usize>,
) -> Result<Csr<T, I, O>> {
    select(m, rows, 0..m.ncols())
}

/// Columns `columns` of `m`, counted from the first of them.
fn columns_of<T: Scalar, I: Index, O: Index>(
    m: &CsrView<'_, T, I, O>,
    columns: Range<usize>,
) -> Result<Csr<T, I, O>> {
    select(m, 0..m.nrows(), columns)
}

fn select<T: Scalar, I: Index, O: Index>(
    m: &CsrView<'_, T, I, O>,
    rows: Range<usize>,
    columns: Range<usize>,
) -> Result<Csr<T, I, O>> {
    let whole = columns == (0..m.ncols());
    let inside = |j: &I| columns.contains(&j.to_usize());
    let count =
        |i| if whole { m.row_len(i) } else { m.row(i).0.iter().filter(|j| inside(j)).count() };
    let nnz = rows.clone().map(count).sum();
    let mut offsets = try_vec::<O>(rows.len() + 1, "row offsets of a tile")?;
    let mut indices = try_vec::<I>(nnz, "column indices of a tile")?;
    let mut values = try_vec::<T>(nnz, "values of a tile")?;
    offsets.push(O::truncate(0));
    for i in rows.clone() {
        let (own, of) = m.row(i);
        for (j, value) in own.iter().zip(of).filter(|(j, _)| inside(j)) {
            indices.push(I::truncate(j.to_usize() - columns.start));
            values.push(*value);
        }
        offsets.push(O::truncate(indices.len()));
    }
    Csr::new(rows.len(), columns.len(), offsets, indices, values)
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
    fn tiles_of_a_matrix_are_its_own_entries() {
        let a =
            Csr::<f64>::new(3, 5, vec![0, 2, 2, 5], vec![0, 4, 3, 1, 2], vec![1., 2., 3., 4., 5.]);
        let a = a.expect("a matrix");
        let tile = columns_of(&a.view(), 1..4).expect("columns");
        assert_eq!(
            (tile.offsets(), tile.indices()),
            ([0, 0, 0, 3].as_slice(), [2, 0, 1].as_slice())
        );
        assert_eq!(tile.values(), [3., 4., 5.]);
        let tile = rows_of(&a.view(), 1..3).expect("rows");
        assert_eq!((tile.nrows(), tile.indices()), (2, [3, 1, 2].as_slice()));
    }
}
