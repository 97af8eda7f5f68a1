//! Conjugate gradients (Hestenes and Stiefel, 1952) on many right-hand sides at once: every
//! column has its own step lengths, and all share one product in every step.

use gustav::{Csr, Dense, Layout, Result};

use super::engine::Engine;

// Residuals have become so much smaller at the end.
const TOLERANCE: f32 = 1e-4;
const STEPS: usize = 500;

/// The Laplacian of the pattern's graph, plus a tenth of the identity: symmetric and positive
/// definite.
pub fn prepare(pattern: &Csr<f32>) -> Result<Csr<f32>> {
    let transposed = pattern.view().transpose()?;
    let (one, other) = (pattern.view(), transposed.view());
    let (mut offsets, mut indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for i in 0..pattern.nrows() {
        let both = one.row(i).0.iter().chain(other.row(i).0).filter(|j| **j != i as u32);
        let mut neighbours: Vec<u32> = both.copied().collect();
        neighbours.sort_unstable();
        neighbours.dedup();
        let degree = neighbours.len() as f32;
        let at = neighbours.partition_point(|j| (*j as usize) < i);
        neighbours.insert(at, i as u32);
        values.extend(neighbours.iter().map(|j| if *j == i as u32 { degree + 0.1 } else { -1.0 }));
        indices.extend(neighbours);
        offsets.push(indices.len() as u32);
    }
    Csr::new(pattern.nrows(), pattern.nrows(), offsets, indices, values)
}

/// Solves A·X = B for a B of smooth and rough columns; returns X and the number of products.
pub fn solve(a: &Csr<f32>, columns: usize, engine: &mut dyn Engine) -> Result<(Dense<f32>, usize)> {
    let m = a.nrows();
    let b = |i: usize, j: usize| ((i * (j + 1)) % 17) as f32 / 8.0 - 1.0;
    let mut residual = Dense::from_fn(m, columns, Layout::RowMajor, b)?;
    let mut direction = Dense::from_fn(m, columns, Layout::RowMajor, b)?;
    let mut x = Dense::zeros(m, columns, Layout::RowMajor)?;
    let mut product = Dense::zeros(m, columns, Layout::RowMajor)?;
    let mut norms = dots(&residual, &residual);
    let goals: Vec<f64> = norms.iter().map(|n| n * f64::from(TOLERANCE * TOLERANCE)).collect();
    for step in 0..STEPS {
        if norms.iter().zip(&goals).all(|(norm, goal)| norm <= goal) {
            return Ok((x, step));
        }
        engine.multiply(a, &direction, &mut product)?;
        let curvatures = dots(&direction, &product);
        let steps: Vec<f32> = ratios(&norms, &curvatures);
        let back: Vec<f32> = steps.iter().map(|s| -s).collect();
        add(&mut x, &steps, &direction);
        add(&mut residual, &back, &product);
        let next = dots(&residual, &residual);
        let turns = ratios(&next, &norms);
        for (d, r) in rows(&mut direction).zip(residual.data().chunks_exact(columns)) {
            for ((d, r), turn) in d.iter_mut().zip(r).zip(&turns) {
                *d = r + turn * *d;
            }
        }
        norms = next;
    }
    Ok((x, STEPS))
}

fn rows(matrix: &mut Dense<f32>) -> impl Iterator<Item = &mut [f32]> {
    let n = matrix.ncols();
    matrix.data_mut().chunks_exact_mut(n)
}

/// Scalar products of the columns of two matrices.
fn dots(x: &Dense<f32>, y: &Dense<f32>) -> Vec<f64> {
    let n = x.ncols();
    let mut sums = vec![0.0; n];
    for (x, y) in x.data().chunks_exact(n).zip(y.data().chunks_exact(n)) {
        for ((sum, x), y) in sums.iter_mut().zip(x).zip(y) {
            *sum += f64::from(*x) * f64::from(*y);
        }
    }
    sums
}

/// Quotients; zero for columns that are solved.
fn ratios(over: &[f64], under: &[f64]) -> Vec<f32> {
    let ratio = |(x, y): (&f64, &f64)| if *y > 0.0 { (x / y) as f32 } else { 0.0 };
    over.iter().zip(under).map(ratio).collect()
}

/// Adds the columns of `y`, each times its factor, to those of `x`.
fn add(x: &mut Dense<f32>, factors: &[f32], y: &Dense<f32>) {
    let n = y.ncols();
    for (x, y) in rows(x).zip(y.data().chunks_exact(n)) {
        for ((x, y), factor) in x.iter_mut().zip(y).zip(factors) {
            *x += factor * y;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::{Rival, plus_times};
    use super::*;

    #[test]
    fn the_residual_is_as_small_as_asked_for() {
        let grid = "grid5:10x10".parse::<gustav::io::Generator>().unwrap();
        let a = prepare(&grid.build(1).unwrap()).unwrap();
        let device = gustav::Device::cpu();
        let mut engine = plus_times(&device, &a, 4, Some(Rival::Loop)).unwrap();
        let (x, steps) = solve(&a, 4, &mut *engine).unwrap();
        assert!(steps > 3 && steps < 100, "{steps}");
        let mut ax = Dense::zeros(100, 4, Layout::RowMajor).unwrap();
        engine.multiply(&a, &x, &mut ax).unwrap();
        for i in 0..100 {
            for j in 0..4 {
                let b = ((i * (j + 1)) % 17) as f32 / 8.0 - 1.0;
                assert!((ax.get(i, j) - b).abs() < 1e-2, "{i} {j}");
            }
        }
    }
}
