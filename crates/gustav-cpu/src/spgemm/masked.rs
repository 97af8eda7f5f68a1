//! `masked`: the entries of C = α·op(A)·B at the places of a given pattern. The places of a row are
//! in a hash table; products elsewhere are looked up and left.

use std::ops::Range;

use gustav_core::buffer::try_vec;
use gustav_core::{Csr, CsrView, Error, Index, Problem, Result, Scalar, Semiring, parallel};
use gustav_plan::{Algorithm, Chooser};

use super::plan::check_problem;
use super::rows::{Rows, joined};
use crate::Options;

// Parts for every thread, each of so many rows or more.
const PARTS: usize = 8;
const LEAST: usize = 64;

/// C⟨M⟩ = α·op(A)·B: of the product's entries those at the places where `mask` has an entry, of any
/// value. A place that no product meets has no entry in C. Rows come out sorted; with
/// [`Options::drop_zeros`] without entries of exactly zero. The operands and the mask may be unsorted
/// and hold duplicates. Results are the same to the bit from run to run and for any number of
/// threads: every sum is in A's order.
///
/// # Errors
/// [`Error::Shape`] when `a` and `b` do not fit together or the mask is not of C's shape,
/// [`Error::Pattern`] when `problem` was made for others, [`Error::Unsupported`] when `options` name
/// another algorithm, [`Error::Overflow`] when the entries of C outnumber the offset type,
/// [`Error::OutOfMemory`].
pub fn multiply<S: Semiring<T::Accum>, T: Scalar, I: Index, O: Index>(
    _semiring: S,
    a: CsrView<'_, T, I, O>,
    alpha: T::Accum,
    b: CsrView<'_, T, I, O>,
    mask: CsrView<'_, T, I, O>,
    problem: &Problem,
    options: &Options,
) -> Result<Csr<T, I, O>> {
    check(&a, &b, &mask, problem)?;
    if !matches!(options.chooser, Chooser::Auto | Chooser::Named(Algorithm::Masked)) {
        return Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: format!("{} under a mask", options.chooser),
            reason: "it computes all of C".into(),
            nearest: Algorithm::Masked.name().into(),
        });
    }
    let shape = (problem.output_rows(), problem.columns);
    options.threads.run(|| {
        let transposed = problem.transpose_a.then(|| a.transpose()).transpose()?;
        let a = transposed.as_ref().map_or(a, Csr::view);
        let product = Product { a, alpha, b, mask, drop_zeros: options.drop_zeros };
        let count = (shape.0 / LEAST).clamp(1, PARTS * parallel::threads());
        let cut = |k: usize| shape.0 * k / count;
        let parts = parallel::map(count, |k| product.rows::<S>(cut(k)..cut(k + 1)));
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        // SAFETY: columns are those of the mask, and parts follow one another.
        unsafe { joined(parts, shape.0, shape.1) }
    })
}

/// Whether [`multiply`] takes these operands.
///
/// # Errors
/// As there.
pub fn check<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    b: &CsrView<'_, T, I, O>,
    mask: &CsrView<'_, T, I, O>,
    problem: &Problem,
) -> Result<()> {
    super::any(problem)?;
    problem.without_output("masked on the CPU")?;
    check_problem(problem, a, b)?;
    problem.check_like_c("a mask", (mask.nrows(), mask.ncols()))
}

struct Product<'a, T: Scalar, I: Index, O: Index> {
    a: CsrView<'a, T, I, O>,
    alpha: T::Accum,
    b: CsrView<'a, T, I, O>,
    mask: CsrView<'a, T, I, O>,
    drop_zeros: bool,
}

/// The places of one row: their columns, increasing, and what was added there.
struct Places<A> {
    columns: Vec<usize>,
    sums: Vec<Option<A>>,
    /// Places plus one by their columns' hash, 0 where there is none; a power of two of them, at
    /// least twice as many as places.
    table: Vec<usize>,
}

impl<A: Copy> Places<A> {
    fn new(most: usize) -> Result<Self> {
        let what = "the places of a mask's row";
        let mut table = try_vec(2 * most.max(1).next_power_of_two(), what)?;
        table.resize(table.capacity(), 0);
        Ok(Places { columns: try_vec(most, what)?, sums: try_vec(most, what)?, table })
    }

    /// Takes the places of the next row.
    fn set<I: Index>(&mut self, columns: &[I]) {
        self.columns.clear();
        self.columns.extend(columns.iter().map(|j| j.to_usize()));
        if !self.columns.is_sorted_by(|left, right| left < right) {
            self.columns.sort_unstable();
            self.columns.dedup();
        }
        self.sums.clear();
        self.sums.resize(self.columns.len(), None);
        let len = 2 * self.columns.len().max(1).next_power_of_two();
        self.table.resize(len, 0);
        self.table.fill(0);
        for place in 0..self.columns.len() {
            let mut at = self.hash(self.columns[place]);
            while self.table[at] != 0 {
                at = (at + 1) & (len - 1);
            }
            self.table[at] = place + 1;
        }
    }

    fn hash(&self, column: usize) -> usize {
        let bits = self.table.len().trailing_zeros();
        let product = (column as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (product >> (64 - bits)) as usize
    }

    /// What was added in `column`, if it is a place.
    fn at(&mut self, column: usize) -> Option<&mut Option<A>> {
        let mut at = self.hash(column);
        loop {
            match self.table[at] {
                0 => return None,
                place if self.columns[place - 1] == column => return self.sums.get_mut(place - 1),
                _ => at = (at + 1) & (self.table.len() - 1),
            }
        }
    }
}

impl<T: Scalar, I: Index, O: Index> Product<'_, T, I, O> {
    fn rows<S: Semiring<T::Accum>>(&self, rows: Range<usize>) -> Result<Rows<T, I>> {
        let most = rows.clone().map(|row| self.mask.row_len(row)).max().unwrap_or(0);
        let mut places = Places::new(most)?;
        let room = rows.clone().map(|row| self.mask.row_len(row)).sum();
        let mut out = Rows::new(rows.len(), room)?;
        for row in rows {
            let start = out.indices.len();
            if self.mask.row_len(row) > 0 {
                places.set(self.mask.row(row).0);
                self.add_products::<S>(row, &mut places);
            }
            for (column, sum) in places.columns.drain(..).zip(&places.sums) {
                let Some(value) = sum.map(|sum| S::scale(self.alpha, sum)) else { continue };
                if !self.drop_zeros || value != S::zero() {
                    out.indices.push(I::truncate(column));
                    out.values.push(T::from_accum(value));
                }
            }
            out.lengths.push(out.indices.len() - start);
        }
        Ok(out)
    }

    fn add_products<S: Semiring<T::Accum>>(&self, row: usize, places: &mut Places<T::Accum>) {
        let (inner, factors) = self.a.row(row);
        for (k, a) in inner.iter().zip(factors) {
            let a = a.to_accum();
            let (columns, values) = self.b.row(k.to_usize());
            for (j, b) in columns.iter().zip(values) {
                if let Some(sum) = places.at(j.to_usize()) {
                    *sum = Some(S::mul_add(a, b.to_accum(), sum.unwrap_or(S::zero())));
                }
            }
        }
    }
}
