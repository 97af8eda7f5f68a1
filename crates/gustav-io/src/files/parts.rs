//! Files that several processes read and write together, each a part: every byte is parsed once in
//! all.
//!
//! Who speaks to the other processes is the caller's: `gustav-mpi` for ranks of MPI.

use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use gustav_core::{Buffer, Csr, CsrView, DenseView, Error, Index, Layout, Result, Scalar};

use super::format::{Compression, Format, of_content};
use super::header::{Field, Symmetry};
use super::matrix_market::coordinate;
use super::matrix_market::prologue::Prologue;
use super::npz::{self, Arrays};
use super::options::{ReadOptions, Storage, Values, WriteOptions};
use super::source::{Bytes, open};
use super::value::negated;
use super::write::{check, target};
use super::{atomic, pattern, read};

/// A file of a sparse matrix of which processes can read parts.
pub struct SharedFile {
    path: PathBuf,
    bytes: Bytes,
    kind: Kind,
}

enum Kind {
    MatrixMarket(Prologue),
    Npz(Box<Arrays>),
}

/// Some entries of a Matrix Market file, in its order.
#[derive(Clone, Debug)]
pub struct Entries<T: Scalar> {
    /// Rows, counted from 0.
    pub rows: Vec<u64>,
    /// Columns, counted from 0.
    pub columns: Vec<u64>,
    /// Values; none where the file holds a pattern: see [`SharedFile::values_of_pattern`].
    pub values: Option<Buffer<T>>,
}

impl SharedFile {
    /// Opens `path`: `None` for what can only be read whole, by [`read_csr`](super::read_csr),
    /// which is all but uncompressed Matrix Market files of sparse matrices and npz files of CSR
    /// arrays that are stored uncompressed.
    ///
    /// # Errors
    /// As [`read_csr`](super::read_csr), for what is before the entries.
    pub fn open(path: impl AsRef<Path>) -> Result<Option<Self>> {
        let path = path.as_ref();
        let bytes = open(path, |_| true)?;
        let kind = || {
            if Compression::of_content(&bytes) != Compression::None {
                return Ok(None);
            }
            match of_content(&bytes)? {
                Format::MatrixMarket => {
                    let prologue = read::complete_prologue(&bytes)?;
                    Ok((!prologue.dense).then_some(Kind::MatrixMarket(prologue)))
                }
                Format::Npz => Ok(Arrays::open(&bytes)?.map(Box::new).map(Kind::Npz)),
                Format::Npy | Format::Smtx => Ok(None),
            }
        };
        let kind: Result<Option<Kind>> = kind();
        let kind = kind.map_err(|e| e.in_file(path))?;
        Ok(kind.map(|kind| SharedFile { path: path.to_path_buf(), bytes, kind }))
    }

    /// Rows and columns of the matrix.
    pub fn shape(&self) -> (u64, u64) {
        match &self.kind {
            Kind::MatrixMarket(prologue) => (prologue.rows, prologue.cols),
            Kind::Npz(arrays) => (arrays.rows as u64, arrays.cols as u64),
        }
    }

    /// Entries that the file holds.
    pub fn stored_entries(&self) -> u64 {
        match &self.kind {
            Kind::MatrixMarket(prologue) => prologue.entries,
            Kind::Npz(arrays) => arrays.entries(),
        }
    }

    /// The half of the matrix that the file omits.
    pub fn symmetry(&self) -> Symmetry {
        match &self.kind {
            Kind::MatrixMarket(prologue) => prologue.symmetry,
            Kind::Npz(_) => Symmetry::General,
        }
    }

    /// What has to be the same in every process that reads a part, in words.
    pub fn description(&self) -> String {
        let ((rows, columns), entries, bytes) =
            (self.shape(), self.stored_entries(), self.bytes.len());
        let kind = match &self.kind {
            Kind::MatrixMarket(prologue) => {
                format!("Matrix Market {:?} {:?}", prologue.field, prologue.symmetry)
            }
            Kind::Npz(_) => "npz".into(),
        };
        format!("{rows} x {columns} with {entries} entries, {kind} of {bytes} bytes")
    }

    /// Whether parts are those of the text, by [`SharedFile::entries`], or rows, by
    /// [`SharedFile::rows`].
    pub fn is_text(&self) -> bool {
        matches!(self.kind, Kind::MatrixMarket(_))
    }

    fn refuse(&self, what: &str, instead: &str) -> Error {
        Error::Argument {
            name: "file",
            found: format!("{what} of {}", self.path.display()),
            expected: instead.into(),
        }
    }

    /// The entries on the lines that begin in part `part` of `parts`, all of equal size in bytes,
    /// of a text.
    ///
    /// # Errors
    /// As [`read_csr`](super::read_csr), with line and column in the whole file;
    /// [`Error::Argument`] for another file.
    pub fn entries<T: Scalar>(&self, part: usize, parts: usize) -> Result<Entries<T>> {
        let Kind::MatrixMarket(prologue) = &self.kind else {
            return Err(self.refuse("parts of the text", "rows, as it is no text"));
        };
        let range = coordinate::part(&self.bytes, prologue, part, parts);
        let read = coordinate::entries(&self.bytes, prologue, range, &ReadOptions::default());
        let triples = read.map_err(|e| e.in_file(&self.path))?;
        let values = triples.values.filter(|_| prologue.field != Field::Pattern);
        Ok(Entries { rows: triples.rows.into_vec(), columns: triples.cols.into_vec(), values })
    }

    /// The values of entries `first` to `first + len` − 1 of a file that holds none.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn values_of_pattern<T: Scalar>(
        values: Values,
        first: usize,
        len: usize,
    ) -> Result<Buffer<T>> {
        match pattern::values_from(values, first, len)? {
            Some(values) => Ok(values),
            None => pattern::ones(len),
        }
    }

    /// Checks the number of entries that all parts of a text hold.
    ///
    /// # Errors
    /// [`Error::Parse`] when the size line says another.
    pub fn check_entries(&self, found: u64) -> Result<()> {
        match &self.kind {
            Kind::MatrixMarket(prologue) => coordinate::check_count(&self.bytes, prologue, found)
                .map_err(|e| e.in_file(&self.path)),
            Kind::Npz(_) => Ok(()),
        }
    }

    /// Rows `rows` of a file of arrays, over all columns.
    ///
    /// # Errors
    /// As [`read_csr`](super::read_csr); [`Error::Argument`] for another file.
    pub fn rows<T: Scalar, I: Index, O: Index>(&self, rows: Range<usize>) -> Result<Csr<T, I, O>> {
        let Kind::Npz(arrays) = &self.kind else {
            return Err(self.refuse("rows", "parts of the text"));
        };
        arrays.read(&self.bytes, rows).map_err(|e| e.in_file(&self.path))
    }
}

impl<T: Scalar> Entries<T> {
    /// The mirror images that `symmetry` adds, in the order of the entries that they mirror; all
    /// values are there.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn mirrored(&self, symmetry: Symmetry) -> Result<Option<Self>> {
        if symmetry == Symmetry::General {
            return Ok(None);
        }
        let outside: Vec<usize> =
            (0..self.rows.len()).filter(|k| self.rows[*k] != self.columns[*k]).collect();
        let of = |list: &[u64]| outside.iter().map(|k| list[*k]).collect();
        let value = |v: T| match symmetry {
            // That there is one was checked when the entry was read.
            Symmetry::SkewSymmetric => negated(v).unwrap_or(v),
            Symmetry::General | Symmetry::Symmetric => v,
        };
        let values = match &self.values {
            None => None,
            Some(values) => {
                let mut mirrored = Buffer::<T>::zeroed(outside.len(), "values")?;
                mirrored.iter_mut().zip(&outside).for_each(|(to, k)| *to = value(values[*k]));
                Some(mirrored)
            }
        };
        Ok(Some(Entries { rows: of(&self.columns), columns: of(&self.rows), values }))
    }
}

/// What a file holds of every row, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Lines of text.
    Lines,
    /// Column indices.
    Indices,
    /// Row offsets, without the first, which is 0.
    Offsets,
    /// Values.
    Values,
}

/// A sparse matrix to be written whose rows several processes have.
#[derive(Clone, Copy, Debug)]
pub struct Whole {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Entries.
    pub entries: usize,
}

/// The sections that a file has, in order.
///
/// # Errors
/// [`Error::Argument`] for a name or options that [`write_sections`] refuses.
pub fn sections(path: &Path, options: &WriteOptions) -> Result<&'static [Section]> {
    let (format, _) = target(path, options)?;
    check(format, options)?;
    let refuse = |found: String, expected: &str| {
        Err(Error::Argument { name: "output file", found, expected: expected.into() })
    };
    match format {
        _ if options.symmetry != Symmetry::General => {
            refuse(format!("{} form", options.symmetry.name()), "general form, in parts")
        }
        _ if options.storage != Storage::Csr => {
            refuse(format!("{} arrays", options.storage.name()), "csr arrays, in parts")
        }
        Format::MatrixMarket => Ok(&[Section::Lines]),
        Format::Npz => Ok(&[Section::Indices, Section::Offsets, Section::Values]),
        Format::Npy | Format::Smtx => refuse(format!("{format}, in parts"), "mtx or npz"),
    }
}

/// The bytes of `section` for rows that begin with row `first_row` and entry `first_entry` of
/// `whole`.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn bytes_of_section<T: Scalar, I: Index, O: Index>(
    section: Section,
    rows: CsrView<'_, T, I, O>,
    (first_row, first_entry): (usize, usize),
    whole: Whole,
    options: &WriteOptions,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let wide = npz::is_wide(whole);
    let written = match section {
        Section::Lines => super::matrix_market::write::coordinate_lines(
            &mut bytes,
            rows,
            first_row,
            options.pattern_only,
        ),
        Section::Indices => npz::append_indices(&mut bytes, rows.indices(), 0, wide),
        Section::Offsets => {
            npz::append_indices(&mut bytes, &rows.offsets()[1..], first_entry, wide)
        }
        Section::Values if options.pattern_only => {
            npz::append_values(&mut bytes, &vec![T::one(); rows.nnz()])
        }
        Section::Values => npz::append_values(&mut bytes, rows.values().as_slice()),
    };
    written.map_err(|_| Error::OutOfMemory {
        what: "bytes to write",
        needed: rows.nnz() as u128 * 32,
        available: gustav_core::buffer::available_memory(),
    })?;
    Ok(bytes)
}

/// Writes the file of `whole`, with values of type `T`, as [`write_csr`](super::write_csr) does:
/// whole or not at all. `write` is called for every section in order, and writes its bytes for all
/// rows in order.
///
/// # Errors
/// As [`write_csr`](super::write_csr).
pub fn write_sections<T: Scalar>(
    path: impl AsRef<Path>,
    whole: Whole,
    options: &WriteOptions,
    mut write: impl FnMut(Section, &mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let path = path.as_ref();
    sections(path, options)?;
    let (format, compression) = target(path, options)?;
    let shape = [whole.rows, whole.columns, whole.entries];
    if format == Format::Npz {
        let descr = super::npy::descr::<T>()?;
        return atomic::write(path, compression, |to| npz::write_sections(to, descr, whole, write));
    }
    atomic::write(path, compression, |to| {
        let general = Symmetry::General;
        super::matrix_market::write::coordinate_head::<T>(
            to,
            shape,
            general,
            options.pattern_only,
        )?;
        write(Section::Lines, to)
    })
}

/// What a file holds of every row of a dense matrix, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenseSection {
    /// All elements of the rows.
    Rows,
    /// Elements of this column.
    Column(usize),
    /// Lines of text with the elements of this column.
    Lines(usize),
}

/// A dense matrix to be written whose rows several processes have.
#[derive(Clone, Copy, Debug)]
pub struct WholeDense {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Of the processes' rows, and of the array in an npy file.
    pub layout: Layout,
}

/// The sections that the file of a dense matrix has, in order.
///
/// # Errors
/// [`Error::Argument`] for a name or options that [`write_dense_sections`] refuses.
pub fn dense_sections(
    path: &Path,
    whole: WholeDense,
    options: &WriteOptions,
) -> Result<Vec<DenseSection>> {
    let (format, _) = target(path, options)?;
    check(format, options)?;
    let refuse = |found: String, expected: &str| {
        Err(Error::Argument { name: "output file", found, expected: expected.into() })
    };
    Ok(match (format, whole.layout) {
        _ if options.symmetry != Symmetry::General => {
            return refuse(format!("{} form", options.symmetry.name()), "general form, in parts");
        }
        (Format::Npy, Layout::RowMajor) => vec![DenseSection::Rows],
        (Format::Npy, Layout::ColumnMajor) => {
            (0..whole.columns).map(DenseSection::Column).collect()
        }
        (Format::MatrixMarket, _) => (0..whole.columns).map(DenseSection::Lines).collect(),
        (Format::Npz | Format::Smtx, _) => {
            return refuse(format!("{format} for a dense matrix"), "npy or mtx");
        }
    })
}

/// The bytes of `section` for `rows`, in the layout of the whole.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn bytes_of_dense_section<T: Scalar>(
    section: DenseSection,
    rows: DenseView<'_, T>,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let elements = match section {
        DenseSection::Rows => rows.nrows() * rows.ncols(),
        DenseSection::Column(_) | DenseSection::Lines(_) => rows.nrows(),
    };
    let mut append = || match section {
        DenseSection::Rows => {
            bytes.try_reserve_exact(elements * size_of::<T>())?;
            for row in 0..rows.nrows() {
                let row: Vec<T> = (0..rows.ncols()).map(|column| rows.get(row, column)).collect();
                npz::append_values(&mut bytes, &row)?;
            }
            Ok(())
        }
        DenseSection::Column(column) => {
            let column: Vec<T> = (0..rows.nrows()).map(|row| rows.get(row, column)).collect();
            npz::append_values(&mut bytes, &column)
        }
        DenseSection::Lines(column) => {
            super::matrix_market::write::array_lines(&mut bytes, rows, column)
        }
    };
    append().map_err(|_| Error::OutOfMemory {
        what: "bytes to write",
        needed: elements as u128 * 32,
        available: gustav_core::buffer::available_memory(),
    })?;
    Ok(bytes)
}

/// Writes the file of `whole`, with values of type `T`, as [`write_dense`](super::write_dense)
/// does: whole or not at all. `write` is called for every section in order, and writes its bytes
/// for all rows in order.
///
/// # Errors
/// As [`write_dense`](super::write_dense).
pub fn write_dense_sections<T: Scalar>(
    path: impl AsRef<Path>,
    whole: WholeDense,
    options: &WriteOptions,
    mut write: impl FnMut(DenseSection, &mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let path = path.as_ref();
    let sections = dense_sections(path, whole, options)?;
    let (format, compression) = target(path, options)?;
    let shape = [whole.rows, whole.columns];
    let descr = if format == Format::Npy { Some(super::npy::descr::<T>()?) } else { None };
    atomic::write(path, compression, |to| {
        match descr {
            Some(descr) => {
                let fortran = whole.layout == Layout::ColumnMajor;
                super::npy::write_header(to, descr, fortran, &shape)?;
            }
            None => super::matrix_market::write::array_head::<T>(to, shape, Symmetry::General)?,
        }
        sections.iter().try_for_each(|section| write(*section, to))
    })
}
