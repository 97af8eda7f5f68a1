//! Operands, of which every rank has a part.

use gustav::io::Values;
use gustav::{Csr, Dense, Index, Layout, Scalar};
use gustav_mpi::{DistCsr, DistDense, Partition};

use super::job::Job;
use crate::failure::{Failure, Result};
use crate::output;
use crate::random;
use crate::source::Source;

/// Rows with as nearly as possible the same number of nonzeros and row starts.
pub fn balanced<T: Scalar, I: Index, O: Index>(job: &Job, a: &Csr<T, I, O>) -> Partition {
    Partition::balanced(&a.pattern().view(), job.ranks.size())
}

/// Rows of `whole`, which the first rank has, on all ranks, balanced; columns as rows of a square
/// matrix, and evenly of others. Collective.
///
/// # Errors
/// When there is not enough memory.
pub fn scatter<T: Scalar, I: Index, O: Index>(
    job: &Job,
    whole: Option<&Csr<T, I, O>>,
) -> Result<DistCsr<T, I, O>> {
    let partitions = whole.map(|a| {
        let rows = balanced(job, a);
        let square = a.nrows() == a.ncols();
        let columns =
            if square { rows.clone() } else { Partition::even(a.ncols(), job.ranks.size()) };
        (rows, columns)
    });
    let parts = whole.zip(partitions.as_ref()).map(|(a, (rows, columns))| (a, rows, columns));
    Ok(DistCsr::scatter(&job.ranks, parts)?)
}

/// A of which every rank reads or makes its part, rows balanced; columns as of [`scatter`].
/// Collective.
///
/// # Errors
/// On every rank, for files that cannot be read and sizes that do not fit.
pub fn read<T: Scalar, I: Index, O: Index>(
    job: &Job,
    source: &Source,
    seed: u64,
) -> Result<DistCsr<T, I, O>> {
    let _spinner = output::spinner(job.printing, "reading");
    let parts = match source {
        Source::File(path) => gustav_mpi::io::read_csr(&job.ranks, path, Values::default())?,
        Source::Generated(generator) => {
            let (rows, columns) = job.together(generator.shape().map_err(Failure::from))?;
            let even = |count| Partition::even(count, job.ranks.size());
            let spread = (&even(rows), &even(columns));
            gustav_mpi::io::generate(&job.ranks, generator, seed, spread)?
        }
    };
    Ok(parts.balanced()?)
}

/// The source of a dense operand.
pub enum Operand<'a, T: Scalar> {
    /// Random values of this seed, so many in a row: every rank makes its own.
    Random { columns: usize, seed: u64 },
    /// A file, which the first rank reads.
    File(&'a dyn Fn() -> Result<Dense<T>>),
}

impl<T: Scalar> Operand<'_, T> {
    /// This rank's rows. Collective.
    ///
    /// # Errors
    /// On every rank, when there is not enough memory or the file cannot be read.
    pub fn part(&self, job: &Job, rows: &Partition, layout: Layout) -> Result<DistDense<T>> {
        match self {
            Operand::Random { columns, seed } => {
                let mine = rows.range(job.ranks.rank());
                let local = random::rows(rows.rows(), mine, *columns, layout, *seed);
                Ok(DistDense::new(&job.ranks, rows, job.together(local)?)?)
            }
            Operand::File(read) => {
                let whole = job.first(read)?;
                let columns = job.number_of_first(whole.as_ref().map_or(0, Dense::ncols))?;
                let shape = (rows, columns);
                Ok(DistDense::scatter(&job.ranks, whole.as_ref(), shape, layout)?)
            }
        }
    }

    /// All of it.
    ///
    /// # Errors
    /// When there is not enough memory or the file cannot be read.
    pub fn whole(&self, rows: usize, layout: Layout) -> Result<Dense<T>> {
        match self {
            Operand::Random { columns, seed } => random::dense(rows, *columns, layout, *seed),
            Operand::File(read) => read(),
        }
    }
}

/// The matrix on the first rank. Collective.
///
/// # Errors
/// On every rank, when there is not enough memory there, or the offsets pass their type.
pub fn gather_csr<T: Scalar, I: Index, O: Index>(
    job: &Job,
    c: &DistCsr<T, I, O>,
) -> Result<Option<Csr<T, I, O>>> {
    let local = c.local().pattern();
    let lengths: Vec<i64> =
        (0..local.nrows()).map(|row| local.view().row_len(row) as i64).collect();
    let columns: Vec<i64> = local.indices().iter().map(|column| column.to_usize() as i64).collect();
    let lengths = job.gather_vector(&lengths)?;
    let columns = job.gather_vector(&columns)?;
    let values = job.gather_vector(c.local().values().as_slice())?;
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
        Ok::<_, Failure>(Some(Csr::new(nrows, c.pattern().ncols(), offsets, columns, values)?))
    };
    job.together(whole())
}
