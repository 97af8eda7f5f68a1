//! Columns read back one by one: for the semirings and types that have no vector kernels.

use std::ops::Range;

use gustav_core::{Index, Scalar, Semiring};

use super::encode::{Code, Encoded, Segment, Walk};
use crate::spmv::epilogue::{Epilogue, Output};
use crate::spmv::rows::Operands;

/// Finishes the whole rows of a share.
///
/// # Safety
/// They are in y, and no other thread touches them meanwhile.
pub(super) unsafe fn multiply<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>(
    encoded: &Encoded,
    share: usize,
    operands: &Operands<'_, T, I, O>,
    epilogue: &Epilogue<T::Accum, S>,
    y: Output<'_, T>,
) {
    for segment in encoded.of_share(share) {
        let mut sum = S::zero();
        let mut open = segment.rows.start;
        columns(encoded, segment, operands.offsets, operands.indices, |row, entry, column| {
            while open < row {
                // SAFETY: promised by the caller.
                unsafe { epilogue.store(y, open, sum) };
                (open, sum) = (open + 1, S::zero());
            }
            let (a, x) = (operands.values[entry], operands.x[column]);
            sum = S::mul_add(a.to_accum(), x.to_accum(), sum);
        });
        for row in open..segment.rows.end {
            // SAFETY: promised by the caller.
            unsafe { epilogue.store(y, row, sum) };
            sum = S::zero();
        }
    }
}

/// Calls `visit(row, entry, column)` for every entry of a segment, in order.
pub(super) fn columns<I: Index, O: Index>(
    encoded: &Encoded,
    segment: &Segment,
    offsets: &[O],
    indices: &[I],
    mut visit: impl FnMut(usize, usize, usize),
) {
    let mut next = match segment.code {
        Code::Windows { first, .. } => first,
        _ => 0,
    };
    for row in segment.rows.clone() {
        let entries = offsets[row].to_usize()..offsets[row + 1].to_usize();
        match segment.code {
            Code::Shift { first, len } => {
                for (entry, distance) in entries.zip(&encoded.distances[first..first + len]) {
                    visit(row, entry, row.wrapping_add_signed(*distance));
                }
            }
            Code::Windows { base, .. } => {
                let mut entry = entries.start;
                while entry < entries.end {
                    let first = base + usize::from(encoded.codes[next]);
                    let mut mask = encoded.codes[next + 1];
                    next += 2;
                    while mask != 0 {
                        visit(row, entry, first + mask.trailing_zeros() as usize);
                        mask &= mask - 1;
                        entry += 1;
                    }
                }
            }
            Code::Narrow { base, walk: Walk::Even(_) } => {
                for (entry, code) in entries.zip(even(encoded, segment, offsets, row)) {
                    visit(row, entry, base + usize::from(encoded.codes[code]));
                }
            }
            Code::Narrow { base, .. } => {
                for entry in entries {
                    visit(row, entry, base + usize::from(encoded.codes[entry]));
                }
            }
            Code::Plain { .. } => {
                for entry in entries {
                    visit(row, entry, indices[entry].to_usize());
                }
            }
        }
    }
}

/// Where the codes of a row of an even segment stand.
fn even<O: Index>(
    encoded: &Encoded,
    segment: &Segment,
    offsets: &[O],
    row: usize,
) -> impl Iterator<Item = usize> {
    let Range { start, end } = segment.rows;
    let lane = (row - start) % encoded.width;
    let first = row - lane;
    let n = encoded.width.min(end - first);
    (offsets[first].to_usize() + lane..).step_by(n)
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;
    use proptest::prelude::*;

    use super::super::survey::Limits;
    use super::*;
    use crate::schedule;

    /// Stretches of rows of one kind: empty, shifts, runs, rows alike, even or random ones.
    fn pattern() -> impl Strategy<Value = Csr<f32, u32, u32>> {
        let stretch = (0..6usize, 1..80usize, 1..40usize, any::<u32>());
        (proptest::collection::vec(stretch, 0..8), prop_oneof![Just(300usize), Just(200_000)])
            .prop_map(|(stretches, cols)| {
                let (mut offsets, mut indices) = (vec![0u32], Vec::new());
                for (kind, rows, len, seed) in stretches {
                    for r in 0..rows {
                        let row = offsets.len() - 1;
                        let at = |k: usize| match kind {
                            0 => None,
                            1 => (k < len).then_some(row + k * k),
                            2 => (k < len).then_some(seed as usize + k),
                            3 => (k < len).then_some(r / 3 * 7 + k * 3),
                            4 => (k < len).then_some(k.wrapping_mul(seed as usize) + r * r),
                            _ => {
                                (k < r % len).then_some((seed as usize ^ (r * 77 + k * 1009)) * 31)
                            }
                        };
                        indices.extend((0..).map_while(at).map(|c| (c % cols) as u32));
                        offsets.push(indices.len() as u32);
                    }
                }
                let values = vec![1.0; indices.len()];
                Csr::new(offsets.len() - 1, cols, offsets, indices, values).unwrap()
            })
    }

    proptest! {
        #[test]
        fn decoding_gives_back_the_columns(a in pattern(), masks: bool, wide: bool, parts in 1..4usize) {
            let a = a.view();
            let shares = schedule::merge_path(a.offsets(), parts);
            let limits = Limits { width: if wide { 16 } else { 8 }, masks };
            let encoded = Encoded::new(&a, &shares, limits).unwrap();
            for (k, share) in shares.iter().enumerate() {
                let mut expected = Vec::new();
                for row in share.whole_rows(a.offsets()) {
                    let entries = a.row_range(row);
                    expected.extend(entries.map(|e| (row, e, a.indices()[e] as usize)));
                }
                let mut found = Vec::new();
                for segment in encoded.of_share(k) {
                    columns(&encoded, segment, a.offsets(), a.indices(), |row, entry, column| {
                        found.push((row, entry, column));
                    });
                }
                prop_assert_eq!(found, expected);
            }
        }
    }
}
