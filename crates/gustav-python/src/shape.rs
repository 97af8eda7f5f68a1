//! Shapes and strides of arrays, checked when they are read.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::MOST_DIMENSIONS;

/// Whether the bytes of an array, and those from its first to its last element, can be counted.
fn addressable(
    lengths: [usize; MOST_DIMENSIONS],
    steps: [isize; MOST_DIMENSIONS],
    bytes: usize,
) -> bool {
    if lengths.contains(&0) {
        return true;
    }
    let most = isize::MAX as usize;
    let packed = lengths.iter().try_fold(bytes, |size, length| size.checked_mul(*length));
    let spanned = lengths.iter().zip(steps).try_fold(bytes, |size, (length, step)| {
        size.checked_add(step.unsigned_abs().checked_mul(length - 1)?)
    });
    packed.is_some_and(|size| size <= most) && spanned.is_some_and(|size| size <= most)
}

/// Checks the number of dimensions and brings shape and strides into the form of an [`Array`](crate::array::Array).
pub(crate) fn dimensions(
    name: &str,
    shape: &[isize],
    strides: Option<&[isize]>,
    bytes: usize,
) -> PyResult<(usize, [usize; MOST_DIMENSIONS], [isize; MOST_DIMENSIONS])> {
    let wrong = |why: String| PyValueError::new_err(format!("{name}: {why}"));
    if shape.is_empty() || shape.len() > MOST_DIMENSIONS {
        return Err(wrong(format!("expected one or two dimensions, found {}", shape.len())));
    }
    let (mut lengths, mut steps) = ([1; MOST_DIMENSIONS], [bytes as isize; MOST_DIMENSIONS]);
    let mut packed = bytes as isize;
    for k in (0..shape.len()).rev() {
        let length = shape[k];
        lengths[k] = usize::try_from(length)
            .map_err(|_| wrong(format!("a negative length of {length} in dimension {k}")))?;
        steps[k] = strides.map_or(packed, |s| s[k]);
        packed = packed.saturating_mul(length.max(1));
    }
    if !addressable(lengths, steps, bytes.max(1)) {
        return Err(wrong(format!(
            "the shape {shape:?} with elements of {bytes} bytes is larger than memory can be"
        )));
    }
    Ok((shape.len(), lengths, steps))
}
