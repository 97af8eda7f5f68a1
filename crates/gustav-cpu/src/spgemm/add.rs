//! C = P ⊕ β·D: the union of a finished product and a sparse matrix.

use std::ops::Range;

use gustav_core::{Error, IndexType, Ops, Result, Scalar, Semiring, parallel};

use super::operands::{Matrix, Product};
use super::rows::{RowBlock, joined};

const ROWS: usize = 1024;

/// One entry of a row: column, whether it is one of D's, value.
type Term<A> = (u64, bool, A);

/// The union of both patterns, rows sorted, entries of the same column added: those of `p`, then β
/// times the sum of those of `d`, each in their order; results of exactly zero are left out if
/// `drop_zeros`. The shapes must be equal.
///
/// # Errors
/// [`Error::Overflow`] when the entries outnumber the offset type, [`Error::OutOfMemory`].
pub(super) fn add<U: Scalar>(
    semiring: Semiring,
    p: &Matrix<'_, U>,
    beta: U::Accum,
    d: &Matrix<'_, U>,
    drop_zeros: bool,
    types: (IndexType, IndexType),
) -> Result<Product<U>> {
    let nrows = p.rows.nrows;
    let rows = |k| k * ROWS..nrows.min((k + 1) * ROWS);
    let block = |k| add_rows(semiring, p, beta, d, rows(k), drop_zeros);
    let blocks = parallel::map(nrows.div_ceil(ROWS), block);
    let blocks = blocks.into_iter().collect::<Result<Vec<_>>>()?;
    // SAFETY: columns come from matrices of this width, and blocks follow one another.
    unsafe { joined(&blocks, (nrows, p.rows.ncols), types) }
}

fn add_rows<U: Scalar>(
    s: Semiring,
    p: &Matrix<'_, U>,
    beta: U::Accum,
    d: &Matrix<'_, U>,
    rows: Range<usize>,
    drop_zeros: bool,
) -> Result<RowBlock<U>> {
    let entries = rows.clone().map(|r| p.rows.range(r).len() + d.rows.range(r).len()).sum();
    let mut out = RowBlock::new(rows.len(), entries)?;
    let mut terms: Vec<Term<U::Accum>> = Vec::new();
    for row in rows {
        terms.clear();
        let len = p.rows.range(row).len() + d.rows.range(row).len();
        terms.try_reserve(len).map_err(|_| Error::OutOfMemory {
            what: "rows of C",
            needed: (len * size_of::<Term<U::Accum>>()) as u128,
            available: gustav_core::buffer::available_memory(),
        })?;
        for (of_d, m) in [(false, p), (true, d)] {
            let term = |at| (m.rows.column(at) as u64, of_d, m.values[at].to_accum());
            terms.extend(m.rows.range(row).map(term));
        }
        // Two sorted runs: a merge.
        terms.sort_by_key(|(j, _, _)| *j);
        let start = out.columns.len();
        for same in terms.chunk_by(|x, y| x.0 == y.0) {
            let (p, d) = same.split_at(same.partition_point(|(_, of_d, _)| !of_d));
            let sum = |terms: &[Term<U::Accum>]| {
                terms.iter().map(|(_, _, v)| *v).reduce(|sum, v| s.add(sum, v))
            };
            let scaled = sum(d).map(|d| s.scale(beta, d));
            let Some(sum) = sum(p).into_iter().chain(scaled).reduce(|p, d| s.add(p, d)) else {
                continue;
            };
            if drop_zeros && sum == s.zero() {
                continue;
            }
            out.columns.push(same[0].0);
            out.values.push(U::from_accum(sum));
        }
        out.lengths.push(out.columns.len() - start);
    }
    Ok(out)
}
