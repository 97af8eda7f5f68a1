//! Aᵀ for algorithms that process rows: the pattern is shared, `execute` gathers the values.

use std::sync::Arc;

use gustav_core::parallel::Shared;
use gustav_core::{Buffer, CsrView, Index, PatternRef, Result, Scalar, TransposedPattern};

use crate::Threads;

/// The transposed pattern, and a buffer for the values in its order.
pub(crate) struct Transposed<T, I: Index, O: Index> {
    pattern: Arc<TransposedPattern<I, O>>,
    values: Buffer<T>,
}

impl<T: Scalar, I: Index, O: Index> Transposed<T, I, O> {
    pub(crate) fn new(pattern: &PatternRef<'_, I, O>) -> Result<Self> {
        let pattern = pattern.transposed()?;
        let values = Buffer::zeroed(pattern.pattern().nnz(), "values of the transpose")?;
        Ok(Transposed { pattern, values })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.pattern.bytes() + size_of_val(&self.values[..])
    }

    /// For each nonzero of Aᵀ the position of the same nonzero in A.
    pub(crate) fn permutation(&self) -> &[O] {
        self.pattern.permutation()
    }

    /// Aᵀ, given the `nnz` values of A.
    pub(crate) fn gather(&mut self, threads: &Threads, values: &[T]) -> CsrView<'_, T, I, O> {
        let source = self.pattern.permutation();
        let nnz = source.len().min(values.len());
        let to = Shared::new(&mut self.values);
        let parts = threads.count();
        threads.each(parts, |p| {
            for at in nnz * p / parts..nnz * (p + 1) / parts {
                // SAFETY: parts are disjoint, and within the buffer.
                unsafe { to.put(at, values[source[at].to_usize()]) }
            }
        });
        self.view()
    }

    /// Aᵀ with the values of the last [`Transposed::gather`].
    pub(crate) fn view(&self) -> CsrView<'_, T, I, O> {
        let pattern = self.pattern.pattern().view();
        // SAFETY: a valid pattern, and as many values.
        unsafe {
            CsrView::new_unchecked(
                pattern.nrows(),
                pattern.ncols(),
                pattern.offsets(),
                pattern.indices(),
                &self.values,
            )
        }
    }
}
