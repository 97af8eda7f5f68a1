//! Permutations of rows or columns.

use crate::buffer::{try_collect, try_vec};
use crate::{Buffer, Csr, CsrView, Error, Index, Result, Scalar, validate};

/// A permutation of `0..len`: position `k` of the new order holds element `order[k]` of the old.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation<I: Index = u32>(Vec<I>);

impl<I: Index> Permutation<I> {
    /// A permutation from the list of old positions in new order, checked.
    ///
    /// # Errors
    /// [`Error::Index`] for an entry out of range, [`Error::Argument`] for one that repeats,
    /// [`Error::OutOfMemory`].
    pub fn new(order: Vec<I>) -> Result<Self> {
        validate::indices(order.len(), &order)?;
        let mut seen = Buffer::<u8>::zeroed(order.len(), "positions of a permutation")?;
        for (position, i) in order.iter().enumerate() {
            if std::mem::replace(&mut seen[i.to_usize()], 1) == 1 {
                return Err(Error::Argument {
                    name: "permutation",
                    found: format!("{i} a second time at position {position}"),
                    expected: "every position once".into(),
                });
            }
        }
        Ok(Permutation(order))
    }

    /// The identity permutation.
    ///
    /// # Errors
    /// [`Error::Overflow`] when `len` does not fit the index type, [`Error::OutOfMemory`].
    pub fn identity(len: usize) -> Result<Self> {
        I::try_from_usize(len.saturating_sub(1), "permutation length")?;
        try_collect((0..len).map(I::truncate), "permutation").map(Permutation)
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nothing to permute.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Old positions in new order.
    pub fn order(&self) -> &[I] {
        &self.0
    }

    /// The inverse permutation.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn inverse(&self) -> Result<Self> {
        let mut inverse = try_vec(self.len(), "permutation")?;
        inverse.resize(self.len(), I::default());
        for (new, old) in self.0.iter().enumerate() {
            inverse[old.to_usize()] = I::truncate(new);
        }
        Ok(Permutation(inverse))
    }

    /// The permutation that applies `self` first, then `next`.
    ///
    /// # Errors
    /// [`Error::Length`] when the lengths differ, [`Error::OutOfMemory`].
    pub fn then(&self, next: &Self) -> Result<Self> {
        validate::length("permutation", self.len(), next.len())?;
        let order = next.0.iter().map(|k| self.0[k.to_usize()]);
        try_collect(order, "permutation").map(Permutation)
    }

    /// The elements of `values` in the new order.
    ///
    /// # Errors
    /// [`Error::Length`] when the lengths differ.
    pub fn apply<T: Copy>(&self, values: &[T]) -> Result<Vec<T>> {
        validate::length("permuted values", self.len(), values.len())?;
        try_collect(self.0.iter().map(|k| values[k.to_usize()]), "permuted values")
    }

    /// The matrix with its rows in the new order.
    ///
    /// # Errors
    /// [`Error::Length`] when the matrix has another number of rows.
    pub fn apply_rows<T: Scalar, J: Index, O: Index>(
        &self,
        a: CsrView<'_, T, J, O>,
    ) -> Result<Csr<T, J, O>> {
        validate::length("permuted rows", self.len(), a.nrows())?;
        let mut offsets = try_vec(a.nrows() + 1, "row offsets")?;
        let mut indices = try_vec(a.nnz(), "column indices")?;
        let mut values = try_vec(a.nnz(), "values")?;
        offsets.push(O::default());
        for old in &self.0 {
            let (cols, vals) = a.row(old.to_usize());
            indices.extend_from_slice(cols);
            values.extend_from_slice(vals);
            offsets.push(O::truncate(indices.len()));
        }
        // SAFETY: whole rows of a valid matrix, copied with offsets to match.
        Ok(unsafe { Csr::new_unchecked(a.nrows(), a.ncols(), offsets, indices, values) })
    }

    /// The matrix with its columns in the new order; entries of a row keep their order.
    ///
    /// # Errors
    /// [`Error::Length`] when the matrix has another number of columns.
    pub fn apply_columns<T: Scalar, J: Index, O: Index>(
        &self,
        a: CsrView<'_, T, J, O>,
    ) -> Result<Csr<T, J, O>> {
        validate::length("permuted columns", self.len(), a.ncols())?;
        let new = self.inverse()?;
        let renamed = a.indices().iter().map(|c| J::truncate(new.0[c.to_usize()].to_usize()));
        let indices = try_collect(renamed, "column indices")?;
        let (offsets, _, values) = a.to_owned()?.into_parts()?;
        // SAFETY: the pattern's offsets are unchanged, the indices are a permutation's values.
        Ok(unsafe { Csr::new_unchecked(a.nrows(), a.ncols(), offsets, indices, values) })
    }
}
