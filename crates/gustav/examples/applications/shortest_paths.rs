//! Shortest paths between all pairs: products over min and +, until no path becomes shorter
//! (Bellman, 1958, from all ends at once). With fewer columns, the paths to so many vertices.

use std::rc::Rc;

use gustav::{Csr, Pattern, Result, Semiring};

use super::algebra::{Algebra, Flat, Shape, Term};
use super::engine::{Products, Spmm};
use super::graph;
use super::program::Program;

/// Steps between looks at the changes, each of which waits for the device.
const LOOK: usize = 4;

/// Edges of lengths 1 to 10, and of length 0 from every vertex to itself.
pub fn prepare(pattern: &Csr<f32>) -> Result<Csr<f32>> {
    let view = graph::directed(pattern)?.view();
    let (mut offsets, mut indices) = (vec![0u32], Vec::new());
    for i in 0..pattern.nrows() {
        let others = view.row(i).0.iter().copied().filter(|j| *j != i as u32);
        let mut row: Vec<u32> = others.collect();
        let at = row.partition_point(|j| (*j as usize) < i);
        row.insert(at, i as u32);
        indices.extend(row);
        offsets.push(indices.len() as u32);
    }
    let with_loops = Pattern::new(pattern.nrows(), pattern.ncols(), offsets, indices)?;
    let length = |i: usize, j: usize| if i == j { 0.0 } else { 1.0 + ((i + j) % 10) as f32 };
    graph::with_values(&with_loops, |i, j, _| length(i, j))
}

/// The most that another step shortens a path, or that a vertex is from itself.
pub fn error(a: &Csr<f32>, columns: usize, x: &[f32]) -> f64 {
    let view = a.view();
    let mut most = 0.0f64;
    for i in 0..a.nrows() {
        for j in 0..columns {
            let found = x[i * columns + j];
            let (indices, values) = view.row(i);
            let ways = indices.iter().zip(values);
            let least = ways.map(|(k, v)| v + x[*k as usize * columns + j]);
            let least = least.fold(if i == j { 0.0 } else { f32::INFINITY }, f32::min);
            // Infinite paths do not differ.
            if found != least {
                let distance = f64::from((found - least).abs());
                most = if distance > most || distance.is_nan() { distance } else { most };
            }
        }
    }
    most
}

/// The iteration with its distances.
pub struct ShortestPaths<'e, A: Algebra> {
    algebra: Rc<A>,
    spmm: Spmm<'e, A>,
    values: A::Vector,
    start: A::Matrix,
    distances: A::Matrix,
    next: A::Matrix,
    changes: A::Matrix,
    vertices: usize,
}

impl<'e, A: Algebra> ShortestPaths<'e, A> {
    pub fn new(products: &mut Products<'e, A>, a: &Csr<f32>, columns: usize) -> Result<Self> {
        let algebra = products.algebra.clone();
        let n = a.nrows();
        let shape = Shape { columns, transpose: false, semiring: Semiring::MinPlus };
        let from = |k: usize| if k / columns == k % columns { 0.0 } else { f32::INFINITY };
        let start = algebra.matrix(n, columns, (0..n * columns).map(from).collect())?;
        let tall = || algebra.matrix(n, columns, vec![0.0; n * columns]);
        Ok(ShortestPaths {
            spmm: products.spmm(&algebra.pattern(a.pattern())?, shape)?,
            values: algebra.vector(a.values().as_slice().to_vec())?,
            start,
            distances: tall()?,
            next: tall()?,
            changes: algebra.matrix(1, columns, vec![0.0; columns])?,
            vertices: n,
            algebra,
        })
    }
}

impl<A: Algebra> Program for ShortestPaths<'_, A> {
    fn run(&mut self) -> Result<()> {
        let Self { algebra: on, distances, next, changes, .. } = self;
        on.copy(self.start.flat(), distances.flat_mut())?;
        // A shortest path has fewer edges than there are vertices.
        for step in 1..=self.vertices {
            (self.spmm)(&self.values, distances, next)?;
            std::mem::swap(distances, next);
            if step % LOOK == 0 {
                let (one, other) = (distances.flat(), next.flat());
                on.column_sums(Term::Unequal, one, other, changes.flat_mut())?;
                if on.read(changes.flat())?.iter().all(|changes| *changes == 0.0) {
                    break;
                }
            }
        }
        on.wait()
    }

    fn result(&self) -> Result<Vec<f32>> {
        self.algebra.read(self.distances.flat())
    }
}
