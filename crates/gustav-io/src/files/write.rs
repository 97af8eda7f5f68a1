//! Writing: the format is given by the options or by the extension of the file.

use std::path::Path;

use gustav_core::{CsrView, DenseView, Error, Index, Result, Scalar, buffer::try_vec};

use super::format::{Compression, Format, of_name};
use super::header::Symmetry;
use super::matrix_market::{half, write as matrix_market};
use super::options::{Storage, WriteOptions};
use super::{atomic, npy, npz, smtx};

/// Writes a sparse matrix: `.mtx` (coordinate), `.npz` (as SciPy does) or `.smtx` (pattern), each
/// with `.gz` or `.zst` for compression. Numbers are written in the shortest form that reads back
/// the same.
///
/// The file appears whole or not at all: it is written under a temporary name in the same folder,
/// synced and renamed; an existing file stays until then.
///
/// # Errors
/// [`Error::Io`] when the file cannot be written; [`Error::Argument`] when the name or the format
/// does not fit the matrix, or the matrix lacks the symmetry; [`Error::Unsupported`] when the
/// format cannot hold the values.
pub fn write_csr<T: Scalar, I: Index, O: Index>(
    path: impl AsRef<Path>,
    matrix: CsrView<'_, T, I, O>,
    options: &WriteOptions,
) -> Result<()> {
    let path = path.as_ref();
    let (format, compression) = target(path, options)?;
    check(format, options)?;
    let ones = options.pattern_only;
    match format {
        Format::MatrixMarket => {
            let half = half::sparse(matrix, options.symmetry, ones)?;
            let held = half.as_ref().map_or(matrix, |half| half.view());
            atomic::write(path, compression, |to| {
                matrix_market::coordinate(to, held, options.symmetry, ones)
            })
        }
        Format::Smtx => {
            if !ones && matrix.values().iter().any(|v| *v != T::one()) {
                return Err(Error::Unsupported {
                    problem: "values other than 1".into(),
                    backend: "smtx".into(),
                    reason: "the format holds the pattern only".into(),
                    nearest: "npz or Matrix Market, or the pattern only".into(),
                });
            }
            atomic::write(path, compression, |to| smtx::write(to, matrix))
        }
        Format::Npz => {
            let descr = npy::descr::<T>()?;
            let mut pattern = Vec::new();
            if ones {
                pattern = try_vec(matrix.nnz(), "values")?;
                pattern.resize(matrix.nnz(), T::one());
            }
            let matrix = if ones { matrix.pattern().with_values(&pattern)? } else { matrix };
            let columns = match options.storage {
                Storage::Csc => Some(matrix.transpose()?),
                Storage::Csr | Storage::Coo => None,
            };
            let arrays = columns.as_ref().map_or(matrix, |columns| columns.view());
            atomic::write(path, compression, |to| npz::write(to, descr, arrays, options.storage))
        }
        Format::Npy => Err(Error::Argument {
            name: "output format",
            found: "npy for a sparse matrix".into(),
            expected: "npz, mtx or smtx; npy holds dense matrices".into(),
        }),
    }
}

/// Writes a file of any content as [`write_csr`] does: whole or not at all.
///
/// # Errors
/// [`Error::Io`] when the file cannot be written.
pub fn write_bytes(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    atomic::write(path.as_ref(), Compression::None, |to| to.write_all(bytes))
}

/// Writes a dense matrix: `.npy` (in its layout) or `.mtx` (array general), each with `.gz` or
/// `.zst` for compression; see [`write_csr`].
///
/// # Errors
/// As [`write_csr`].
pub fn write_dense<T: Scalar>(
    path: impl AsRef<Path>,
    matrix: DenseView<'_, T>,
    options: &WriteOptions,
) -> Result<()> {
    let path = path.as_ref();
    let (format, compression) = target(path, options)?;
    check(format, options)?;
    match format {
        Format::Npy => {
            let descr = npy::descr::<T>()?;
            atomic::write(path, compression, |to| npy::write_dense(to, descr, matrix))
        }
        Format::MatrixMarket => {
            half::check_dense(matrix, options.symmetry)?;
            atomic::write(path, compression, |to| {
                matrix_market::array(to, matrix, options.symmetry)
            })
        }
        Format::Npz | Format::Smtx => Err(Error::Argument {
            name: "output format",
            found: format!("{format} for a dense matrix"),
            expected: "npy or mtx".into(),
        }),
    }
}

/// Checks that the format supports the options.
pub(super) fn check(format: Format, options: &WriteOptions) -> Result<()> {
    let refused = |what: &str, format: &str| Error::Argument {
        name: "write options",
        found: what.into(),
        expected: format!("{format} as the format"),
    };
    if options.symmetry != Symmetry::General && format != Format::MatrixMarket {
        return Err(refused(options.symmetry.name(), "Matrix Market"));
    }
    if options.storage != Storage::Csr && format != Format::Npz {
        return Err(refused(options.storage.name(), "npz"));
    }
    Ok(())
}

pub(super) fn target(path: &Path, options: &WriteOptions) -> Result<(Format, Compression)> {
    let by_name = of_name(path);
    let format = match (options.format, &by_name) {
        (Some(format), _) => format,
        (None, Ok((format, _))) => *format,
        (None, Err(_)) => return by_name,
    };
    let compression = by_name.map(|(_, compression)| compression).unwrap_or_default();
    Ok((format, options.compression.unwrap_or(compression)))
}
