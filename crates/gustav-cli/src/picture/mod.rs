//! Pictures of a matrix: spy plot and histogram of row lengths.

mod drawing;
mod png;
mod svg;
mod terminal;

pub use drawing::Drawing;
pub use png::encode as to_png;
pub use svg::write as to_svg;
pub use terminal::{histogram, spy};

pub use gustav::Density;
use gustav::{CsrView, Index, Scalar};

/// Row lengths in bins that double: 0, 1, 2–3, 4–7 and so on.
#[derive(Clone, Debug, PartialEq)]
pub struct RowLengths {
    /// First and last length of a bin, and the number of rows with such a length.
    pub bins: Vec<(usize, usize, u64)>,
}

impl RowLengths {
    /// Counts the rows of `a`; bins up to the longest row.
    pub fn new<T: Scalar, I: Index, O: Index>(a: &CsrView<'_, T, I, O>) -> Self {
        let mut bins: Vec<(usize, usize, u64)> = Vec::new();
        for row in 0..a.nrows() {
            let length = a.row_len(row);
            let k = (usize::BITS - length.leading_zeros()) as usize;
            while bins.len() <= k {
                let n = bins.len();
                let first = if n == 0 { 0 } else { 1 << (n - 1) };
                bins.push((first, (first * 2).max(1) - 1, 0));
            }
            bins[k].2 += 1;
        }
        RowLengths { bins }
    }

    /// A bin's lengths as text.
    pub fn label(first: usize, last: usize) -> String {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustav::Csr;

    #[test]
    fn row_lengths_double() {
        let indices = vec![1, 0, 1, 2, 0, 1, 2, 3, 4];
        let a = Csr::<f32>::new(4, 8, vec![0, 0, 1, 4, 9], indices, vec![1.0; 9])
            .expect("a valid matrix");
        let lengths = RowLengths::new(&a.view());
        assert_eq!(lengths.bins, [(0, 0, 1), (1, 1, 1), (2, 3, 1), (4, 7, 1)]);
    }
}
