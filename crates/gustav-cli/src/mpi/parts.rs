//! Operands, of which every rank has a part.

use gustav::io::{Generator, Values};
use gustav::{Dense, Index, Layout, Scalar};
use gustav_mpi::{DistCsr, DistDense, Partition};

use super::Spread;
use super::job::Job;
use crate::failure::{Failure, Result};
use crate::output;
use crate::random;
use crate::source::Source;

/// Rows that ranks have, and their numbers in the whole matrix.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// Which rank has which.
    pub partition: &'a Partition,
    /// The number of each row of this rank, unless rows are as stored.
    pub numbers: Option<&'a [u32]>,
}

impl Rows<'_> {
    /// The number that each row has in the whole matrix, on the first rank, unless rows are as stored. Collective.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn all_numbers(&self, job: &Job) -> Result<Option<Vec<u32>>> {
        let Some(numbers) = self.numbers else { return Ok(None) };
        let numbers: Vec<i64> = numbers.iter().map(|n| i64::from(*n)).collect();
        let all = job.gather_vector(&numbers)?;
        Ok(all.map(|all| all.into_iter().map(|n| n as u32).collect()))
    }
}

/// A of which every rank has a part.
pub struct Parts<T: Scalar, I: Index, O: Index> {
    /// Its rows, and columns if it is square, perhaps in another order.
    pub matrix: DistCsr<T, I, O>,
    /// The number that each row of this rank has in A, if they are in another order.
    numbers: Option<Vec<u32>>,
}

impl<T: Scalar, I: Index, O: Index> Parts<T, I, O> {
    /// The rows of A.
    pub fn rows(&self) -> Rows<'_> {
        Rows { partition: self.matrix.pattern().rows(), numbers: self.numbers.as_deref() }
    }

    /// The columns of A, which are rows of B.
    pub fn columns(&self) -> Rows<'_> {
        let pattern = self.matrix.pattern();
        // Those of other matrices stay.
        let square = pattern.nrows() == pattern.ncols();
        let numbers = self.numbers.as_deref().filter(|_| square);
        Rows { partition: pattern.columns(), numbers }
    }
}

/// A of which every rank reads or makes its part, or gets it of the first, which reads A whole to order its rows.
/// Columns of a square matrix are spread as its rows, those of others evenly. Collective.
///
/// # Errors
/// On every rank, for files that cannot be read and sizes that do not fit.
pub fn read<T: Scalar, I: Index, O: Index>(
    job: &Job,
    source: &Source,
    seed: u64,
    spread: Spread,
) -> Result<Parts<T, I, O>> {
    let _spinner = output::spinner(job.printing, "reading");
    let (matrix, numbers) = match (spread, source) {
        (Spread::Ordered(order), _) => {
            let whole = job.first(|| source.read::<T, I, O>(seed, job.printing))?;
            let (matrix, numbers) = DistCsr::scatter_ordered(&job.ranks, whole.as_ref(), order)?;
            (matrix, Some(numbers))
        }
        (_, Source::File(path)) => {
            (gustav_mpi::io::read_csr(&job.ranks, path, Values::default())?, None)
        }
        (_, Source::Generated(generator)) => {
            let (rows, columns) = job.together(generator.shape().map_err(Failure::from))?;
            let even = |count| Partition::even(count, job.ranks.size());
            (generated(job, generator, seed, (&even(rows), &even(columns)))?, None)
        }
    };
    let matrix = if spread == Spread::Balanced { matrix.balanced()? } else { matrix };
    Ok(Parts { matrix, numbers })
}

/// A matrix with rows spread as `rows`, and columns as well if it is square, else evenly. Collective.
///
/// # Errors
/// On every rank, as [`read`], and those of `check`, which is given rows and columns.
pub fn read_spread<T: Scalar, I: Index, O: Index>(
    job: &Job,
    source: &Source,
    seed: u64,
    rows: &Partition,
    check: impl Fn((usize, usize)) -> Result<()>,
) -> Result<DistCsr<T, I, O>> {
    let _spinner = output::spinner(job.printing, "reading");
    let columns = |count| match rows.rows() == count {
        true => rows.clone(),
        false => Partition::even(count, job.ranks.size()),
    };
    match source {
        Source::File(path) => {
            let parts = gustav_mpi::io::read_csr(&job.ranks, path, Values::default())?;
            let pattern: &gustav_mpi::DistPattern<I, O> = parts.pattern();
            check((pattern.nrows(), pattern.ncols()))?;
            Ok(parts.spread(rows, &columns(pattern.ncols()))?)
        }
        Source::Generated(generator) => {
            let shape = job.together(generator.shape().map_err(Failure::from))?;
            check(shape)?;
            generated(job, generator, seed, (rows, &columns(shape.1)))
        }
    }
}

fn generated<T: Scalar, I: Index, O: Index>(
    job: &Job,
    generator: &Generator,
    seed: u64,
    spread: (&Partition, &Partition),
) -> Result<DistCsr<T, I, O>> {
    Ok(gustav_mpi::io::generate(&job.ranks, generator, seed, spread)?)
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
    pub fn part(&self, job: &Job, rows: Rows<'_>, layout: Layout) -> Result<DistDense<T>> {
        let (partition, count) = (rows.partition, rows.partition.rows());
        match self {
            Operand::Random { columns, seed } => {
                let mine = partition.range(job.ranks.rank());
                let local = match rows.numbers {
                    None => random::rows(count, mine, *columns, layout, *seed),
                    Some(numbers) => {
                        let numbers = numbers.iter().map(|n| *n as usize);
                        random::rows(count, numbers, *columns, layout, *seed)
                    }
                };
                Ok(DistDense::new(&job.ranks, partition, job.together(local)?)?)
            }
            Operand::File(read) => {
                let numbers = rows.all_numbers(job)?;
                let whole = job.first(|| {
                    let whole = read()?;
                    let Some(numbers) = &numbers else { return Ok(whole) };
                    let mut ordered = Dense::zeros(whole.nrows(), whole.ncols(), whole.layout())?;
                    for (row, number) in numbers.iter().enumerate() {
                        copy_row((&whole, *number as usize), (&mut ordered, row));
                    }
                    Ok(ordered)
                })?;
                let columns = job.number_of_first(whole.as_ref().map_or(0, Dense::ncols))?;
                let shape = (partition, columns);
                Ok(DistDense::scatter(&job.ranks, whole.as_ref(), shape, layout)?)
            }
        }
    }

    /// All of it, with rows as stored.
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

/// Copies one row of a matrix to one of another.
pub fn copy_row<T: Scalar>(
    (from, source): (&Dense<T>, usize),
    (to, target): (&mut Dense<T>, usize),
) {
    let (from, mut to) = (from.view(), to.view_mut());
    (0..from.ncols()).for_each(|column| to.set(target, column, from.get(source, column)));
}
