//! C = P ⊕ β·D: a finished product united with a sparse matrix.

use std::ops::Range;

use gustav_core::{Csr, CsrView, Error, Index, Result, Scalar, Semiring, parallel};

use super::rows::{Rows, joined};

const ROWS: usize = 1024;

/// The union of both patterns, rows sorted, entries of the same place added: those of `p`, then β
/// times the sum of those of `d`, each in their order; those that come out as exactly zero are left out
/// if `drop_zeros` says so.
///
/// # Errors
/// [`Error::Shape`] when the shapes differ, [`Error::Overflow`] when the entries outnumber the
/// offset type, [`Error::OutOfMemory`].
pub(super) fn add<S: Semiring<T::Accum>, T: Scalar, I: Index, O: Index>(
    p: CsrView<'_, T, I, O>,
    beta: T::Accum,
    d: CsrView<'_, T, I, O>,
    drop_zeros: bool,
) -> Result<Csr<T, I, O>> {
    let chunks = p.nrows().div_ceil(ROWS);
    let rows = |k| k * ROWS..p.nrows().min((k + 1) * ROWS);
    let part = |k| add_rows::<S, _, _, _>(&p, beta, &d, rows(k), drop_zeros);
    let parts = parallel::map(chunks, part).into_iter().collect::<Result<Vec<_>>>()?;
    // SAFETY: columns come from matrices of this width, and parts follow one another.
    unsafe { joined(parts, p.nrows(), p.ncols()) }
}

fn add_rows<S: Semiring<T::Accum>, T: Scalar, I: Index, O: Index>(
    p: &CsrView<'_, T, I, O>,
    beta: T::Accum,
    d: &CsrView<'_, T, I, O>,
    rows: Range<usize>,
    drop_zeros: bool,
) -> Result<Rows<T, I>> {
    let room: usize = rows.clone().map(|r| p.row_len(r) + d.row_len(r)).sum();
    let mut out = Rows::new(rows.len(), room)?;
    let mut terms: Vec<(I, bool, T::Accum)> = Vec::new();
    for row in rows {
        let ((p_columns, p_values), (d_columns, d_values)) = (p.row(row), d.row(row));
        terms.clear();
        terms.try_reserve(p_columns.len() + d_columns.len()).map_err(|_| Error::OutOfMemory {
            what: "rows of C",
            needed: ((p_columns.len() + d_columns.len()) * size_of::<(I, bool, T::Accum)>())
                as u128,
            available: gustav_core::buffer::available_memory(),
        })?;
        terms.extend(p_columns.iter().zip(p_values).map(|(j, v)| (*j, false, v.to_accum())));
        terms.extend(d_columns.iter().zip(d_values).map(|(j, v)| (*j, true, v.to_accum())));
        // Two sorted runs: a merge.
        terms.sort_by_key(|(j, _, _)| *j);
        let start = out.indices.len();
        for same in terms.chunk_by(|x, y| x.0 == y.0) {
            let (p, d) = same.split_at(same.partition_point(|(_, of_d, _)| !of_d));
            let sum = |terms: &[(I, bool, T::Accum)]| {
                terms.iter().map(|(_, _, v)| *v).reduce(|sum, v| S::add(sum, v))
            };
            let scaled = sum(d).map(|d| S::scale(beta, d));
            let Some(sum) = sum(p).into_iter().chain(scaled).reduce(|p, d| S::add(p, d)) else {
                continue;
            };
            if drop_zeros && sum == S::zero() {
                continue;
            }
            out.indices.push(same[0].0);
            out.values.push(T::from_accum(sum));
        }
        out.lengths.push(out.indices.len() - start);
    }
    Ok(out)
}
