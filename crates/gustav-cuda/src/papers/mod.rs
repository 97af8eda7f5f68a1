//! Published kernels, reproduced faithfully for comparison: they run only when named, `auto` never
//! chooses them.
//!
//! Most of them support f32 and f64, u32 indices, plus-times, A as stored, and the layout of their
//! paper.

pub(crate) mod flattened;
pub mod spgemm;
pub mod spmm;
pub mod spmv;

use gustav_core::{DType, IndexType, Layout, Operation, Problem, Result, Semiring};
use gustav_plan::Algorithm;

use crate::product::operands::Operands;
use crate::product::unsupported;

/// The layout of x and y.
pub(crate) const VECTOR: (Layout, Layout) = ROW_MAJOR;
/// Row-major B and C.
pub(crate) const ROW_MAJOR: (Layout, Layout) = (Layout::RowMajor, Layout::RowMajor);
/// Column-major B and C.
pub(crate) const COLUMN_MAJOR: (Layout, Layout) = (Layout::ColumnMajor, Layout::ColumnMajor);

/// Checks that the paper of `algorithm` defines `problem`: an `operation` with B and C in
/// `layouts`. Errors name `nearest`, which supports the rest.
pub(crate) fn supports(
    problem: &Problem,
    algorithm: Algorithm,
    operation: Operation,
    layouts: (Layout, Layout),
    nearest: Algorithm,
) -> Result<()> {
    let refuse = |reason: &str| {
        let backend = format!("{algorithm} on CUDA");
        Err(unsupported(problem, &backend, reason, nearest.name()))
    };
    if problem.operation != operation {
        let (backend, reason) =
            (format!("{algorithm} on CUDA"), format!("it computes {operation}"));
        return Err(unsupported(problem, &backend, &reason, &format!("Problem::{operation}")));
    }
    if !matches!(problem.dtype, DType::F32 | DType::F64) {
        return refuse("the paper's kernel takes f32 and f64");
    }
    if (problem.index_type, problem.offset_type) != (IndexType::U32, IndexType::U32) {
        return refuse("the paper's kernel takes u32 indices");
    }
    // The largest row number means "no row".
    if problem.rows >= u32::MAX as usize {
        return refuse("the paper's kernel counts rows in 32 bits");
    }
    if problem.semiring != Semiring::PlusTimes {
        return refuse("the paper's kernel computes plus-times");
    }
    if problem.transpose_a {
        return refuse("the paper's kernel multiplies A as stored");
    }
    if (problem.layout_b, problem.layout_c) != layouts {
        let (b, c) = layouts;
        return refuse(&format!("the paper's kernel reads {b} and writes {c} matrices"));
    }
    Ok(())
}

/// As [`supports`], for SpMM; `segmented` supports the rest.
pub(crate) fn spmm(
    problem: &Problem,
    algorithm: Algorithm,
    layouts: (Layout, Layout),
) -> Result<()> {
    supports(problem, algorithm, Operation::Spmm, layouts, Algorithm::Segmented)
}

/// Checks the loads of B that a thread issues before it waits for them: at most one for each lane.
fn check_ahead(ahead: u32) -> Result<()> {
    if ahead <= 32 && ahead.is_power_of_two() {
        return Ok(());
    }
    Err(gustav_core::Error::Argument {
        name: "ahead",
        found: ahead.to_string(),
        expected: "1, 2, 4, 8, 16 or 32".into(),
    })
}

parameter_block! {
    /// The parameter of kernels that need only the operands.
    pub(crate) struct PaperOperands {
        pub offsets: *const u32,
        pub indices: *const u32,
        pub values: *const Value,
        pub b: *const Value,
        pub c: *mut Value,
        pub rows: u64,
        pub columns: u64,
        pub ldb: u64,
        pub ldc: u64,
        pub alpha: u64,
        pub beta: u64,
    }
}

impl PaperOperands {
    pub fn new(o: &Operands) -> Self {
        PaperOperands {
            offsets: o.offsets,
            indices: o.indices,
            values: o.values,
            b: o.b,
            c: o.c,
            rows: o.rows as u64,
            columns: o.columns as u64,
            ldb: o.ldb as u64,
            ldc: o.ldc as u64,
            alpha: o.alpha,
            beta: o.beta,
        }
    }
}
