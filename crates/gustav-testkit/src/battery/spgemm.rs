//! The battery for sparse × sparse.

use gustav_core::{Csr, CsrView, Index, Result, Scalar, Semiring, StaticSemiring};

use super::covering::combinations;
use super::matrices::{Named, matrices, random_rows};
use super::report::{Report, attempt, wrong};
use super::{Extent, Settings};
use crate::oracle;

/// One product to compute: C = A·B in CSR.
#[derive(Debug)]
pub struct SpgemmCase<'a, T: Scalar, I: Index, O: Index> {
    /// The name of A in the battery.
    pub name: &'a str,
    /// A.
    pub a: CsrView<'a, T, I, O>,
    /// B.
    pub b: CsrView<'a, T, I, O>,
    /// Whether rows of C must come out sorted.
    pub sorted: bool,
}

/// The second operands that a matrix is multiplied with.
const OTHERS: [&str; 5] = ["A", "its transpose", "narrow", "wide", "duplicates"];

/// B for matrix `a` and an entry of [`OTHERS`]; `None` where the shapes do not fit.
fn other<T: Scalar, I: Index, O: Index>(
    a: &Named<T, I, O>,
    which: usize,
    settings: &Settings,
) -> Result<Option<Csr<T, I, O>>> {
    let (m, k) = (a.csr.nrows(), a.csr.ncols());
    Ok(match which {
        0 if m == k => Some(a.csr.clone()),
        0 => None,
        1 => Some(a.csr.view().transpose()?),
        2 => Some(random_rows(k, 5, 11, |row| [0, 1, 3, 5][row % 4])),
        3 => Some(random_rows(k, 700, 12, |row| [2, 0, 40, 9][row % 4])),
        _ if settings.unsorted => Some(super::matrices::unsorted(k, 33, 13)),
        _ => None,
    })
}

/// Runs `kernel` on the cases that `settings` select, in semiring `S`. Of the settings,
/// `extent`, `nonfinite`, `unsorted`, `sorted`, `one_of` and `first` count.
///
/// # Panics
/// With the list of failed cases: wrong pattern or elements, errors, panics.
pub fn check_spgemm<T, I, O, S>(
    settings: &Settings,
    kernel: impl FnMut(SpgemmCase<'_, T, I, O>) -> Result<Csr<T, I, O>>,
) where
    T: Scalar,
    I: Index,
    O: Index,
    S: StaticSemiring<T::Accum>,
{
    check_spgemm_over(S::KIND, settings, kernel);
}

/// [`check_spgemm`] over a semiring that is known at run time.
///
/// # Panics
/// As there.
pub fn check_spgemm_over<T: Scalar, I: Index, O: Index>(
    semiring: Semiring,
    settings: &Settings,
    mut kernel: impl FnMut(SpgemmCase<'_, T, I, O>) -> Result<Csr<T, I, O>>,
) {
    let matrices: Vec<_> =
        matrices::<T, I, O>().into_iter().filter(|m| settings.takes(&m.traits)).collect();
    let mut report = Report::default();
    let factors = [matrices.len(), OTHERS.len()];
    let rows = settings.taken(combinations(&factors, Extent::Full));
    for (number, row) in rows.enumerate() {
        let matrix = &matrices[row[0]];
        let b = match other(matrix, row[1], settings) {
            Ok(Some(b)) => b,
            Ok(None) => continue,
            Err(error) => panic!("the battery's own transpose of {}: {error}", matrix.name),
        };
        let orders = match settings.extent {
            Extent::Full => settings.sorted.clone(),
            Extent::Covering => vec![settings.sorted[number % settings.sorted.len()]],
        };
        for sorted in orders {
            let (a, b) = (matrix.csr.view(), b.view());
            let failure = match attempt(|| kernel(SpgemmCase { name: matrix.name, a, b, sorted })) {
                Err(failure) => Some(failure),
                Ok(c) => wrong(
                    oracle::Spgemm { semiring, sorted, ..oracle::Spgemm::new(a, b) }
                        .verify(c.view()),
                ),
            };
            let order = if sorted { "sorted" } else { "unsorted" };
            report.case(|| format!("{} x {}, {order}", matrix.name, OTHERS[row[1]]), failure);
        }
    }
    report.finish(&format!("spgemm {semiring} {} {}/{}", T::DTYPE, I::TYPE, O::TYPE));
}
