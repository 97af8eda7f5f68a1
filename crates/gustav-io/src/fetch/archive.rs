//! The matrix in an archive of the collection.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use flate2::bufread::GzDecoder;
use gustav_core::{Error, Result};
use tar::Archive;

use crate::files::{Compression, atomic};

/// Writes the member of `archive` whose file name is `member` to `path`, and returns the names
/// of the others.
///
/// # Errors
/// [`Error::Format`] when the archive is damaged or does not hold it, [`Error::Io`] when `path`
/// cannot be written.
pub(super) fn extract(
    archive: &Path,
    member: &str,
    path: &Path,
    compression: Compression,
) -> Result<Vec<String>> {
    let refuse = |reason: String| Error::Format {
        path: Some(archive.into()),
        format: "tar.gz",
        reason: format!("{reason}; the file is removed, fetch it again"),
    };
    let damaged = |e: io::Error| refuse(e.to_string());
    let file = File::open(archive).map_err(|source| Error::Io {
        path: archive.into(),
        action: "read",
        source,
    })?;
    let mut members = Archive::new(GzDecoder::new(BufReader::new(file)));
    let (mut others, mut found) = (Vec::new(), false);
    for entry in members.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = entry.path().map_err(damaged)?.into_owned();
        if !entry.header().entry_type().is_file() {
            continue;
        }
        if name.file_name().is_some_and(|n| n == member) && !found {
            // Reading and writing fail in one place; only the first is the archive's fault.
            let mut read = Ok(());
            let written = atomic::write(path, compression, |to| {
                copy(&mut entry, to).map_err(|side| match side {
                    Side::Reading(e) => {
                        read = Err(damaged(e));
                        io::ErrorKind::InvalidData.into()
                    }
                    Side::Writing(e) => e,
                })
            });
            read.and(written)?;
            found = true;
        } else {
            others.push(name.display().to_string());
        }
    }
    if !found {
        return Err(refuse(format!("expected a file {member}, found {}", others.join(", "))));
    }
    Ok(others)
}

enum Side {
    Reading(io::Error),
    Writing(io::Error),
}

fn copy(from: &mut dyn io::Read, to: &mut dyn io::Write) -> std::result::Result<(), Side> {
    let mut block = vec![0; 1 << 16];
    loop {
        match from.read(&mut block).map_err(Side::Reading)? {
            0 => return Ok(()),
            count => to.write_all(&block[..count]).map_err(Side::Writing)?,
        }
    }
}
