//! Column labels for matrices far wider than they have entries: the columns that occur are
//! numbered in order, so that an accumulator needs room for those only.

use gustav_core::buffer::try_vec;
use gustav_core::{Buffer, CsrView, Index, Result, Scalar, parallel};

/// The columns that occur, and the column indices of B in terms of them.
pub(super) struct Columns<I, O> {
    /// Columns that occur, ascending.
    pub names: Vec<I>,
    labels: Buffer<u32>,
    offsets: std::marker::PhantomData<O>,
}

impl<I: Index, O: Index> Columns<I, O> {
    /// Labels for `b`, where its width calls for them: more columns than a label can name, or
    /// many times more than entries.
    ///
    /// # Errors
    /// [`gustav_core::Error::Overflow`] when more than 2^32 columns occur,
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn new<T: Scalar>(b: &CsrView<'_, T, I, O>) -> Result<Option<Self>> {
        // One place more than there are columns is counted to.
        let wide = b.ncols() as u64 >= u64::from(u32::MAX);
        if !wide && b.ncols() <= b.nnz().saturating_mul(8).max(1 << 20) {
            return Ok(None);
        }
        let mut names = try_vec(b.nnz(), "column labels")?;
        names.extend_from_slice(b.indices());
        parallel::sort(&mut names);
        names.dedup();
        u32::try_from_usize(names.len(), "columns that occur")?;
        let mut labels = Buffer::<u32>::zeroed(b.nnz(), "column labels")?;
        parallel::each_mut(&mut labels, 1024, |at, label| {
            *label = names.partition_point(|name| *name < b.indices()[at]) as u32;
        });
        Ok(Some(Columns { names, labels, offsets: std::marker::PhantomData }))
    }

    /// B in terms of the labels; `b` has the pattern that they were made for.
    pub fn relabel<'a, T: Scalar>(&'a self, b: CsrView<'a, T, I, O>) -> CsrView<'a, T, u32, O> {
        // SAFETY: labels are below the number of names, and stand where the indices stood.
        unsafe {
            CsrView::new_unchecked(
                b.nrows(),
                self.names.len(),
                b.offsets(),
                &self.labels,
                b.values(),
            )
        }
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.names) + size_of_val(&*self.labels)
    }
}
