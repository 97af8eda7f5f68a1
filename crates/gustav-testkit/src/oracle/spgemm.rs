//! Sparse × sparse: the pattern, then the values.

use gustav_core::{CsrView, DType, Error, Index, Result, Scalar, Semiring, parallel};

use super::model::{Model, Scaling, with_model};
use super::operand::{Factor, Sparse, Value};
use super::verdict::Verdict;

/// The operands of C = α·A·B, to check a sparse result against.
///
/// The pattern rule: C stores every entry that some pair of entries of A and B produces, once, also
/// when its value is zero, and no other. Under a mask it stores those of them that the mask has an
/// entry for.
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
    /// The positions of C that are computed; all when there is none.
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
        let alpha = self.alpha.unwrap_or_else(|| one(self.semiring));
        let reference = Reference {
            dtype: T::DTYPE,
            a: self.a.into(),
            b: self.b.into(),
            alpha: Factor::of(alpha),
            sorted: self.sorted,
            mask: self.mask.map(Sparse::from),
        };
        let found = found.into();
        reference.check(&found)?;
        Ok(reference.verify(self.semiring, &found))
    }
}

/// A [`Spgemm`] without its types.
struct Reference<'a> {
    dtype: DType,
    a: Sparse<'a>,
    b: Sparse<'a>,
    alpha: Factor,
    sorted: bool,
    mask: Option<Sparse<'a>>,
}

/// What checking rows needs and keeps from one to the next.
struct Workspace<M: Model> {
    slots: Vec<Slot<M::Sum>>,
    /// Columns whose slots hold terms.
    touched: Vec<usize>,
    /// Whether C has an entry in a column of the row at hand.
    wanted: Vec<bool>,
    columns: Vec<usize>,
    values: Vec<M::Value>,
}

impl Reference<'_> {
    /// Checks the shapes.
    fn check(&self, found: &Sparse<'_>) -> Result<()> {
        let (a, b) = (&self.a, &self.b);
        let shapes = [
            ("B", a.ncols, Some(b)),
            ("C", a.nrows, Some(found)),
            ("a mask", a.nrows, self.mask.as_ref()),
        ];
        for (what, rows, matrix) in shapes {
            if let Some(m) = matrix.filter(|m| (m.nrows, m.ncols) != (rows, b.ncols)) {
                return Err(Error::Shape {
                    op: "verification of a sparse x sparse product",
                    expected: format!("{what} of {rows} x {}", b.ncols),
                    found: format!("{} x {}", m.nrows, m.ncols),
                });
            }
        }
        Ok(())
    }

    // Not generic, so that it is compiled in this crate.
    fn verify(&self, semiring: Semiring, found: &Sparse<'_>) -> Verdict {
        with_model!(self.dtype, semiring, model => self.verify_in(model, found))
    }

    fn verify_in<M: Model>(&self, model: M, found: &Sparse<'_>) -> Verdict {
        let empty = Slot { sum: model.empty(), terms: 0, seen: false };
        let (rows, cols) = (self.a.nrows, self.b.ncols);
        // Every part has slots of its own.
        let parts = rows.min(8 * parallel::threads());
        let parts = parallel::map(parts, |part| {
            let mut work = Workspace::<M> {
                slots: vec![empty; cols],
                touched: Vec::new(),
                wanted: vec![self.mask.is_none(); cols],
                columns: Vec::new(),
                values: Vec::new(),
            };
            let (mut verdict, mut places) = (Verdict::empty(), Vec::new());
            for row in rows * part / parts..rows * (part + 1) / parts {
                self.accumulate(model, row, &mut work);
                if let Some(mask) = &self.mask {
                    mask.columns(row, &mut places);
                }
                places.iter().for_each(|col| work.wanted[*col] = true);
                let Workspace { slots, touched, wanted, .. } = &mut work;
                touched.retain(|col| {
                    if !wanted[*col] {
                        slots[*col] = empty;
                    }
                    wanted[*col]
                });
                verdict = verdict.and(self.compare(model, row, &mut work, found));
                places.iter().for_each(|col| work.wanted[*col] = false);
                for col in work.touched.drain(..) {
                    work.slots[col] = empty;
                }
            }
            verdict
        });
        parts.into_iter().fold(Verdict::empty(), Verdict::and)
    }

    fn accumulate<M: Model>(&self, model: M, row: usize, work: &mut Workspace<M>) {
        let Workspace { slots, touched, columns, values, .. } = work;
        for at in self.a.range(row) {
            let (k, value) = self.a.entry(at);
            self.b.columns(k, columns);
            self.b.values(k, values);
            for (col, b) in columns.iter().zip(&*values) {
                let slot = &mut slots[*col];
                if slot.terms == 0 {
                    touched.push(*col);
                }
                slot.terms += 1;
                model.push(&mut slot.sum, value, *b);
            }
        }
    }

    fn compare<M: Model>(
        &self,
        model: M,
        row: usize,
        work: &mut Workspace<M>,
        found: &Sparse<'_>,
    ) -> Verdict {
        let alpha = M::Value::of_factor(self.alpha);
        let scaling = Scaling { alpha, factor: None, beta: None };
        let mut verdict = Verdict::empty();
        let mut last = None;
        for at in found.range(row) {
            let (col, value) = found.entry::<M::Value>(at);
            let slot = &mut work.slots[col];
            if slot.terms == 0 {
                return Verdict::fault(format!(
                    "row {row} has an entry in column {col} that no term produces{}",
                    if self.mask.is_some() { " at a position of the mask" } else { "" }
                ));
            }
            if std::mem::replace(&mut slot.seen, true) {
                return Verdict::fault(format!("row {row} has column {col} more than once"));
            }
            if self.sorted && last.replace(col).is_some_and(|last| last > col) {
                return Verdict::fault(format!("row {row} is not sorted at column {col}"));
            }
            let again =
                |visit: &mut dyn FnMut(M::Value, M::Value)| self.terms::<M>(row, col, visit);
            let expected = model.finish(self.dtype, slot.sum, slot.terms, scaling, None, &again);
            verdict.element(self.dtype, row, col, &expected, value);
        }
        if let Some(col) = work.touched.iter().find(|col| !work.slots[**col].seen) {
            return Verdict::fault(format!("row {row} lacks its entry in column {col}"));
        }
        verdict
    }

    /// Visits the terms of element (row, col).
    fn terms<M: Model>(&self, row: usize, col: usize, visit: &mut dyn FnMut(M::Value, M::Value)) {
        for at in self.a.range(row) {
            let (k, value) = self.a.entry(at);
            for at in self.b.range(k) {
                let (c, b) = self.b.entry(at);
                if c == col {
                    visit(value, b);
                }
            }
        }
    }
}

/// The α that changes nothing.
fn one<A: Scalar>(semiring: Semiring) -> A {
    if semiring == Semiring::MinPlus { A::zero() } else { A::one() }
}
