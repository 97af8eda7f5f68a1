//! The description of a product: operation, shapes, types, layouts, expected calls.

use std::fmt::Display;

use crate::buffer::available_memory;
use crate::{
    AnyPattern, CsrView, DType, Epilogue, Error, Extremum, Index, IndexType, Layout, Result,
    Scalar, Semiring,
};

/// The products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Sparse × dense matrix.
    Spmm,
    /// Sparse × dense vector.
    Spmv,
    /// Sparse × sparse.
    Spgemm,
    /// Dense × dense at the nonzeros of a pattern (sampled dense-dense product).
    Sddmm,
    /// Softmax of values over every row of a pattern.
    Softmax,
    /// Softmax of dense × dense at the nonzeros of every row, × dense.
    Attention,
}

impl Operation {
    /// The name used on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Spmm => "spmm",
            Operation::Spmv => "spmv",
            Operation::Spgemm => "spgemm",
            Operation::Sddmm => "sddmm",
            Operation::Softmax => "softmax",
            Operation::Attention => "attention",
        }
    }
}

impl Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A product to be planned: C = α·op(A)·B ⊕ β·C, or α·(X·Yᵀ) + β·values at the nonzeros of A
/// (SDDMM).
///
/// Made from the matrix by [`Problem::spmm`], [`Problem::spmv`] or [`Problem::spgemm`], from a
/// pattern by [`Pattern::sddmm`](crate::Pattern::sddmm), and refined by the methods of the same
/// names as the fields.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Problem {
    /// Which product.
    pub operation: Operation,
    /// Rows of A as stored.
    pub rows: usize,
    /// Columns of A as stored.
    pub cols: usize,
    /// Stored entries of A.
    pub nnz: usize,
    /// Columns of B and C; of X and Y (SDDMM); of Q and K of a head (attention).
    pub columns: usize,
    /// Columns of V and O of a head (attention).
    pub value_columns: usize,
    /// Products computed together on one pattern: pairs B and C (SpMM), X and Y (SDDMM), heads
    /// (attention, softmax).
    pub batch: usize,
    /// Stored entries of B (SpGEMM).
    pub nnz_b: Option<usize>,
    /// Type of the stored values.
    pub dtype: DType,
    /// Type of the values of the result: that of the operands, or of their sums (SpGEMM).
    pub output: DType,
    /// Type of the column indices.
    pub index_type: IndexType,
    /// Type of the row offsets.
    pub offset_type: IndexType,
    /// Whether Aᵀ is multiplied instead of A.
    pub transpose_a: bool,
    /// Layout of B; of Y (SDDMM).
    pub layout_b: Layout,
    /// Layout of C; of X (SDDMM).
    pub layout_c: Layout,
    /// The two operations.
    pub semiring: Semiring,
    /// Whether the result must be the same to the bit from run to run and for any number of
    /// threads.
    pub deterministic: bool,
    /// Whether the caller guarantees that no operand holds NaN or infinity: algorithms that
    /// multiply zeros that are not stored require it.
    pub finite: bool,
    /// Whether factors in f32 may be rounded to TF32, 11 bits in place of 24.
    pub tf32: bool,
    /// Whether rows of the result must come out sorted (SpGEMM).
    pub sorted: bool,
    /// Operations on finished sums (SpMM).
    pub epilogue: Epilogue,
    /// Maximum or minimum of the products of a row in place of their sum (SpMM); see
    /// [`Problem::reduce`].
    pub extremum: Option<Extremum>,
    /// How often the plan will be executed, as the caller expects.
    pub calls: u64,
}

impl Problem {
    fn new<T: Scalar, I: Index, O: Index>(operation: Operation, a: &CsrView<'_, T, I, O>) -> Self {
        let problem = Self::of_pattern(operation, a.nrows(), a.ncols(), a.nnz());
        let (dtype, output) = (T::DTYPE, T::DTYPE);
        Problem { dtype, output, index_type: I::TYPE, offset_type: O::TYPE, ..problem }
    }

    /// Sparse × dense, with one column unless [`Problem::columns`] is called.
    pub fn spmm<T: Scalar, I: Index, O: Index>(a: &CsrView<'_, T, I, O>) -> Self {
        Self::new(Operation::Spmm, a)
    }

    /// Sparse × vector.
    pub fn spmv<T: Scalar, I: Index, O: Index>(a: &CsrView<'_, T, I, O>) -> Self {
        Self::new(Operation::Spmv, a)
    }

    /// Sparse × sparse.
    pub fn spgemm<T: Scalar, I: Index, O: Index>(
        a: &CsrView<'_, T, I, O>,
        b: &CsrView<'_, T, I, O>,
    ) -> Self {
        Problem { columns: b.ncols(), nnz_b: Some(b.nnz()), ..Self::new(Operation::Spgemm, a) }
    }

    /// Sets the number of columns of B and C.
    #[must_use]
    pub fn columns(self, columns: usize) -> Self {
        Problem { columns, ..self }
    }

    /// Multiplies Aᵀ instead of A.
    #[must_use]
    pub fn transpose_a(self, transpose_a: bool) -> Self {
        Problem { transpose_a, ..self }
    }

    /// Sets the layouts of B and C.
    #[must_use]
    pub fn layouts(self, layout_b: Layout, layout_c: Layout) -> Self {
        Problem { layout_b, layout_c, ..self }
    }

    /// Sets the semiring.
    #[must_use]
    pub fn semiring(self, semiring: Semiring) -> Self {
        Problem { semiring, ..self }
    }

    /// Requires results that are the same to the bit from run to run and for any number of threads.
    /// Autotuning is then unsupported.
    #[must_use]
    pub fn deterministic(self, deterministic: bool) -> Self {
        Problem { deterministic, ..self }
    }

    /// Declares that no operand holds NaN or infinity, so that zeros that are not stored may be
    /// multiplied.
    #[must_use]
    pub fn finite(self, finite: bool) -> Self {
        Problem { finite, ..self }
    }

    /// Allows factors in f32 to be rounded to TF32.
    #[must_use]
    pub fn tf32(self, tf32: bool) -> Self {
        Problem { tf32, ..self }
    }

    /// Says whether rows of the result must come out sorted (SpGEMM).
    #[must_use]
    pub fn sorted(self, sorted: bool) -> Self {
        Problem { sorted, ..self }
    }

    /// Sets the type of the values of the result: f32, the type of sums, for values of 16 bits
    /// (SpGEMM).
    #[must_use]
    pub fn output(self, output: DType) -> Self {
        Problem { output, ..self }
    }

    /// For a `backend` without an output type: checks that the result has the type of the operands.
    ///
    /// # Errors
    /// [`Error::Unsupported`] otherwise.
    pub fn without_output(&self, backend: &str) -> Result<()> {
        if self.output == self.dtype {
            return Ok(());
        }
        Err(Error::Unsupported {
            problem: self.to_string(),
            backend: backend.into(),
            reason: format!("it stores {} as {}", self.dtype, self.dtype),
            nearest: format!(
                "SpGEMM by gustavson on the CPU or binned on CUDA for sums of f16 and bf16 in f32, \
                 or the result in {}",
                self.dtype
            ),
        })
    }

    /// Checks that the result has the type of the operands or of their sums.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when it is not.
    pub fn check_output(&self, backend: &str) -> Result<()> {
        if self.dtype.bytes() == 2 && self.output == DType::F32 {
            return Ok(());
        }
        self.without_output(backend)
    }

    /// Sets the operations on finished sums (SpMM).
    #[must_use]
    pub fn epilogue(self, epilogue: Epilogue) -> Self {
        Problem { epilogue, ..self }
    }

    /// Sets how often the plan will be executed.
    #[must_use]
    pub fn calls(self, calls: u64) -> Self {
        Problem { calls, ..self }
    }

    /// Rows of op(A) and of C.
    pub fn output_rows(&self) -> usize {
        if self.transpose_a { self.cols } else { self.rows }
    }

    /// The problem for values of type `T` on `pattern`.
    ///
    /// # Errors
    /// [`Error::Pattern`] when the problem was made for a matrix of another size.
    pub fn bound<T: Scalar>(&self, pattern: &AnyPattern<'_>) -> Result<Self> {
        self.check_a(pattern.nrows(), pattern.ncols(), pattern.nnz())?;
        Ok(self.with_types(T::DTYPE, pattern.index_types()))
    }

    /// The problem for values of type `T`, column indices `I` and row offsets `O`.
    #[must_use]
    pub fn typed<T: Scalar, I: Index, O: Index>(&self) -> Self {
        self.with_types(T::DTYPE, (I::TYPE, O::TYPE))
    }

    fn with_types(&self, dtype: DType, (index_type, offset_type): (IndexType, IndexType)) -> Self {
        let output = if self.output == self.dtype { dtype } else { self.output };
        Problem { dtype, output, index_type, offset_type, ..self.clone() }
    }

    /// Checks that A is `rows` × `cols` with `nnz` nonzeros.
    ///
    /// # Errors
    /// [`Error::Pattern`] when the problem was made for another matrix.
    pub fn check_a(&self, rows: usize, cols: usize, nnz: usize) -> Result<()> {
        if (self.rows, self.cols, self.nnz) == (rows, cols, nnz) {
            return Ok(());
        }
        let name = |rows, cols, nnz| format!("{rows} x {cols} with {nnz} nonzeros");
        let expected = name(self.rows, self.cols, self.nnz);
        Err(Error::Pattern { expected, found: name(rows, cols, nnz) })
    }

    /// Checks that B and C of an SpMM, X and Y of an SDDMM, fit in the address space, counted with
    /// at least one row.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] otherwise.
    pub fn check_dense(&self) -> Result<()> {
        let rows = (self.inner() as u128 + self.output_rows() as u128).max(1);
        let columns = self.columns as u128 * self.batch as u128;
        let needed = rows.saturating_mul(columns.saturating_mul(self.dtype.bytes() as u128));
        let what = match self.operation {
            Operation::Spmm => "B and C",
            Operation::Sddmm => "X and Y",
            Operation::Attention => "Q, K and V",
            Operation::Spmv | Operation::Spgemm | Operation::Softmax => return Ok(()),
        };
        if isize::try_from(needed).is_ok() {
            return Ok(());
        }
        Err(Error::OutOfMemory { what, needed, available: available_memory() })
    }

    /// Checks that `what`, of `rows` × `cols`, has C's shape.
    ///
    /// # Errors
    /// [`Error::Shape`] otherwise.
    pub fn check_like_c(&self, what: &str, (rows, cols): (usize, usize)) -> Result<()> {
        let c = (self.output_rows(), self.columns);
        if (rows, cols) == c {
            return Ok(());
        }
        Err(Error::Shape {
            op: self.operation.name(),
            expected: format!("{what} of {} x {}", c.0, c.1),
            found: format!("{rows} x {cols}"),
        })
    }

    /// Columns of op(A): rows of B.
    pub fn inner(&self) -> usize {
        if self.transpose_a { self.rows } else { self.cols }
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Problem { operation, rows, cols, nnz, columns, dtype, semiring, .. } = self;
        let t = if self.transpose_a { "ᵀ" } else { "" };
        let of = match operation {
            Operation::Sddmm | Operation::Softmax | Operation::Attention => "at",
            _ => "of",
        };
        write!(
            f,
            "{operation} {of} A{t}, A {rows} x {cols} with {nnz} nonzeros, {columns} columns, "
        )?;
        write!(f, "{dtype}, {}/{} indices", self.index_type, self.offset_type)?;
        match self.operation {
            Operation::Spmm => write!(f, ", B {}, C {}", self.layout_b, self.layout_c)?,
            Operation::Sddmm => write!(f, ", X {}, Y {}", self.layout_c, self.layout_b)?,
            Operation::Attention => {
                write!(f, ", {} heads, V of {} columns", self.batch, self.value_columns)?;
            }
            Operation::Softmax => write!(f, ", {} heads", self.batch)?,
            Operation::Spmv | Operation::Spgemm => {}
        }
        if self.batch > 1 && matches!(operation, Operation::Spmm | Operation::Sddmm) {
            write!(f, ", {} matrices", self.batch)?;
        }
        if *semiring != Semiring::PlusTimes {
            write!(f, ", {semiring}")?;
        }
        let requested = [
            (self.deterministic, "deterministic"),
            (self.finite, "finite operands"),
            (self.tf32, "TF32"),
        ];
        for (_, name) in requested.iter().filter(|(requested, _)| *requested) {
            write!(f, ", {name}")?;
        }
        if self.output != self.dtype {
            write!(f, ", C in {}", self.output)?;
        }
        if !self.epilogue.is_none() {
            write!(f, ", {}", self.epilogue)?;
        }
        if let Some(extremum) = self.extremum {
            write!(f, ", {extremum}")?;
        }
        Ok(())
    }
}
