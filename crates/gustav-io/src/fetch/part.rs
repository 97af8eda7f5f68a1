//! A partial download, and the version of the file that it belongs to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use gustav_core::{Error, Result};

/// The version of the file that a part belongs to. Bytes of different versions are never joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The address of the file.
    pub address: String,
    /// Bytes of the whole file.
    pub length: u64,
    /// Identifies the version: a strong entity tag or the date of modification.
    pub version: String,
}

/// `GROUP.NAME.tar.gz.part` and beside it, as `GROUP.NAME.tar.gz.part.origin`, the three lines of
/// an [`Origin`].
pub(super) struct Part {
    path: PathBuf,
    note: PathBuf,
}

impl Part {
    pub fn new(path: PathBuf) -> Self {
        let mut note = path.clone().into_os_string();
        note.push(".origin");
        Part { path, note: note.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of bytes of the file at `address` in the part, with its origin; `None` if the
    /// part is of another or an unknown file.
    pub fn held(&self, address: &str) -> Option<(u64, Origin)> {
        let text = fs::read_to_string(&self.note).ok()?;
        let mut lines = text.lines().map(str::to_string);
        let (address_of, length, version) = (lines.next()?, lines.next()?, lines.next()?);
        let origin = Origin { address: address_of, length: length.parse().ok()?, version };
        let bytes = fs::metadata(&self.path).ok()?.len();
        let fits = origin.address == address && (1..=origin.length).contains(&bytes);
        fits.then_some((bytes, origin))
    }

    /// Opens the part to write after its first `bytes` bytes, which must belong to `origin`.
    /// Without an origin, a later attempt cannot resume.
    ///
    /// # Errors
    /// [`Error::Io`] when the part or its origin cannot be written.
    pub fn open(&self, bytes: u64, origin: Option<&Origin>) -> Result<File> {
        let refuse = |source| self.refused("write", source);
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(false).open(&self.path).map_err(refuse)?;
        file.set_len(bytes).map_err(refuse)?;
        file.seek(SeekFrom::Start(bytes)).map_err(refuse)?;
        match origin {
            // The origin is written after the truncation: it must never describe other bytes.
            Some(Origin { address, length, version }) => {
                let text = format!("{address}\n{length}\n{version}\n");
                fs::write(&self.note, text).map_err(refuse)?;
            }
            None => remove(&self.note).map_err(refuse)?,
        }
        Ok(file)
    }

    /// Removes the part and its origin.
    ///
    /// # Errors
    /// [`Error::Io`] when they cannot be removed.
    pub fn remove(&self) -> Result<()> {
        let both = remove(&self.note).and_then(|()| remove(&self.path));
        both.map_err(|source| self.refused("remove", source))
    }

    fn refused(&self, action: &'static str, source: io::Error) -> Error {
        Error::Io { path: self.path.clone(), action, source }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
