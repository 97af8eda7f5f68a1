//! The half of a symmetric matrix that a file holds.

use gustav_core::buffer::try_vec;
use gustav_core::{Csr, CsrView, DenseView, Error, Index, Result, Scalar};

use crate::files::Symmetry;
use crate::files::value::negated;

/// The entries of `matrix` that a file of this symmetry holds: those on and below the diagonal, of
/// a skew-symmetric one those below it; they keep their order. All entries, if it is general.
///
/// # Errors
/// [`Error::Argument`] with the position when an entry and its mirror image disagree (repeated
/// entries by their sums), or for a matrix that is not square; with `pattern_only` values are not
/// compared. [`Error::OutOfMemory`].
pub(crate) fn sparse<T: Scalar, I: Index, O: Index>(
    matrix: CsrView<'_, T, I, O>,
    symmetry: Symmetry,
    pattern_only: bool,
) -> Result<Option<Csr<T, I, O>>> {
    if symmetry == Symmetry::General {
        return Ok(None);
    }
    if pattern_only && symmetry == Symmetry::SkewSymmetric {
        return Err(Error::Argument {
            name: "symmetry",
            found: "skew-symmetric for a pattern, which has no signs".into(),
            expected: "symmetric or general, or the values as well".into(),
        });
    }
    square(matrix.nrows(), matrix.ncols(), symmetry)?;
    let own = matrix.to_owned()?.canonicalize()?;
    let mirror = own.view().transpose()?;
    for i in 0..matrix.nrows() {
        let ((columns, values), (others, images)) = (own.view().row(i), mirror.view().row(i));
        let lengths = columns.len() != others.len();
        let pairs = columns.iter().zip(values).zip(others.iter().zip(images));
        let wrong = |((j, v), (k, w)): &((&I, &T), (&I, &T))| {
            j != k || !pattern_only && !mirrors(**v, **w, j.to_usize() == i, symmetry)
        };
        let place = pairs.into_iter().find(wrong).map(|((j, _), (k, _))| j.min(k).to_usize());
        let beyond = || columns.get(others.len()).or(others.get(columns.len()));
        let rest = || beyond().map_or(0, |j| j.to_usize());
        if let Some(j) = place.or_else(|| lengths.then(rest)) {
            return Err(refused(symmetry, i, j));
        }
    }
    let mut offsets = try_vec::<O>(matrix.nrows() + 1, "row offsets")?;
    let mut indices = try_vec::<I>(matrix.nnz(), "column indices")?;
    let mut values = try_vec::<T>(matrix.nnz(), "values")?;
    offsets.push(O::default());
    for i in 0..matrix.nrows() {
        let (columns, row) = matrix.row(i);
        for (j, v) in columns.iter().zip(row) {
            if j.to_usize() < i || j.to_usize() == i && symmetry == Symmetry::Symmetric {
                indices.push(*j);
                values.push(*v);
            }
        }
        offsets.push(O::try_from_usize(indices.len(), "row offset")?);
    }
    Csr::new(matrix.nrows(), matrix.ncols(), offsets, indices, values).map(Some)
}

/// Checks that a dense matrix has the symmetry.
///
/// # Errors
/// As [`sparse`].
pub(crate) fn check_dense<T: Scalar>(matrix: DenseView<'_, T>, symmetry: Symmetry) -> Result<()> {
    if symmetry == Symmetry::General {
        return Ok(());
    }
    square(matrix.nrows(), matrix.ncols(), symmetry)?;
    for i in 0..matrix.nrows() {
        for j in 0..=i {
            if !mirrors(matrix.get(i, j), matrix.get(j, i), i == j, symmetry) {
                return Err(refused(symmetry, i, j));
            }
        }
    }
    Ok(())
}

/// Whether two values are mirror images, on the diagonal or off it; NaN mirrors NaN.
fn mirrors<T: Scalar>(v: T, w: T, diagonal: bool, symmetry: Symmetry) -> bool {
    match symmetry {
        Symmetry::SkewSymmetric if diagonal => v.is_zero(),
        _ if v.to_f64().is_nan() && w.to_f64().is_nan() => true,
        Symmetry::SkewSymmetric => negated(v) == Some(w),
        _ => v == w,
    }
}

fn square(rows: usize, cols: usize, symmetry: Symmetry) -> Result<()> {
    match rows == cols {
        true => Ok(()),
        false => Err(Error::Argument {
            name: "symmetry",
            found: format!("{} for {rows} x {cols}", symmetry.name()),
            expected: "a square matrix, or general".into(),
        }),
    }
}

fn refused(symmetry: Symmetry, i: usize, j: usize) -> Error {
    let (i, j) = (i + 1, j + 1);
    Error::Argument {
        name: "symmetry",
        found: format!("{} for a matrix whose ({i}, {j}) and ({j}, {i}) disagree", symmetry.name()),
        expected: "general".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustav_core::{Dense, Layout};

    fn of(entries: &[(usize, u32, i32)]) -> Csr<i32> {
        let mut dense = Dense::zeros(3, 3, Layout::RowMajor).unwrap();
        entries.iter().for_each(|(i, j, v)| dense.data_mut()[3 * i + *j as usize] = *v);
        Csr::from_dense(dense.view()).unwrap()
    }

    #[test]
    fn the_lower_half_stays() {
        let a = of(&[(0, 0, 1), (0, 2, 4), (2, 0, 4), (1, 1, -2)]);
        let half = sparse(a.view(), Symmetry::Symmetric, false).unwrap().unwrap();
        assert_eq!((half.offsets(), half.indices()), (&[0, 1, 2, 3][..], &[0, 1, 0][..]));
        let a = of(&[(0, 2, 4), (2, 0, -4)]);
        let half = sparse(a.view(), Symmetry::SkewSymmetric, false).unwrap().unwrap();
        assert_eq!((half.nnz(), half.values().as_slice()), (1, &[-4][..]));
        assert!(sparse(a.view(), Symmetry::Symmetric, true).is_ok());
        assert!(sparse(a.view(), Symmetry::SkewSymmetric, true).is_err());
    }

    #[test]
    fn infinities_have_mirror_images_and_a_diagonal_is_nothing_but_zero() {
        let of = |values: [f64; 4]| {
            Csr::<f64>::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], values.to_vec()).unwrap()
        };
        let skew = |values| sparse(of(values).view(), Symmetry::SkewSymmetric, false).is_ok();
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        assert!(skew([0.0, inf, -inf, 0.0]) && skew([0.0, nan, nan, 0.0]));
        assert!(!skew([0.0, inf, inf, 0.0]) && !skew([nan, 1.0, -1.0, 0.0]));
        assert!(!skew([0.0, 1.0, -1.0, inf]));
    }

    #[test]
    fn what_disagrees_is_named() {
        let message = |a: &Csr<i32>, s| sparse(a.view(), s, false).unwrap_err().to_string();
        let a = of(&[(0, 2, 4), (2, 0, 5)]);
        assert!(message(&a, Symmetry::Symmetric).contains("(1, 3) and (3, 1)"));
        assert!(message(&of(&[(1, 2, 4)]), Symmetry::Symmetric).contains("(2, 3) and (3, 2)"));
        assert!(message(&of(&[(2, 2, 4)]), Symmetry::SkewSymmetric).contains("(3, 3)"));
        let least = of(&[(0, 1, i32::MIN), (1, 0, i32::MIN)]);
        assert!(message(&least, Symmetry::SkewSymmetric).contains("disagree"));
        let wide = Csr::<i32>::new(1, 2, vec![0, 0], vec![], vec![]).unwrap();
        assert!(message(&wide, Symmetry::Symmetric).contains("1 x 2"));
    }
}
