//! PageRank (Page and Brin, 1998) by power iteration: products with a vector. Vertices without a
//! way out lead everywhere.

use std::rc::Rc;

use gustav::{Csr, Result};

use super::algebra::{Algebra, Flat, Term};
use super::engine::{Products, Spmv};
use super::graph;
use super::program::Program;

/// The probability of following an edge.
const DAMPING: f32 = 0.85;
/// The sum of changes at the end.
const TOLERANCE: f32 = 1e-6;
const STEPS: usize = 200;
/// Steps between looks at the changes, each of which waits for the device.
const LOOK: usize = 8;

/// Element (i, j) is the probability of going from j to i: the damping over the edges out of j,
/// which are row j of `pattern`.
pub fn prepare(pattern: &Csr<f32>) -> Result<Csr<f32>> {
    let view = graph::directed(pattern)?.view();
    let share = |j: usize| vec![DAMPING / view.row_len(j) as f32; view.row_len(j)];
    let shares: Vec<f32> = (0..view.nrows()).flat_map(share).collect();
    Csr::from_pattern(pattern.pattern(), shares)?.view().transpose()
}

/// One for vertices without a way out.
fn dead_ends(a: &Csr<f32>) -> Vec<f32> {
    let mut ends = vec![1.0; a.nrows()];
    a.indices().iter().for_each(|j| ends[*j as usize] = 0.0);
    ends
}

/// The sum of what another step changes.
pub fn error(a: &Csr<f32>, _: usize, x: &[f32]) -> f64 {
    let (view, n) = (a.view(), a.nrows() as f64);
    let lost: f64 = x.iter().zip(dead_ends(a)).map(|(x, end)| f64::from(x * end)).sum();
    let rest = (1.0 - f64::from(DAMPING) + f64::from(DAMPING) * lost) / n;
    let change = |i: usize| {
        let (indices, values) = view.row(i);
        let terms = indices.iter().zip(values);
        let sum: f64 = terms.map(|(j, v)| f64::from(*v) * f64::from(x[*j as usize])).sum();
        (sum + rest - f64::from(x[i])).abs()
    };
    (0..a.nrows()).map(change).sum()
}

/// The iteration with its vectors.
pub struct PageRank<'e, A: Algebra> {
    algebra: Rc<A>,
    spmv: Spmv<'e, A>,
    values: A::Vector,
    start: A::Vector,
    ends: A::Vector,
    x: A::Vector,
    y: A::Vector,
    number: A::Vector,
    vertices: usize,
}

impl<'e, A: Algebra> PageRank<'e, A> {
    pub fn new(products: &mut Products<'e, A>, a: &Csr<f32>) -> Result<Self> {
        let algebra = products.algebra.clone();
        let (n, of) = (a.nrows(), |values| algebra.vector(values));
        Ok(PageRank {
            spmv: products.spmv(&algebra.pattern(a.pattern())?)?,
            values: of(a.values().as_slice().to_vec())?,
            start: of(vec![1.0 / n as f32; n])?,
            ends: of(dead_ends(a))?,
            x: of(vec![0.0; n])?,
            y: of(vec![0.0; n])?,
            number: of(vec![0.0])?,
            vertices: n,
            algebra,
        })
    }
}

impl<A: Algebra> Program for PageRank<'_, A> {
    fn run(&mut self) -> Result<()> {
        let Self { algebra: on, x, y, number, .. } = self;
        let n = self.vertices as f32;
        on.copy(self.start.flat(), x.flat_mut())?;
        for step in 1..=STEPS {
            (self.spmv)(&self.values, x, y)?;
            on.column_sums(Term::Product, x.flat(), self.ends.flat(), number.flat_mut())?;
            on.add_number(y.flat_mut(), (1.0 - DAMPING) / n, DAMPING / n, number.flat())?;
            if step % LOOK == 0 {
                on.column_sums(Term::Distance, x.flat(), y.flat(), number.flat_mut())?;
                if on.read(number.flat())?[0] <= TOLERANCE {
                    std::mem::swap(x, y);
                    break;
                }
            }
            std::mem::swap(x, y);
        }
        on.wait()
    }

    fn result(&self) -> Result<Vec<f32>> {
        self.algebra.read(self.x.flat())
    }
}
