//! Atomic replacement of files: they appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use gustav_core::{Error, Result};
use tempfile::{Builder, NamedTempFile};

use super::format::Compression;

const BUFFER: usize = 1 << 20;

/// Writes a file through `write`: to a temporary file in the same folder, synced, then renamed. On
/// failure the temporary file is removed and an existing file is untouched; where the system
/// supports unnamed files (Linux, on most file systems), a process killed half way leaves nothing
/// behind either. Targets other than regular files (a pipe, a terminal) are written directly.
///
/// # Errors
/// [`Error::Io`] naming `path`.
pub(crate) fn write(
    path: &Path,
    compression: Compression,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let mut write = Some(write);
    let mut once = |to: &mut dyn Write| write.take().map_or(Ok(()), |write| write(to));
    replace(path, compression, &mut once).map_err(|source| Error::Io {
        path: path.to_path_buf(),
        action: "write",
        source,
    })
}

/// Writes the content of a file, once.
type Content<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;

fn replace(path: &Path, compression: Compression, write: Content<'_>) -> io::Result<()> {
    let target = followed(path)?;
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
    let mut temporary = Temporary::new(&folder, existing.as_ref())?;
    compressed(temporary.file(), compression, write)?;
    temporary.rename(&folder, &target)?;
    // The new name is durable once its folder is synced; not every file system can do that.
    let _ = File::open(&folder).and_then(|f| f.sync_all());
    Ok(())
}

/// The target of `path`: symbolic links are followed, so that they stay links, also to a file that
/// does not exist yet.
fn followed(path: &Path) -> io::Result<PathBuf> {
    match (fs::canonicalize(path), fs::read_link(path)) {
        (Ok(target), _) => Ok(target),
        (Err(e), Ok(next)) if e.kind() == io::ErrorKind::NotFound => {
            followed(&path.parent().unwrap_or(Path::new("")).join(next))
        }
        (Err(e), Ok(_)) => Err(e),
        (Err(_), Err(_)) => Ok(path.to_path_buf()),
    }
}

/// A file that is removed unless it is renamed.
enum Temporary {
    /// A file without a name: it vanishes with the process.
    #[cfg(target_os = "linux")]
    Nameless(File),
    Named(NamedTempFile),
}

fn names() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".gustav-").suffix(".tmp");
    builder
}

impl Temporary {
    /// A file in `folder` with the permissions of the file it is to replace.
    fn new(folder: &Path, old: Option<&fs::Metadata>) -> io::Result<Self> {
        if old.is_some_and(|old| old.permissions().readonly()) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        let mut temporary = Self::nameless(folder).map_or_else(|| Self::named(folder), Ok)?;
        if let Some(old) = old {
            temporary.file().set_permissions(old.permissions())?;
        }
        Ok(temporary)
    }

    #[cfg(target_os = "linux")]
    fn nameless(folder: &Path) -> Option<Self> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        // The permissions of any new file; the process's umask still applies.
        let file = rustix::fs::open(folder, flags, Mode::from_raw_mode(0o666)).ok()?;
        let file = File::from(file);
        // Naming it needs /proc, which some containers lack.
        fs::symlink_metadata(descriptor(&file)).is_ok().then_some(Temporary::Nameless(file))
    }

    #[cfg(not(target_os = "linux"))]
    fn nameless(_folder: &Path) -> Option<Self> {
        None
    }

    fn named(folder: &Path) -> io::Result<Self> {
        #[cfg_attr(
            not(unix),
            expect(unused_mut, reason = "elsewhere files have no such permissions")
        )]
        let mut builder = names();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        builder.tempfile_in(folder).map(Temporary::Named)
    }

    fn file(&mut self) -> &mut File {
        match self {
            #[cfg(target_os = "linux")]
            Temporary::Nameless(file) => file,
            Temporary::Named(file) => file.as_file_mut(),
        }
    }

    /// Syncs the content and gives the file its name.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(unused_variables, reason = "only nameless files need the folder")
    )]
    fn rename(mut self, folder: &Path, target: &Path) -> io::Result<()> {
        self.file().sync_all()?;
        match self {
            // linkat does not replace an existing file, rename does: link to a temporary name, then
            // rename.
            #[cfg(target_os = "linux")]
            Temporary::Nameless(file) => {
                use rustix::fs::{AtFlags, CWD, linkat};
                let link = |name: &Path| {
                    let follow = AtFlags::SYMLINK_FOLLOW;
                    Ok(linkat(CWD, descriptor(&file), CWD, name, follow)?)
                };
                names().make_in(folder, link)?.persist(target)?;
            }
            Temporary::Named(file) => drop(file.persist(target)?),
        }
        Ok(())
    }
}

/// The path by which an open file can be linked.
#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

fn compressed(file: &mut File, compression: Compression, write: Content<'_>) -> io::Result<()> {
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

    fn listed(folder: &Path) -> Vec<String> {
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
            assert_eq!(listed(folder.path()), ["a.mtx"]);
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

    #[cfg(unix)]
    #[test]
    fn links_to_missing_files_and_links_to_themselves() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let [link, next, ring] = ["link", "next", "ring"].map(|name| folder.path().join(name));
        symlink("next", &link).unwrap();
        symlink("file", &next).unwrap();
        symlink("ring", &ring).unwrap();
        write(&link, Compression::None, |to| to.write_all(b"new")).unwrap();
        assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"new");
        let refused = write(&ring, Compression::None, |to| to.write_all(b"new")).unwrap_err();
        assert!(refused.to_string().contains("ring"), "{refused}");
        assert!([link, next, ring].iter().all(|path| path.is_symlink()));
    }

    #[test]
    fn named_and_nameless_files_replace_the_old_one_and_leave_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, path) = (folder.path(), folder.path().join("a"));
        let nameless = || Temporary::nameless(folder);
        assert_eq!(nameless().is_some(), cfg!(target_os = "linux"), "nameless files");
        for named in [false, true] {
            let temporary = if named { Temporary::named(folder).ok() } else { nameless() };
            let Some(mut temporary) = temporary else { continue };
            fs::write(&path, "old").unwrap();
            temporary.file().write_all(b"new").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"old");
            temporary.rename(folder, &path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            assert_eq!(listed(folder), ["a"]);
        }
    }
}
