//! Shapes and strides of arrays, checked when they are read.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Most dimensions of an array that is taken.
pub const MOST_DIMENSIONS: usize = 2;

/// Which arrays are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shapes {
    /// Vectors and matrices.
    Matrix,
    /// Also rows × heads × columns, as one matrix that has the heads side by side in its columns, or one above the other
    /// in its rows.
    Heads,
}

/// Shape and strides of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dimensions {
    /// 1 or 2.
    pub count: usize,
    /// 1 where there is no such dimension.
    pub shape: [usize; MOST_DIMENSIONS],
    /// In bytes.
    pub strides: [isize; MOST_DIMENSIONS],
}

impl Dimensions {
    /// Those of a vector of this many neighbours.
    pub fn of_vector(len: usize, bytes: usize) -> Self {
        let strides = [bytes as isize; MOST_DIMENSIONS];
        Dimensions { count: 1, shape: [len, 1], strides }
    }

    /// Checks those that a library says, strides in bytes.
    ///
    /// # Errors
    /// `ValueError` for negative lengths, for more bytes than can be addressed, and for what is not among `shapes`.
    pub fn new(
        name: &str,
        shape: &[isize],
        strides: Option<&[isize]>,
        bytes: usize,
        shapes: Shapes,
    ) -> PyResult<Self> {
        let wrong = |why: String| PyValueError::new_err(format!("{name}: {why}"));
        let (found, most) = (shape.len(), MOST_DIMENSIONS + usize::from(shapes == Shapes::Heads));
        if found == 0 || found > most {
            let taken = if shapes == Shapes::Heads { "two or three" } else { "one or two" };
            return Err(wrong(format!("expected {taken} dimensions, found {found}")));
        }
        let (mut lengths, mut steps) = ([1; 3], [bytes as isize; 3]);
        let mut packed = bytes as isize;
        for k in (0..found).rev() {
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
        let ([rows, columns, _], [of_row, of_column, _]) = (lengths, steps);
        if found <= MOST_DIMENSIONS {
            let (shape, strides) = ([rows, columns], [of_row, of_column]);
            return Ok(Dimensions { count: found, shape, strides });
        }
        let matrix = matrix_of_heads(lengths, steps, bytes as isize);
        let (shape, strides) = matrix.ok_or_else(|| {
            wrong("heads that are neither side by side nor one above the other; give a contiguous copy".into())
        })?;
        Ok(Dimensions { count: 2, shape, strides })
    }
}

/// Rows × heads × columns as a matrix, if it is one. The package asks the same of tensors (`_has_packed_rows`), which it
/// copies where they are none.
fn matrix_of_heads(
    [rows, heads, columns]: [usize; 3],
    [of_row, of_head, of_column]: [isize; 3],
    bytes: isize,
) -> Option<([usize; 2], [isize; 2])> {
    // Of a single column or row a library may say any step: nothing is there that it leads to.
    let of_column = if columns == 1 { bytes } else { of_column };
    let steps_over = |count: usize, step: isize| step.saturating_mul(count as isize);
    let is_empty = rows == 0 || columns == 0;
    if heads <= 1 || is_empty || of_head == steps_over(columns, of_column) {
        return Some(([rows, heads.checked_mul(columns)?], [of_row, of_column]));
    }
    let of_row = if rows == 1 { of_head } else { of_row };
    let is_above = of_head == steps_over(rows, of_row);
    is_above.then_some(([heads.checked_mul(rows)?, columns], [of_row, of_column]))
}

/// Whether the bytes of an array, and those from its first to its last element, can be counted.
fn addressable(lengths: [usize; 3], steps: [isize; 3], bytes: usize) -> bool {
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
