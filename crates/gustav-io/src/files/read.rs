//! Reading: the format is detected from the content.

use std::path::Path;

use gustav_core::buffer::try_vec;
use gustav_core::{Csr, Dense, Error, Index, Result, Scalar};

use super::format::{Compression, Format, of_content};
use super::header::{Field, Header, Symmetry};
use super::matrix_market::prologue::{self, Prologue};
use super::matrix_market::{array, coordinate};
use super::npy_header::Array;
use super::options::ReadOptions;
use super::source::{decompress, decompress_head, open};
use super::text::unexpected;
use super::{npy, npz, smtx};

/// Reads a sparse matrix from a Matrix Market file with 32-bit indices and default options; accepts
/// all formats of [`read_csr`].
///
/// # Errors
/// As [`read_csr`].
pub fn read_matrix_market<T: Scalar>(path: impl AsRef<Path>) -> Result<Csr<T>> {
    read_csr(path, &ReadOptions::default())
}

/// The bytes of a file of any content, decompressed when it is compressed.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is damaged or truncated,
/// [`Error::OutOfMemory`].
pub fn read_bytes(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let bytes = open(path, |_| true)?;
    match decompress(&bytes, &ReadOptions::default()).map_err(|e| e.in_file(path))? {
        Some(content) => Ok(content),
        None => {
            let mut content = try_vec(bytes.len(), "bytes of a file")?;
            content.extend_from_slice(&bytes);
            Ok(content)
        }
    }
}

/// Reads a matrix as CSR from a Matrix Market, npz, smtx or npy file. Symmetric and skew-symmetric
/// files are expanded; of dense files only the nonzeros are stored.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read; [`Error::Parse`] with line and column or
/// [`Error::Format`] when it is damaged, truncated or of a kind that is not supported;
/// [`Error::Value`] when a value does not fit `T` (integers are never rounded, reals are
/// rounded to nearest and refused when that would make them infinite); [`Error::Overflow`]
/// when sizes do not fit `I` or `O`; [`Error::OutOfMemory`].
pub fn read_csr<T: Scalar, I: Index, O: Index>(
    path: impl AsRef<Path>,
    options: &ReadOptions<'_>,
) -> Result<Csr<T, I, O>> {
    let path = path.as_ref();
    let bytes = open(path, is_known)?;
    parse_csr(&bytes, options).map_err(|error| error.in_file(path))
}

/// Whether a file with these first bytes has a supported format.
fn is_known(head: &[u8]) -> bool {
    Compression::of_content(head) != Compression::None || of_content(head).is_ok()
}

/// As [`read_csr`], from the bytes of a file.
///
/// # Errors
/// As [`read_csr`].
pub fn parse_csr<T: Scalar, I: Index, O: Index>(
    bytes: &[u8],
    options: &ReadOptions<'_>,
) -> Result<Csr<T, I, O>> {
    let content = Content::new(bytes, options)?;
    let text = content.bytes();
    let options = &content.options;
    match of_content(text)? {
        Format::MatrixMarket => {
            let prologue = complete_prologue(text)?;
            if prologue.dense {
                sparse(array::read(text, &prologue, options)?)
            } else {
                coordinate::read(text, &prologue, options)
            }
        }
        Format::Npz => {
            let matrix = npz::read(text);
            options.advance(text.len());
            matrix
        }
        Format::Smtx => smtx::read(text, options),
        Format::Npy => {
            let dense = npy::read_dense(text)?;
            options.advance(text.len());
            sparse(dense)
        }
    }
}

/// Reads a dense matrix from a npy file (in the layout of the file; a vector as one column) or
/// a Matrix Market array (column-major).
///
/// # Errors
/// As [`read_csr`], and [`Error::Format`] when the file holds a sparse matrix.
pub fn read_dense<T: Scalar>(
    path: impl AsRef<Path>,
    options: &ReadOptions<'_>,
) -> Result<Dense<T>> {
    let path = path.as_ref();
    let bytes = open(path, is_known)?;
    parse_dense(&bytes, options).map_err(|error| error.in_file(path))
}

/// As [`read_dense`], from the bytes of a file.
///
/// # Errors
/// As [`read_dense`].
pub fn parse_dense<T: Scalar>(bytes: &[u8], options: &ReadOptions<'_>) -> Result<Dense<T>> {
    let content = Content::new(bytes, options)?;
    let text = content.bytes();
    let sparse = |format: Format| Error::Format {
        path: None,
        format: format.name(),
        reason: "the file holds a sparse matrix where a dense one is needed; convert it to npy \
                 or to a Matrix Market array"
            .into(),
    };
    match of_content(text)? {
        Format::MatrixMarket => {
            let prologue = complete_prologue(text)?;
            if !prologue.dense {
                return Err(sparse(Format::MatrixMarket));
            }
            array::read(text, &prologue, &content.options)
        }
        Format::Npy => {
            let dense = npy::read_dense(text);
            content.options.advance(text.len());
            dense
        }
        format => Err(sparse(format)),
    }
}

/// Reads the header of a file, without its entries.
///
/// # Errors
/// As [`read_csr`], for the part before the entries.
pub fn read_header(path: impl AsRef<Path>) -> Result<Header> {
    let path = path.as_ref();
    let bytes = open(path, is_known)?;
    parse_header(&bytes).map_err(|error| error.in_file(path))
}

/// As [`read_header`], from the bytes of a file.
///
/// # Errors
/// As [`read_header`].
pub fn parse_header(bytes: &[u8]) -> Result<Header> {
    let compression = Compression::of_content(bytes);
    let quiet = ReadOptions::default();
    let mut limit = FIRST_LOOK;
    loop {
        let text;
        let (head, complete) = if compression == Compression::None {
            (bytes, true)
        } else {
            text = decompress_head(bytes, compression, limit, &quiet)?;
            (&text[..], (text.len() as u64) < limit)
        };
        if let Some(header) = header(head, compression, complete)? {
            return Ok(header);
        }
        limit = limit.saturating_mul(16);
    }
}

// Bytes that are decompressed first to parse a header; with comments it may be longer.
const FIRST_LOOK: u64 = 64 << 10;

/// The header in `text`; `None` if `text` is not `complete` and may end before it.
fn header(text: &[u8], compression: Compression, complete: bool) -> Result<Option<Header>> {
    let format = of_content(text)?;
    let (dense, rows, cols, entries, field, symmetry) = match format {
        Format::MatrixMarket => match prologue::parse(text, complete)? {
            Some(p) => (p.dense, p.rows, p.cols, p.entries, p.field, p.symmetry),
            None => return Ok(None),
        },
        Format::Npz if !complete => return Ok(None),
        Format::Npz => {
            let (rows, cols, data) = npz::header(text)?;
            (false, rows, cols, data.len, data.field(), Symmetry::General)
        }
        Format::Npy => {
            let array = Array::parse(text)?;
            let (rows, cols) = npy::dimensions(&array)?;
            (true, rows, cols, array.len, array.field(), Symmetry::General)
        }
        Format::Smtx => {
            let ([rows, cols, nnz], _) = smtx::sizes(text)?;
            (false, rows, cols, nnz, Field::Pattern, Symmetry::General)
        }
    };
    Ok(Some(Header { format, compression, dense, rows, cols, entries, field, symmetry }))
}

/// The prologue of a complete Matrix Market file.
pub(super) fn complete_prologue(text: &[u8]) -> Result<Prologue> {
    prologue::parse(text, true)?
        .ok_or_else(|| unexpected(text, text.len(), "the size line", "the end of the file"))
}

/// The nonzeros of a dense matrix.
fn sparse<T: Scalar, I: Index, O: Index>(dense: Dense<T>) -> Result<Csr<T, I, O>> {
    I::try_from_usize(dense.ncols().saturating_sub(1), "columns")?;
    if dense.data().is_empty() {
        return Csr::empty(dense.nrows(), dense.ncols());
    }
    Csr::from_dense(dense.view())
}

/// The decompressed content of a file.
struct Content<'a> {
    bytes: &'a [u8],
    decompressed: Option<Vec<u8>>,
    options: ReadOptions<'a>,
}

impl<'a> Content<'a> {
    fn new(bytes: &'a [u8], options: &ReadOptions<'a>) -> Result<Self> {
        if let Some(progress) = options.progress {
            progress.start(bytes.len() as u64);
        }
        let decompressed = decompress(bytes, options)?;
        let mut options = *options;
        if decompressed.is_some() {
            // Progress counts bytes of the compressed file, and all of these have been read.
            options.progress = None;
        }
        Ok(Content { bytes, decompressed, options })
    }

    fn bytes(&self) -> &[u8] {
        self.decompressed.as_deref().unwrap_or(self.bytes)
    }
}
