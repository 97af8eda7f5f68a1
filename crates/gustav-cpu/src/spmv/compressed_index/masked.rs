//! Kernels for lanes with masks.

use std::mem::MaybeUninit;
use std::ops::Range;

use gustav_core::{Index, Scalar};

use super::kernel::{Columns, Partition};
use super::survey::ROWS;
use crate::spmv::lanes::{Element, MaskLanes, PREFETCH_DISTANCE};

// Lanes of the widest vector.
const LANES: usize = 16;
const LINE: usize = 64;

/// Rows of a shift segment, a vector of rows at a time: lane k is row k, x is read in order, and
/// values are transposed in registers.
///
/// # Safety
/// The rows are a shift segment of the pattern, `distances` its distances.
#[inline(always)]
pub(super) unsafe fn shift<V: MaskLanes<Elem: Element>, O: Index>(
    partition: &Partition<'_, V::Elem, O>,
    rows: Range<usize>,
    distances: &[isize],
) {
    let len = distances.len();
    let mut at = partition.offsets[rows.start].to_usize();
    if let [distance] = *distances {
        let values = partition.values[at..].as_ptr().wrapping_sub(rows.start);
        let x = partition.x.as_ptr().wrapping_offset(distance);
        for row in rows.step_by(V::N) {
            V::prefetch(values.wrapping_add(row).wrapping_byte_add(PREFETCH_DISTANCE));
            // SAFETY: the columns of these rows lie in x, and the rows in y.
            unsafe {
                let product = V::load(values.wrapping_add(row)).mul(V::load(x.wrapping_add(row)));
                partition.finish.first(row, product, V::N);
            }
        }
        return;
    }
    for row in rows.step_by(V::N) {
        // SAFETY: as above; values are read where vectors of columns, which may be longer than a
        // row, fit in the array.
        unsafe {
            let x = |j: usize| {
                let from = partition.x.as_ptr().wrapping_add(row);
                V::load(from.wrapping_offset(*distances.get_unchecked(j)))
            };
            let values = partition.values.as_ptr().add(at);
            let fits = at + (V::N - 1) * len + V::COLUMNS.max(len) <= partition.values.len();
            let sums =
                if fits { transposed::<V>(values, len, x) } else { strided::<V>(values, len, x) };
            partition.finish.first(row, sums, V::N);
        }
        at += V::N * len;
    }
}

/// The sums of a vector of rows of `len` values.
#[inline(always)]
unsafe fn transposed<V: MaskLanes>(
    values: *const V::Elem,
    len: usize,
    x: impl Fn(usize) -> V,
) -> V {
    // SAFETY: the caller checked that these reads lie in the values.
    unsafe {
        let whole = len / V::COLUMNS * V::COLUMNS;
        let mut sums = [V::zero(); 2];
        for j in (0..whole).step_by(V::COLUMNS) {
            prefetch::<V>(values.wrapping_add(j * V::N));
            let columns = V::columns(|row| values.add(row * len + j));
            for (k, column) in columns.as_ref().iter().enumerate() {
                sums[k % 2] = column.mul_add(x(j + k), sums[k % 2]);
            }
        }
        let left = len - whole;
        if left > 0 {
            // The last columns of the row; the first `skip` of them have been added already.
            let skip = if whole > 0 { V::COLUMNS - left } else { 0 };
            prefetch::<V>(values.wrapping_add(whole * V::N));
            let columns = V::columns(|row| values.add(row * len + whole - skip));
            for (k, column) in columns.as_ref().iter().enumerate() {
                if k >= skip && k < skip + left {
                    sums[k % 2] = column.mul_add(x(whole - skip + k), sums[k % 2]);
                }
            }
        }
        sums[0].add(sums[1])
    }
}

/// Prefetches as many values, well after `values`, as a vector of columns has.
#[inline(always)]
pub(super) fn prefetch<V: MaskLanes>(values: *const V::Elem) {
    for k in (0..V::N * V::COLUMNS).step_by(LINE / size_of::<V::Elem>()) {
        V::prefetch(values.wrapping_add(k).wrapping_byte_add(PREFETCH_DISTANCE));
    }
}

/// The same one value at a time: for the last rows of a matrix, where whole vectors would read past
/// the end.
#[inline(always)]
unsafe fn strided<V: MaskLanes>(values: *const V::Elem, len: usize, x: impl Fn(usize) -> V) -> V {
    // SAFETY: there are `V::N * len` values.
    unsafe {
        let mut sums = V::zero();
        for j in 0..len {
            let mut column = [V::Elem::zero(); LANES];
            for (k, value) in column[..V::N].iter_mut().enumerate() {
                *value = *values.add(k * len + j);
            }
            sums = V::load(column.as_ptr()).mul_add(x(j), sums);
        }
        sums
    }
}

/// Rows as windows of columns: the mask expands values to lanes (not needed when the windows are
/// runs), and x is read in order.
///
/// # Safety
/// The rows are a segment of windows of the pattern.
#[inline(always)]
pub(super) unsafe fn windows<V: MaskLanes<Elem: Element>, O: Index, const RUNS: bool>(
    partition: &Partition<'_, V::Elem, O>,
    rows: Range<usize>,
    first: usize,
    base: usize,
) {
    let mut codes = partition.encoded.codes[first..].as_ptr();
    let (values, x) = (partition.values.as_ptr(), partition.x[base..].as_ptr());
    let mut k = partition.offsets[rows.start].to_usize();
    for row in rows {
        let end = partition.offsets[row + 1].to_usize();
        // SAFETY: windows hold as many values as the row, columns within x.
        unsafe {
            let (mut sum, mut other) = (V::zero(), V::zero());
            while k < end {
                let (start, mask) = (usize::from(*codes), u32::from(*codes.add(1)));
                V::prefetch(values.wrapping_add(k).wrapping_byte_add(PREFETCH_DISTANCE));
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
            partition.finish.one(row, sum.add(other).sum());
        }
    }
}

/// Neighbouring rows with the same columns together, up to four: one gather for all.
///
/// # Safety
/// The rows are a segment of the pattern with [`Walk::Alike`].
#[inline(always)]
pub(super) unsafe fn alike<V: MaskLanes<Elem: Element>, O: Index, C: Columns<V::Elem>>(
    partition: &Partition<'_, V::Elem, O>,
    rows: Range<usize>,
    columns: C,
) {
    let mut row = rows.start;
    while row < rows.end {
        // SAFETY: the bitmap holds spare bytes behind the last row.
        let bits = unsafe { bits(&partition.encoded.alike, row + 1) };
        let n = (1 + bits.trailing_ones() as usize).min(rows.end - row).min(4);
        let (start, end) =
            (partition.offsets[row].to_usize(), partition.offsets[row + 1].to_usize());
        // SAFETY: these rows have the columns of the first.
        unsafe {
            match n {
                1 => together::<V, O, C, 1>(partition, row, start, end - start, columns),
                2 => together::<V, O, C, 2>(partition, row, start, end - start, columns),
                3 => together::<V, O, C, 3>(partition, row, start, end - start, columns),
                _ => together::<V, O, C, 4>(partition, row, start, end - start, columns),
            }
        }
        row += n;
    }
}

#[inline(always)]
unsafe fn together<V: MaskLanes<Elem: Element>, O: Index, C: Columns<V::Elem>, const R: usize>(
    partition: &Partition<'_, V::Elem, O>,
    row: usize,
    start: usize,
    len: usize,
    columns: C,
) {
    // SAFETY: promised by the caller.
    unsafe {
        let values = partition.values.as_ptr().add(start);
        let mut sums = [V::zero(); R];
        let mut k = 0;
        while k + V::N <= len {
            columns.prefetch::<V>(start + k);
            for r in 0..R {
                V::prefetch(
                    values.wrapping_add(k * R + r * V::N).wrapping_byte_add(PREFETCH_DISTANCE),
                );
            }
            let x = columns.gather::<V>(start + k);
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = V::load(values.add(r * len + k)).mul_add(x, *sum);
            }
            k += V::N;
        }
        if k < len {
            columns.prefetch::<V>(start + k);
            for r in 0..R {
                V::prefetch(
                    values.wrapping_add(k * R + r * (len - k)).wrapping_byte_add(PREFETCH_DISTANCE),
                );
            }
            let x = columns.gather_first::<V>(start + k, len - k);
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = V::load_first(values.add(r * len + k), len - k).mul_add(x, *sum);
            }
        }
        for (r, sum) in sums.into_iter().enumerate() {
            partition.finish.one(row + r, sum.sum());
        }
    }
}

/// 25 bits or more of a bitmap, from bit `at` on.
///
/// # Safety
/// The map has four bytes from that of bit `at` on.
#[inline(always)]
unsafe fn bits(map: &[u8], at: usize) -> u32 {
    // SAFETY: promised by the caller.
    unsafe { map.as_ptr().add(at / 8).cast::<u32>().read_unaligned() >> (at % 8) }
}

/// Entries a vector at a time, whatever rows they belong to: a segmented sum within the vector; the
/// sum of a row that does not end in it is carried to the next vector.
///
/// # Safety
/// The rows are a flat segment of the pattern, at most [`ROWS`] of them.
#[inline(always)]
pub(super) unsafe fn flat<V: MaskLanes<Elem: Element>, O: Index, C: Columns<V::Elem>>(
    partition: &Partition<'_, V::Elem, O>,
    rows: Range<usize>,
    columns: C,
) {
    let (start, end) =
        (partition.offsets[rows.start].to_usize(), partition.offsets[rows.end].to_usize());
    let mut sums = MaybeUninit::<[V::Elem; ROWS + LANES]>::uninit();
    let sums = sums.as_mut_ptr().cast::<V::Elem>();
    let all = (1u32 << V::N) - 1;
    // SAFETY: vectors are masked to the entries of the segment; there are as many sums as rows with
    // entries, so every sum but the padding is written before it is read.
    unsafe {
        let mut filled = 0;
        let mut carry = V::zero();
        let mut k = start / V::N * V::N;
        while k < end {
            let mut ends = bits(&partition.encoded.last, k) & all;
            V::prefetch(
                partition.values.as_ptr().wrapping_add(k).wrapping_byte_add(PREFETCH_DISTANCE),
            );
            columns.prefetch::<V>(k);
            let mut sum = if k >= start && k + V::N <= end {
                V::load(partition.values.as_ptr().add(k)).mul_add(columns.gather::<V>(k), V::zero())
            } else {
                let mut mask = all;
                if k < start {
                    mask &= all << (start - k);
                }
                if k + V::N > end {
                    mask &= all >> (k + V::N - end);
                }
                ends &= mask;
                let value = V::load_mask(partition.values.as_ptr().wrapping_add(k), mask);
                value.mul_add(columns.gather_mask::<V>(k, mask), V::zero())
            };
            // Lanes of the same row as the lane before; then as 2, 4 and 8 lanes before.
            let one = !(ends << 1) & !1;
            let two = one & (one << 1);
            let four = two & (two << 2);
            sum = sum.add_earlier::<0>(one);
            sum = sum.add_earlier::<1>(two);
            sum = sum.add_earlier::<2>(four);
            if V::N > 8 {
                sum = sum.add_earlier::<3>(four & (four << 4));
            }
            // The lanes of the carried row: up to the first end.
            sum = sum.add_mask(carry, ends ^ ends.wrapping_sub(1));
            sum.compress(sums.add(filled), ends);
            filled += ends.count_ones() as usize;
            // The last lane's sum, or zero if it ends a row.
            carry = sum.splat_last((ends >> (V::N - 1)).wrapping_sub(1));
            k += V::N;
        }
        let mut next = sums.cast_const();
        for row in rows.clone().step_by(V::N) {
            let n = (rows.end - row).min(V::N);
            let filled = bits(&partition.encoded.filled, row) & (all >> (V::N - n));
            partition.finish.first(row, V::expand(next, filled), n);
            next = next.add(filled.count_ones() as usize);
        }
    }
}
