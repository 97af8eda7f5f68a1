//! Files that ranks write together.

use std::io::{self, Write};
use std::path::Path;

use gustav_core::{Error, Index, Result, Scalar};
use gustav_io::WriteOptions;
use gustav_io::parts::{self, Whole, WholeDense};

use crate::communicator::Tag;
use crate::exchange::Exchange;
use crate::matrix::gather_numbers;
use crate::{DistCsr, DistDense, Ranks};

/// Writes `a` as one file, Matrix Market or npz with CSR arrays, the latter uncompressed: ranks prepare the bytes of
/// their rows, and rank 0 writes them rank after rank, so that no other needs to see the folder. It appears whole or
/// not at all, as with [`gustav_io::write_csr`]. Collective.
///
/// # Errors
/// On every rank: [`Error::Io`] of rank 0, [`Error::Argument`] for other formats, symmetry and storage,
/// [`Error::Unsupported`] for values that the format does not have, [`Error::OutOfMemory`].
pub fn write_csr<T: Scalar, I: Index, O: Index>(
    a: &DistCsr<T, I, O>,
    path: impl AsRef<Path>,
    options: &WriteOptions,
) -> Result<()> {
    let path = path.as_ref();
    let (ranks, pattern) = (a.pattern().ranks(), a.pattern());
    let _lock = ranks.lock();
    let arguments = vec![
        ("call", "writing a matrix".to_owned()),
        ("file", path.file_name().unwrap_or_default().to_string_lossy().into_owned()),
        ("options", format!("{options:?}")),
    ];
    let sections = ranks.agree_on(arguments, parts::sections(path, options))?;
    let counts = gather_numbers(ranks, [a.local().nnz()])?;
    let first_entry: usize = counts[..ranks.rank()].iter().map(|c| c[0]).sum();
    let first_row = pattern.rows().range(ranks.rank()).start;
    let whole = Whole { rows: pattern.nrows(), columns: pattern.ncols(), entries: pattern.nnz() };
    let prepare = |section| {
        let first = (first_row, first_entry);
        parts::bytes_of_section(section, a.local().view(), first, whole, options)
    };
    write_in_parts(ranks, sections, prepare, |write| {
        parts::write_sections::<T>(path, whole, options, write)
    })
}

/// Writes `c` as one file, npy in the layout of the ranks' rows, or Matrix Market: as [`write_csr`]. Columns that a
/// file has one after another are written one by one, each rank after rank. Collective.
///
/// # Errors
/// On every rank, as [`write_csr`], and [`Error::RanksDiffer`] when columns or layouts of ranks are not the same,
/// [`Error::Shape`] when a rank's rows are not as many as its partition says.
pub fn write_dense<T: Scalar>(
    c: &DistDense<T>,
    path: impl AsRef<Path>,
    options: &WriteOptions,
) -> Result<()> {
    let path = path.as_ref();
    let (ranks, rows, local) = (c.ranks(), c.rows(), c.local().view());
    let _lock = ranks.lock();
    let whole = WholeDense { rows: rows.rows(), columns: local.ncols(), layout: local.layout() };
    let arguments = vec![
        ("call", "writing a dense matrix".to_owned()),
        ("file", path.file_name().unwrap_or_default().to_string_lossy().into_owned()),
        ("options", format!("{options:?}")),
        ("partition of rows", rows.description()),
        ("columns of the dense matrix", whole.columns.to_string()),
        ("layout of the dense matrix", whole.layout.to_string()),
        ("type of values", T::DTYPE.to_string()),
    ];
    let sections =
        c.check_local("write").and_then(|()| parts::dense_sections(path, whole, options));
    let sections = ranks.agree_on(arguments, sections)?;
    let prepare = |section| parts::bytes_of_dense_section(section, local);
    write_in_parts(ranks, &sections, prepare, |write| {
        parts::write_dense_sections::<T>(path, whole, options, write)
    })
}

/// What writes the bytes of all ranks of a section.
type WriteSection<'a, S> = &'a mut dyn FnMut(S, &mut dyn Write) -> io::Result<()>;

/// Writes a file of these sections, of which `prepare` gives this rank's bytes; `file` writes it on rank 0. Collective.
fn write_in_parts<S: Copy>(
    ranks: &Ranks,
    sections: &[S],
    prepare: impl Fn(S) -> Result<Vec<u8>>,
    file: impl FnOnce(WriteSection<'_, S>) -> Result<()>,
) -> Result<()> {
    if ranks.rank() > 0 {
        for section in sections {
            send_section(ranks, prepare(*section))?;
        }
        return ranks.together(Ok(()));
    }
    // An error that the others know of.
    let mut failure = None;
    let written = file(&mut |section, to| {
        write_section(ranks, prepare(section), to).map_err(|e| match e {
            Failure::OfRanks(e) => {
                let text = e.to_string();
                failure = Some(e);
                io::Error::other(text)
            }
            Failure::OfFile(e) => e,
        })
    });
    match failure {
        Some(known) => Err(known),
        // Others wait for the next section, or for the end: both begin alike.
        None => ranks.together(written),
    }
}

enum Failure {
    /// An error that all ranks have.
    OfRanks(Error),
    /// An error of the file, of rank 0 alone.
    OfFile(io::Error),
}

/// Sends this rank's bytes of a section to rank 0, unless a rank has failed.
fn send_section(ranks: &Ranks, bytes: Result<Vec<u8>>) -> Result<()> {
    let bytes = ranks.together(bytes)?;
    let lengths = gather_numbers(ranks, [bytes.len()])?;
    let mut exchange = Exchange::default();
    let message = exchange.add_outgoing::<u8>(0, Tag::Plan, bytes.len());
    let message = ranks.together(message)?;
    exchange.outgoing::<u8>(message).copy_from_slice(&bytes);
    drop(bytes);
    for (rank, _) in senders(&lengths) {
        ranks.together(Ok::<_, Error>(()))?;
        if rank == ranks.rank() {
            exchange.send(ranks.communicator(), message)?;
            exchange.finish(ranks.communicator())?;
        }
    }
    Ok(())
}

/// Writes the bytes of rank 0, then those of each other rank.
fn write_section(
    ranks: &Ranks,
    bytes: Result<Vec<u8>>,
    to: &mut dyn Write,
) -> std::result::Result<(), Failure> {
    let bytes = ranks.together(bytes).map_err(Failure::OfRanks)?;
    let lengths = gather_numbers(ranks, [bytes.len()]).map_err(Failure::OfRanks)?;
    ranks.together(Ok(())).map_err(Failure::OfRanks)?;
    let mut written = to.write_all(&bytes);
    drop(bytes);
    for (rank, len) in senders(&lengths) {
        // What was sent is received also when it cannot be written.
        let receive = || -> Result<Exchange> {
            let mut exchange = Exchange::default();
            // Nothing is sent before its memory is allocated.
            ranks.together(exchange.add_incoming::<u8>(rank, Tag::Plan, len))?;
            exchange.receive(ranks.communicator())?;
            exchange.finish(ranks.communicator())?;
            Ok(exchange)
        };
        let exchange = receive().map_err(Failure::OfRanks)?;
        written = written.and_then(|()| to.write_all(exchange.incoming(0)));
    }
    written.map_err(Failure::OfFile)
}

/// The ranks that send something to rank 0, in order, and how many bytes.
fn senders(lengths: &[[usize; 1]]) -> impl Iterator<Item = (usize, usize)> + '_ {
    lengths.iter().map(|[len]| *len).enumerate().skip(1).filter(|(_, len)| *len > 0)
}

#[cfg(test)]
mod tests {
    use gustav_core::{Dense, Layout};
    use gustav_io::Format;

    use super::*;
    use crate::Partition;
    use crate::testing::on_ranks;

    const ROWS: usize = 37;
    const COLUMNS: usize = 5;

    /// Writes a matrix of these rows, of which rank q has as many as `counts` says.
    fn written(
        counts: &[usize],
        layout: Layout,
        path: &Path,
        options: &WriteOptions,
    ) -> Vec<Result<()>> {
        let whole = whole(layout);
        let rows = Partition::of_counts(counts).expect("counts");
        on_ranks(Ranks::in_process(counts.len()), |ranks| {
            let mut part = DistDense::zeros(&ranks, &rows, COLUMNS, layout)?;
            let mine = rows.range(ranks.rank());
            for (to, from) in mine.enumerate() {
                for column in 0..COLUMNS {
                    part.local_mut().view_mut().set(to, column, whole.view().get(from, column));
                }
            }
            write_dense(&part, path, options)
        })
    }

    fn whole(layout: Layout) -> Dense<f32> {
        let mut whole = Dense::zeros(ROWS, COLUMNS, layout).expect("small");
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                whole.view_mut().set(row, column, row as f32 * 0.3 - column as f32);
            }
        }
        whole
    }

    #[test]
    fn dense_files_are_those_of_one_process() {
        let folder = tempfile::tempdir().expect("a folder");
        for counts in [&[ROWS][..], &[20, 17], &[0, 9, 0, 28, 0], &[1, 36, 0]] {
            for layout in [Layout::RowMajor, Layout::ColumnMajor] {
                for name in ["c.npy", "c.mtx", "c.npy.zst", "c.mtx.gz"] {
                    let (found, expected) =
                        (folder.path().join(name), folder.path().join(format!("one-{name}")));
                    let options = WriteOptions::default();
                    let results = written(counts, layout, &found, &options);
                    assert!(results.iter().all(Result::is_ok), "{name}: {results:?}");
                    gustav_io::write_dense(&expected, whole(layout).view(), &options)
                        .expect("written");
                    let [found, expected] =
                        [found, expected].map(|path| gustav_io::read_bytes(path).expect("a file"));
                    assert_eq!(found, expected, "{name} in {layout} of {counts:?}");
                }
            }
        }
    }

    #[test]
    fn a_dense_file_that_cannot_be_written_leaves_nothing_and_every_rank_knows() {
        let folder = tempfile::tempdir().expect("a folder");
        let counts = [20, 17];
        for name in ["c.npz", "c.smtx", "none/c.npy", "none/c.mtx"] {
            let path = folder.path().join(name);
            let results = written(&counts, Layout::RowMajor, &path, &WriteOptions::default());
            assert!(results.iter().all(Result::is_err), "{name}: {results:?}");
        }
        // The disk is full, which rank 0 finds when it writes.
        for format in [Format::Npy, Format::MatrixMarket] {
            let options = WriteOptions { format: Some(format), ..WriteOptions::default() };
            let full = Path::new("/dev/full");
            let results = written(&counts, Layout::ColumnMajor, full, &options);
            assert!(matches!(&results[0], Err(Error::Io { .. })), "{results:?}");
            assert!(matches!(&results[1], Err(Error::OtherRank { rank: 0, .. })), "{results:?}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0);
    }

    #[test]
    fn ranks_with_other_layouts_or_rows_write_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.npy");
        let even = Partition::even(ROWS, 2);
        let results = on_ranks(Ranks::in_process(2), |ranks| {
            let layout = [Layout::RowMajor, Layout::ColumnMajor][ranks.rank()];
            let part = DistDense::<f32>::zeros(&ranks, &even, COLUMNS, layout)?;
            write_dense(&part, &path, &WriteOptions::default())
        });
        let differ = |r: &Result<()>| matches!(r, Err(Error::RanksDiffer { .. }));
        assert!(results.iter().all(differ), "{results:?}");
        let results = on_ranks(Ranks::in_process(2), |ranks| {
            let mut part = DistDense::<f32>::zeros(&ranks, &even, COLUMNS, Layout::RowMajor)?;
            if ranks.rank() == 1 {
                *part.local_mut() = Dense::zeros(3, COLUMNS, Layout::RowMajor)?;
            }
            write_dense(&part, &path, &WriteOptions::default())
        });
        assert!(matches!(&results[1], Err(Error::Shape { .. })), "{results:?}");
        assert!(matches!(&results[0], Err(Error::OtherRank { rank: 1, .. })), "{results:?}");
        assert!(!path.exists());
    }
}
