//! The matrices of the programs, from a pattern.

use gustav::{Csr, Error, Pattern, Result};

/// The pattern of the undirected graph of `pattern`: both directions of every edge, and an edge
/// from every vertex to itself if `loops`, else none.
///
/// # Errors
/// [`Error::Shape`] for a pattern that is not square.
pub fn undirected(pattern: &Csr<f32>, loops: bool) -> Result<Pattern> {
    let transposed = directed(pattern)?.view().transpose()?;
    let (one, other) = (pattern.view(), transposed.view());
    let (mut offsets, mut indices) = (vec![0u32], Vec::new());
    for i in 0..pattern.nrows() {
        let both = one.row(i).0.iter().chain(other.row(i).0).filter(|j| **j != i as u32);
        let own = loops.then_some(i as u32);
        let mut neighbours: Vec<u32> = both.copied().chain(own).collect();
        neighbours.sort_unstable();
        neighbours.dedup();
        indices.extend(neighbours);
        offsets.push(indices.len() as u32);
    }
    Pattern::new(pattern.nrows(), pattern.nrows(), offsets, indices)
}

/// Refuses a pattern that is not square.
pub fn directed(pattern: &Csr<f32>) -> Result<&Csr<f32>> {
    if pattern.nrows() == pattern.ncols() {
        return Ok(pattern);
    }
    Err(Error::Shape {
        op: "graph",
        expected: "as many columns as rows".into(),
        found: format!("{} x {}", pattern.nrows(), pattern.ncols()),
    })
}

/// `value(row, column, lengths)` of every nonzero of `pattern`; `lengths` are those of the rows.
pub fn with_values(
    pattern: &Pattern,
    value: impl Fn(usize, usize, &[usize]) -> f32,
) -> Result<Csr<f32>> {
    let view = pattern.view();
    let lengths: Vec<usize> = (0..view.nrows()).map(|i| view.row_len(i)).collect();
    let mut values = Vec::with_capacity(view.nnz());
    for i in 0..view.nrows() {
        values.extend(view.row(i).iter().map(|j| value(i, *j as usize, &lengths)));
    }
    Csr::from_pattern(pattern, values)
}
