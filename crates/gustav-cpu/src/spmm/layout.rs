//! Column-major operands: panels of columns are transposed to row-major workspace and back.

use gustav_core::Scalar;

use crate::Threads;

// Rows transposed together: their part of a panel stays in L1 while the elements of a column are
// read consecutively.
const BLOCK: usize = 64;

/// A block of memory that threads write in disjoint parts.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);
// SAFETY: threads write disjoint rows.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Shared<T> {}

/// Copies `to[i * to_strides.0 + j * to_strides.1] = from[i * from_strides.0 + j *
/// from_strides.1]` for every `i` below `rows` and `j` below `columns`, on all threads.
///
/// # Safety
/// Both blocks span the matrix with their strides, do not overlap, and nothing else touches
/// them meanwhile.
pub(super) unsafe fn copy<T: Scalar>(
    threads: &Threads,
    (rows, columns): (usize, usize),
    from: *const T,
    from_strides: (usize, usize),
    to: *mut T,
    to_strides: (usize, usize),
) {
    let (from, to) = (Shared(from.cast_mut()), Shared(to));
    let (from, to) = (&from, &to);
    let parts = threads.count().min(rows.div_ceil(BLOCK));
    threads.each(parts, |p| {
        let end = rows * (p + 1) / parts;
        let mut start = rows * p / parts;
        while start < end {
            let stop = end.min(start + BLOCK);
            for j in 0..columns {
                for i in start..stop {
                    // SAFETY: promised by the caller; parts are disjoint rows.
                    unsafe {
                        let value = from.0.add(i * from_strides.0 + j * from_strides.1).read();
                        to.0.add(i * to_strides.0 + j * to_strides.1).write(value);
                    }
                }
            }
            start = stop;
        }
    });
}
