//! Memory that arrays have in common.

use std::ops::Range;

use gustav::Layout;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::Array;

impl Array {
    /// Refuses an operand whose memory overlaps with this array, which is written.
    ///
    /// # Errors
    /// `ValueError` naming both.
    pub fn refuse_overlap(&self, operand: &Array) -> PyResult<()> {
        if !share_bytes(&self.extent(), &operand.extent()) || self.is_beside(operand) {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "{} overlaps {} in memory; give another array, or a copy of {}",
            self.name, operand.name, operand.name
        )))
    }

    /// Addresses from the first byte to behind the last.
    pub(crate) fn extent(&self) -> Range<usize> {
        let start = self.data as usize;
        if self.len() == 0 {
            return start..start;
        }
        let (before, behind) = self.reach();
        start - before..start + behind
    }

    /// Bytes from the address down to the first and up to behind the last; there are elements.
    pub(crate) fn reach(&self) -> (usize, usize) {
        let (mut before, mut behind) = (0, self.element.bytes());
        for (n, stride) in self.shape().iter().zip(self.strides()) {
            let bytes = stride.unsigned_abs() * (n - 1);
            *if *stride < 0 { &mut before } else { &mut behind } += bytes;
        }
        (before, behind)
    }

    /// Whether both are blocks of one array whose lines do not overlap.
    fn is_beside(&self, other: &Array) -> bool {
        let (Some((layout, leading)), Some((of_other, leading_of_other))) =
            (self.layout(), other.layout())
        else {
            return false;
        };
        if (layout, leading) != (of_other, leading_of_other) || leading == 0 {
            return false;
        }
        let size = self.element.bytes();
        let length = |a: &Array| match layout {
            Layout::RowMajor => a.matrix()[1] * a.element.bytes(),
            Layout::ColumnMajor => a.matrix()[0] * a.element.bytes(),
        };
        let line = leading * size;
        if size != other.element.bytes() {
            return false;
        }
        // Where a line of the other begins within a line of this.
        let at = (other.data as usize).wrapping_sub(self.data as usize) as isize;
        let at = at.rem_euclid(line as isize) as usize;
        at >= length(self) && at + length(other) <= line
    }
}

/// Whether a byte is in both: none is in an array without elements, wherever its address is.
pub(crate) fn share_bytes(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start.max(other.start) < one.end.min(other.end)
}
