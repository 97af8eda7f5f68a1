//! Which nonzeros belong together: host side of `kernels/schedule/`.

use gustav_core::buffer::try_vec;
use gustav_core::{Error, Index, IndexType, Result};

/// Bits of a segment's length in `kernels/schedule/segments.cuh`.
const LENGTH_BITS: u32 = 23;
/// The longest segment of a list.
pub(crate) const MAX_LENGTH: usize = 1 << (LENGTH_BITS - 1);

/// Rows cut into segments.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// Two words a segment, see `kernels/schedule/segments.cuh`.
    pub words: Vec<u64>,
    /// Row, first slot and number of slots of each cut row.
    pub cut_rows: Vec<u64>,
    /// Parts of cut rows.
    pub slots: usize,
}

/// What a part of a cut row names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Its place among the partial sums.
    Slot,
    /// Its row.
    Row,
}

impl Segments {
    /// Cuts rows longer than `longest` at multiples of `longest` in the arrays of A, so that every
    /// cut is aligned to a chunk; `sorted` puts long segments first.
    pub(crate) fn new<O: Index>(
        offsets: &[O],
        longest: usize,
        target: Target,
        sorted: bool,
    ) -> Result<Self> {
        let rows = offsets.len() - 1;
        if rows as u64 >= 1 << (63 - LENGTH_BITS) {
            return Err(Error::Overflow {
                what: "rows of a segment list",
                need: rows as u128,
                index_type: IndexType::U32,
            });
        }
        let row = |r: usize| offsets[r].to_usize()..offsets[r + 1].to_usize();
        let parts = |r: usize| {
            let range = row(r);
            if range.len() <= longest {
                1
            } else {
                range.end.div_ceil(longest) - range.start / longest
            }
        };
        let (mut count, mut cut) = (0usize, 0usize);
        for parts in (0..rows).map(parts) {
            count += parts;
            cut += usize::from(parts > 1);
        }
        let mut words = try_vec(2 * count, "segments")?;
        let mut cut_rows = try_vec(3 * cut, "cut rows")?;
        let mut slots = 0;
        for r in 0..rows {
            let (range, parts) = (row(r), parts(r));
            if parts == 1 {
                words.extend([range.start as u64, pack(range.len(), false, r)]);
                continue;
            }
            cut_rows.extend([r as u64, slots as u64, parts as u64]);
            for part in 0..parts {
                let first = range.start.max((range.start / longest + part) * longest);
                let last = range.end.min((range.start / longest + part + 1) * longest);
                let place = if target == Target::Slot { slots } else { r };
                words.extend([first as u64, pack(last - first, true, place)]);
                slots += 1;
            }
        }
        let mut segments = Segments { words, cut_rows, slots };
        if sorted {
            segments.sort(longest)?;
        }
        Ok(segments)
    }

    /// Number of segments.
    pub(crate) fn count(&self) -> usize {
        self.words.len() / 2
    }

    /// Counting sort by length, longest first, otherwise in the order they had.
    fn sort(&mut self, longest: usize) -> Result<()> {
        let bin = |pair: &[u64]| longest - length(pair[1]).min(longest);
        let mut starts = try_vec(longest + 2, "segment lengths")?;
        starts.resize(longest + 2, 0usize);
        for pair in self.words.chunks_exact(2) {
            starts[bin(pair) + 1] += 1;
        }
        for b in 1..starts.len() {
            starts[b] += starts[b - 1];
        }
        let mut sorted = try_vec(self.words.len(), "segments")?;
        sorted.resize(self.words.len(), 0);
        for pair in self.words.chunks_exact(2) {
            let place = &mut starts[bin(pair)];
            sorted[2 * *place..2 * *place + 2].copy_from_slice(pair);
            *place += 1;
        }
        self.words = sorted;
        Ok(())
    }
}

fn pack(length: usize, cut: bool, place: usize) -> u64 {
    (place as u64) << (LENGTH_BITS + 1) | u64::from(cut) << LENGTH_BITS | length as u64
}

fn length(word: u64) -> usize {
    (word & ((1 << LENGTH_BITS) - 1)) as usize
}

/// Row lengths in a few numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowLengths {
    /// Mean length, 0 without rows.
    pub mean: f64,
    /// Mean length of rows that are not empty, 0 without them.
    pub mean_filled: f64,
    /// Longest row.
    pub max: usize,
    /// Standard deviation.
    pub deviation: f64,
}

impl RowLengths {
    pub(crate) fn new<O: Index>(offsets: &[O]) -> Self {
        let rows = (offsets.len() - 1).max(1) as f64;
        let (mut max, mut sum, mut squares, mut filled) = (0, 0.0, 0.0, 0usize);
        for pair in offsets.windows(2) {
            let length = pair[1].to_usize() - pair[0].to_usize();
            max = max.max(length);
            filled += usize::from(length > 0);
            sum += length as f64;
            squares += (length as f64).powi(2);
        }
        let mean = sum / rows;
        RowLengths {
            mean,
            mean_filled: sum / filled.max(1) as f64,
            max,
            deviation: (squares / rows - mean * mean).max(0.0).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every nonzero of every row in exactly one segment that names its row.
    fn check_coverage(offsets: &[u32], longest: usize, target: Target, sorted: bool) {
        let s = Segments::new(offsets, longest, target, sorted).expect("segments");
        let mut owner = vec![usize::MAX; *offsets.last().expect("offsets") as usize];
        let mut whole = vec![0; offsets.len() - 1];
        let mut slot_row = vec![usize::MAX; s.slots];
        for cut in s.cut_rows.chunks_exact(3) {
            for slot in cut[1]..cut[1] + cut[2] {
                assert_eq!(slot_row[slot as usize], usize::MAX, "a slot of two rows");
                slot_row[slot as usize] = cut[0] as usize;
            }
        }
        let mut before = usize::MAX;
        for pair in s.words.chunks_exact(2) {
            let place = (pair[1] >> (LENGTH_BITS + 1)) as usize;
            let cut = pair[1] >> LENGTH_BITS & 1 == 1;
            let row = if cut && target == Target::Slot { slot_row[place] } else { place };
            assert!(length(pair[1]) <= longest);
            assert!(!sorted || length(pair[1]) <= before, "not sorted");
            before = length(pair[1]);
            whole[row] += usize::from(!cut);
            for position in pair[0] as usize..pair[0] as usize + length(pair[1]) {
                assert!((offsets[row] as usize..offsets[row + 1] as usize).contains(&position));
                assert_eq!(owner[position], usize::MAX, "a nonzero in two segments");
                owner[position] = row;
            }
        }
        assert!(owner.iter().all(|o| *o != usize::MAX), "a nonzero in no segment");
        for (row, whole) in whole.iter().enumerate() {
            let is_cut = s.cut_rows.chunks_exact(3).any(|c| c[0] as usize == row);
            assert_eq!(*whole + usize::from(is_cut), 1, "row {row} is written once");
        }
        assert!(slot_row.iter().all(|r| *r != usize::MAX), "a slot of no row");
    }

    #[test]
    fn segments_hold_every_nonzero_once() {
        let hub = [0u32, 0, 3, 3, 1003, 1010, 1010];
        let ragged: Vec<u32> = (0..200u32).map(|r| r * r / 3).collect();
        for offsets in [&hub[..], &ragged[..], &[0], &[0, 0], &[0, 64, 128]] {
            for longest in [4, 16, 64, 256, MAX_LENGTH] {
                for target in [Target::Slot, Target::Row] {
                    check_coverage(offsets, longest, target, false);
                    check_coverage(offsets, longest, target, true);
                }
            }
        }
    }

    #[test]
    fn row_lengths_of_a_ragged_matrix() {
        let l = RowLengths::new(&[0u32, 2, 2, 10]);
        assert_eq!((l.max, l.mean, l.mean_filled), (8, 10.0 / 3.0, 5.0));
        assert!((l.deviation - (104.0f64 / 9.0).sqrt()).abs() < 1e-12);
    }
}
