//! The pattern of Aᵀ and the permutation of the values.

use crate::{Buffer, Index, Pattern, Result, Scalar, parallel, validate};

/// The pattern of Aᵀ with the permutation that maps values of A to it.
///
/// Its rows are sorted, duplicates in the order of A.
#[derive(Clone, Debug)]
pub struct TransposedPattern<I: Index = u32, O: Index = u32> {
    pattern: Pattern<I, O>,
    permutation: Buffer<O>,
}

// Values of one parallel task.
const TASK: usize = 1 << 14;

impl<I: Index, O: Index> TransposedPattern<I, O> {
    pub(super) fn new(pattern: Pattern<I, O>, permutation: Buffer<O>) -> Self {
        TransposedPattern { pattern, permutation }
    }

    /// The pattern of Aᵀ.
    pub fn pattern(&self) -> &Pattern<I, O> {
        &self.pattern
    }

    /// For each nonzero of Aᵀ the position of the same nonzero in A.
    pub fn permutation(&self) -> &[O] {
        &self.permutation
    }

    /// Writes the values of Aᵀ to `to`, given those of A, on the current pool of threads.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) when either has not `nnz` values.
    pub fn gather<T: Scalar>(&self, from: &[T], to: &mut [T]) -> Result<()> {
        validate::length("values of A", self.permutation.len(), from.len())?;
        validate::length("values of Aᵀ", self.permutation.len(), to.len())?;
        let permutation = &self.permutation;
        parallel::each_mut(to, TASK, |at, to| *to = from[permutation[at].to_usize()]);
        Ok(())
    }

    /// Bytes of the pattern and the permutation.
    pub fn bytes(&self) -> usize {
        let view = self.pattern.view();
        size_of_val(view.offsets()) + size_of_val(view.indices()) + size_of_val(&*self.permutation)
    }
}
