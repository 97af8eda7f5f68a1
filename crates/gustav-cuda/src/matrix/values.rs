//! Values of a pattern on a device.

use std::ops::Deref;

use gustav_core::{Index, PatternId, Result, Scalar, validate};

use super::DeviceCsr;
use crate::device::DeviceBuffer;

/// Values on a device in the order of a pattern's nonzeros.
///
/// Values of a matrix carry the identity of its pattern, and a plan for another pattern rejects
/// them. A plain buffer has no identity: the caller guarantees that its values are in the order of
/// the plan's nonzeros, and only their number is checked.
#[derive(Debug)]
pub struct DeviceValues<'a, T> {
    buffer: &'a DeviceBuffer<T>,
    pattern: Option<PatternId>,
}

impl<T> Clone for DeviceValues<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceValues<'_, T> {}

impl<'a, T> DeviceValues<'a, T> {
    /// Values of the pattern `pattern`.
    pub(super) fn of(pattern: PatternId, buffer: &'a DeviceBuffer<T>) -> Self {
        DeviceValues { buffer, pattern: Some(pattern) }
    }

    /// The values as a buffer.
    pub fn buffer(self) -> &'a DeviceBuffer<T> {
        self.buffer
    }

    /// The pattern that they belong to, if known.
    pub fn pattern_id(&self) -> Option<PatternId> {
        self.pattern
    }

    /// The values, if they fit the pattern `id` of `nnz` nonzeros.
    ///
    /// # Errors
    /// [`Error::Pattern`](gustav_core::Error::Pattern) for values of another pattern,
    /// [`Error::Length`](gustav_core::Error::Length) for another number of values; both name
    /// `operand`.
    pub fn fit(
        self,
        operand: &'static str,
        id: PatternId,
        nnz: usize,
    ) -> Result<&'a DeviceBuffer<T>> {
        id.check(operand, self.pattern)?;
        validate::length(operand, nnz, self.buffer.len())?;
        Ok(self.buffer)
    }

    /// The values, if they fit the pattern `id` of `nnz` nonzeros once, or once for each product of
    /// `batch`.
    ///
    /// # Errors
    /// As [`DeviceValues::fit`].
    pub fn fit_batch(
        self,
        operand: &'static str,
        id: PatternId,
        nnz: usize,
        batch: usize,
    ) -> Result<&'a DeviceBuffer<T>> {
        let all = nnz.saturating_mul(batch);
        let expected = if self.buffer.len() == all { all } else { nnz };
        self.fit(operand, id, expected)
    }
}

impl<T> Deref for DeviceValues<'_, T> {
    type Target = DeviceBuffer<T>;
    fn deref(&self) -> &DeviceBuffer<T> {
        self.buffer
    }
}

impl<'a, T> From<&'a DeviceBuffer<T>> for DeviceValues<'a, T> {
    fn from(buffer: &'a DeviceBuffer<T>) -> Self {
        DeviceValues { buffer, pattern: None }
    }
}

impl<'a, T: Scalar, I: Index, O: Index> From<&'a DeviceCsr<T, I, O>> for DeviceValues<'a, T> {
    fn from(a: &'a DeviceCsr<T, I, O>) -> Self {
        a.values()
    }
}
