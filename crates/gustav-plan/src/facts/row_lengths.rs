//! Histogram of row lengths, counted by a backend on its device.

/// Lengths with up to this many bits have a bin each.
pub const EXACT_BITS: u32 = 6;
/// log2 of the bins for every power of two of longer lengths.
pub const OCTAVE_BITS: u32 = 3;
/// Number of bins.
pub const BINS: usize = (1 << EXACT_BITS) + ((48 - EXACT_BITS as usize) << OCTAVE_BITS);
/// log2 of the first cut length; cut lengths are powers of two.
pub const FIRST_CUT_BITS: u32 = 5;
/// Number of cut lengths counted.
pub const CUTS: usize = 8;
/// Length of the array of counts, see [`RowLengths::new`].
pub const COUNTS: usize = BINS + 2 * CUTS + 1;

/// Number of rows of each length, and number of parts that cutting the longest rows would make.
#[derive(Clone, Debug, PartialEq)]
pub struct RowLengths {
    rows: usize,
    nnz: usize,
    counts: Vec<u64>,
}

impl RowLengths {
    /// `counts`: rows in each bin, then for each cut length the parts, then for each cut length the
    /// rows that are cut, then the length of the longest row. `None` unless there are [`COUNTS`]
    /// numbers.
    pub fn new(rows: usize, nnz: usize, counts: Vec<u64>) -> Option<Self> {
        (counts.len() == COUNTS).then_some(RowLengths { rows, nnz, counts })
    }

    /// Counts rows of these lengths, which have `nnz` nonzeros together. Cut rows count as if each began where a chunk
    /// of nonzeros begins.
    pub fn of(nnz: usize, lengths: impl Iterator<Item = u64>) -> Self {
        let mut rows = 0;
        let mut counts = vec![0; COUNTS];
        for length in lengths {
            rows += 1;
            add(&mut counts, length, length, 1);
        }
        RowLengths { rows, nnz, counts }
    }

    /// `rows` rows that share `nnz` nonzeros evenly.
    pub fn alike(rows: usize, nnz: usize) -> Self {
        let mut counts = vec![0; COUNTS];
        let (length, longer) = ((nnz / rows.max(1)) as u64, (nnz % rows.max(1)) as u64);
        for (length, rows) in [(length, rows as u64 - longer), (length + 1, longer)] {
            if rows > 0 {
                add(&mut counts, length, length, rows);
            }
        }
        RowLengths { rows, nnz, counts }
    }

    /// The bin of rows with `length` nonzeros: one for each length below 2⁶, then eight for each
    /// power of two.
    pub fn bin(length: u64) -> usize {
        if length < 1 << EXACT_BITS {
            return length as usize;
        }
        let octave = length.ilog2();
        let eighth = length >> (octave - OCTAVE_BITS) & ((1 << OCTAVE_BITS) - 1);
        let bin = (1 << EXACT_BITS) + ((octave - EXACT_BITS) << OCTAVE_BITS) as usize;
        (bin + eighth as usize).min(BINS - 1)
    }

    /// The smallest length of a bin.
    fn least(bin: usize) -> f64 {
        let Some(over) = bin.checked_sub(1 << EXACT_BITS) else { return bin as f64 };
        let (octave, eighth) = (over >> OCTAVE_BITS, over & ((1 << OCTAVE_BITS) - 1));
        (1.0 + eighth as f64 / 8.0) * (1u64 << (octave as u32 + EXACT_BITS)) as f64
    }

    /// The smallest length of a bin, and that of the next.
    pub fn bounds(bin: usize) -> (f64, f64) {
        (Self::least(bin), Self::least(bin + 1))
    }

    /// The middle of the lengths of a bin.
    pub fn middle(bin: usize) -> f64 {
        let least = Self::least(bin);
        if bin < 1 << EXACT_BITS { least } else { (least + Self::least(bin + 1)) / 2.0 }
    }

    /// Rows in each bin.
    pub fn bins(&self) -> &[u64] {
        &self.counts[..BINS]
    }

    /// If rows are cut into parts of 2^`bits` nonzeros: the number of these parts and of rows that
    /// are cut. `bits` must be one of the counted cut lengths.
    pub fn cut(&self, bits: u32) -> (usize, usize) {
        let i = BINS + (bits.max(FIRST_CUT_BITS) - FIRST_CUT_BITS).min(CUTS as u32 - 1) as usize;
        (self.counts[i] as usize, self.counts[i + CUTS] as usize)
    }

    /// Length of the longest row.
    pub fn max(&self) -> usize {
        self.counts[COUNTS - 1] as usize
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of nonempty rows.
    pub fn filled(&self) -> usize {
        self.rows - self.counts[0] as usize
    }

    /// Mean length, 0 without rows.
    pub fn mean(&self) -> f64 {
        self.nnz as f64 / self.rows.max(1) as f64
    }

    /// Mean length of the nonempty rows, 0 without any.
    pub fn mean_filled(&self) -> f64 {
        self.nnz as f64 / self.filled().max(1) as f64
    }

    /// Mean over the nonzeros of the length of their row: the row length that most of the work has.
    pub fn mean_of_nonzeros(&self) -> f64 {
        let filled = self.bins().iter().enumerate().filter(|(_, rows)| **rows > 0);
        let sum: f64 = filled.map(|(bin, rows)| *rows as f64 * Self::least(bin).powi(2)).sum();
        sum / self.nnz.max(1) as f64
    }

    /// Standard deviation over the mean, from the bins.
    pub fn variation(&self) -> f64 {
        let mean = self.mean();
        if mean == 0.0 {
            return 0.0;
        }
        let squares = self.bins().iter().enumerate();
        let squared = |(bin, rows): (usize, &u64)| *rows as f64 * (Self::least(bin) - mean).powi(2);
        (squares.map(squared).sum::<f64>() / self.rows as f64).sqrt() / mean
    }
}

/// Adds `rows` rows of `length` nonzeros to the counts; cutting makes parts of `span` of them.
pub(crate) fn add(counts: &mut [u64], length: u64, span: u64, rows: u64) {
    counts[RowLengths::bin(length)] += rows;
    for cut in 0..CUTS {
        let longest = 1 << (FIRST_CUT_BITS as usize + cut);
        if length >= longest {
            counts[BINS + cut] += rows * span.div_ceil(longest);
            counts[BINS + CUTS + cut] += rows;
        }
    }
    counts[COUNTS - 1] = counts[COUNTS - 1].max(length);
}

/// How similar the columns of neighbouring rows are, from a sample: they could share loads of B.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct RowSimilarity {
    /// Distinct columns per nonzero in aligned blocks of 2, 3, 4 and 8 rows; 1 shares nothing.
    pub distinct: [f64; 4],
}

impl RowSimilarity {
    /// `counts`: for each height the nonzeros and the distinct columns of the sampled blocks.
    pub fn new(counts: [(u64, u64); 4]) -> Self {
        let ratio = |(nonzeros, distinct)| {
            if nonzeros == 0 { 1.0 } else { distinct as f64 / nonzeros as f64 }
        };
        RowSimilarity { distinct: counts.map(ratio) }
    }
}

/// How tiles of rows of B would divide the rows of A, from a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TileReuse {
    /// Mean nonzeros of a segment: consecutive nonzeros of a row whose columns lie in one tile.
    pub per_segment: f64,
    /// Tiles of B.
    pub tiles: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lengths: &[u64]) -> RowLengths {
        let mut counts = vec![0; COUNTS];
        for &length in lengths {
            counts[RowLengths::bin(length)] += 1;
        }
        counts[COUNTS - 1] = lengths.iter().copied().max().unwrap_or(0);
        RowLengths::new(lengths.len(), lengths.iter().sum::<u64>() as usize, counts).unwrap()
    }

    #[test]
    fn bins_ascend_and_begin_at_their_least_length() {
        let mut last = 0;
        for length in (0..5000).chain([1 << 20, 1 << 40, 1 << 60]) {
            let bin = RowLengths::bin(length);
            assert!(bin >= last && bin < BINS, "{length}");
            assert!(RowLengths::least(bin) <= length as f64, "{length}");
            last = bin;
        }
        assert_eq!(RowLengths::least(RowLengths::bin(4096)), 4096.0);
    }

    #[test]
    fn a_few_numbers() {
        let lengths = of(&[0, 2, 4, 10]);
        assert_eq!((lengths.mean(), lengths.filled(), lengths.max()), (4.0, 3, 10));
        assert_eq!(lengths.mean_of_nonzeros(), 7.5);
        assert!((lengths.variation() - 14f64.sqrt() / 4.0).abs() < 1e-12);
        assert_eq!(of(&[]).variation(), 0.0);
        assert_eq!(RowLengths::new(1, 1, vec![0; 3]), None);
    }

    #[test]
    fn similarity_without_samples_shares_nothing() {
        let similarity = RowSimilarity::new([(6, 3), (0, 0), (8, 2), (5, 4)]);
        assert_eq!(similarity.distinct, [0.5, 1.0, 0.25, 0.8]);
    }
}
