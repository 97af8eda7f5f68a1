//! Matrices in files and from generators, each rank with its part: nothing is parsed or generated twice, and no rank
//! has the whole, but for files that can only be read whole.

mod write;

use std::path::Path;

use gustav_core::buffer::try_vec;
use gustav_core::{Buffer, Csr, Error, Index, Result, Scalar};
use gustav_io::parts::{Entries, SharedFile};
use gustav_io::{Generator, ReadOptions, Values};

use crate::exchange::all_to_all;
use crate::matrix::gather_numbers;
use crate::{DistCsr, Partition, Ranks};
pub use write::{write_csr, write_dense};

/// Reads a sparse matrix, with rows and columns spread evenly; see [`DistCsr::balanced`]. Collective.
///
/// Of a Matrix Market file every rank parses the lines that begin in its part of the bytes, and sends each entry to the
/// rank that has its row; of an npz file of CSR arrays that are stored uncompressed
/// (`scipy.sparse.save_npz(..., compressed=False)`) it reads its rows alone. All ranks have to see the file. Other
/// files are read whole by rank 0, which sends the parts: compressed ones, npz with CSC or COO arrays, npy and smtx.
/// The matrix is that of [`gustav_io::read_csr`], to the order of entries in a row.
///
/// # Errors
/// On every rank: as [`gustav_io::read_csr`], and [`Error::RanksDiffer`] when ranks see different files.
pub fn read_csr<T: Scalar, I: Index, O: Index>(
    ranks: &Ranks,
    path: impl AsRef<Path>,
    values: Values,
) -> Result<DistCsr<T, I, O>> {
    let path = path.as_ref();
    let lock = ranks.lock();
    let opened = SharedFile::open(path);
    let seen = match &opened {
        Ok(Some(file)) => file.description(),
        _ => "one that is read whole".into(),
    };
    let arguments = vec![
        ("call", "reading a matrix".to_owned()),
        ("file", seen),
        ("type of values", T::DTYPE.to_string()),
        ("type of column indices", I::TYPE.to_string()),
        ("type of row offsets", O::TYPE.to_string()),
        ("values of patterns", format!("{values:?}")),
    ];
    let Some(file) = ranks.agree_on(arguments, opened)? else {
        drop(lock);
        return read_whole(ranks, path, values);
    };
    let spread = || -> Result<_> {
        let (rows, columns) = file.shape();
        let shape = [rows, columns].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        I::try_from_usize(shape[1].saturating_sub(1), "column index")?;
        Ok(shape.map(|n| Partition::even(n, ranks.size())))
    };
    let [rows, columns] = ranks.together(spread())?;
    let local = match file.is_text() {
        true => read_text(ranks, &file, &rows, columns.rows(), values)?,
        false => ranks.together(file.rows(rows.range(ranks.rank())))?,
    };
    drop(lock);
    DistCsr::new(ranks, &columns, local)
}

fn read_whole<T: Scalar, I: Index, O: Index>(
    ranks: &Ranks,
    path: &Path,
    values: Values,
) -> Result<DistCsr<T, I, O>> {
    let read = || -> Result<_> {
        let options = ReadOptions { values, ..ReadOptions::default() };
        let whole: Csr<T, I, O> = gustav_io::read_csr(path, &options)?;
        let [rows, columns] =
            [whole.nrows(), whole.ncols()].map(|n| Partition::even(n, ranks.size()));
        Ok((whole, rows, columns))
    };
    let lock = ranks.lock();
    let read = ranks.together((ranks.rank() == 0).then(read).transpose())?;
    drop(lock);
    DistCsr::scatter(ranks, read.as_ref().map(|(a, rows, columns)| (a, rows, columns)))
}

/// Parses this rank's part of a text, and gathers this rank's rows.
fn read_text<T: Scalar, I: Index, O: Index>(
    ranks: &Ranks,
    file: &SharedFile,
    rows: &Partition,
    columns: usize,
    values: Values,
) -> Result<Csr<T, I, O>> {
    let mine: Entries<T> = ranks.together(file.entries(ranks.rank(), ranks.size()))?;
    let counts = gather_numbers(ranks, [mine.rows.len()])?;
    let count = |counts: &[[usize; 1]]| counts.iter().map(|c| c[0]).sum::<usize>();
    file.check_entries(count(&counts) as u64)?;
    let first = count(&counts[..ranks.rank()]);
    let complete = || -> Result<_> {
        let values = match &mine.values {
            Some(_) => None,
            None => Some(SharedFile::values_of_pattern(values, first, mine.rows.len())?),
        };
        let mine = Entries { values: values.or(mine.values), ..mine };
        let mirrored = mine.mirrored(file.symmetry())?;
        Ok((mine, mirrored))
    };
    let (mine, mirrored) = ranks.together(complete())?;
    let own = rows.range(ranks.rank());
    let mut lists = vec![send_to_owners::<T, I>(ranks, mine, rows)?];
    // Symmetry is that of the file, the same on every rank.
    if let Some(mirrored) = mirrored {
        lists.push(send_to_owners(ranks, mirrored, rows)?);
    }
    ranks.together(csr_of(&lists, (own.start, own.len(), columns)))
}

/// Entries of this rank's rows.
pub(crate) struct Owned<T, I> {
    rows: Vec<u64>,
    columns: Vec<I>,
    values: Vec<T>,
}

/// Sends entries, whose values are there, to the ranks that have their rows; what is received is in the order of ranks
/// and of their entries. Collective.
///
/// # Errors
/// On every rank, [`Error::OutOfMemory`].
pub(crate) fn send_to_owners<T: Scalar, I: Index>(
    ranks: &Ranks,
    entries: Entries<T>,
    partition: &Partition,
) -> Result<Owned<T, I>> {
    let Entries { rows, columns, values } = entries;
    let sort = || -> Result<_> {
        let owners = || rows.iter().map(|row| partition.owner(*row as usize));
        let mut ends = vec![0_usize; ranks.size() + 1];
        owners().for_each(|q| ends[q + 1] += 1);
        (0..ranks.size()).for_each(|q| ends[q + 1] += ends[q]);
        let mut next = ends.clone();
        let mut order = Buffer::<usize>::zeroed(rows.len(), "entries by rank")?;
        for (k, q) in owners().enumerate() {
            order[next[q]] = k;
            next[q] += 1;
        }
        let values = values.as_deref().unwrap_or_default();
        let (mut to_rows, mut to_columns, mut to_values) = (
            try_vec::<u64>(rows.len(), "rows of entries")?,
            try_vec::<I>(rows.len(), "columns of entries")?,
            try_vec::<T>(rows.len(), "values of entries")?,
        );
        to_rows.extend(order.iter().map(|k| rows[*k]));
        to_columns.extend(order.iter().map(|k| I::truncate(columns[*k] as usize)));
        to_values.extend(order.iter().map(|k| values[*k]));
        Ok((ends, to_rows, to_columns, to_values))
    };
    let (ends, rows, columns, values) = ranks.together(sort())?;
    Ok(Owned {
        rows: send_parts(ranks, &ends, &rows)?,
        columns: send_parts(ranks, &ends, &columns)?,
        values: send_parts(ranks, &ends, &values)?,
    })
}

/// Sends `list[ends[q]..ends[q + 1]]` to rank q; what is received, in rank order.
pub(crate) fn send_parts<W: bytemuck::Pod>(
    ranks: &Ranks,
    ends: &[usize],
    list: &[W],
) -> Result<Vec<W>> {
    let parts: Vec<&[W]> = ends.windows(2).map(|e| &list[e[0]..e[1]]).collect();
    Ok(all_to_all(ranks, &parts)?.concat())
}

/// The rows `first` to `first + len` − 1 that hold all entries of the lists, a row those of the first list first.
///
/// # Errors
/// [`Error::Overflow`] when the entries pass the type of row offsets, [`Error::OutOfMemory`].
pub(crate) fn csr_of<T: Scalar, I: Index, O: Index>(
    lists: &[Owned<T, I>],
    (first, len, ncols): (usize, usize, usize),
) -> Result<Csr<T, I, O>> {
    let entries: usize = lists.iter().map(|list| list.rows.len()).sum();
    O::try_from_usize(entries, "row offset")?;
    let local = |row: u64| (row as usize).checked_sub(first).filter(|row| *row < len);
    let mut next = Buffer::<usize>::zeroed(len + 1, "row offsets")?;
    for row in lists.iter().flat_map(|list| &list.rows) {
        let row = local(*row).ok_or_else(|| Error::Argument {
            name: "row of an entry",
            found: row.to_string(),
            expected: format!("at least {first} and less than {}", first + len),
        })?;
        next[row + 1] += 1;
    }
    (0..len).for_each(|row| next[row + 1] += next[row]);
    let mut offsets = try_vec::<O>(len + 1, "row offsets")?;
    offsets.extend(next.iter().map(|o| O::truncate(*o)));
    let mut indices = Buffer::<I>::zeroed(entries, "column indices")?;
    let mut values = Buffer::<T>::zeroed(entries, "values")?;
    for list in lists {
        for ((row, column), value) in list.rows.iter().zip(&list.columns).zip(&list.values) {
            // All rows were looked at above.
            let at = &mut next[*row as usize - first];
            (indices[*at], values[*at]) = (*column, *value);
            *at += 1;
        }
    }
    Csr::new(len, ncols, offsets, indices, values)
}

/// The matrix that `generator` gives, with rows as `rows` says and columns as `columns`: every rank makes its rows.
/// It is that of [`Generator::build`]. R-MAT draws all edges on every rank and selects those of its rows; the other
/// families draw their rows alone. Collective.
///
/// # Errors
/// On every rank: [`Error::Shape`] when a partition does not fit, and as [`Generator::build`].
pub fn generate<T: Scalar, I: Index, O: Index>(
    ranks: &Ranks,
    generator: &Generator,
    seed: u64,
    (rows, columns): (&Partition, &Partition),
) -> Result<DistCsr<T, I, O>> {
    let lock = ranks.lock();
    let arguments = vec![
        ("call", "generating a matrix".to_owned()),
        ("generator", generator.to_string()),
        ("seed", seed.to_string()),
        ("partition of rows", rows.description()),
        ("partition of columns", columns.description()),
    ];
    let pattern = || {
        let shape = generator.shape()?;
        let size = ranks.size();
        let found = (rows.rows(), columns.rows());
        if found != shape || [rows.ranks(), columns.ranks()] != [size; 2] {
            return Err(Error::Shape {
                op: "generate",
                expected: format!("{} rows and {} columns over {size} ranks", shape.0, shape.1),
                found: format!(
                    "{} rows over {} and {} columns over {}",
                    found.0,
                    rows.ranks(),
                    found.1,
                    columns.ranks()
                ),
            });
        }
        generator.pattern_of_rows::<I, O>(rows.range(ranks.rank()), seed)
    };
    let pattern = ranks.agree_on(arguments, pattern())?;
    let counts = gather_numbers(ranks, [pattern.nnz()])?;
    let first: usize = counts[..ranks.rank()].iter().map(|c| c[0]).sum();
    let values = generator.values_of_entries::<T>(first, pattern.nnz(), seed);
    let local = values.and_then(|values| Csr::from_pattern(&pattern, values));
    let local = ranks.together(local)?;
    drop(lock);
    DistCsr::new(ranks, columns, local)
}
