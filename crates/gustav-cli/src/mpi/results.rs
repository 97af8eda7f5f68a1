//! Results of products over ranks: on the first rank, or in a file, with rows as stored.

use std::path::Path;

use gustav::io::WriteOptions;
use gustav::{Csr, Dense, Index, Permutation, Scalar};
use gustav_mpi::{DistCsr, DistDense, io};

use super::job::Job;
use super::parts::{Rows, copy_row};
use crate::failure::{Failure, Result};

/// The matrix on the first rank; its rows are `rows`. Collective.
///
/// # Errors
/// On every rank, when there is not enough memory there.
pub fn gather_dense<T: Scalar>(
    job: &Job,
    c: &DistDense<T>,
    rows: Rows<'_>,
) -> Result<Option<Dense<T>>> {
    let (whole, numbers) = (c.gather()?, rows.all_numbers(job)?);
    let stored = || {
        let (Some(c), Some(numbers)) = (&whole, &numbers) else { return Ok(whole) };
        let mut stored = Dense::zeros(c.nrows(), c.ncols(), c.layout())?;
        for (row, number) in numbers.iter().enumerate() {
            copy_row((c, row), (&mut stored, *number as usize));
        }
        Ok::<_, Failure>(Some(stored))
    };
    job.together(stored())
}

/// Writes the matrix, whose rows are `rows`: by parts where they are as stored, else from the first rank. Collective.
///
/// # Errors
/// On every rank, when it cannot be written.
pub fn write_dense<T: Scalar>(
    job: &Job,
    c: &DistDense<T>,
    rows: Rows<'_>,
    path: &Path,
) -> Result<()> {
    let options = WriteOptions::default();
    if rows.numbers.is_none() {
        return Ok(io::write_dense(c, path, &options)?);
    }
    let whole = gather_dense(job, c, rows)?;
    let layout = c.local().layout();
    job.first(|| match &whole {
        Some(c) => {
            let c = c.view().to_layout(layout)?;
            Ok(gustav::io::write_dense(path, c.view(), &options)?)
        }
        None => Ok(()),
    })?;
    Ok(())
}

/// Rows and columns of a sparse matrix.
pub type Sides<'a> = [Rows<'a>; 2];

/// The matrix on the first rank; `sides` are its rows and columns, which entries of a row follow if `sorted`.
/// Collective.
///
/// # Errors
/// On every rank, when there is not enough memory there, or the offsets pass their type.
pub fn gather_csr<T: Scalar, I: Index, O: Index>(
    job: &Job,
    c: &DistCsr<T, I, O>,
    sides: Sides<'_>,
    sorted: bool,
) -> Result<Option<Csr<T, I, O>>> {
    let local = c.local().pattern();
    let lengths: Vec<i64> =
        (0..local.nrows()).map(|row| local.view().row_len(row) as i64).collect();
    let columns: Vec<i64> = local.indices().iter().map(|column| column.to_usize() as i64).collect();
    let lengths = job.gather_vector(&lengths)?;
    let columns = job.gather_vector(&columns)?;
    let values = job.gather_vector(c.local().values().as_slice())?;
    let [of_rows, of_columns] = sides;
    let numbers = [of_rows.all_numbers(job)?, of_columns.all_numbers(job)?];
    let whole = || {
        let (Some(lengths), Some(columns), Some(values)) = (lengths, columns, values) else {
            return Ok(None);
        };
        let mut end = 0_usize;
        let mut offsets = vec![O::truncate(0)];
        for len in lengths {
            end += len as usize;
            offsets.push(O::try_from_usize(end, "nonzeros of C")?);
        }
        let columns = columns.into_iter().map(|column| I::truncate(column as usize));
        let columns: Vec<I> = columns.collect();
        let nrows = offsets.len() - 1;
        let whole = Csr::new(nrows, c.pattern().ncols(), offsets, columns, values)?;
        Ok::<_, Failure>(Some(stored(whole, numbers, sorted)?))
    };
    job.together(whole())
}

/// The matrix with rows and columns as stored, given their numbers.
fn stored<T: Scalar, I: Index, O: Index>(
    mut c: Csr<T, I, O>,
    [rows, columns]: [Option<Vec<u32>>; 2],
    sorted: bool,
) -> Result<Csr<T, I, O>> {
    if let Some(numbers) = rows {
        c = Permutation::new(numbers)?.inverse()?.apply_rows(c.view())?;
    }
    if let Some(numbers) = columns {
        c = Permutation::new(numbers)?.inverse()?.apply_columns(c.view())?;
        c = if sorted { c.sort_columns()? } else { c };
    }
    Ok(c)
}

/// Writes the matrix, whose rows and columns are `sides`: by parts where they are as stored, else from the first rank.
/// Collective.
///
/// # Errors
/// On every rank, when it cannot be written.
pub fn write_csr<T: Scalar, I: Index, O: Index>(
    job: &Job,
    c: &DistCsr<T, I, O>,
    sides: Sides<'_>,
    sorted: bool,
    path: &Path,
) -> Result<()> {
    let options = WriteOptions::default();
    if sides.iter().all(|side| side.numbers.is_none()) {
        return Ok(io::write_csr(c, path, &options)?);
    }
    let whole = gather_csr(job, c, sides, sorted)?;
    job.first(|| match &whole {
        Some(c) => Ok(gustav::io::write_csr(path, c.view(), &options)?),
        None => Ok(()),
    })?;
    Ok(())
}
