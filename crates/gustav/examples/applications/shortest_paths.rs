//! Shortest paths between all pairs: products over min and +, until no path becomes shorter
//! (Bellman, 1958, from all ends at once). With fewer columns, the paths to so many vertices.

use gustav::{Csr, Dense, Layout, Result};

use super::engine::Engine;

/// Edges of lengths 1 to 10, and of length 0 from every vertex to itself.
pub fn prepare(pattern: &Csr<f32>) -> Result<Csr<f32>> {
    let view = pattern.view();
    let (mut offsets, mut indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for i in 0..pattern.nrows() {
        let others = view.row(i).0.iter().copied().filter(|j| *j != i as u32);
        let mut row: Vec<u32> = others.collect();
        let at = row.partition_point(|j| (*j as usize) < i);
        row.insert(at, i as u32);
        let length = |j: &u32| match *j as usize {
            j if j == i => 0.0,
            j => 1.0 + ((i + j) % 10) as f32,
        };
        values.extend(row.iter().map(length));
        indices.extend(row);
        offsets.push(indices.len() as u32);
    }
    Csr::new(pattern.nrows(), pattern.ncols(), offsets, indices, values)
}

/// Distances from every vertex to the first `columns` vertices, and the number of products.
pub fn solve(a: &Csr<f32>, columns: usize, engine: &mut dyn Engine) -> Result<(Dense<f32>, usize)> {
    let start = |i: usize, j: usize| if i == j { 0.0 } else { f32::INFINITY };
    let mut distances = Dense::from_fn(a.ncols(), columns, Layout::RowMajor, start)?;
    let mut next = Dense::zeros(a.nrows(), columns, Layout::RowMajor)?;
    // A shortest path has fewer edges than there are vertices.
    for step in 1..=a.nrows() {
        engine.multiply(a, &distances, &mut next)?;
        std::mem::swap(&mut distances, &mut next);
        if distances.data() == next.data() {
            return Ok((distances, step));
        }
    }
    Ok((distances, a.nrows()))
}

#[cfg(test)]
mod tests {
    use super::super::engine::min_plus;
    use super::*;

    #[test]
    fn distances_on_a_path_are_sums_of_its_edges() {
        // 0 - 1 - 2 - 3: lengths 2, 4, 6.
        let offsets = vec![0, 1, 3, 5, 6];
        let pattern = Csr::new(4, 4, offsets, vec![1, 0, 2, 1, 3, 2], vec![1.0; 6]).unwrap();
        let a = prepare(&pattern).unwrap();
        let mut engine = min_plus(&gustav::Device::cpu(), &a, 4, None).unwrap();
        let (d, steps) = solve(&a, 4, &mut *engine).unwrap();
        assert_eq!((d.get(0, 3), d.get(3, 0), d.get(1, 3), steps), (12.0, 12.0, 10.0, 4));
    }
}
