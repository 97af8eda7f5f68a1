//! Aᵀ for algorithms that go row by row: the plan holds the transposed pattern, `execute` brings
//! the values over.

use gustav_core::{Buffer, CsrView, Index, Result, Scalar};

use crate::Threads;

pub(super) struct Transposed<T, I, O> {
    offsets: Buffer<O>,
    indices: Buffer<I>,
    /// For each entry of Aᵀ its position in A.
    source: Buffer<O>,
    values: Buffer<T>,
    /// Rows of A.
    ncols: usize,
}

/// Values that threads write in disjoint parts.
struct Shared<T>(*mut T);
// SAFETY: threads write disjoint ranges.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T: Scalar, I: Index, O: Index> Transposed<T, I, O> {
    pub(super) fn new(a: &CsrView<'_, T, I, O>) -> Result<Self> {
        let (offsets, indices, source) = a.transpose_pattern()?;
        let values = Buffer::zeroed(a.nnz(), "values of the transpose")?;
        Ok(Transposed { offsets, indices, source, values, ncols: a.nrows() })
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.offsets[..])
            + size_of_val(&self.indices[..])
            + size_of_val(&self.source[..])
            + size_of_val(&self.values[..])
    }

    /// Aᵀ with the values it has now.
    pub(super) fn view(&self) -> CsrView<'_, T, I, O> {
        // SAFETY: a transposed pattern of a checked matrix, and as many values.
        unsafe {
            CsrView::new_unchecked(
                self.offsets.len() - 1,
                self.ncols,
                &self.offsets,
                &self.indices,
                &self.values,
            )
        }
    }

    /// Takes over the values of A, of which there are as many as the plan has.
    pub(super) fn gather(&mut self, threads: &Threads, values: &[T]) {
        let nnz = self.source.len();
        let to = Shared(self.values.as_mut_ptr());
        let (to, source) = (&to, &self.source);
        let parts = threads.count();
        threads.each(parts, |p| {
            for at in nnz * p / parts..nnz * (p + 1) / parts {
                // SAFETY: sources are positions below nnz; parts are disjoint.
                unsafe { *to.0.add(at) = *values.get_unchecked(source[at].to_usize()) }
            }
        });
    }
}
