//! `hash-rows` (Chen et al. 2025, §4.1.2): the paper's CPU baseline, unchanged. Threads take rows
//! of A one at a time; each row is summed in a hash map of its own, sorted, and stored in a vector
//! of its own; the vectors are then joined.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use gustav_core::buffer::try_vec;
use gustav_core::parallel::Shared;
use gustav_core::{Arith, Csr, CsrView, Error, Index, Result, Scalar};

use crate::Threads;

type Row<A> = Vec<(u32, A)>;

/// C = α·A·B, rows sorted.
///
/// # Errors
/// [`Error::Overflow`] when the entries of C outnumber the offset type, [`Error::OutOfMemory`].
pub(super) fn multiply<T: Scalar>(
    threads: &Threads,
    a: CsrView<'_, T>,
    alpha: T::Accum,
    b: CsrView<'_, T>,
) -> Result<Csr<T>> {
    let mut results: Vec<Row<T::Accum>> = try_vec(a.nrows(), "rows of C")?;
    results.resize_with(a.nrows(), Vec::new);
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let slots = Shared::new(&mut results);
    threads.each(threads.count(), |_| {
        loop {
            let row = next.fetch_add(1, Ordering::Relaxed);
            if row >= a.nrows() {
                break;
            }
            match product_row(&a, &b, row) {
                // SAFETY: the counter gives every row to one thread.
                Ok(entries) => unsafe { slots.slice(row..row + 1)[0] = entries },
                Err(error) => {
                    next.store(a.nrows(), Ordering::Relaxed);
                    *failure.lock().unwrap_or_else(|e| e.into_inner()) = Some(error);
                }
            }
        }
    });
    match failure.into_inner().unwrap_or_else(|e| e.into_inner()) {
        Some(error) => Err(error),
        None => assemble(b.ncols(), alpha, &results),
    }
}

fn product_row<T: Scalar>(
    a: &CsrView<'_, T>,
    b: &CsrView<'_, T>,
    row: usize,
) -> Result<Row<T::Accum>> {
    let mut map: HashMap<u32, T::Accum> = HashMap::new();
    let (columns, values) = a.row(row);
    for (k, a_ik) in columns.iter().zip(values) {
        let (columns, values) = b.row(*k as usize);
        map.try_reserve(columns.len()).map_err(|_| Error::OutOfMemory {
            what: "hash map of a row",
            needed: (columns.len() * size_of::<(u32, T::Accum)>()) as u128,
            available: gustav_core::buffer::available_memory(),
        })?;
        for (j, b_kj) in columns.iter().zip(values) {
            let sum = map.entry(*j).or_insert(T::Accum::zero());
            *sum = sum.plus(a_ik.to_accum().times(b_kj.to_accum()));
        }
    }
    let mut entries = try_vec(map.len(), "row of C")?;
    entries.extend(map);
    entries.sort_unstable_by_key(|(j, _)| *j);
    Ok(entries)
}

fn assemble<T: Scalar>(ncols: usize, alpha: T::Accum, rows: &[Row<T::Accum>]) -> Result<Csr<T>> {
    let nnz = rows.iter().map(Vec::len).sum();
    u32::try_from_usize(nnz, "row offset of C")?;
    let mut offsets = try_vec(rows.len() + 1, "row offsets")?;
    let mut indices = try_vec(nnz, "column indices")?;
    let mut values = try_vec(nnz, "values")?;
    offsets.push(0);
    for row in rows {
        indices.extend(row.iter().map(|(j, _)| *j));
        values.extend(row.iter().map(|(_, v)| T::from_accum(alpha.times(*v))));
        offsets.push(indices.len() as u32);
    }
    Csr::new(rows.len(), ncols, offsets, indices, values)
}
