//! `tiled`: products larger than a device's memory, divided as by Chen et al. (2025, §7.2): B in
//! tiles of columns, C in tiles of rows and columns, computed one after another on the device.
//! Every tile is a product of its own, by the algorithm that the caller names or the planner
//! chooses.

use std::ops::ControlFlow;

use gustav_core::{Csr, CsrView, Error, Index, Problem, Result, Scalar};

use super::plan::{Options, multiply as multiply_tile};
use super::tiles::{self, Grid, part};
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
    if problem.inner() != b.nrows() || a.ncols() != b.nrows() {
        return Err(Error::Shape {
            op: "spgemm",
            expected: format!("A with {} columns and B with as many rows", problem.inner()),
            found: format!("{} x {} and {} x {}", a.nrows(), a.ncols(), b.nrows(), b.ncols()),
        });
    }
    let free = device.memory()?.0 / 8 * EIGHTHS;
    let budget = tiling.memory.map_or(free, |cap| cap.min(free));
    let (m, n) = (a.nrows(), b.ncols());
    let mut grid = tiles::cut(&a, &b, budget)?;
    loop {
        let run = Run { device, a, alpha, b, problem, options, grid };
        let mut done = match run.multiply(&mut tiling) {
            Ok(done) => done,
            Err(Stopped::Failed(e)) => return Err(e),
            Err(Stopped::TooLarge(e)) => {
                grid = grid.doubled(m, n, false).ok_or(e)?;
                continue;
            }
        };
        return match done.len() {
            1 => done.pop().ok_or(Error::Length { what: "tiles", expected: 1, found: 0 }),
            _ => tiles::join(grid, (m, n), &done),
        };
    }
}

/// Why an attempt ended before its last tile.
enum Stopped {
    /// A tile does not fit on the device; smaller ones may.
    TooLarge(Error),
    /// For any other reason, memory of the host among them.
    Failed(Error),
}

impl Stopped {
    /// An error of work on the device.
    fn on_device(error: Error) -> Self {
        match error {
            Error::OutOfMemory { .. } => Stopped::TooLarge(error),
            _ => Stopped::Failed(error),
        }
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
    /// The tiles of C, column after column.
    fn multiply(&self, tiling: &mut Tiling<'_>) -> std::result::Result<Vec<Csr<T, I, O>>, Stopped> {
        let upload = |m: &CsrView<'_, T, I, O>| {
            DeviceCsr::upload(self.device, m).map_err(Stopped::on_device)
        };
        let Grid { rows, cols } = self.grid;
        let mut done = Vec::new();
        for col in 0..cols {
            let columns = part(self.b.ncols(), cols, col);
            let b = match cols {
                1 => upload(&self.b)?,
                _ => {
                    let tile = tiles::columns_of(&self.b, columns).map_err(Stopped::Failed)?;
                    upload(&tile.view())?
                }
            };
            for row in 0..rows {
                let of = part(self.a.nrows(), rows, row);
                let offsets = tiles::offsets_of(&self.a, of.clone()).map_err(Stopped::Failed)?;
                let tile = tiles::rows_of(&self.a, of, &offsets).map_err(Stopped::Failed)?;
                let a = upload(&tile)?;
                let problem = Problem {
                    rows: a.nrows(),
                    nnz: a.nnz(),
                    columns: b.ncols(),
                    nnz_b: Some(b.nnz()),
                    ..self.problem.clone()
                };
                let call = Call::new().alpha(self.alpha);
                let c = multiply_tile(&a, &b, &problem, self.options, call)
                    .map_err(Stopped::on_device)?;
                done.push(c.download().map_err(Stopped::Failed)?);
                let progress = Progress { done: done.len(), tiles: rows * cols };
                let go_on = tiling.progress.as_mut().map(|report| report(progress));
                if go_on == Some(ControlFlow::Break(())) && progress.done < progress.tiles {
                    let (done, of) = (progress.done, progress.tiles);
                    let what = "a tiled product";
                    return Err(Stopped::Failed(Error::Cancelled { what, done, of }));
                }
            }
        }
        Ok(done)
    }
}
