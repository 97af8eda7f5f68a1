//! A decoder for tests: columns are decoded one by one and compared with the original ones.

use gustav_core::{Csr, Index};
use proptest::prelude::*;

use super::encode::{Code, Encoded, Pattern, Segment};
use super::survey::{Limits, slice_lengths};
use crate::schedule;

/// Calls `visit(row, entry, column)` for every entry of a segment, in order.
fn columns<O: Index>(
    encoded: &Encoded,
    segment: &Segment,
    pattern: Pattern<'_, O>,
    width: usize,
    mut visit: impl FnMut(usize, usize, usize),
) {
    let mut next = match segment.code {
        Code::Windows { first, .. } => first,
        _ => 0,
    };
    for row in segment.rows.clone() {
        let entries = pattern.row_range(row);
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
            Code::Slices { first, base, narrow, .. } => {
                for (entry, code) in entries.zip(slice(segment, pattern, width, row)) {
                    let code = match narrow {
                        true => usize::from(encoded.narrow[first + code]),
                        false => encoded.wide[first + code] as usize,
                    };
                    visit(row, entry, base + code);
                }
            }
            Code::Narrow { base, .. } => {
                for entry in entries {
                    visit(row, entry, base + usize::from(encoded.codes[entry]));
                }
            }
            Code::Plain { .. } => {
                for entry in entries {
                    visit(row, entry, pattern.indices[entry] as usize);
                }
            }
        }
    }
}

/// Positions of the codes of a row of slices, relative to the segment's first code.
fn slice<O: Index>(
    segment: &Segment,
    pattern: Pattern<'_, O>,
    width: usize,
    row: usize,
) -> impl Iterator<Item = usize> {
    let position = row - segment.rows.start;
    let before =
        slice_lengths(&pattern, &segment.rows, width).take(position / width).sum::<usize>();
    (before * width + position % width..).step_by(width)
}

/// Groups of rows of one kind: empty, shifts, consecutive columns, equal rows, rows of one length,
/// random rows.
fn pattern() -> impl Strategy<Value = Csr<f32, u32, u32>> {
    let stretch = (0..6usize, 1..80usize, 1..40usize, any::<u32>());
    (proptest::collection::vec(stretch, 0..8), prop_oneof![Just(300usize), Just(200_000)]).prop_map(
        |(stretches, cols)| {
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
                        _ => (k < r % len).then_some((seed as usize ^ (r * 77 + k * 1009)) * 31),
                    };
                    indices.extend((0..).map_while(at).map(|c| (c % cols) as u32));
                    offsets.push(indices.len() as u32);
                }
            }
            let values = vec![1.0; indices.len()];
            Csr::new(offsets.len() - 1, cols, offsets, indices, values).unwrap()
        },
    )
}

proptest! {
    #[test]
    fn decoding_gives_back_the_columns(
        a in pattern(),
        masks: bool,
        loads: bool,
        wide: bool,
        parts in 1..4usize,
    ) {
        let a = a.view();
        let partitions = schedule::merge_path(a.offsets(), parts);
        let rows: Vec<_> = partitions.iter().map(|partition| partition.whole_rows(a.offsets())).collect();
        let limits = Limits { width: if wide { 16 } else { 8 }, masks, loads };
        let pattern = Pattern { offsets: a.offsets(), indices: a.indices() };
        let encoded = Encoded::new(pattern, &rows, limits).unwrap();
        for (k, rows) in rows.into_iter().enumerate() {
            let mut expected = Vec::new();
            for row in rows {
                let entries = a.row_range(row);
                expected.extend(entries.map(|e| (row, e, a.indices()[e] as usize)));
            }
            let mut found = Vec::new();
            for segment in encoded.of_partition(k) {
                columns(&encoded, segment, pattern, limits.width, |row, entry, column| {
                    found.push((row, entry, column));
                });
            }
            prop_assert_eq!(found, expected);
        }
    }
}
