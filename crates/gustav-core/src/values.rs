//! Values of a pattern.

use std::ops::Deref;

use crate::{Buffer, Csr, CsrView, Index, PatternId, Result, Scalar, validate};

/// Values in the order of a pattern's nonzeros.
///
/// Values of a matrix carry the identity of its pattern, and a plan for another pattern rejects
/// them. A plain slice has no identity: the caller guarantees that its values are in the order of
/// the plan's nonzeros, and only their number is checked.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a, T> {
    slice: &'a [T],
    pattern: Option<PatternId>,
}

impl<'a, T> Values<'a, T> {
    /// Values of the pattern `pattern`.
    pub(crate) fn of(pattern: PatternId, slice: &'a [T]) -> Self {
        Values { slice, pattern: Some(pattern) }
    }

    /// The values as a slice.
    #[inline(always)]
    pub fn as_slice(self) -> &'a [T] {
        self.slice
    }

    /// The pattern that they belong to, if known.
    pub fn pattern_id(&self) -> Option<PatternId> {
        self.pattern
    }

    /// The values, if they fit the pattern `id` of `nnz` nonzeros.
    ///
    /// # Errors
    /// [`Error::Pattern`](crate::Error::Pattern) for values of another pattern,
    /// [`Error::Length`](crate::Error::Length) for another number of values; both name `operand`.
    pub fn fit(self, operand: &'static str, id: PatternId, nnz: usize) -> Result<&'a [T]> {
        id.check(operand, self.pattern)?;
        validate::length(operand, nnz, self.slice.len())?;
        Ok(self.slice)
    }

    /// The values, if they fit the pattern `id` of `nnz` nonzeros once, or once for each product of
    /// `batch`.
    ///
    /// # Errors
    /// As [`Values::fit`].
    pub fn fit_batch(
        self,
        operand: &'static str,
        id: PatternId,
        nnz: usize,
        batch: usize,
    ) -> Result<&'a [T]> {
        let all = nnz.saturating_mul(batch);
        let expected = if self.slice.len() == all { all } else { nnz };
        self.fit(operand, id, expected)
    }
}

impl<T> Deref for Values<'_, T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        self.slice
    }
}

impl<'a, T> IntoIterator for Values<'a, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.slice.iter()
    }
}

impl<T: PartialEq, S: AsRef<[T]> + ?Sized> PartialEq<S> for Values<'_, T> {
    fn eq(&self, other: &S) -> bool {
        self.slice == other.as_ref()
    }
}

impl<T> AsRef<[T]> for Values<'_, T> {
    fn as_ref(&self) -> &[T] {
        self.slice
    }
}

impl<'a, T> From<&'a [T]> for Values<'a, T> {
    fn from(slice: &'a [T]) -> Self {
        Values { slice, pattern: None }
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for Values<'a, T> {
    fn from(slice: &'a [T; N]) -> Self {
        Values::from(slice.as_slice())
    }
}

impl<'a, T> From<&'a Vec<T>> for Values<'a, T> {
    fn from(values: &'a Vec<T>) -> Self {
        Values::from(values.as_slice())
    }
}

impl<'a, T> From<&'a Buffer<T>> for Values<'a, T> {
    fn from(values: &'a Buffer<T>) -> Self {
        Values::from(&values[..])
    }
}

impl<'a, T: Scalar, I: Index, O: Index> From<&'a Csr<T, I, O>> for Values<'a, T> {
    fn from(a: &'a Csr<T, I, O>) -> Self {
        a.values()
    }
}

impl<'a, T: Scalar, I: Index, O: Index> From<CsrView<'a, T, I, O>> for Values<'a, T> {
    fn from(a: CsrView<'a, T, I, O>) -> Self {
        a.values()
    }
}
