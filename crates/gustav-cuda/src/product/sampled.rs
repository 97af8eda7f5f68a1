//! An algorithm of SDDMM as a plan uses it.

use gustav_core::{DType, IndexType, Operation, Problem, Result, Semiring};

use super::unsupported;
use crate::device::{Device, Stream};

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
    pub values: u64,
    /// A factor of every nonzero, or 0.
    pub factors: u64,
    /// Bits of α and β in the type of sums.
    pub alpha: u64,
    pub beta: u64,
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
    /// The addresses in `operands` are valid until the stream has done the work, and the pattern is the
    /// one that the method was prepared for.
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
