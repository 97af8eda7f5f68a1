//! Kernels for lanes with masks.

use std::mem::MaybeUninit;
use std::ops::Range;

use gustav_core::Index;

use super::encode::ROWS;
use super::kernel::{Columns, Share};
use crate::spmv::lanes::{Element, MaskLanes};

/// Rows of one shape as vectors over rows: lane k is row k, the columns of the values are
/// turned into vectors on the way, and x is read in order.
///
/// # Safety
/// The rows are a shift segment of the pattern, `distances` its distances.
#[inline(always)]
pub(super) unsafe fn shift<V: MaskLanes, O: Index, F: Fn(usize, V::Elem)>(
    share: &Share<'_, V::Elem, O, F>,
    rows: Range<usize>,
    distances: &[isize],
) where
    V::Elem: Element,
{
    let len = distances.len();
    let mut at = share.offsets[rows.start].to_usize();
    let mut row = rows.start;
    while row < rows.end {
        let n = (rows.end - row).min(V::N);
        // A vector of columns may be longer than a row: it must still lie in the array.
        let sums = if at + (n - 1) * len + V::COLUMNS.max(len) > share.values.len() {
            let mut sums = [<V::Elem as gustav_core::Scalar>::zero(); 16];
            for (k, sum) in sums[..n].iter_mut().enumerate() {
                for (j, distance) in distances.iter().enumerate() {
                    let x = share.x[(row + k).wrapping_add_signed(*distance)];
                    let value = share.values[at + k * len + j];
                    *sum = gustav_core::Arith::times_plus(value, x, *sum);
                }
            }
            sums
        } else {
            // SAFETY: the values were checked above; x has the columns of these rows.
            unsafe {
                let values = share.values.as_ptr().add(at);
                let x = share.x.as_ptr().wrapping_add(row);
                let sum = match n == V::N {
                    true => rows_of_one_shape::<V>(values, x, distances, V::N),
                    false => rows_of_one_shape::<V>(values, x, distances, n),
                };
                let mut sums = [<V::Elem as gustav_core::Scalar>::zero(); 16];
                sum.store(sums.as_mut_ptr());
                sums
            }
        };
        for (k, sum) in sums[..n].iter().enumerate() {
            (share.store)(row + k, *sum);
        }
        row += n;
        at += n * len;
    }
}

/// The sums of `n` rows; `x` begins at the first row's own number.
#[inline(always)]
unsafe fn rows_of_one_shape<V: MaskLanes>(
    values: *const V::Elem,
    x: *const V::Elem,
    distances: &[isize],
    n: usize,
) -> V {
    let len = distances.len();
    let whole = len / V::COLUMNS * V::COLUMNS;
    // SAFETY: the instruction set is there.
    let mut sums = [unsafe { V::zero() }; 2];
    let mut add = |k: usize, column: V, distance: isize| {
        // SAFETY: the columns of rows 0..n lie in x.
        unsafe {
            let x = x.wrapping_offset(distance);
            let x = if n == V::N { V::load(x) } else { V::load_first(x, n) };
            sums[k % 2] = column.mul_add(x, sums[k % 2]);
        }
    };
    // SAFETY: the caller checked that these reads lie in the values.
    unsafe {
        for j in (0..whole).step_by(V::COLUMNS) {
            let columns = V::columns(values.add(j), len, n);
            for (k, column) in columns.as_ref().iter().enumerate() {
                add(k, *column, *distances.get_unchecked(j + k));
            }
        }
        let left = len - whole;
        if left > 0 {
            // The last columns of the row, of which the first `skip` have been added already.
            let skip = if whole > 0 { V::COLUMNS - left } else { 0 };
            let columns = V::columns(values.add(whole - skip), len, n);
            for (k, column) in columns.as_ref().iter().enumerate() {
                if k >= skip && k < skip + left {
                    add(k, *column, *distances.get_unchecked(whole - skip + k));
                }
            }
        }
        sums[0].add(sums[1])
    }
}

/// Rows as windows of columns: values spread by the mask, x read in order.
///
/// # Safety
/// The rows are a segment of windows of the pattern.
#[inline(always)]
pub(super) unsafe fn windows<V: MaskLanes, O: Index, F: Fn(usize, V::Elem)>(
    share: &Share<'_, V::Elem, O, F>,
    rows: Range<usize>,
    first: usize,
    base: usize,
) where
    V::Elem: Element,
{
    let mut codes = share.encoded.codes[first..].as_ptr();
    let (values, x) = (share.values.as_ptr(), share.x[base..].as_ptr());
    let mut k = share.offsets[rows.start].to_usize();
    for row in rows {
        let end = share.offsets[row + 1].to_usize();
        // SAFETY: windows hold as many values as the row, columns within x.
        unsafe {
            let (mut sum, mut other) = (V::zero(), V::zero());
            while k < end {
                let (start, mask) = (usize::from(*codes), u32::from(*codes.add(1)));
                let x = V::load_mask(x.add(start), mask);
                let value = V::expand(values.add(k), mask);
                (sum, other) = (other, value.mul_add(x, sum));
                k += mask.count_ones() as usize;
                codes = codes.add(2);
            }
            (share.store)(row, sum.add(other).sum());
        }
    }
}

/// Entries a vector at a time, whatever rows they belong to: a segmented sum within the vector,
/// what is open at its end is carried to the next.
///
/// # Safety
/// The rows are a flat segment of the pattern, at most [`ROWS`] of them.
#[inline(always)]
pub(super) unsafe fn flat<V: MaskLanes, O: Index, F: Fn(usize, V::Elem), C: Columns<V::Elem>>(
    share: &Share<'_, V::Elem, O, F>,
    rows: Range<usize>,
    columns: C,
) where
    V::Elem: Element,
{
    let offsets = &share.offsets[rows.start..=rows.end];
    let (start, end) = (offsets[0].to_usize(), offsets[rows.len()].to_usize());
    let mut sums = MaybeUninit::<[V::Elem; ROWS + 16]>::uninit();
    let sums = sums.as_mut_ptr().cast::<V::Elem>();
    let mut filled = 0;
    let last = &share.encoded.last;
    // SAFETY: vectors are cut to the entries of the segment; every sum but the spare ones behind
    // is written before it is read, as there are as many as rows with entries.
    unsafe {
        let mut carry = V::zero();
        let mut k = start / V::N * V::N;
        while k < end {
            let bits = last.as_ptr().add(k / 8).cast::<u16>().read_unaligned();
            let all = (1u32 << V::N) - 1;
            let mut ends = u32::from(bits) & all;
            let mut sum = if k >= start && k + V::N <= end {
                V::load(share.values.as_ptr().add(k)).mul_add(columns.gather::<V>(k), V::zero())
            } else {
                let mut mask = all;
                if k < start {
                    mask &= all << (start - k);
                }
                if k + V::N > end {
                    mask &= all >> (k + V::N - end);
                }
                ends &= mask;
                let value = V::load_mask(share.values.as_ptr().wrapping_add(k), mask);
                value.mul_add(columns.gather_mask::<V>(k, mask), V::zero())
            };
            // Lanes whose row goes on from the lane before; then 2, 4 and 8 lanes before.
            let one = !(ends << 1) & !1 & all;
            let two = one & (one << 1);
            let four = two & (two << 2);
            sum = sum.add_earlier::<0>(one);
            sum = sum.add_earlier::<1>(two);
            sum = sum.add_earlier::<2>(four);
            if V::N > 8 {
                sum = sum.add_earlier::<3>(four & (four << 4));
            }
            // The lanes of the row that was open: up to the first end.
            let open = ends ^ ends.wrapping_sub(1);
            sum = sum.add_mask(carry, open & all);
            sum.compress(sums.add(filled), ends);
            filled += ends.count_ones() as usize;
            carry = if ends >> (V::N - 1) == 1 { V::zero() } else { sum.splat_last() };
            k += V::N;
        }
    }
    let mut next = sums.cast_const();
    for (k, ends) in offsets.windows(2).enumerate() {
        let mut sum = <V::Elem as gustav_core::Scalar>::zero();
        if ends[0] < ends[1] {
            // SAFETY: one sum for each row with entries.
            unsafe {
                sum = *next;
                next = next.add(1);
            }
        }
        (share.store)(rows.start + k, sum);
    }
}
