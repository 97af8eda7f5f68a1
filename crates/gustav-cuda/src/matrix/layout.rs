//! Converts a dense matrix from one layout to the other on the device.

use gustav_core::{Arith, DType, Result, Scalar, Semiring};

use crate::device::{Device, Stream};
use crate::jit::Request;
use crate::jit::source::{self, bits};
use crate::launch::Kernel;

const BLOCK: u32 = 256;
const EDGE: u64 = 32;

/// The kernel of `kernels/dense/transpose.cu` for one pair of types.
pub(crate) struct Transpose {
    kernel: Kernel<Arguments>,
}

/// Source and destination of a matrix, and the number and length of its lines.
#[derive(Clone, Copy)]
pub(crate) struct Move {
    pub from: u64,
    pub to: u64,
    pub lines: usize,
    pub length: usize,
    pub ld_from: usize,
    pub ld_to: usize,
}

parameter_block! {
    struct Arguments {
        input: *const In,
        output: *mut Out,
        /// Lines of `in`.
        lines: u64,
        /// Length of a line of `in`.
        length: u64,
        ld_in: u64,
        ld_out: u64,
        alpha: u64,
        beta: u64,
        /// A value for every line of `out`.
        bias: *const Accum,
    }
}

impl Transpose {
    /// The source with its parameters.
    pub(crate) fn request(from: DType, to: DType, semiring: Semiring, steps: u8) -> Request {
        request!("dense/transpose.cu")
            .with_block::<Arguments>()
            .with("VALUE", from)
            .with("OUT", to)
            .with("SEMIRING", source::semiring(semiring))
            .with("BLOCK", BLOCK)
            .with("STEPS", steps)
    }

    pub(crate) fn new(
        device: &Device,
        from: DType,
        to: DType,
        semiring: Semiring,
        steps: u8,
    ) -> Result<Self> {
        let module = device.module(&Self::request(from, to, semiring, steps))?;
        Ok(Transpose { kernel: module.kernel(c"transpose")? })
    }

    /// Queues `to = scale(α, fromᵀ) ⊕ scale(β, to)` and an epilogue, with a value of `bias` for
    /// every line of `to`.
    ///
    /// # Safety
    /// The addresses are valid for the matrices that `m` describes until the work is done.
    pub(crate) unsafe fn launch<A: Arith>(
        &self,
        stream: &Stream,
        m: &Move,
        alpha: A,
        beta: A,
        bias: u64,
    ) -> Result<()> {
        let arguments = Arguments {
            input: m.from,
            output: m.to,
            lines: m.lines as u64,
            length: m.length as u64,
            ld_in: m.ld_from as u64,
            ld_out: m.ld_to as u64,
            alpha: bits(alpha),
            beta: bits(beta),
            bias,
        };
        let grid = (arguments.length.div_ceil(EDGE), arguments.lines.div_ceil(EDGE));
        // SAFETY: the addresses are the caller's promise; the kernel waits before it reads.
        unsafe { self.kernel.launch_dependent(stream, grid, BLOCK, 0, &arguments) }
    }

    /// Queues a plain copy to the other layout.
    ///
    /// # Safety
    /// As [`Transpose::launch`].
    pub(crate) unsafe fn copy<T: Scalar>(&self, stream: &Stream, m: &Move) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.launch(stream, m, T::Accum::one(), T::Accum::zero(), 0) }
    }
}
