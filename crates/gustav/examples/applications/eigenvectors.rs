//! The smallest eigenvalues of a graph's matrix and their eigenvectors, as spectral clustering and drawings of graphs
//! need them: LOBPCG (Knyazev, 2001) without a preconditioner. A step multiplies all residuals at once, and takes the
//! best vectors in the space of the current ones, their residuals and the last directions. That space is brought to
//! an orthonormal basis by its Gram matrix, from which directions that add nothing are dropped (Stathopoulos and Wu,
//! 2002): small matrices, which are the only ones that the host sees.

use std::rc::Rc;

use gustav::{Csr, Error, Result, Semiring};
use nalgebra::{DMatrix, SymmetricEigen};

use super::algebra::{Algebra, Flat, Shape, Term};
use super::conjugate_gradients::ALPHA;
use super::engine::{Products, Spmm};
use super::program::Program;

/// Norms of residuals at the end; the eigenvalues are below 2.
const TOLERANCE: f32 = 1e-3;
const STEPS: usize = 300;
/// Eigenvalues of the scaled Gram matrix that are rounding errors, relative to the largest.
const RANK: f64 = 1e-6;
/// Bases of the space: current vectors, residuals, directions.
const BASES: usize = 3;

/// Deterministic start: no column is near another's multiple.
fn start(i: usize, j: usize) -> f32 {
    let mixed = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(j as u32 % 61 + 2);
    let mixed = (mixed ^ j as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 40) as f32 / (1 << 23) as f32 - 1.0
}

/// The largest of: norms of residuals, inner products that should be 0 or 1, and the distance of the smallest
/// eigenvalue to 1 − α, which a graph with an edge has.
pub fn error(a: &Csr<f32>, columns: usize, x: &[f32]) -> f64 {
    let (view, n) = (a.view(), a.nrows());
    let x = DMatrix::from_row_iterator(n, columns, x.iter().map(|v| f64::from(*v)));
    let mut product = DMatrix::<f64>::zeros(n, columns);
    for i in 0..n {
        let (indices, values) = view.row(i);
        for (k, value) in indices.iter().zip(values) {
            for j in 0..columns {
                product[(i, j)] += f64::from(*value) * x[(*k as usize, j)];
            }
        }
    }
    let mut most = 0.0f64;
    let mut note = |e: f64| most = if e > most || e.is_nan() { e } else { most };
    let mut smallest = f64::INFINITY;
    for j in 0..columns {
        let value = x.column(j).dot(&product.column(j));
        smallest = smallest.min(value);
        note((product.column(j) - x.column(j) * value).norm());
    }
    let gram = x.tr_mul(&x) - DMatrix::identity(columns, columns);
    gram.iter().for_each(|e| note(e.abs()));
    if a.nnz() > n {
        note((smallest - f64::from(1.0 - ALPHA)).abs());
    }
    most
}

/// One basis of the space, and A times it.
struct Basis<A: Algebra> {
    vectors: A::Matrix,
    products: A::Matrix,
}

/// The solver with its vectors.
pub struct Eigenvectors<'e, A: Algebra> {
    algebra: Rc<A>,
    spmm: Spmm<'e, A>,
    values: A::Vector,
    first: A::Matrix,
    /// Current vectors X, residuals W, directions P.
    bases: [Basis<A>; BASES],
    /// The next directions, and vectors.
    next: [Basis<A>; 2],
    /// Inner products of two bases, as they are and with A between them.
    grams: Vec<(A::Matrix, A::Matrix)>,
    columns: usize,
}

impl<'e, A: Algebra> Eigenvectors<'e, A> {
    pub fn new(products: &mut Products<'e, A>, a: &Csr<f32>, columns: usize) -> Result<Self> {
        let algebra = products.algebra.clone();
        let n = a.nrows();
        let shape = Shape { columns, transpose: false, semiring: Semiring::PlusTimes };
        let spmm = products.spmm(&algebra.pattern(a.pattern())?, shape)?;
        let first = (0..n * columns).map(|k| start(k / columns, k % columns)).collect();
        let tall = || algebra.matrix(n, columns, vec![0.0; n * columns]);
        let basis = || Ok::<_, gustav::Error>(Basis { vectors: tall()?, products: tall()? });
        let small = || algebra.matrix(columns, columns, vec![0.0; columns * columns]);
        let pairs = BASES * (BASES + 1) / 2;
        Ok(Eigenvectors {
            spmm,
            values: algebra.vector(a.values().as_slice().to_vec())?,
            first: algebra.matrix(n, columns, first)?,
            bases: [basis()?, basis()?, basis()?],
            next: [basis()?, basis()?],
            grams: (0..pairs).map(|_| Ok((small()?, small()?))).collect::<Result<_>>()?,
            columns,
            algebra,
        })
    }

    /// SᵀS and SᵀAS of the bases beside one another, S.
    fn gram(&mut self) -> Result<[DMatrix<f64>; 2]> {
        let (on, k) = (&self.algebra, self.columns);
        // All are queued before the first is waited for.
        let pairs = || (0..BASES).flat_map(|u| (u..BASES).map(move |v| (u, v)));
        for ((u, v), (plain, with_a)) in pairs().zip(&mut self.grams) {
            let (left, right) = (&self.bases[u].vectors, &self.bases[v]);
            on.multiply((left, true), (&right.vectors, false), 0.0, plain)?;
            on.multiply((left, true), (&right.products, false), 0.0, with_a)?;
        }
        let mut whole = [(); 2].map(|()| DMatrix::<f64>::zeros(BASES * k, BASES * k));
        for ((u, v), (plain, with_a)) in pairs().zip(&self.grams) {
            for (to, part) in whole.iter_mut().zip([plain, with_a]) {
                let part = on.read(part.flat())?;
                for (at, value) in part.iter().enumerate() {
                    let (i, j) = (u * k + at / k, v * k + at % k);
                    // The lower half of a block on the diagonal is that of another rounding.
                    if i <= j {
                        to[(i, j)] = f64::from(*value);
                        to[(j, i)] = f64::from(*value);
                    }
                }
            }
        }
        Ok(whole)
    }

    /// X and the next P in terms of the bases, `coefficients`, which has a row for every vector of a basis.
    fn combine(&mut self, coefficients: &DMatrix<f64>) -> Result<()> {
        let (on, k) = (&self.algebra, self.columns);
        let block = |u: usize| {
            let rows = (u * k..(u + 1) * k).flat_map(|i| (0..k).map(move |j| (i, j)));
            on.matrix(k, k, rows.map(|at| coefficients[at] as f32).collect())
        };
        let blocks = [block(0)?, block(1)?, block(2)?];
        let [x, w, p] = &self.bases;
        let [direction, vectors] = &mut self.next;
        let parts: [fn(&mut Basis<A>) -> &mut A::Matrix; 2] =
            [|basis| &mut basis.vectors, |basis| &mut basis.products];
        let sources =
            [[&x.vectors, &w.vectors, &p.vectors], [&x.products, &w.products, &p.products]];
        for (part, [x, w, p]) in parts.into_iter().zip(sources) {
            let (direction, to) = (part(direction), part(vectors));
            on.multiply((w, false), (&blocks[1], false), 0.0, direction)?;
            on.multiply((p, false), (&blocks[2], false), 1.0, direction)?;
            on.copy(direction.flat(), to.flat_mut())?;
            on.multiply((x, false), (&blocks[0], false), 1.0, to)?;
        }
        std::mem::swap(&mut self.bases[2], direction);
        std::mem::swap(&mut self.bases[0], vectors);
        Ok(())
    }
}

/// The smallest `count` eigenvalues on a space of Gram matrix `gram` and of `with_a`, and vectors of them in terms of
/// its basis; zeros where the space has fewer.
///
/// # Errors
/// [`Error::Argument`] for products that are not finite, or all zero, of which there are no eigenvalues.
fn rayleigh_ritz(
    gram: &DMatrix<f64>,
    with_a: &DMatrix<f64>,
    count: usize,
) -> Result<(Vec<f64>, DMatrix<f64>)> {
    let size = gram.nrows();
    let refuse = |found: &str| {
        let expected = "products of finite vectors".to_owned();
        Err(Error::Argument { name: "inner products", found: found.into(), expected })
    };
    if !gram.iter().chain(with_a.iter()).all(|product| product.is_finite()) {
        return refuse("NaN or infinity");
    }
    if gram.diagonal().max() <= 0.0 {
        return refuse("nothing but zeros");
    }
    let scale: Vec<f64> = (0..size)
        .map(|i| if gram[(i, i)] > 0.0 { gram[(i, i)].sqrt().recip() } else { 0.0 })
        .collect();
    let scaled = DMatrix::from_fn(size, size, |i, j| scale[i] * gram[(i, j)] * scale[j]);
    let own = SymmetricEigen::new(scaled);
    let most = own.eigenvalues.max();
    let kept: Vec<usize> = (0..size).filter(|i| own.eigenvalues[*i] > RANK * most).collect();
    let basis = DMatrix::from_fn(size, kept.len(), |i, j| {
        scale[i] * own.eigenvectors[(i, kept[j])] / own.eigenvalues[kept[j]].sqrt()
    });
    let found = SymmetricEigen::new(basis.tr_mul(&(with_a * &basis)));
    let mut order: Vec<usize> = (0..kept.len()).collect();
    order.sort_by(|i, j| found.eigenvalues[*i].total_cmp(&found.eigenvalues[*j]));
    let values = (0..count).map(|j| order.get(j).map_or(0.0, |i| found.eigenvalues[*i]));
    let vectors = DMatrix::from_fn(kept.len(), count, |k, j| {
        order.get(j).map_or(0.0, |i| found.eigenvectors[(k, *i)])
    });
    Ok((values.collect(), basis * vectors))
}

impl<A: Algebra> Program for Eigenvectors<'_, A> {
    fn run(&mut self) -> Result<()> {
        let on = self.algebra.clone();
        for basis in &mut self.bases {
            on.clear(basis.vectors.flat_mut())?;
            on.clear(basis.products.flat_mut())?;
        }
        let [x, ..] = &mut self.bases;
        on.copy(self.first.flat(), x.vectors.flat_mut())?;
        (self.spmm)(&self.values, &x.vectors, &mut x.products)?;
        let mut norms = on.vector(vec![0.0; self.columns])?;
        for _ in 0..STEPS {
            let [gram, with_a] = self.gram()?;
            let (values, coefficients) = rayleigh_ritz(&gram, &with_a, self.columns)?;
            self.combine(&coefficients)?;
            let values = on.vector(values.iter().map(|v| *v as f32).collect())?;
            let [x, w, _] = &mut self.bases;
            on.copy(x.products.flat(), w.vectors.flat_mut())?;
            on.add_columns(w.vectors.flat_mut(), -1.0, values.flat(), x.vectors.flat())?;
            let r = w.vectors.flat();
            on.column_sums(Term::Product, r, r, norms.flat_mut())?;
            let largest = on.read(norms.flat())?.into_iter().fold(0.0, f32::max);
            if largest <= TOLERANCE * TOLERANCE {
                break;
            }
            (self.spmm)(&self.values, &w.vectors, &mut w.products)?;
        }
        on.wait()
    }

    fn result(&self) -> Result<Vec<f32>> {
        self.algebra.read(self.bases[0].vectors.flat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_values_of_a_space_come_first_and_what_adds_nothing_is_dropped() {
        // The third vector is the sum of the others.
        let basis = DMatrix::from_row_slice(3, 3, &[1.0, 0.0, 1.0, 0.0, 2.0, 2.0, 0.0, 0.0, 0.0]);
        let a = DMatrix::from_diagonal(&nalgebra::DVector::from_column_slice(&[5.0, 3.0, 1.0]));
        let (gram, with_a) = (basis.tr_mul(&basis), basis.tr_mul(&(a * &basis)));
        let (values, coefficients) = rayleigh_ritz(&gram, &with_a, 3).unwrap();
        assert!((values[0] - 3.0).abs() < 1e-12 && (values[1] - 5.0).abs() < 1e-12, "{values:?}");
        assert_eq!(values[2], 0.0);
        let first = basis * coefficients.column(0);
        assert!(first[0].abs() < 1e-12 && (first[1].abs() - 1.0).abs() < 1e-12, "{first}");
    }

    #[test]
    fn products_without_eigenvalues_are_refused() {
        let one = DMatrix::identity(2, 2);
        for (gram, with_a) in [
            (DMatrix::from_element(2, 2, f64::NAN), one.clone()),
            (one.clone(), DMatrix::from_element(2, 2, f64::INFINITY)),
            (DMatrix::zeros(2, 2), one.clone()),
        ] {
            let refused = rayleigh_ritz(&gram, &with_a, 2).unwrap_err().to_string();
            assert!(refused.contains("inner products"), "{refused}");
        }
    }
}
