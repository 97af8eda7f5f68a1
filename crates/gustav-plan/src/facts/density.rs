//! A density plot of a matrix.

use gustav_core::{Index, PatternView};

/// A histogram of the nonzeros over a grid of bins.
#[derive(Clone, Debug, PartialEq)]
pub struct Density {
    /// Bins from top to bottom.
    pub down: usize,
    /// Bins from left to right.
    pub across: usize,
    counts: Vec<u64>,
    // Positions of the matrix in one bin, at least 1.
    cells: f64,
}

impl Density {
    /// Counts `a` into at most `most` × `most` bins in the proportions of the matrix, one bin for
    /// each position when it is small. `stretch` is the height ÷ width of a bin as drawn.
    pub fn new<I: Index, O: Index>(a: &PatternView<'_, I, O>, most: usize, stretch: usize) -> Self {
        let (rows, cols) = (a.nrows(), a.ncols());
        let longer = rows.max(cols).max(1) as f64;
        // At least two bins, so that a very long matrix still shows as a stripe.
        let bins = |size: usize, most: usize| {
            let share = (most as f64 * size as f64 / longer).round() as usize;
            share.max(2).min(size)
        };
        let (down, across) = (bins(rows, most / stretch), bins(cols, most));
        let mut counts = vec![0; down * across];
        for row in 0..rows {
            let line = bin(row, rows, down) * across;
            for col in a.row(row) {
                counts[line + bin(col.to_usize(), cols, across)] += 1;
            }
        }
        let cells = (rows as f64 * cols as f64 / (down * across).max(1) as f64).max(1.0);
        Density { down, across, counts, cells }
    }

    /// The shades as digits, 0 for an empty bin and 1 to 9 for others; one string for each line of
    /// bins.
    pub fn digits(&self) -> Vec<String> {
        let digit = |shade: f64| char::from(b'0' + (9.0 * shade).ceil() as u8);
        let line = |i| (0..self.across).map(|j| digit(self.shade(i, j))).collect();
        (0..self.down).map(line).collect()
    }

    /// How full a bin is, from 0 (empty) to 1 (every position), on a logarithmic scale, so that a
    /// single nonzero among millions of positions is visible.
    pub fn shade(&self, down: usize, across: usize) -> f64 {
        match self.counts[down * self.across + across] {
            0 => 0.0,
            count => {
                let fullness = (count as f64 / self.cells).min(1.0);
                let darkest = -self.cells.ln().max(1.0);
                0.15 + 0.85 * (1.0 - fullness.ln() / darkest).clamp(0.0, 1.0)
            }
        }
    }
}

/// The bin of `index` among `bins` of equal size.
fn bin(index: usize, size: usize, bins: usize) -> usize {
    (index as u128 * bins as u128 / size as u128) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustav_core::Csr;

    fn matrix(nrows: usize, ncols: usize, rows: &[&[u32]]) -> Csr<f32> {
        let mut offsets = vec![0u32];
        let mut indices = Vec::new();
        for row in rows {
            indices.extend_from_slice(row);
            offsets.push(indices.len() as u32);
        }
        let values = vec![1.0; indices.len()];
        Csr::new(nrows, ncols, offsets, indices, values).expect("a valid matrix")
    }

    #[test]
    fn a_small_matrix_has_one_bin_a_cell() {
        let a = matrix(2, 3, &[&[0, 2], &[1]]);
        let d = Density::new(&a.pattern().view(), 64, 1);
        assert_eq!((d.down, d.across), (2, 3));
        assert_eq!(d.shade(0, 0), 1.0);
        assert_eq!(d.shade(0, 1), 0.0);
    }

    #[test]
    fn a_matrix_without_cells_has_no_bins() {
        for (m, n) in [(0, 0), (0, 5), (5, 0)] {
            let a = Csr::<f32>::empty(m, n).expect("small");
            let d = Density::new(&a.pattern().view(), 64, 2);
            assert_eq!(d.down * d.across, 0, "{m} x {n}");
        }
    }

    #[test]
    fn every_nonzero_is_counted_and_a_lone_one_shows() {
        let rows: Vec<Vec<u32>> = (0..1000).map(|i| vec![i]).collect();
        let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
        let d = Density::new(&matrix(1000, 1000, &rows).pattern().view(), 32, 1);
        assert_eq!(d.counts.iter().sum::<u64>(), 1000);
        for k in 0..32 {
            assert!(d.shade(k, k) > 0.1);
        }
    }

    #[test]
    fn digits_are_the_shades() {
        let a = matrix(2, 3, &[&[0, 2], &[1]]);
        assert_eq!(Density::new(&a.pattern().view(), 32, 1).digits(), ["909", "090"]);
    }
}
