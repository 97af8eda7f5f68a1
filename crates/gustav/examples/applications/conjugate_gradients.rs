//! Conjugate gradients (Hestenes and Stiefel, 1952) on many right-hand sides at once: every column
//! has its own step lengths, which stay where the columns are, and all share one product in every
//! step.

use std::rc::Rc;

use gustav::{Csr, Result, Semiring};

use super::algebra::{Algebra, Flat, Shape, Term};
use super::engine::{Products, Spmm};
use super::graph;
use super::program::Program;

/// Residuals have become so much smaller at the end.
const TOLERANCE: f32 = 1e-4;
const STEPS: usize = 500;
/// Steps between looks at the residuals, each of which waits for the device.
const LOOK: usize = 8;
/// What neighbours weigh.
pub const ALPHA: f32 = 0.99;

/// I − α·D^(−1/2)·W·D^(−1/2) of the undirected graph W with degrees D: symmetric and positive
/// definite. With labels for right-hand sides its solution spreads them over the graph (Zhou et
/// al., 2004).
pub fn prepare(pattern: &Csr<f32>) -> Result<Csr<f32>> {
    graph::with_values(&graph::undirected(pattern, true)?, |i, j, lengths| {
        // Of the edges one is the vertex's own.
        let degree = |k: usize| (lengths[k] - 1) as f32;
        if i == j { 1.0 } else { -ALPHA / (degree(i) * degree(j)).sqrt() }
    })
}

/// B has smooth and rough columns.
fn right_hand_side(i: usize, j: usize) -> f32 {
    ((i * (j + 1)) % 17) as f32 / 8.0 - 1.0
}

/// The largest norm of a column of B − A·X, relative to B's.
pub fn error(a: &Csr<f32>, columns: usize, x: &[f32]) -> f64 {
    let view = a.view();
    let (mut left, mut whole) = (vec![0.0f64; columns], vec![0.0f64; columns]);
    let mut row = vec![0.0f64; columns];
    for i in 0..a.nrows() {
        for (j, sum) in row.iter_mut().enumerate() {
            *sum = f64::from(right_hand_side(i, j));
            whole[j] += *sum * *sum;
        }
        let (indices, values) = view.row(i);
        for (k, value) in indices.iter().zip(values) {
            for (sum, x) in row.iter_mut().zip(&x[*k as usize * columns..]) {
                *sum -= f64::from(*value) * f64::from(*x);
            }
        }
        left.iter_mut().zip(&row).for_each(|(left, r)| *left += r * r);
    }
    let relative = left.iter().zip(&whole).map(|(left, whole)| (left / whole.max(1e-30)).sqrt());
    // A NaN is the largest of all.
    relative.fold(0.0, |most, e| if e > most || e.is_nan() { e } else { most })
}

/// The solver with its vectors.
pub struct ConjugateGradients<'e, A: Algebra> {
    algebra: Rc<A>,
    spmm: Spmm<'e, A>,
    values: A::Vector,
    b: A::Matrix,
    x: A::Matrix,
    residual: A::Matrix,
    direction: A::Matrix,
    product: A::Matrix,
    norms: A::Matrix,
    next: A::Matrix,
    curvatures: A::Matrix,
    factors: A::Matrix,
}

impl<'e, A: Algebra> ConjugateGradients<'e, A> {
    pub fn new(products: &mut Products<'e, A>, a: &Csr<f32>, columns: usize) -> Result<Self> {
        let algebra = products.algebra.clone();
        let m = a.nrows();
        let shape = Shape { columns, transpose: false, semiring: Semiring::PlusTimes };
        let spmm = products.spmm(&algebra.pattern(a.pattern())?, shape)?;
        let b = (0..m * columns).map(|k| right_hand_side(k / columns, k % columns)).collect();
        let tall = || algebra.matrix(m, columns, vec![0.0; m * columns]);
        let wide = || algebra.matrix(1, columns, vec![0.0; columns]);
        Ok(ConjugateGradients {
            spmm,
            values: algebra.vector(a.values().as_slice().to_vec())?,
            b: algebra.matrix(m, columns, b)?,
            x: tall()?,
            residual: tall()?,
            direction: tall()?,
            product: tall()?,
            norms: wide()?,
            next: wide()?,
            curvatures: wide()?,
            factors: wide()?,
            algebra,
        })
    }
}

impl<A: Algebra> Program for ConjugateGradients<'_, A> {
    fn run(&mut self) -> Result<()> {
        let Self { algebra: on, x, residual, direction, product, factors, .. } = self;
        on.clear(x.flat_mut())?;
        on.copy(self.b.flat(), residual.flat_mut())?;
        on.copy(self.b.flat(), direction.flat_mut())?;
        let (r, norms) = (residual.flat(), self.norms.flat_mut());
        on.column_sums(Term::Product, r, r, norms)?;
        let goals = on.read(self.norms.flat())?;
        for step in 1..=STEPS {
            (self.spmm)(&self.values, direction, product)?;
            let curvatures = self.curvatures.flat_mut();
            on.column_sums(Term::Product, direction.flat(), product.flat(), curvatures)?;
            on.ratios(self.norms.flat(), self.curvatures.flat(), factors.flat_mut())?;
            on.add_columns(x.flat_mut(), 1.0, factors.flat(), direction.flat())?;
            on.add_columns(residual.flat_mut(), -1.0, factors.flat(), product.flat())?;
            let (r, next) = (residual.flat(), self.next.flat_mut());
            on.column_sums(Term::Product, r, r, next)?;
            if step % LOOK == 0 {
                let norms = on.read(self.next.flat())?;
                let solved = |(norm, goal): (&f32, &f32)| *norm <= goal * TOLERANCE * TOLERANCE;
                if norms.iter().zip(&goals).all(solved) {
                    break;
                }
            }
            on.ratios(self.next.flat(), self.norms.flat(), factors.flat_mut())?;
            on.scale_columns(direction.flat_mut(), factors.flat(), residual.flat())?;
            std::mem::swap(&mut self.norms, &mut self.next);
        }
        on.wait()
    }

    fn result(&self) -> Result<Vec<f32>> {
        self.algebra.read(self.x.flat())
    }
}
