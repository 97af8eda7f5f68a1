//! An algorithm of SDDMM as a plan uses it.

use gustav_core::{DType, IndexType, Operation, Problem, Result, Semiring};

use super::operands::Batch;
use super::unsupported;
use crate::device::{Device, Stream};
use crate::matrix::HeldPattern;

/// Addresses and sizes of an execution; X and Y are row-major.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands {
    pub offsets: u64,
    pub indices: u64,
    pub rows: usize,
    pub cols: usize,
    pub nnz: usize,
    pub index_type: IndexType,
    pub offset_type: IndexType,
    pub dtype: DType,
    pub x: u64,
    pub ldx: usize,
    pub y: u64,
    pub ldy: usize,
    /// Columns of X and Y.
    pub depth: usize,
    /// Products at once: `b` is the distance of Y, `c` that of X, `values` that of factors.
    pub batch: Batch,
    pub values: u64,
    /// A factor of every nonzero, or 0.
    pub factors: u64,
    /// Bits of α and β in the type of sums.
    pub alpha: u64,
    pub beta: u64,
}

impl Operands {
    /// Those of packed X and Y, which may begin anywhere: what a plan compiles for.
    pub(crate) fn packed(pattern: &HeldPattern, problem: &Problem) -> Self {
        Operands {
            offsets: pattern.offsets.address(),
            indices: pattern.indices.address(),
            rows: pattern.nrows,
            cols: pattern.ncols,
            nnz: pattern.nnz,
            index_type: pattern.index_type,
            offset_type: pattern.offset_type,
            dtype: problem.dtype,
            x: 0,
            ldx: problem.columns,
            y: 0,
            ldy: problem.columns,
            depth: problem.columns,
            // One above the other.
            batch: Batch {
                count: problem.batch,
                values: 0,
                b: pattern.ncols.saturating_mul(problem.columns),
                c: pattern.nrows.saturating_mul(problem.columns),
            },
            values: 0,
            factors: 0,
            alpha: 0,
            beta: 0,
        }
    }
}

/// An algorithm prepared for one pattern: what a plan holds.
pub(crate) trait Method: Send {
    /// Bytes that it holds on the device.
    fn bytes(&self) -> usize;

    /// Compiles what `operands` need, unless that has been done.
    fn compile(&mut self, device: &Device, operands: &Operands) -> Result<()>;

    /// Queues the product; there is a nonzero.
    ///
    /// # Safety
    /// The addresses in `operands` are valid until the stream has done the work, and the pattern is
    /// the one that the method was prepared for.
    unsafe fn launch(
        &mut self,
        device: &Device,
        stream: &Stream,
        operands: &Operands,
    ) -> Result<()>;
}

/// Any SDDMM over plus-times, and nothing else.
pub(crate) fn only_sddmm(problem: &Problem, algorithm: &str) -> Result<()> {
    let refuse = |reason: &str, nearest: &str| {
        Err(unsupported(problem, &format!("{algorithm} on CUDA"), reason, nearest))
    };
    if problem.operation != Operation::Sddmm {
        return refuse("it multiplies dense matrices at nonzeros", "Pattern::sddmm");
    }
    if problem.semiring != Semiring::PlusTimes {
        return refuse("its sums are of products", "plus-times");
    }
    if problem.transpose_a {
        return refuse(
            "it takes no transposed pattern",
            "the plan without transposition, X and Y exchanged: values come in A's order",
        );
    }
    Ok(())
}
