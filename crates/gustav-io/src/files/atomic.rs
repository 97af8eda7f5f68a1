//! Files that appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use gustav_core::{Error, Result};

use super::format::Compression;

const BUFFER: usize = 1 << 20;

/// Writes a file through `write`: to a temporary file in the same folder, synced, then renamed.
/// On failure the temporary file is removed and a file that was there before is untouched.
/// What is no regular file (a pipe, a terminal) is written to directly.
///
/// # Errors
/// [`Error::Io`] naming `path`.
pub(crate) fn write(
    path: &Path,
    compression: Compression,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    replace(path, compression, write).map_err(|source| Error::Io {
        path: path.to_path_buf(),
        action: "write",
        source,
    })
}

fn replace(
    path: &Path,
    compression: Compression,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // A link is followed, so that it still is one afterwards.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let existing = fs::metadata(&target).ok();
    if existing.as_ref().is_some_and(|m| m.is_dir()) {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    if existing.as_ref().is_some_and(|m| !m.is_file()) {
        let mut file = OpenOptions::new().write(true).open(&target)?;
        return compressed(&mut file, compression, write);
    }
    let folder = match target.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let mut temporary = new_file(&folder, existing.as_ref())?;
    compressed(temporary.as_file_mut(), compression, write)?;
    temporary.as_file().sync_all()?;
    temporary.persist(&target)?;
    // The new name is on disk once its folder is; not every file system can sync a folder.
    let _ = File::open(&folder).and_then(|f| f.sync_all());
    Ok(())
}

fn new_file(folder: &Path, old: Option<&fs::Metadata>) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".gustav-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any new file; the process's mask still applies.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder)?;
    if let Some(old) = old {
        if old.permissions().readonly() {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        fs::set_permissions(file.path(), old.permissions())?;
    }
    Ok(file)
}

fn compressed(
    file: &mut File,
    compression: Compression,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffered = BufWriter::with_capacity(BUFFER, file);
    match compression {
        Compression::None => write(&mut buffered)?,
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(&mut buffered, flate2::Compression::default());
            write(&mut encoder)?;
            encoder.finish()?;
        }
        Compression::Zstd => {
            let mut encoder = zstd::Encoder::new(&mut buffered, 0)?;
            write(&mut encoder)?;
            encoder.finish()?;
        }
    }
    buffered.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_failing_writer_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mtx");
        fs::write(&path, "old").unwrap();
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let result = write(&path, compression, |to| {
                to.write_all(&vec![b'x'; 3 * BUFFER])?;
                Err(io::Error::from(io::ErrorKind::StorageFull))
            });
            let message = result.unwrap_err().to_string();
            assert!(message.contains("cannot write") && message.contains("a.mtx"), "{message}");
            assert_eq!(fs::read(&path).unwrap(), b"old");
            assert_eq!(names(folder.path()), ["a.mtx"]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_are_kept() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, Compression::None, |to| to.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
