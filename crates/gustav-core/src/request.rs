//! Descriptions of products on patterns, from which a device makes plans.

use crate::{
    DType, Epilogue, Index, IndexType, Layout, Operation, Pattern, PatternRef, PatternView,
    Problem, Reduce, Result, Semiring,
};

/// A device that makes plans for requests of type `R` and values of type `T`.
pub trait Plans<R, T> {
    /// The plan.
    type Plan;

    /// Plans `request`.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) with the nearest thing that works, and
    /// errors of the device.
    fn plan(&self, request: R) -> Result<Self::Plan>;
}

/// The builder methods of every request, which set the fields of its [`Problem`].
macro_rules! request {
    ($name:ident) => {
        impl<P> $name<P> {
            /// Sets how often the plan is expected to be executed; 1 by default.
            #[must_use]
            pub fn calls(mut self, calls: u64) -> Self {
                self.problem.calls = calls;
                self
            }

            /// Makes a plan on `device` for values of type `T`, which the compiler infers from the
            /// first execution.
            ///
            /// # Errors
            /// As [`Plans::plan`].
            pub fn plan<T, D: Plans<Self, T>>(self, device: &D) -> Result<D::Plan> {
                device.plan(self)
            }
        }
    };
}

pub(crate) use request;

/// The builder methods of products with a sparse A.
macro_rules! sparse_product {
    ($name:ident) => {
        request!($name);

        impl<P> $name<P> {
            /// Multiplies Aᵀ instead of A.
            #[must_use]
            pub fn transpose(mut self, transpose: bool) -> Self {
                self.problem.transpose_a = transpose;
                self
            }

            /// Sets the semiring; plus-times by default.
            #[must_use]
            pub fn semiring(mut self, semiring: Semiring) -> Self {
                self.problem.semiring = semiring;
                self
            }

            /// Requires results that are the same to the bit from run to run and for any number of
            /// threads.
            #[must_use]
            pub fn deterministic(mut self, deterministic: bool) -> Self {
                self.problem.deterministic = deterministic;
                self
            }
        }
    };
}

/// C = scale(α, op(A)·B) ⊕ scale(β, C) with dense B and C, for a pattern of A.
#[derive(Clone, Debug)]
pub struct SpmmRequest<P> {
    /// The pattern of A.
    pub pattern: P,
    /// The problem; its types are set by the pattern and by the values that the plan takes.
    pub problem: Problem,
}

sparse_product!(SpmmRequest);

impl<P> SpmmRequest<P> {
    /// Sets the layouts of B and C; row-major by default. A matrix of one row or one column whose
    /// elements are contiguous is taken in either.
    #[must_use]
    pub fn layouts(mut self, b: Layout, c: Layout) -> Self {
        (self.problem.layout_b, self.problem.layout_c) = (b, c);
        self
    }

    /// Declares that no operand holds NaN or infinity, so that zeros that are not stored may be
    /// multiplied.
    #[must_use]
    pub fn finite(mut self, finite: bool) -> Self {
        self.problem.finite = finite;
        self
    }

    /// Allows factors in f32 to be rounded to TF32.
    #[must_use]
    pub fn tf32(mut self, tf32: bool) -> Self {
        self.problem.tf32 = tf32;
        self
    }

    /// Sets how the products of a row are reduced; to their sum by default. Max and min are applied
    /// to the products without α, which scales the winner. Empty rows give 0, or the value set in
    /// the execution.
    #[must_use]
    pub fn reduce(self, reduce: Reduce) -> Self {
        SpmmRequest { problem: self.problem.reduce(reduce), ..self }
    }

    /// Computes `batch` products with matrices A of one pattern together. The matrices B and C lie
    /// side by side in the columns of one matrix, or one above the other in its rows
    /// ([`Batch`](crate::Batch)); values are those of one A for all products, or those of all A one
    /// after another.
    #[must_use]
    pub fn batch(mut self, batch: usize) -> Self {
        self.problem.batch = batch;
        self
    }

    /// Sets the operations on finished sums; a mean set by [`SpmmRequest::reduce`] stays.
    #[must_use]
    pub fn epilogue(mut self, epilogue: Epilogue) -> Self {
        let mean = epilogue.mean || self.problem.epilogue.mean;
        self.problem.epilogue = Epilogue { mean, ..epilogue };
        self
    }
}

/// y = scale(α, op(A)·x) ⊕ scale(β, y), for a pattern of A.
#[derive(Clone, Debug)]
pub struct SpmvRequest<P> {
    /// The pattern of A.
    pub pattern: P,
    /// The problem; see [`SpmmRequest::problem`].
    pub problem: Problem,
}

sparse_product!(SpmvRequest);

/// C = scale(α, op(A)·B) with three sparse matrices, for patterns of A and B; all of C, or its
/// entries at the positions of a mask.
#[derive(Clone, Debug)]
pub struct SpgemmRequest<P> {
    /// The pattern of A.
    pub a: P,
    /// The pattern of B.
    pub b: P,
    /// The pattern outside of which C has no entries.
    pub mask: Option<P>,
    /// The problem; see [`SpmmRequest::problem`].
    pub problem: Problem,
}

sparse_product!(SpgemmRequest);

impl<P> SpgemmRequest<P> {
    /// Sets whether rows of C must be sorted; true by default.
    #[must_use]
    pub fn sorted(mut self, sorted: bool) -> Self {
        self.problem.sorted = sorted;
        self
    }

    /// Computes only entries of C at the positions of `mask`, which has C's shape.
    #[must_use]
    pub fn mask(mut self, mask: impl Into<P>) -> Self {
        self.mask = Some(mask.into());
        self
    }
}

/// `values[p] = α·⟨X[row p], Y[column p]⟩ + β·values[p]` for every nonzero p of a pattern, X and Y
/// dense.
#[derive(Clone, Debug)]
pub struct SddmmRequest<P> {
    /// The pattern.
    pub pattern: P,
    /// The problem; see [`SpmmRequest::problem`].
    pub problem: Problem,
}

request!(SddmmRequest);

impl<P> SddmmRequest<P> {
    /// Computes the values of `batch` pairs X and Y together, one after another in the output. The
    /// matrices X and Y lie side by side in the columns of one matrix, or one above the other in
    /// its rows ([`Batch`](crate::Batch)).
    #[must_use]
    pub fn batch(mut self, batch: usize) -> Self {
        self.problem.batch = batch;
        self
    }

    /// Sets the layouts of X and Y; row-major by default. A matrix of one row or one column whose
    /// elements are contiguous is taken in either.
    #[must_use]
    pub fn layouts(mut self, x: Layout, y: Layout) -> Self {
        (self.problem.layout_c, self.problem.layout_b) = (x, y);
        self
    }
}

impl Problem {
    /// The problem of `operation` for a pattern of `rows` × `cols` with `nnz` nonzeros and one
    /// column; the plan sets its types.
    pub fn of_pattern(operation: Operation, rows: usize, cols: usize, nnz: usize) -> Self {
        Problem {
            operation,
            rows,
            cols,
            nnz,
            columns: 1,
            value_columns: 0,
            batch: 1,
            nnz_b: None,
            dtype: DType::F32,
            output: DType::F32,
            index_type: IndexType::U32,
            offset_type: IndexType::U32,
            transpose_a: false,
            layout_b: Layout::RowMajor,
            layout_c: Layout::RowMajor,
            semiring: Semiring::PlusTimes,
            deterministic: false,
            finite: false,
            tf32: false,
            sorted: true,
            epilogue: Epilogue::default(),
            extremum: None,
            calls: 1,
        }
    }
}

impl<'a, I: Index, O: Index> PatternView<'a, I, O> {
    pub(crate) fn problem(&self, operation: Operation) -> Problem {
        Problem::of_pattern(operation, self.nrows(), self.ncols(), self.nnz())
    }

    /// Describes the product with a dense matrix of `columns` columns.
    pub fn spmm(self, columns: usize) -> SpmmRequest<PatternRef<'a, I, O>> {
        let problem = self.problem(Operation::Spmm).columns(columns);
        SpmmRequest { pattern: self.into(), problem }
    }

    /// Describes the product with a vector.
    pub fn spmv(self) -> SpmvRequest<PatternRef<'a, I, O>> {
        SpmvRequest { problem: self.problem(Operation::Spmv), pattern: self.into() }
    }

    /// Describes X·Yᵀ at the nonzeros, for X of `nrows` × `depth` and Y of `ncols` × `depth`.
    pub fn sddmm(self, depth: usize) -> SddmmRequest<PatternRef<'a, I, O>> {
        let problem = self.problem(Operation::Sddmm).columns(depth);
        SddmmRequest { pattern: self.into(), problem }
    }

    /// Describes the product with the sparse matrices of pattern `b`.
    pub fn spgemm(self, b: impl Into<PatternRef<'a, I, O>>) -> SpgemmRequest<PatternRef<'a, I, O>> {
        spgemm(self.problem(Operation::Spgemm), self.into(), b.into())
    }
}

fn spgemm<'a, I: Index, O: Index>(
    problem: Problem,
    a: PatternRef<'a, I, O>,
    b: PatternRef<'a, I, O>,
) -> SpgemmRequest<PatternRef<'a, I, O>> {
    let (columns, nnz_b) = (b.view().ncols(), Some(b.view().nnz()));
    SpgemmRequest { a, b, mask: None, problem: Problem { columns, nnz_b, ..problem } }
}

impl<I: Index, O: Index> Pattern<I, O> {
    /// Describes the product with a dense matrix of `columns` columns.
    pub fn spmm<'a>(&self, columns: usize) -> SpmmRequest<PatternRef<'a, I, O>> {
        let problem = self.view().problem(Operation::Spmm).columns(columns);
        SpmmRequest { pattern: self.into(), problem }
    }

    /// Describes the product with a vector.
    pub fn spmv<'a>(&self) -> SpmvRequest<PatternRef<'a, I, O>> {
        SpmvRequest { problem: self.view().problem(Operation::Spmv), pattern: self.into() }
    }

    /// Describes X·Yᵀ at the nonzeros, for X of `nrows` × `depth` and Y of `ncols` × `depth`.
    pub fn sddmm<'a>(&self, depth: usize) -> SddmmRequest<PatternRef<'a, I, O>> {
        let problem = self.view().problem(Operation::Sddmm).columns(depth);
        SddmmRequest { pattern: self.into(), problem }
    }

    /// Describes the product with the sparse matrices of pattern `b`.
    pub fn spgemm<'a>(
        &self,
        b: impl Into<PatternRef<'a, I, O>>,
    ) -> SpgemmRequest<PatternRef<'a, I, O>> {
        spgemm(self.view().problem(Operation::Spgemm), self.into(), b.into())
    }
}
