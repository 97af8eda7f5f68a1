//! C = P ⊕ β·D: a finished product united with a sparse matrix.

use std::ops::Range;

use gustav_core::buffer::try_vec;
use gustav_core::{Csr, CsrView, Error, Index, Result, Scalar, Semiring, parallel};

const ROWS: usize = 1024;

struct Rows<T, I> {
    lengths: Vec<usize>,
    indices: Vec<I>,
    values: Vec<T>,
}

/// The union of both patterns, rows sorted, entries of the same place added: those of `p` first,
/// then those of `d` in their order.
///
/// # Errors
/// [`Error::Shape`] when the shapes differ, [`Error::Overflow`] when the entries outnumber the
/// offset type, [`Error::OutOfMemory`].
pub(super) fn add<S: Semiring<T::Accum>, T: Scalar, I: Index, O: Index>(
    p: CsrView<'_, T, I, O>,
    beta: T::Accum,
    d: CsrView<'_, T, I, O>,
) -> Result<Csr<T, I, O>> {
    check_shape(&p, &d)?;
    let chunks = p.nrows().div_ceil(ROWS);
    let part = |k| add_rows::<S, _, _, _>(&p, beta, &d, k * ROWS..p.nrows().min((k + 1) * ROWS));
    let parts: Vec<Rows<T, I>> = parallel::map(chunks, part).into_iter().collect::<Result<_>>()?;
    let nnz = parts.iter().map(|r| r.indices.len()).sum();
    O::try_from_usize(nnz, "row offset of C")?;
    let mut offsets = try_vec(p.nrows() + 1, "row offsets of C")?;
    let mut indices = try_vec(nnz, "column indices of C")?;
    let mut values = try_vec(nnz, "values of C")?;
    let mut end = 0;
    offsets.push(O::default());
    for part in parts {
        offsets.extend(part.lengths.iter().map(|length| {
            end += length;
            O::truncate(end)
        }));
        indices.extend_from_slice(&part.indices);
        values.extend_from_slice(&part.values);
    }
    // SAFETY: lengths of rows add up to offsets, and columns come from matrices of this width.
    Ok(unsafe { Csr::new_unchecked(p.nrows(), p.ncols(), offsets, indices, values) })
}

pub(super) fn check_shape<T: Scalar, I: Index, O: Index>(
    p: &CsrView<'_, T, I, O>,
    d: &CsrView<'_, T, I, O>,
) -> Result<()> {
    if (p.nrows(), p.ncols()) == (d.nrows(), d.ncols()) {
        return Ok(());
    }
    Err(Error::Shape {
        op: "spgemm",
        expected: format!("D of {} x {}", p.nrows(), p.ncols()),
        found: format!("{} x {}", d.nrows(), d.ncols()),
    })
}

fn add_rows<S: Semiring<T::Accum>, T: Scalar, I: Index, O: Index>(
    p: &CsrView<'_, T, I, O>,
    beta: T::Accum,
    d: &CsrView<'_, T, I, O>,
    rows: Range<usize>,
) -> Result<Rows<T, I>> {
    let room: usize = rows.clone().map(|r| p.row_len(r) + d.row_len(r)).sum();
    let mut out = Rows {
        lengths: try_vec(rows.len(), "rows of C")?,
        indices: try_vec(room, "rows of C")?,
        values: try_vec(room, "rows of C")?,
    };
    let mut terms: Vec<(I, T::Accum)> = Vec::new();
    for row in rows {
        let ((p_columns, p_values), (d_columns, d_values)) = (p.row(row), d.row(row));
        terms.clear();
        terms.try_reserve(p_columns.len() + d_columns.len()).map_err(|_| Error::OutOfMemory {
            what: "rows of C",
            needed: ((p_columns.len() + d_columns.len()) * size_of::<(I, T::Accum)>()) as u128,
            available: gustav_core::buffer::available_memory(),
        })?;
        let scaled = |v: &T| S::scale(beta, v.to_accum());
        terms.extend(p_columns.iter().zip(p_values).map(|(j, v)| (*j, v.to_accum())));
        terms.extend(d_columns.iter().zip(d_values).map(|(j, v)| (*j, scaled(v))));
        // Two sorted runs: a merge.
        terms.sort_by_key(|(j, _)| *j);
        let start = out.indices.len();
        for same in terms.chunk_by(|x, y| x.0 == y.0) {
            let sum = same[1..].iter().fold(same[0].1, |sum, (_, v)| S::add(sum, *v));
            out.indices.push(same[0].0);
            out.values.push(T::from_accum(sum));
        }
        out.lengths.push(out.indices.len() - start);
    }
    Ok(out)
}
