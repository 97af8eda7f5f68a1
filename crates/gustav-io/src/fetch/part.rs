//! The part of a download that has come, and what it is a part of.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use gustav_core::{Error, Result};

/// What a part belongs to. Bytes of one version of a file are never joined to another's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The address of the file.
    pub address: String,
    /// Bytes of the whole file.
    pub length: u64,
    /// What tells this version from others: a strong entity tag or a date of change.
    pub version: String,
}

/// `GROUP.NAME.tar.gz.part` and beside it, as `GROUP.NAME.tar.gz.part.origin`, three lines that
/// say what it is a part of.
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

    /// The bytes that are there of the file at `address`, with what else is known of it; none
    /// when they are of another file or of nobody knows which.
    pub fn held(&self, address: &str) -> Option<(u64, Origin)> {
        let text = fs::read_to_string(&self.note).ok()?;
        let mut lines = text.lines().map(str::to_string);
        let (address_of, length, version) = (lines.next()?, lines.next()?, lines.next()?);
        let origin = Origin { address: address_of, length: length.parse().ok()?, version };
        let bytes = fs::metadata(&self.path).ok()?.len();
        let fits = origin.address == address && (1..=origin.length).contains(&bytes);
        fits.then_some((bytes, origin))
    }

    /// The file to write to from `bytes` on, which go on being those of `origin`. Without one,
    /// nothing is kept that a later attempt could go on with.
    ///
    /// # Errors
    /// [`Error::Io`] when the part or the note cannot be written.
    pub fn open(&self, bytes: u64, origin: Option<&Origin>) -> Result<File> {
        let refuse = |source| self.refused("write", source);
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(false).open(&self.path).map_err(refuse)?;
        file.set_len(bytes).map_err(refuse)?;
        file.seek(SeekFrom::Start(bytes)).map_err(refuse)?;
        match origin {
            // The note follows the cut: an empty part is nobody's.
            Some(Origin { address, length, version }) => {
                let text = format!("{address}\n{length}\n{version}\n");
                fs::write(&self.note, text).map_err(refuse)?;
            }
            None => remove(&self.note).map_err(refuse)?,
        }
        Ok(file)
    }

    /// Removes the part and its note.
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
