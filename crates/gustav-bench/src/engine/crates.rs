//! Rust crates as engines: sprs, faer and nalgebra-sparse.

use faer::sparse::SymbolicSparseRowMatRef;
use faer::sparse::linalg::matmul::{sparse_dense_matmul, sparse_sparse_matmul};
use faer::sparse::{SparseColMatRef, SparseRowMatRef, SymbolicSparseColMatRef};
use faer::{Accum, MatMut, MatRef, Par};
use gustav_core::{Csr, CsrView, Error, Operation, Result, Scalar};
use nalgebra_sparse::CsrMatrix;
use nalgebra_sparse::na::{ClosedAddAssign, ClosedMulAssign, DMatrix};
use nalgebra_sparse::ops::Op;
use nalgebra_sparse::ops::serial::spmm_csr_dense;
use sprs::CsMatViewI;
use sprs::prod::{csr_mulacc_dense_rowmaj, mul_acc_mat_vec_csr};
use sprs::smmp::mul_csr_csr;

use super::failed;
use super::{Engine, Outcome, Prepared, Task, dense_rows, poison, timed};
use crate::allocator::give_back_freed_memory;
use crate::timing::Runner;
use crate::value::CpuValue;

/// The traits that the crates require of a type.
pub(crate) trait CrateValue:
    faer::traits::ComplexField
    + nalgebra_sparse::na::Scalar
    + ClosedAddAssign
    + ClosedMulAssign
    + num_traits::Zero
    + num_traits::One
    + sprs::MulAcc
{
}
impl CrateValue for f32 {}
impl CrateValue for f64 {}

/// A product that can be executed, with its result.
trait Product<T: Scalar> {
    /// Milliseconds of one execution.
    fn execute(&mut self) -> Result<f64>;
    /// Overwrites C with wrong values, if C is kept.
    fn poison(&mut self);
    /// Frees a sparse C.
    fn drop_sparse(&mut self);
    /// Rows of C.
    fn outcome(&self, rows: Option<&[usize]>) -> Result<Outcome<T>>;
}

struct CrateEngine<'a, T: CpuValue> {
    prepared: Prepared,
    product: Box<dyn Product<T> + 'a>,
    /// The same on a copy of the operands.
    copy: Option<Box<dyn Product<T> + 'a>>,
}

/// Prepares the crate `name` for a case, and for `copy`, a copy of its operands.
///
/// # Errors
/// [`Error::Unsupported`] for another name or a matrix that the crate refuses.
pub(crate) fn crate_engine<'a, T: CpuValue>(
    name: &str,
    task: Task<'a, T>,
    copy: Option<Task<'a, T>>,
    threads: usize,
) -> Result<Box<dyn Engine<T> + 'a>> {
    let copy = copy.map(|copy| product(name, copy, threads)).transpose()?;
    let (ms, product) = timed(|| product(name, task, threads));
    let versions = [(name.to_owned(), locked(name).to_owned())].into();
    let prepared = Prepared { plan_ms: Some(ms), versions, ..Prepared::default() };
    Ok(Box::new(CrateEngine { prepared, product: product?, copy }))
}

fn product<'a, T: CpuValue>(
    name: &str,
    task: Task<'a, T>,
    threads: usize,
) -> Result<Box<dyn Product<T> + 'a>> {
    let dense =
        DenseC { c: vec![<T as Scalar>::zero(); task.dense_c_len()], columns: task.columns };
    Ok(match name {
        "sprs" => Box::new(Sprs { task, dense, sparse: None }),
        "faer" => Box::new(Faer { task, dense, sparse: None, threads }),
        _ => Box::new(Nalgebra::new(task)?),
    })
}

impl<T: CpuValue> Runner for CrateEngine<'_, T> {
    fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
        for _ in 0..wake {
            self.product.execute()?;
        }
        (0..repeats).map(|_| self.product.execute()).collect()
    }

    fn yield_memory(&mut self) -> Result<()> {
        self.product.drop_sparse();
        give_back_freed_memory();
        Ok(())
    }
}

impl<T: CpuValue> Engine<T> for CrateEngine<'_, T> {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn has_copy(&self) -> bool {
        self.copy.is_some()
    }

    fn cold_ms(&mut self) -> Result<f64> {
        if let Some(copy) = &mut self.copy {
            copy.execute()?;
        }
        self.product.execute()
    }

    fn result(&mut self, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        self.product.poison();
        self.product.execute()?;
        self.product.outcome(rows)
    }
}

/// The version of a crate that this was built with.
fn locked(name: &str) -> &'static str {
    let lock = include_str!("../../../../Cargo.lock");
    let own = lock.split_once(&format!("name = \"{name}\"\nversion = \""));
    own.and_then(|(_, rest)| rest.split('"').next()).unwrap_or("unknown")
}

/// A row-major C that every execution overwrites.
struct DenseC<T> {
    c: Vec<T>,
    columns: usize,
}

impl<T: Scalar> DenseC<T> {
    fn outcome(&self, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        Ok(Outcome::Dense(dense_rows(&self.c, self.columns, rows)))
    }
}

fn refuse(name: &str, why: impl std::fmt::Display) -> Error {
    failed(name, why)
}

fn no_product(name: &str) -> Error {
    refuse(name, "nothing was multiplied yet")
}

/// A sparse result in the oracle's form.
fn sparse<T: Scalar>(
    (rows, cols): (usize, usize),
    offsets: impl Iterator<Item = usize>,
    indices: impl Iterator<Item = usize>,
    values: &[T],
    wanted: Option<&[usize]>,
) -> Result<Outcome<T>> {
    let offsets: Vec<u32> = offsets.map(|o| o as u32).collect();
    let indices: Vec<u32> = indices.map(|i| i as u32).collect();
    let c = Csr::<T>::new(rows, cols, offsets, indices, values.to_vec())?;
    super::ours::sparse_rows(c.view(), wanted)
}

struct Sprs<'a, T: CpuValue> {
    task: Task<'a, T>,
    dense: DenseC<T>,
    sparse: Option<sprs::CsMatI<T, u32, u32>>,
}

fn sprs_view<'a, T: CpuValue>(m: CsrView<'a, T>) -> Result<CsMatViewI<'a, T, u32, u32>> {
    CsMatViewI::try_new((m.nrows(), m.ncols()), m.offsets(), m.indices(), m.values().as_slice())
        .map_err(|(_, _, _, why)| refuse("sprs", why))
}

impl<T: CpuValue> Product<T> for Sprs<'_, T> {
    fn execute(&mut self) -> Result<f64> {
        let (task, a) = (self.task, sprs_view(self.task.a)?);
        if let Some(b) = task.b {
            let b = sprs_view(b)?;
            self.sparse = None;
            let (ms, c) = timed(|| mul_csr_csr(a, b));
            self.sparse = Some(c);
            return Ok(ms);
        }
        // The crate adds to C, so C is cleared within the timing.
        let c = &mut self.dense.c;
        if task.operation == Operation::Spmv {
            let x = task.dense_b();
            return Ok(timed(|| {
                c.fill(Scalar::zero());
                mul_acc_mat_vec_csr(a, x, c.as_mut_slice());
            })
            .0);
        }
        let (shape_b, shape_c) = ((task.a.ncols(), task.columns), (task.a.nrows(), task.columns));
        let b = ndarray::ArrayView2::from_shape(shape_b, task.dense_b());
        let b = b.map_err(|e| refuse("sprs", e))?;
        let mut c =
            ndarray::ArrayViewMut2::from_shape(shape_c, c).map_err(|e| refuse("sprs", e))?;
        Ok(timed(|| {
            c.fill(Scalar::zero());
            csr_mulacc_dense_rowmaj(a, b, c);
        })
        .0)
    }

    fn poison(&mut self) {
        self.dense.c.fill(poison());
    }

    fn drop_sparse(&mut self) {
        self.sparse = None;
    }

    fn outcome(&self, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        if self.task.b.is_none() {
            return self.dense.outcome(rows);
        }
        let c = self.sparse.as_ref().ok_or_else(|| no_product("sprs"))?;
        let offsets = c.proper_indptr();
        let offsets = offsets.iter().map(|&o| o as usize);
        let indices = c.indices().iter().map(|&i| i as usize);
        sparse((c.rows(), c.cols()), offsets, indices, c.data(), rows)
    }
}

struct Faer<'a, T: CpuValue> {
    task: Task<'a, T>,
    dense: DenseC<T>,
    // Cᵀ by columns, which is C by rows.
    sparse: Option<faer::sparse::SparseColMat<u32, T>>,
    threads: usize,
}

/// The CSR arrays read as the transpose by columns.
fn transposed<'a, T: CpuValue>(m: CsrView<'a, T>) -> SparseColMatRef<'a, u32, T> {
    let pattern =
        SymbolicSparseColMatRef::new_checked(m.ncols(), m.nrows(), m.offsets(), None, m.indices());
    SparseColMatRef::new(pattern, m.values().as_slice())
}

impl<T: CpuValue> Product<T> for Faer<'_, T> {
    fn execute(&mut self) -> Result<f64> {
        let task = self.task;
        let par = Par::rayon(self.threads);
        if let Some(b) = task.b {
            // Cᵀ = BᵀAᵀ needs no conversion.
            let (left, right) = (transposed(b), transposed(task.a));
            self.sparse = None;
            let (ms, c) = timed(|| sparse_sparse_matmul(left, right, Scalar::one(), par));
            self.sparse = Some(c.map_err(|e| refuse("faer", format!("{e:?}")))?);
            return Ok(ms);
        }
        let (m, n) = (task.a.nrows(), task.columns);
        let pattern = SymbolicSparseRowMatRef::new_checked(
            m,
            task.a.ncols(),
            task.a.offsets(),
            None,
            task.a.indices(),
        );
        let a = SparseRowMatRef::new(pattern, task.a.values().as_slice());
        let b = MatRef::from_row_major_slice(task.dense_b(), task.a.ncols(), n);
        let c = MatMut::from_row_major_slice_mut(&mut self.dense.c, m, n);
        Ok(timed(|| sparse_dense_matmul(c, Accum::Replace, a, b, Scalar::one(), par)).0)
    }

    fn poison(&mut self) {
        self.dense.c.fill(poison());
    }

    fn drop_sparse(&mut self) {
        self.sparse = None;
    }

    fn outcome(&self, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        if self.task.b.is_none() {
            return self.dense.outcome(rows);
        }
        let c = self.sparse.as_ref().ok_or_else(|| no_product("faer"))?;
        let offsets = c.col_ptr().iter().map(|&o| o as usize);
        let indices = c.row_idx().iter().map(|&i| i as usize);
        sparse((c.ncols(), c.nrows()), offsets, indices, c.val(), rows)
    }
}

struct Nalgebra<T: CpuValue> {
    a: CsrMatrix<T>,
    b: Option<CsrMatrix<T>>,
    // Column-major, as in the crate.
    dense_b: DMatrix<T>,
    dense_c: DMatrix<T>,
    sparse: Option<CsrMatrix<T>>,
}

impl<T: CpuValue> Nalgebra<T> {
    fn new(task: Task<'_, T>) -> Result<Self> {
        let convert = |m: CsrView<'_, T>| {
            let offsets = m.offsets().iter().map(|&o| o as usize).collect();
            let indices = m.indices().iter().map(|&i| i as usize).collect();
            CsrMatrix::try_from_csr_data(
                m.nrows(),
                m.ncols(),
                offsets,
                indices,
                m.values().to_vec(),
            )
            .map_err(|e| refuse("nalgebra-sparse", e))
        };
        let b = task.dense_b();
        Ok(Nalgebra {
            a: convert(task.a)?,
            b: task.b.map(convert).transpose()?,
            dense_b: DMatrix::from_row_slice(task.a.ncols(), task.columns, b),
            dense_c: DMatrix::repeat(task.a.nrows(), task.columns, Scalar::zero()),
            sparse: None,
        })
    }
}

impl<T: CpuValue> Product<T> for Nalgebra<T> {
    fn execute(&mut self) -> Result<f64> {
        if let Some(b) = &self.b {
            self.sparse = None;
            let (ms, c) = timed(|| &self.a * b);
            self.sparse = Some(c);
            return Ok(ms);
        }
        // The crate multiplies C by β even if β is 0, which keeps NaN.
        let (zero, one) = (<T as Scalar>::zero(), <T as Scalar>::one());
        let (a, b, c) = (Op::NoOp(&self.a), Op::NoOp(&self.dense_b), &mut self.dense_c);
        Ok(timed(|| {
            c.fill(zero);
            spmm_csr_dense(zero, c, one, a, b);
        })
        .0)
    }

    fn poison(&mut self) {
        self.dense_c.fill(poison());
    }

    fn drop_sparse(&mut self) {
        self.sparse = None;
    }

    fn outcome(&self, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        if self.b.is_none() {
            let row_major = self.dense_c.transpose();
            let columns = self.dense_c.ncols();
            return Ok(Outcome::Dense(dense_rows(row_major.as_slice(), columns, rows)));
        }
        let c = self.sparse.as_ref().ok_or_else(|| no_product("nalgebra-sparse"))?;
        let offsets = c.row_offsets().iter().copied();
        let indices = c.col_indices().iter().copied();
        sparse((c.nrows(), c.ncols()), offsets, indices, c.values(), rows)
    }
}
