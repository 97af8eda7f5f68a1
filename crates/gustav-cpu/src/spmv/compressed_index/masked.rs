//! Kernels for lanes with masks.

use std::mem::MaybeUninit;
use std::ops::Range;

use gustav_core::{Arith, Index, Scalar};

use super::kernel::{Columns, Share};
use super::survey::ROWS;
use crate::spmv::lanes::{Element, MaskLanes};

// Lanes of the widest vector.
const LANES: usize = 16;

/// Rows of one shape as vectors over rows: lane k is row k, the columns of the values are
/// turned into vectors on the way, and x is read in order.
///
/// # Safety
/// The rows are a shift segment of the pattern, `distances` its distances.
#[inline(always)]
pub(super) unsafe fn shift<V: MaskLanes<Elem: Element>, O: Index>(
    share: &Share<'_, V::Elem, O>,
    rows: Range<usize>,
    distances: &[isize],
) {
    let len = distances.len();
    let mut at = share.offsets[rows.start].to_usize();
    let mut row = rows.start;
    while row < rows.end {
        let n = (rows.end - row).min(V::N);
        // A vector of columns may be longer than a row: it must still lie in the array.
        if len > 1 && at + (n - 1) * len + V::COLUMNS.max(len) > share.values.len() {
            for k in 0..n {
                let mut sum = V::Elem::zero();
                for (j, distance) in distances.iter().enumerate() {
                    let x = share.x[(row + k).wrapping_add_signed(*distance)];
                    sum = share.values[at + k * len + j].times_plus(x, sum);
                }
                // SAFETY: the segment's rows are y's.
                unsafe { share.finish.one(row + k, sum) };
            }
        } else {
            // SAFETY: the values were checked above; x has the columns of these rows.
            unsafe {
                let values = share.values.as_ptr().add(at);
                let x = share.x.as_ptr().wrapping_add(row);
                if n == V::N {
                    let sums = one_shape::<V>(values, x, distances, V::N);
                    share.finish.first(row, sums, V::N);
                } else {
                    let sums = one_shape::<V>(values, x, distances, n);
                    share.finish.first(row, sums, n);
                }
            }
        }
        row += n;
        at += n * len;
    }
}

/// The sums of `n` rows; `x` begins at the first row's own number.
#[inline(always)]
unsafe fn one_shape<V: MaskLanes>(
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
        if len == 1 {
            add(0, V::load_first(values, n), distances[0]);
            return sums[0];
        }
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

/// Rows as windows of columns: values spread by the mask (or as they are, when the windows are
/// runs), x read in order.
///
/// # Safety
/// The rows are a segment of windows of the pattern.
#[inline(always)]
pub(super) unsafe fn windows<V: MaskLanes<Elem: Element>, O: Index, const RUNS: bool>(
    share: &Share<'_, V::Elem, O>,
    rows: Range<usize>,
    first: usize,
    base: usize,
) {
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
                let value = if RUNS {
                    V::load_mask(values.add(k), mask)
                } else {
                    V::expand(values.add(k), mask)
                };
                (sum, other) = (other, value.mul_add(x, sum));
                k += mask.count_ones() as usize;
                codes = codes.add(2);
            }
            share.finish.one(row, sum.add(other).sum());
        }
    }
}

/// Neighbouring rows with the same columns together, up to four: one gather for all.
///
/// # Safety
/// The rows are a segment of the pattern that is walked so.
#[inline(always)]
pub(super) unsafe fn alike<V: MaskLanes<Elem: Element>, O: Index, C: Columns<V::Elem>>(
    share: &Share<'_, V::Elem, O>,
    rows: Range<usize>,
    columns: C,
) {
    let mut row = rows.start;
    while row < rows.end {
        // SAFETY: the bitmap holds spare bytes behind the last row.
        let bits = unsafe { bits(&share.encoded.alike, row + 1) };
        let n = (1 + bits.trailing_ones() as usize).min(rows.end - row).min(4);
        let (start, end) = (share.offsets[row].to_usize(), share.offsets[row + 1].to_usize());
        // SAFETY: these rows have the columns of the first.
        unsafe {
            match n {
                1 => together::<V, O, C, 1>(share, row, start, end - start, columns),
                2 => together::<V, O, C, 2>(share, row, start, end - start, columns),
                3 => together::<V, O, C, 3>(share, row, start, end - start, columns),
                _ => together::<V, O, C, 4>(share, row, start, end - start, columns),
            }
        }
        row += n;
    }
}

#[inline(always)]
unsafe fn together<V: MaskLanes<Elem: Element>, O: Index, C: Columns<V::Elem>, const R: usize>(
    share: &Share<'_, V::Elem, O>,
    row: usize,
    start: usize,
    len: usize,
    columns: C,
) {
    // SAFETY: promised by the caller.
    unsafe {
        let values = share.values.as_ptr().add(start);
        let mut sums = [V::zero(); R];
        let mut k = 0;
        while k + V::N <= len {
            let x = columns.gather::<V>(start + k);
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = V::load(values.add(r * len + k)).mul_add(x, *sum);
            }
            k += V::N;
        }
        if k < len {
            let x = columns.gather_first::<V>(start + k, len - k);
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = V::load_first(values.add(r * len + k), len - k).mul_add(x, *sum);
            }
        }
        for (r, sum) in sums.into_iter().enumerate() {
            share.finish.one(row + r, sum.sum());
        }
    }
}

/// 25 bits or more of a bitmap, from bit `at` on.
///
/// # Safety
/// Four bytes from that of `at` on are there.
#[inline(always)]
unsafe fn bits(map: &[u8], at: usize) -> u32 {
    // SAFETY: promised by the caller.
    unsafe { map.as_ptr().add(at / 8).cast::<u32>().read_unaligned() >> (at % 8) }
}

/// Entries a vector at a time, whatever rows they belong to: a segmented sum within the vector,
/// what is open at its end is carried to the next.
///
/// # Safety
/// The rows are a flat segment of the pattern, at most [`ROWS`] of them.
#[inline(always)]
pub(super) unsafe fn flat<V: MaskLanes<Elem: Element>, O: Index, C: Columns<V::Elem>>(
    share: &Share<'_, V::Elem, O>,
    rows: Range<usize>,
    columns: C,
) {
    let (start, end) = (share.offsets[rows.start].to_usize(), share.offsets[rows.end].to_usize());
    let mut sums = MaybeUninit::<[V::Elem; ROWS + LANES]>::uninit();
    let sums = sums.as_mut_ptr().cast::<V::Elem>();
    let all = (1u32 << V::N) - 1;
    // SAFETY: vectors are cut to the entries of the segment; every sum but the spare ones behind
    // is written before it is read, as there are as many as rows with entries.
    unsafe {
        let mut filled = 0;
        let mut carry = V::zero();
        let mut k = start / V::N * V::N;
        while k < end {
            let mut ends = bits(&share.encoded.last, k) & all;
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
            let one = !(ends << 1) & !1;
            let two = one & (one << 1);
            let four = two & (two << 2);
            sum = sum.add_earlier::<0>(one);
            sum = sum.add_earlier::<1>(two);
            sum = sum.add_earlier::<2>(four);
            if V::N > 8 {
                sum = sum.add_earlier::<3>(four & (four << 4));
            }
            // The lanes of the row that was open: up to the first end.
            sum = sum.add_mask(carry, ends ^ ends.wrapping_sub(1));
            sum.compress(sums.add(filled), ends);
            filled += ends.count_ones() as usize;
            // All lanes, or none when the last one ends a row.
            carry = sum.splat_last((ends >> (V::N - 1)).wrapping_sub(1));
            k += V::N;
        }
        let mut next = sums.cast_const();
        for row in rows.clone().step_by(V::N) {
            let n = (rows.end - row).min(V::N);
            let filled = bits(&share.encoded.filled, row) & (all >> (V::N - n));
            share.finish.first(row, V::expand(next, filled), n);
            next = next.add(filled.count_ones() as usize);
        }
    }
}
