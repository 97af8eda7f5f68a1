//! Lengths of rows or of segments, with how many have each.

use std::cell::OnceCell;

use crate::RowLengths;
use crate::facts::row_lengths::{CUTS, FIRST_CUT_BITS};

/// Lengths in ascending order, with their numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct LengthCounts {
    counts: Vec<(f64, f64)>,
}

/// The lengths of the rows of a pattern, and of their segments for every length at which rows may be cut. Each is counted
/// once, for all configurations.
#[derive(Debug)]
pub struct Lengths<'a> {
    rows: &'a RowLengths,
    whole: LengthCounts,
    /// By log2 of the length at which rows are cut.
    cut: [OnceCell<LengthCounts>; u32::BITS as usize],
}

impl<'a> Lengths<'a> {
    /// Those of a pattern whose rows have these lengths.
    pub fn new(rows: &'a RowLengths) -> Self {
        Lengths { rows, whole: LengthCounts::of_rows(rows), cut: Default::default() }
    }

    /// The histogram of the rows.
    pub fn histogram(&self) -> &'a RowLengths {
        self.rows
    }

    /// Rows that are not cut.
    pub fn whole(&self) -> &LengthCounts {
        &self.whole
    }

    /// Segments if rows are cut at `longest` nonzeros, a power of two.
    pub fn cut(&self, longest: u32) -> &LengthCounts {
        self.cut[longest.ilog2() as usize].get_or_init(|| self.whole.cut(longest))
    }

    /// Whole rows if there is no length at which they are cut.
    pub fn segments(&self, longest: Option<u32>) -> &LengthCounts {
        longest.map_or(&self.whole, |longest| self.cut(longest))
    }

    /// The parts of cut rows, rests included, if rows are cut at `longest` nonzeros, one of the powers of two that parts
    /// were counted for.
    pub(super) fn parts(&self, longest: u32) -> f64 {
        let bits = longest.max(1).ilog2().clamp(FIRST_CUT_BITS, FIRST_CUT_BITS + CUTS as u32 - 1);
        self.rows.cut(bits).0 as f64
    }
}

impl LengthCounts {
    /// The lengths of rows, from the histogram.
    pub fn of_rows(rows: &RowLengths) -> Self {
        let most = rows.max() as f64;
        let counts = rows.bins().iter().enumerate().filter(|(_, count)| **count > 0);
        let counts =
            counts.map(|(bin, count)| (RowLengths::middle(bin).min(most), *count as f64)).collect();
        LengthCounts { counts }
    }

    /// The lengths of segments if rows of these lengths are cut at `longest` nonzeros.
    fn cut(&self, longest: u32) -> Self {
        let longest_length = f64::from(longest);
        let mut parts = 0.0;
        let mut counts = Vec::with_capacity(self.counts.len() + 1);
        for &(length, count) in &self.counts {
            let full = (length / longest_length).floor();
            if full == 0.0 {
                counts.push((length, count));
                continue;
            }
            parts += full * count;
            let rest = length - full * longest_length;
            if rest > 0.0 {
                counts.push((rest, count));
            }
        }
        if parts > 0.0 {
            counts.push((longest_length, parts));
        }
        counts.sort_by(|a, b| a.0.total_cmp(&b.0));
        LengthCounts { counts }
    }

    /// Rows of at most `longest` nonzeros, and longer ones. Where `longest` lies within a bin, the rows of that bin
    /// count as spread evenly over its lengths, up to the longest row.
    pub fn split(rows: &RowLengths, longest: u32) -> (Self, Self) {
        let (most, limit) = (rows.max() as f64, f64::from(longest));
        let (mut whole, mut longer) = (Vec::new(), Vec::new());
        for (bin, count) in rows.bins().iter().enumerate().filter(|(_, count)| **count > 0) {
            let (least, end) = RowLengths::bounds(bin);
            let (count, last) = (*count as f64, (end - 1.0).min(most));
            let of_whole = ((limit - least + 1.0) / (last - least + 1.0)).clamp(0.0, 1.0);
            let middle = |first: f64, last: f64| (first + last) / 2.0;
            if of_whole > 0.0 {
                whole.push((middle(least, last.min(limit)), count * of_whole));
            }
            if of_whole < 1.0 {
                longer.push((middle(least.max(limit + 1.0), last), count * (1.0 - of_whole)));
            }
        }
        (LengthCounts { counts: whole }, LengthCounts { counts: longer })
    }

    /// Each in parts of `part`, and the rest.
    pub fn in_parts(self, part: f64) -> Self {
        let mut full = 0.0;
        let mut counts = Vec::new();
        for (length, count) in self.counts {
            full += (length / part).floor() * count;
            let rest = length % part;
            if rest > 0.0 {
                counts.push((rest, count));
            }
        }
        counts.sort_by(|a, b| a.0.total_cmp(&b.0));
        if full > 0.0 {
            counts.push((part, full));
        }
        LengthCounts { counts }
    }

    /// How many there are.
    pub fn number(&self) -> f64 {
        self.counts.iter().map(|c| c.1).sum()
    }

    /// Their sum.
    pub fn sum(&self) -> f64 {
        self.sum_of(|length| length)
    }

    /// The lengths in ascending order, with how many have each.
    pub fn iter(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.counts.iter().copied()
    }

    /// The sum of a function of every length.
    pub fn sum_of(&self, function: impl Fn(f64) -> f64) -> f64 {
        self.iter().map(|(length, count)| function(length) * count).sum()
    }

    /// The greatest length.
    pub fn greatest(&self) -> f64 {
        self.counts.last().map_or(0.0, |c| c.0)
    }

    /// The greatest below `limit`.
    pub fn greatest_below(&self, limit: f64) -> f64 {
        let below = self.counts.iter().rfind(|(length, _)| *length < limit);
        below.map_or(0.0, |(length, _)| *length)
    }

    /// The expected greatest of `drawn` lengths.
    pub fn expected_greatest(&self, drawn: u32) -> f64 {
        self.expected_greatest_of(drawn, |length| length)
    }

    /// The expected greatest of a function, which grows with the length, of `drawn` lengths: what a warp with so many
    /// groups of lanes waits for.
    pub fn expected_greatest_of(&self, drawn: u32, function: impl Fn(f64) -> f64) -> f64 {
        let number = self.number();
        let (mut below, mut before, mut expected) = (0.0, 0.0, 0.0);
        for (length, count) in &self.counts {
            below += count;
            let probability = (below / number).powi(drawn as i32);
            expected += function(*length) * (probability - before);
            before = probability;
        }
        expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::row_lengths::COUNTS;

    fn rows(lengths: &[usize]) -> RowLengths {
        let mut counts = vec![0; COUNTS];
        for length in lengths {
            counts[RowLengths::bin(*length as u64)] += 1;
        }
        counts[COUNTS - 1] = lengths.iter().copied().max().unwrap_or(0) as u64;
        RowLengths::new(lengths.len(), lengths.iter().sum(), counts).expect("counts")
    }

    #[test]
    fn cut_rows_are_whole_parts_and_a_rest() {
        let rows = rows(&[3, 40, 50]);
        let lengths = Lengths::new(&rows);
        let cut = lengths.cut(16);
        assert_eq!((cut.number(), cut.sum(), cut.greatest()), (1.0 + 3.0 + 4.0, 93.0, 16.0));
    }

    #[test]
    fn rows_of_the_cut_length_are_one_segment() {
        let rows = rows(&[64; 10]);
        let lengths = Lengths::new(&rows);
        let cut = lengths.segments(Some(64));
        assert_eq!(cut, lengths.segments(None));
        assert_eq!((cut.number(), cut.sum(), cut.greatest()), (10.0, 640.0, 64.0));
    }

    #[test]
    fn the_greatest_of_many_is_the_greatest() {
        let lengths = LengthCounts::of_rows(&rows(&[1, 2, 3, 4]));
        assert_eq!(lengths.expected_greatest(1), 2.5);
        assert!(lengths.expected_greatest(64) > 3.99);
    }

    #[test]
    fn few_rows_with_work_make_a_warp_wait_no_longer_than_their_sum() {
        let lengths =
            LengthCounts::of_rows(&rows(&[0; 999].into_iter().chain([1]).collect::<Vec<_>>()));
        let steps = |length: f64| (length / 32.0).ceil();
        let waits = lengths.expected_greatest_of(8, steps);
        assert!(waits > 0.0079 && waits <= 8.0 * 0.001, "{waits}");
    }

    #[test]
    fn rows_of_the_limit_are_whole() {
        let (whole, longer) = LengthCounts::split(&rows(&[64; 10]), 64);
        assert_eq!((whole.number(), whole.sum(), longer.number()), (10.0, 640.0, 0.0));
        let (whole, longer) = LengthCounts::split(&rows(&[3, 32, 33, 200]), 32);
        assert_eq!((whole.number(), whole.sum(), longer.number()), (2.0, 35.0, 2.0));
    }

    #[test]
    fn a_bin_that_a_limit_divides_counts_as_spread_evenly() {
        let spread: Vec<usize> = (64..72).chain([1000]).collect();
        let (whole, longer) = LengthCounts::split(&rows(&spread), 64);
        assert_eq!((whole.number(), whole.sum()), (1.0, 64.0));
        assert_eq!(longer.number(), 8.0);
    }
}
