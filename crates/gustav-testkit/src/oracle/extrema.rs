//! Sparse × dense matrix with the largest or smallest product of a row in place of the sum.

use gustav_core::{
    Arith, CsrView, DenseView, Error, Extremum, Index, IndexSlice, Result, Scalar, validate,
};

use super::expected::Expected;
use super::verdict::Verdict;

/// The operands of C = α·max (or min) of op(A)'s products with B, to check a result against.
///
/// Every product is rounded once, to the type of sums, and one of them is taken: the reference
/// computes in that type, and a correct kernel agrees with it to the bit.
#[derive(Clone, Copy, Debug)]
pub struct SpmmExtremum<'a, T: Scalar, I: Index, O: Index> {
    /// Which product.
    pub extremum: Extremum,
    /// A as stored.
    pub a: CsrView<'a, T, I, O>,
    /// Whether op(A) is Aᵀ.
    pub transpose_a: bool,
    /// B, as many rows as op(A) has columns.
    pub b: DenseView<'a, T>,
    /// α.
    pub alpha: T::Accum,
    /// C where op(A) has an empty row.
    pub empty: T::Accum,
}

/// An element of C, and the position in A of the nonzero that won it.
type Element<A> = (A, Option<usize>);

impl<T: Scalar, I: Index, O: Index> SpmmExtremum<'_, T, I, O> {
    /// Compares `found`, and `winners` if there are any: row-major, as many as C has elements. With
    /// winners the sign of a zero counts as well.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shapes do not fit, [`Error::Length`] for another number of
    /// winners, [`Error::OutOfMemory`] for the transpose of A.
    pub fn verify(
        &self,
        found: DenseView<'_, T>,
        winners: Option<IndexSlice<'_>>,
    ) -> Result<Verdict> {
        let transposed = self.transpose_a.then(|| self.a.pattern().transpose()).transpose()?;
        let pattern = transposed.as_ref().map_or(self.a.pattern(), |t| t.pattern().view());
        let position = |p: usize| transposed.as_ref().map_or(p, |t| t.permutation()[p].to_usize());
        let (rows, n) = (pattern.nrows(), self.b.ncols());
        for (what, expected, matrix) in
            [("B", pattern.ncols(), &self.b), ("C", pattern.nrows(), &found)]
        {
            if (matrix.nrows(), matrix.ncols()) != (expected, n) {
                return Err(Error::Shape {
                    op: "verification of extrema",
                    expected: format!("{what} of {expected} x {n}"),
                    found: format!("{} x {}", matrix.nrows(), matrix.ncols()),
                });
            }
        }
        let (none, count) = match winners {
            None => (0, rows * n),
            Some(IndexSlice::U32(winners)) => (u32::MAX as usize, winners.len()),
            Some(IndexSlice::U64(winners)) => (u64::MAX as usize, winners.len()),
        };
        validate::length("winners", rows * n, count)?;
        let mut verdict = Verdict::empty();
        for (i, j) in (0..rows).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let range = pattern.row_range(i);
            let terms = range.map(|p| (position(p), pattern.indices()[p].to_usize()));
            let (value, winner) = self.element(terms, j);
            let (value, is) = (T::from_accum(value), found.get(i, j));
            let expected = match T::DTYPE.is_integer() {
                true => Expected::Integer(value.to_i64()),
                false => Expected::exact(value.to_f64()),
            };
            let mut of_element = Verdict::empty();
            match T::DTYPE.is_integer() {
                true => of_element.element(T::DTYPE, i, j, &expected, is.to_i64()),
                false => of_element.element(T::DTYPE, i, j, &expected, is.to_f64()),
            }
            verdict = verdict.and(of_element);
            let Some(winners) = winners else { continue };
            let (winner, won) = (winner.unwrap_or(none), winners.get(i * n + j));
            let sign = |v: T| v.is_zero() && v.to_f64().is_sign_negative();
            if winner != won || sign(value) != sign(is) {
                let fault = format!(
                    "row {i}, column {j}: {is} won by nonzero {won}, expected {value} by {winner}"
                );
                verdict = verdict.and(Verdict::fault(fault));
            }
        }
        Ok(verdict)
    }

    /// The element of column `j` for a row with these nonzeros: positions and columns.
    fn element(&self, terms: impl Iterator<Item = (usize, usize)>, j: usize) -> Element<T::Accum> {
        let mut best: Option<(T::Accum, usize)> = None;
        for (p, column) in terms {
            let (a, b) = (self.a.values()[p].to_accum(), self.b.get(column, j).to_accum());
            let product = a.times(b);
            let wins = best.is_none_or(|(best, _)| match self.extremum {
                _ if is_nan(best) => false,
                _ if is_nan(product) => true,
                Extremum::Max => product > best,
                Extremum::Min => product < best,
            });
            if wins {
                best = Some((product, p));
            }
        }
        match best {
            Some((best, p)) => (self.alpha.times(best), Some(p)),
            None => (self.empty, None),
        }
    }
}

fn is_nan<A: Arith>(value: A) -> bool {
    value.partial_cmp(&value).is_none()
}
