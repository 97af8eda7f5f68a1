//! A folder that only its user can read or write, and the files in it.
//!
//! On Unix the owner and the permissions of the folder are checked when it is opened, and the owner
//! of each file that is read; symbolic links are not followed. Elsewhere the folder has the
//! permissions that it inherits, which in the user's profile of Windows are the user's own.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A folder that passed the checks.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    read_only: bool,
}

/// A file of a folder.
pub(super) struct Found {
    pub name: String,
    pub extension: String,
    pub bytes: u64,
    /// Time of the last write, or of the last read by [`Folder::read`].
    pub used: SystemTime,
}

impl Folder {
    /// The extension of temporary files. No other program uses it, so that old ones can be removed.
    pub const TEMPORARY: &str = "gustav-tmp";

    /// Opens the folder; creates it, accessible only to its user, if it is missing.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn open(path: &Path) -> Result<Self, String> {
        let folder = Folder { path: path.into(), read_only: false };
        let mut found = fs::symlink_metadata(path);
        if found.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
            create(path).map_err(|e| folder.error(&e))?;
            found = fs::symlink_metadata(path);
        }
        let found = found.map_err(|e| folder.error(&e))?;
        if !found.is_dir() {
            let what = if found.is_symlink() { "a symbolic link" } else { "not a folder" };
            return Err(folder.error(&what));
        }
        private(&found).map_err(|reason| folder.error(&reason))?;
        Ok(Folder { read_only: found.permissions().readonly(), ..folder })
    }

    /// Checks that files may be written.
    ///
    /// # Errors
    /// The reason why not.
    pub fn writable(&self) -> Result<(), String> {
        if self.read_only { Err(self.error(&"read-only")) } else { Ok(()) }
    }

    /// A message about this folder.
    pub fn error(&self, reason: &dyn std::fmt::Display) -> String {
        format!("{} cannot cache compiled kernels: {reason}", self.path.display())
    }

    /// Reads a file, and sets its time of use.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut file = no_follow(OpenOptions::new().read(true)).open(self.path.join(name))?;
        let found = file.metadata()?;
        if !found.is_file() || !owned(&found) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // May fail in a read-only folder, in which nothing is evicted either.
        let _ = file.set_modified(SystemTime::now());
        Ok(bytes)
    }

    /// Replaces the file atomically: readers see the old one or the new one.
    pub fn replace(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        // `RandomState` is seeded by the system, so the name cannot be guessed.
        let number = RandomState::new().hash_one(name);
        let temporary = self.path.join(format!("{number:016x}.{}", Self::TEMPORARY));
        let mut options = OpenOptions::new();
        let file = no_follow(options.write(true).create_new(true)).open(&temporary)?;
        let written =
            write(file, parts).and_then(|()| fs::rename(&temporary, self.path.join(name)));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// The files with one of these extensions.
    pub fn files(&self, extensions: &[&str]) -> io::Result<Vec<Found>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Some((_, extension)) = name.rsplit_once('.') else { continue };
            if !extensions.contains(&extension) {
                continue;
            }
            // Another process may have removed it.
            let Ok(found) = entry.metadata() else { continue };
            files.push(Found {
                extension: extension.into(),
                bytes: found.len(),
                used: found.modified()?,
                name,
            });
        }
        Ok(files)
    }

    /// Removes a file, unless another process has.
    pub fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.path.join(name));
    }
}

fn create(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

fn write(mut file: File, parts: &[&[u8]]) -> io::Result<()> {
    parts.iter().try_for_each(|part| file.write_all(part))
}

/// Does not follow symbolic links; new files are accessible only to the user; does not block on a
/// pipe.
#[cfg(unix)]
fn no_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).mode(0o600)
}

#[cfg(not(unix))]
fn no_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn user() -> u32 {
    // SAFETY: reads a number of this process, and cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether a file belongs to this user.
#[cfg(unix)]
fn owned(found: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(found) == user()
}

#[cfg(not(unix))]
fn owned(_found: &Metadata) -> bool {
    true
}

/// Checks that a folder belongs to this user and that others can neither read nor write it.
#[cfg(unix)]
fn private(found: &Metadata) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let (owner, mode) = (found.uid(), found.mode() & 0o7777);
    if !owned(found) {
        return Err(format!("it belongs to user {owner}, this process to user {}", user()));
    }
    if mode & 0o077 != 0 {
        return Err(format!("others can use it (mode {mode:o}); set mode 700 (chmod 700)"));
    }
    Ok(())
}

#[cfg(not(unix))]
fn private(_found: &Metadata) -> Result<(), String> {
    Ok(())
}
