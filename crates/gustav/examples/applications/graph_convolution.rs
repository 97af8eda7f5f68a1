//! The forward pass of a graph convolution of two layers (Kipf and Welling, 2017), with the mean
//! over neighbours as its aggregation: H = A · relu(A · X · W₁) · W₂.

use gustav::{Csr, Dense, Layout, Result};

use super::engine::Engine;

/// Every row of the pattern sums to one.
pub fn prepare(pattern: &Csr<f32>) -> Result<Csr<f32>> {
    let view = pattern.view();
    let share = |i: usize| std::iter::repeat_n(1.0 / view.row_len(i) as f32, view.row_len(i));
    let values: Vec<f32> = (0..pattern.nrows()).flat_map(share).collect();
    Csr::from_pattern(pattern.pattern(), values)
}

/// The output for features of so many columns, half as many of them in the second layer; and
/// the number of products.
pub fn solve(a: &Csr<f32>, columns: usize, engine: &mut dyn Engine) -> Result<(Dense<f32>, usize)> {
    let weight = |i: usize, j: usize| ((i * 7 + j * 3) % 11) as f32 / 55.0 - 0.1;
    let feature = |i: usize, j: usize| ((i * 5 + j) % 13) as f32 / 13.0;
    let x = Dense::from_fn(a.ncols(), columns, Layout::RowMajor, feature)?;
    let first = Dense::from_fn(columns, columns, Layout::RowMajor, weight)?;
    let second = Dense::from_fn(columns, columns, Layout::RowMajor, weight)?;
    let mut hidden = Dense::zeros(a.nrows(), columns, Layout::RowMajor)?;
    let mut output = Dense::zeros(a.nrows(), columns, Layout::RowMajor)?;
    engine.multiply(a, &dense(&x, &first)?, &mut hidden)?;
    hidden.data_mut().iter_mut().for_each(|h| *h = h.max(0.0));
    engine.multiply(a, &dense(&hidden, &second)?, &mut output)?;
    Ok((output, 2))
}

/// The product of two dense matrices, its rows shared out to the cores.
fn dense(x: &Dense<f32>, w: &Dense<f32>) -> Result<Dense<f32>> {
    let (m, k, n) = (x.nrows(), x.ncols(), w.ncols());
    let mut y = Dense::zeros(m, n, Layout::RowMajor)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = m.div_ceil(cores).max(1);
    let shares = y.data_mut().chunks_mut(share * n).zip(x.data().chunks(share * k));
    std::thread::scope(|scope| {
        for (y, x) in shares {
            scope.spawn(move || {
                for (y, x) in y.chunks_exact_mut(n).zip(x.chunks_exact(k)) {
                    for (x, w) in x.iter().zip(w.data().chunks_exact(n)) {
                        y.iter_mut().zip(w).for_each(|(y, w)| *y += x * w);
                    }
                }
            });
        }
    });
    Ok(y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_mean_sum_to_one_and_dense_products_are_right() {
        let pattern = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 0], vec![5.0; 3]).unwrap();
        assert_eq!(prepare(&pattern).unwrap().values(), [0.5, 0.5, 1.0]);
        let x = Dense::from_row_major(2, 2, vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(dense(&x, &x).unwrap().data(), [7.0, 10.0, 15.0, 22.0]);
    }
}
