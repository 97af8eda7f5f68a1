//! Rows in slices, a vector of rows at a time: lane k is row k, rows that have ended are masked
//! out. Values stay in CSR order and are transposed in registers.

use std::ops::Range;

use gustav_core::{Index, Scalar};

use super::kernel::{Columns, Partition};
use super::masked::prefetch;
use crate::spmv::lanes::{Element, MaskLanes};

// Lanes of the widest vector.
const LANES: usize = 16;

/// The sums of a segment of slices; `columns` decodes its codes.
///
/// # Safety
/// The rows are a segment of slices of the pattern.
#[inline(always)]
pub(super) unsafe fn slices<V: MaskLanes<Elem: Element>, O: Index, C: Columns<V::Elem>>(
    partition: &Partition<'_, V::Elem, O>,
    rows: Range<usize>,
    columns: C,
) {
    let (mut row, mut code) = (rows.start, 0);
    while row < rows.end {
        let n = (rows.end - row).min(V::N);
        // SAFETY: the rows are in bounds of the pattern and of y; the codes of the slices follow
        // one another.
        unsafe {
            let offsets = partition.offsets.get_unchecked(row..=row + n);
            let (sums, len) = if n == V::N {
                slice::<V, O, C>(partition.values, offsets, V::N, columns, code)
            } else {
                slice::<V, O, C>(partition.values, offsets, n, columns, code)
            };
            partition.finish.first(row, sums, n);
            code += len * V::N;
        }
        row += n;
    }
}

/// The sums of `n` rows, and the length of the longest.
#[inline(always)]
unsafe fn slice<V: MaskLanes, O: Index, C: Columns<V::Elem>>(
    values: &[V::Elem],
    offsets: &[O],
    n: usize,
    columns: C,
    code: usize,
) -> (V, usize) {
    // SAFETY: promised by the caller; `n` rows have n + 1 offsets.
    unsafe {
        let start = |lane: usize| offsets.get_unchecked(lane).to_usize();
        let mut lengths = [0u32; LANES];
        for lane in 0..n {
            lengths[lane] = start(lane + 1).wrapping_sub(start(lane)) as u32;
        }
        // A vector of columns may be longer than a row; the last one must still be within the
        // array.
        let longest = V::longest(&lengths);
        let fits = start(n - 1) + longest.next_multiple_of(V::COLUMNS) <= values.len();
        let mut sums = [V::zero(); 2];
        let mut j = 0;
        while j < longest {
            prefetch::<V>(values.as_ptr().wrapping_add(start(0) + j * V::N));
            let transposed = if fits {
                V::columns(|lane| values.as_ptr().add(start(lane.min(n - 1)) + j))
            } else {
                at_the_end::<V>(values, |lane| start(lane.min(n - 1)) + j)
            };
            for (k, value) in transposed.as_ref().iter().enumerate() {
                if j + k < longest {
                    let at = code + (j + k) * V::N;
                    columns.prefetch::<V>(at);
                    let on = V::longer(&lengths, j + k);
                    sums[k % 2] = value.mul_add_mask(columns.gather::<V>(at), sums[k % 2], on);
                }
            }
            j += V::COLUMNS;
        }
        (sums[0].add(sums[1]), longest)
    }
}

/// The columns of rows near the end of the array, where whole vectors would read past it.
#[inline(always)]
unsafe fn at_the_end<V: MaskLanes>(
    values: &[V::Elem],
    start: impl Fn(usize) -> usize,
) -> V::Columns {
    let mut rows = [[V::Elem::zero(); 4]; LANES];
    for lane in 0..V::N {
        for (to, from) in
            rows[lane][..V::COLUMNS].iter_mut().zip(&values[start(lane).min(values.len())..])
        {
            *to = *from;
        }
    }
    // SAFETY: every row holds as many values as are read.
    unsafe { V::columns(|lane| rows[lane].as_ptr()) }
}
