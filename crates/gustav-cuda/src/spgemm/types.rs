//! The types for which kernels of SpGEMM are compiled.

use gustav_core::{DType, IndexType, Problem, Semiring};

use crate::jit::Request;

/// Types of the arrays of a product, and its semiring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Types {
    pub dtype: DType,
    /// Type of the values of C.
    pub out: DType,
    pub index: IndexType,
    pub offset: IndexType,
    pub semiring: Semiring,
}

impl Types {
    /// The types of `problem`.
    pub(crate) fn of(problem: &Problem) -> Self {
        Types {
            dtype: problem.dtype,
            out: problem.output,
            index: problem.index_type,
            offset: problem.offset_type,
            semiring: problem.semiring,
        }
    }

    /// Bytes of a sum.
    pub(crate) fn sum(self) -> usize {
        self.dtype.bytes().max(4)
    }

    /// `request` with the types of arrays.
    pub(crate) fn of_arrays(self, request: Request) -> Request {
        request
            .with("INDEX", self.index)
            .with("OFFSET", self.offset)
            .with("VALUE", self.dtype)
            .with("OUT", self.out)
    }
}
