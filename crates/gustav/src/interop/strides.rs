//! Dense matrices with a stride for each axis, as a layout with a leading dimension.

use gustav_core::{Error, Layout, Result};

/// The layout and leading dimension of a matrix of `nrows` × `ncols` whose element (i, j) is at
/// `i * strides[0] + j * strides[1]`: `first` where both layouts would do.
///
/// # Errors
/// [`Error::Argument`] naming `what`, the strides, and `copy`, which makes a matrix that fits.
pub(super) fn layout(
    what: &'static str,
    [nrows, ncols]: [usize; 2],
    strides: [isize; 2],
    first: Layout,
    copy: &str,
) -> Result<(Layout, usize)> {
    let other = match first {
        Layout::RowMajor => Layout::ColumnMajor,
        Layout::ColumnMajor => Layout::RowMajor,
    };
    let found = [first, other].into_iter().find_map(|layout| {
        // Lines, elements of a line, and the strides of both.
        let (lines, len, [line, element]) = match layout {
            Layout::RowMajor => (nrows, ncols, strides),
            Layout::ColumnMajor => (ncols, nrows, [strides[1], strides[0]]),
        };
        // The strides of an axis with fewer than two elements say nothing.
        if nrows == 0 || ncols == 0 || lines == 1 && (len == 1 || element == 1) {
            return Some((layout, len));
        }
        let ld = usize::try_from(line).ok().filter(|ld| *ld >= len)?;
        (lines > 1 && (len == 1 || element == 1)).then_some((layout, ld))
    });
    found.ok_or_else(|| Error::Argument {
        name: what,
        found: format!("{nrows} x {ncols} with strides {} and {}", strides[0], strides[1]),
        expected: format!(
            "a stride of 1 along rows or along columns, and of at least their length across; \
             {copy} makes a copy that has them"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_that_a_leading_dimension_expresses_are_found() {
        use Layout::{ColumnMajor as Columns, RowMajor as Rows};
        let of = |shape, strides, first| layout("matrix", shape, strides, first, "a copy").ok();
        for (shape, strides, row_first, column_first) in [
            ([2, 3], [3, 1], Some((Rows, 3)), Some((Rows, 3))),
            ([2, 3], [7, 1], Some((Rows, 7)), Some((Rows, 7))),
            ([2, 3], [1, 2], Some((Columns, 2)), Some((Columns, 2))),
            ([2, 3], [1, 9], Some((Columns, 9)), Some((Columns, 9))),
            // One row or column: the stride of its axis says nothing.
            ([1, 3], [-4, 1], Some((Rows, 3)), Some((Columns, 1))),
            ([1, 3], [0, 5], Some((Columns, 5)), Some((Columns, 5))),
            ([3, 1], [1, 0], Some((Rows, 1)), Some((Columns, 3))),
            ([3, 1], [4, 8], Some((Rows, 4)), Some((Rows, 4))),
            ([1, 1], [0, 0], Some((Rows, 1)), Some((Columns, 1))),
            // Empty ones.
            ([0, 3], [0, 0], Some((Rows, 3)), Some((Columns, 0))),
            ([3, 0], [0, 0], Some((Rows, 0)), Some((Columns, 3))),
            // Neither layout: gaps on both axes, overlapping, backwards.
            ([2, 3], [6, 2], None, None),
            ([2, 3], [0, 1], None, None),
            ([2, 3], [2, 1], None, None),
            ([2, 3], [-3, 1], None, None),
            ([2, 3], [3, -1], None, None),
        ] {
            let case = format!("{shape:?} {strides:?}");
            assert_eq!(of(shape, strides, Rows), row_first, "{case}");
            assert_eq!(of(shape, strides, Columns), column_first, "{case}");
        }
    }
}
