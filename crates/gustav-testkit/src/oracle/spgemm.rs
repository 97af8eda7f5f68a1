//! Sparse × sparse: the pattern, then the values.

use gustav_core::{CsrView, Error, Index, Result, Scalar, Semiring, parallel};

use super::model::{Model, Scaling, with_model};
use super::verdict::Verdict;

/// The operands of C = α·A·B, to check a sparse result against.
///
/// The pattern rule: C stores every entry that some pair of entries of A and B produces, once,
/// also when its value is zero, and no other. Under a mask it stores those of them that the mask has
/// an entry for.
#[derive(Clone, Copy, Debug)]
pub struct Spgemm<'a, T: Scalar, I: Index, O: Index> {
    /// The two operations.
    pub semiring: Semiring,
    /// A.
    pub a: CsrView<'a, T, I, O>,
    /// B, as many rows as A has columns.
    pub b: CsrView<'a, T, I, O>,
    /// α; the semiring's one when there is none.
    pub alpha: Option<T::Accum>,
    /// Whether the columns of every row of C must increase.
    pub sorted: bool,
    /// The places of C that are computed; all when there is none.
    pub mask: Option<CsrView<'a, T, I, O>>,
}

/// One column of the row at hand.
#[derive(Clone, Copy)]
struct Slot<S> {
    sum: S,
    /// Terms so far; 0 where the row has no entry.
    terms: usize,
    seen: bool,
}

impl<'a, T: Scalar, I: Index, O: Index> Spgemm<'a, T, I, O> {
    /// The ordinary product A·B with sorted rows.
    pub fn new(a: CsrView<'a, T, I, O>, b: CsrView<'a, T, I, O>) -> Self {
        Spgemm { semiring: Semiring::PlusTimes, a, b, alpha: None, sorted: true, mask: None }
    }

    /// Compares `found` with the reference. Its index types may differ from those of A.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shapes do not fit.
    pub fn verify<I2: Index, O2: Index>(&self, found: CsrView<'_, T, I2, O2>) -> Result<Verdict> {
        let (a, b) = (&self.a, &self.b);
        let shapes = [
            ("B", a.ncols(), b.ncols(), b.nrows(), b.ncols()),
            ("C", a.nrows(), b.ncols(), found.nrows(), found.ncols()),
        ];
        for (what, rows, cols, nrows, ncols) in shapes {
            if (rows, cols) != (nrows, ncols) {
                return Err(Error::Shape {
                    op: "verification of a sparse x sparse product",
                    expected: format!("{what} of {rows} x {cols}"),
                    found: format!("{nrows} x {ncols}"),
                });
            }
        }
        let shape = (a.nrows(), b.ncols());
        if let Some(mask) = self.mask.filter(|mask| (mask.nrows(), mask.ncols()) != shape) {
            return Err(Error::Shape {
                op: "verification of a sparse x sparse product",
                expected: format!("a mask of {} x {}", shape.0, shape.1),
                found: format!("{} x {}", mask.nrows(), mask.ncols()),
            });
        }
        with_model!(T, self.semiring, model => Ok(self.verify_with(model, found)))
    }

    fn verify_with<M: Model, I2: Index, O2: Index>(
        &self,
        model: M,
        found: CsrView<'_, T, I2, O2>,
    ) -> Verdict {
        let empty = Slot { sum: model.empty(), terms: 0, seen: false };
        let rows = self.a.nrows();
        // Every part has slots of its own.
        let parts = rows.min(8 * parallel::threads());
        let parts = parallel::map(parts, |part| {
            let (mut slots, mut touched) = (vec![empty; self.b.ncols()], Vec::new());
            let mut wanted = vec![self.mask.is_none(); self.b.ncols()];
            let mut verdict = Verdict::empty();
            for row in rows * part / parts..rows * (part + 1) / parts {
                self.accumulate(model, row, &mut slots, &mut touched);
                let places = self.mask.map_or(&[][..], |mask| mask.row(row).0);
                places.iter().for_each(|col| wanted[col.to_usize()] = true);
                touched.retain(|col| {
                    if !wanted[*col] {
                        slots[*col] = empty;
                    }
                    wanted[*col]
                });
                let next = self.compare(model, row, &mut slots, &touched, found.row(row));
                places.iter().for_each(|col| wanted[col.to_usize()] = false);
                verdict = verdict.and(next);
                for col in touched.drain(..) {
                    slots[col] = empty;
                }
            }
            verdict
        });
        parts.into_iter().fold(Verdict::empty(), Verdict::and)
    }

    fn accumulate<M: Model>(
        &self,
        model: M,
        row: usize,
        slots: &mut [Slot<M::Sum>],
        touched: &mut Vec<usize>,
    ) {
        let (inner, values) = self.a.row(row);
        for (k, value) in inner.iter().zip(values) {
            let value = M::read(*value);
            let (cols, b_values) = self.b.row(k.to_usize());
            for (col, b) in cols.iter().zip(b_values) {
                let slot = &mut slots[col.to_usize()];
                if slot.terms == 0 {
                    touched.push(col.to_usize());
                }
                slot.terms += 1;
                model.push(&mut slot.sum, value, M::read(*b));
            }
        }
    }

    fn compare<M: Model, I2: Index>(
        &self,
        model: M,
        row: usize,
        slots: &mut [Slot<M::Sum>],
        touched: &[usize],
        (cols, values): (&[I2], &[T]),
    ) -> Verdict {
        let alpha = self.alpha.map_or_else(|| one::<M, T>(self.semiring), M::read);
        let scaling = Scaling { alpha, beta: None };
        let mut verdict = Verdict::empty();
        for (position, (col, value)) in cols.iter().zip(values).enumerate() {
            let col = col.to_usize();
            let slot = &mut slots[col];
            if slot.terms == 0 {
                return Verdict::fault(format!(
                    "row {row} has an entry in column {col} that no term produces{}",
                    if self.mask.is_some() { " at a place of the mask" } else { "" }
                ));
            }
            if std::mem::replace(&mut slot.seen, true) {
                return Verdict::fault(format!("row {row} has column {col} more than once"));
            }
            if self.sorted && position > 0 && cols[position - 1].to_usize() > col {
                return Verdict::fault(format!("row {row} is not sorted at column {col}"));
            }
            let again =
                |visit: &mut dyn FnMut(M::Value, M::Value)| self.terms::<M>(row, col, visit);
            let expected = model.finish::<T>(slot.sum, slot.terms, scaling, None, &again);
            verdict.element(row, col, &expected, *value);
        }
        if let Some(col) = touched.iter().find(|col| !slots[**col].seen) {
            return Verdict::fault(format!("row {row} lacks its entry in column {col}"));
        }
        verdict
    }

    /// Visits the terms of element (row, col).
    fn terms<M: Model>(&self, row: usize, col: usize, visit: &mut dyn FnMut(M::Value, M::Value)) {
        let (inner, values) = self.a.row(row);
        for (k, value) in inner.iter().zip(values) {
            let (cols, b_values) = self.b.row(k.to_usize());
            for (_, b) in cols.iter().zip(b_values).filter(|(c, _)| c.to_usize() == col) {
                visit(M::read(*value), M::read(*b));
            }
        }
    }
}

/// The α that changes nothing.
fn one<M: Model, T: Scalar>(semiring: Semiring) -> M::Value {
    M::read(if semiring == Semiring::MinPlus { T::zero() } else { T::one() })
}
