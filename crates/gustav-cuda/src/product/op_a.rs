//! op(A) in a plan: a pattern, and the source of its values.

use std::sync::Arc;

use gustav_core::{Index, Problem, Result, Scalar};

use crate::device::order::{Access, Uses};
use crate::device::{Device, DeviceBuffer, Stream};
use crate::matrix::transpose::{Transposed, TransposedPattern};
use crate::matrix::{DevicePattern, DeviceValues, HeldPattern};
use crate::schedule::pattern::Pattern;

/// The pattern of a plan, and Aᵀ if that is multiplied.
pub(crate) struct OpA<T> {
    pub pattern: HeldPattern,
    /// Products of the batch, each with its own values or all with the same.
    batch: usize,
    transposed: Option<Transposed<T>>,
}

/// Addresses of offsets, indices and values of op(A).
pub(crate) struct Addresses {
    pub offsets: u64,
    pub indices: u64,
    pub values: u64,
}

/// `problem` with the types of a plan set.
pub(crate) fn typed<T: Scalar, I: Index, O: Index>(problem: &Problem) -> Problem {
    Problem {
        dtype: T::DTYPE,
        output: T::DTYPE,
        index_type: I::TYPE,
        offset_type: O::TYPE,
        ..problem.clone()
    }
}

/// The typed pattern of op(A), while a plan is made.
pub(crate) enum Planned<'a, I: Index, O: Index> {
    Stored(&'a DevicePattern<I, O>),
    Transposed(Arc<TransposedPattern<I, O>>),
}

impl<'a, I: Index, O: Index> Planned<'a, I, O> {
    pub(crate) fn new(
        device: &Device,
        pattern: &'a DevicePattern<I, O>,
        transpose: bool,
    ) -> Result<Self> {
        match transpose {
            true => pattern.transposed(device).map(Planned::Transposed),
            false => Ok(Planned::Stored(pattern)),
        }
    }

    /// The arrays that an algorithm is prepared for.
    pub(crate) fn pattern(&self) -> Result<Pattern<'_>> {
        match self {
            Planned::Stored(pattern) => Pattern::new(pattern),
            Planned::Transposed(t) => Pattern::transposed(t),
        }
    }
}

impl<T: Scalar> OpA<T> {
    pub(crate) fn new<I: Index, O: Index>(
        device: &Device,
        pattern: &DevicePattern<I, O>,
        planned: &Planned<'_, I, O>,
        batch: usize,
    ) -> Result<Self> {
        let transposed = match planned {
            Planned::Stored(_) => None,
            Planned::Transposed(t) => Some(Transposed::new(device, t, batch)?),
        };
        Ok(OpA { pattern: pattern.held(), batch, transposed })
    }

    /// The values of A, if they fit the pattern.
    pub(crate) fn fit<'v>(&self, values: DeviceValues<'v, T>) -> Result<&'v DeviceBuffer<T>> {
        values.fit_batch("A", self.pattern.id, self.pattern.nnz, self.batch)
    }

    /// Bytes that the plan holds beside the pattern.
    pub(crate) fn bytes(&self) -> usize {
        self.transposed.as_ref().map_or(0, Transposed::bytes)
    }

    /// The addresses of op(A), for `values` of A.
    pub(crate) fn addresses(&self, values: u64) -> Addresses {
        let HeldPattern { offsets, indices, .. } = &self.pattern;
        let (offsets, indices, values) = match &self.transposed {
            None => (offsets, indices, values),
            Some(t) => (&t.offsets, &t.indices, t.values.address()),
        };
        Addresses { offsets: offsets.address(), indices: indices.address(), values }
    }

    /// Address of the positions in A of the nonzeros of op(A), which the stream may read after
    /// [`OpA::refresh`]; null if they are the same.
    pub(crate) fn permutation(&self) -> u64 {
        self.transposed.as_ref().map_or(0, Transposed::permutation)
    }

    /// Records the reads of op(A), and of the values of A, in `uses`.
    pub(crate) fn read(&self, uses: &mut Uses<'_>, values: &DeviceBuffer<T>) -> Result<()> {
        uses.read(values)?;
        if self.transposed.is_none() {
            uses.access(&self.pattern.offsets, Access::Read)?;
            uses.access(&self.pattern.indices, Access::Read)?;
        }
        Ok(())
    }

    /// Queues the gather of `values` of A to the order of Aᵀ, if that is multiplied.
    pub(crate) fn refresh(
        &self,
        uses: &mut Uses<'_>,
        stream: &Stream,
        values: &DeviceBuffer<T>,
    ) -> Result<()> {
        match &self.transposed {
            Some(transposed) => transposed.refresh(uses, stream, values),
            None => Ok(()),
        }
    }
}
