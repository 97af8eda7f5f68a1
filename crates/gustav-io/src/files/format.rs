//! File formats and their detection: by content when reading, by name when writing.

use std::fmt::{self, Display};
use std::path::Path;

use gustav_core::{Error, Result};

/// The formats that gustav reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Matrix Market exchange format, coordinate or array (`.mtx`).
    MatrixMarket,
    /// Zip archive of NumPy arrays as `scipy.sparse.save_npz` writes it (`.npz`).
    Npz,
    /// One NumPy array (`.npy`).
    Npy,
    /// Sparsity pattern of the Deep Learning Matrix Collection (`.smtx`).
    Smtx,
}

impl Format {
    /// The format's name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Format::MatrixMarket => "Matrix Market",
            Format::Npz => "npz",
            Format::Npy => "npy",
            Format::Smtx => "smtx",
        }
    }
}

impl Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How the bytes of a file are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip, one or more members.
    Gzip,
    /// Zstandard, one or more frames.
    Zstd,
}

impl Compression {
    /// Detects the compression from the first bytes of a file.
    pub fn of_content(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            // A frame, or a skippable frame.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            _ => Compression::None,
        }
    }

    /// The compression's name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::None => "uncompressed",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        }
    }
}

/// Detects the format of uncompressed content.
///
/// # Errors
/// [`Error::Format`] when it is none that gustav reads.
pub(crate) fn of_content(head: &[u8]) -> Result<Format> {
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return Ok(Format::Npz);
    }
    if head.starts_with(b"\x93NUMPY") {
        return Ok(Format::Npy);
    }
    if head.starts_with(b"%%") {
        return Ok(Format::MatrixMarket);
    }
    let first_line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let smtx = first_line.iter().filter(|b| **b == b',').count() == 2
        && first_line.iter().all(|b| b.is_ascii_digit() || b", \r\t".contains(b));
    if smtx {
        return Ok(Format::Smtx);
    }
    let found = match head {
        [] => "the file is empty".to_string(),
        [0xef, 0xbb, 0xbf, ..] => {
            "it begins with a byte order mark, without which it must be saved".into()
        }
        _ => format!("it begins with \"{}\"", head[..head.len().min(16)].escape_ascii()),
    };
    Err(Error::Format {
        path: None,
        format: "matrix file",
        reason: format!(
            "not recognised, {found}; expected Matrix Market (%%MatrixMarket), SciPy npz, \
             NumPy npy or smtx (rows, cols, nnz), plain, gzip or zstd"
        ),
    })
}

/// Format and compression from the extension of a file to be written.
///
/// # Errors
/// [`Error::Argument`] when the extension is unknown.
pub fn of_name(path: &Path) -> Result<(Format, Compression)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let (stem, compression) = match () {
        () if name.ends_with(".gz") => (&name[..name.len() - 3], Compression::Gzip),
        () if name.ends_with(".zst") => (&name[..name.len() - 4], Compression::Zstd),
        () => (&name[..], Compression::None),
    };
    let format = match Path::new(stem).extension().and_then(|e| e.to_str()) {
        Some("mtx") => Format::MatrixMarket,
        Some("npz") => Format::Npz,
        Some("npy") => Format::Npy,
        Some("smtx") => Format::Smtx,
        _ => {
            return Err(Error::Argument {
                name: "output file",
                found: path.display().to_string(),
                expected: "a name ending in .mtx, .npz, .npy or .smtx, optionally with .gz or .zst"
                    .into(),
            });
        }
    };
    Ok((format, compression))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_named() {
        let e = of_content(b"\xef\xbb\xbf%%MatrixMarket matrix").expect_err("no known beginning");
        assert!(e.to_string().contains("byte order mark"), "{e}");
        assert!(of_content(b"%%MatrixMarket matrix").is_ok());
    }
}
