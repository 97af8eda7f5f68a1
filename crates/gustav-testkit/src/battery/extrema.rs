//! The battery for sparse × dense with max or min in place of sums.

use gustav_core::{
    Csr, CsrView, DenseView, DenseViewMut, Extremum, Index, IndexSlice, Layout, Result, Scalar,
    WinnersMut,
};

use super::Settings;
use super::covering::combinations;
use super::matrices::matrices;
use super::report::{Report, attempt, written_outside, wrong};
use super::storage::Storage;
use super::values::{poison, sentinel, values};
use crate::oracle;

/// One product to compute: C = α·max (or min) of op(A)'s products with B.
#[derive(Debug)]
pub struct SpmmExtremumCase<'a, T: Scalar, I: Index, O: Index> {
    /// The matrix's name in the battery.
    pub name: &'a str,
    /// A as stored.
    pub a: CsrView<'a, T, I, O>,
    /// Whether op(A) is Aᵀ.
    pub transpose_a: bool,
    /// B; its padding is poisoned.
    pub b: DenseView<'a, T>,
    /// α.
    pub alpha: Option<T::Accum>,
    /// C of empty rows.
    pub empty: Option<T::Accum>,
    /// C, poisoned, to be overwritten; its padding must stay as it is.
    pub c: DenseViewMut<'a, T>,
    /// The winners, to be overwritten, where there are any.
    pub winners: Option<WinnersMut<'a>>,
}

/// Whether winners are requested, and of which type.
#[derive(Clone, Copy, Debug)]
enum WinnerType {
    None,
    U32,
    U64,
}

/// What B holds.
#[derive(Clone, Copy, Debug)]
enum Elements {
    /// Numbers that seldom tie.
    Any,
    /// Few numbers, zeros of both signs among them: most products tie.
    Few,
    /// The same with NaN and infinities.
    Special,
}

impl Elements {
    fn make<T: Scalar>(self, count: usize) -> Vec<T> {
        let few = [1.0, -1.0, 0.0, -0.0, 1.0];
        let special = [1.0, f64::NEG_INFINITY, -0.0, 2.0, f64::INFINITY, 0.0, f64::NAN, -1.0];
        let cycle = |list: &[f64]| {
            // Spread by a prime, so that rows of B differ.
            (0..count).map(|k| T::from_f64(list[k * 31 / 7 % list.len()])).collect()
        };
        match self {
            Elements::Any => values(count, 1),
            Elements::Few => cycle(&few),
            Elements::Special => cycle(&special),
        }
    }
}

/// The choices of one case.
struct Choice {
    columns: usize,
    layouts: (Layout, Layout),
    padded: bool,
    transpose_a: bool,
    winner_type: WinnerType,
    elements: Elements,
    alpha: Option<f64>,
    empty: Option<f64>,
}

/// Runs `kernel` on the cases that `settings` select; its scalings have no meaning here.
///
/// # Panics
/// With the list of failed cases: wrong elements or winners, errors, panics, padding written.
pub fn check_spmm_extremum<T: Scalar, I: Index, O: Index>(
    extremum: Extremum,
    settings: &Settings,
    mut kernel: impl FnMut(SpmmExtremumCase<'_, T, I, O>) -> Result<()>,
) {
    let matrices: Vec<_> =
        matrices::<T, I, O>().into_iter().filter(|m| settings.takes(&m.traits)).collect();
    let winner_type = [WinnerType::None, WinnerType::U32, WinnerType::U64];
    let elements = [Elements::Any, Elements::Few, Elements::Special];
    // A negative factor leaves the order of products alone.
    let (alphas, empties) = ([None, Some(-3.0)], [None, Some(7.0)]);
    let factors = [
        matrices.len(),
        settings.columns.len(),
        settings.layouts.len(),
        if settings.padded { 2 } else { 1 },
        settings.transpose_a.len(),
        winner_type.len(),
        elements.len(),
        alphas.len(),
        empties.len(),
    ];
    let mut report = Report::default();
    for row in combinations(&factors, settings.extent) {
        let matrix = &matrices[row[0]];
        let choice = Choice {
            columns: settings.columns[row[1]],
            layouts: settings.layouts[row[2]],
            padded: row[3] == 1,
            transpose_a: settings.transpose_a[row[4]],
            winner_type: winner_type[row[5]],
            elements: elements[row[6]],
            alpha: alphas[row[7]],
            empty: empties[row[8]],
        };
        let failure = choice.run(extremum, matrix.name, &matrix.csr, &mut kernel);
        report.case(|| choice.describe(matrix.name), failure);
    }
    report.finish(&format!("spmm {extremum} {} {}/{}", T::DTYPE, I::TYPE, O::TYPE));
}

impl Choice {
    fn describe(&self, name: &str) -> String {
        let Choice { columns, layouts: (b, c), winner_type, elements, alpha, empty, .. } = self;
        let transposed = if self.transpose_a { " transposed" } else { "" };
        let padded = if self.padded { " padded" } else { "" };
        format!(
            "{name}{transposed}, n = {columns}, B {b}, C {c}{padded}, winners {winner_type:?}, \
             {elements:?} elements, alpha {alpha:?}, empty {empty:?}"
        )
    }

    /// What went wrong, if anything.
    fn run<T: Scalar, I: Index, O: Index>(
        &self,
        extremum: Extremum,
        name: &str,
        a: &Csr<T, I, O>,
        kernel: &mut impl FnMut(SpmmExtremumCase<'_, T, I, O>) -> Result<()>,
    ) -> Option<String> {
        let transpose_a = self.transpose_a;
        let (rows, inner) =
            if transpose_a { (a.ncols(), a.nrows()) } else { (a.nrows(), a.ncols()) };
        let n = self.columns;
        let b = Storage::new(inner, n, self.layouts.0, self.padded);
        let c = Storage::new(rows, n, self.layouts.1, self.padded);
        let b_data = b.fill(poison(), &self.elements.make(inner * n));
        let mut found = c.fill(sentinel(), &vec![poison::<T>(); rows * n]);
        // No position of any matrix of the battery.
        let (mut u32s, mut u64s) = (vec![123_456_789u32; rows * n], vec![123_456_789u64; rows * n]);
        let (alpha, empty) = (self.alpha.map(Scalar::from_f64), self.empty.map(Scalar::from_f64));
        let outcome = attempt(|| {
            kernel(SpmmExtremumCase {
                name,
                a: a.view(),
                transpose_a,
                b: b.view(&b_data)?,
                alpha,
                empty,
                c: DenseViewMut::new(rows, n, c.layout, c.ld, &mut found)?,
                winners: match self.winner_type {
                    WinnerType::None => None,
                    WinnerType::U32 => Some(WinnersMut::U32(&mut u32s)),
                    WinnerType::U64 => Some(WinnersMut::U64(&mut u64s)),
                },
            })
        });
        let verify = || {
            let reference = oracle::SpmmExtremum {
                extremum,
                a: a.view(),
                transpose_a,
                b: b.view(&b_data)?,
                alpha: alpha.unwrap_or(T::Accum::one()),
                empty: empty.unwrap_or(T::Accum::zero()),
            };
            let winners = match self.winner_type {
                WinnerType::None => None,
                WinnerType::U32 => Some(IndexSlice::U32(&u32s)),
                WinnerType::U64 => Some(IndexSlice::U64(&u64s)),
            };
            reference.verify(c.view(&found)?, winners)
        };
        outcome
            .err()
            .or_else(|| wrong(verify()))
            .or_else(|| written_outside(&found, |k| c.holds(k), sentinel()))
    }
}
