//! Extracts the matrix from an archive of the collection.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use flate2::bufread::GzDecoder;
use gustav_core::{Error, Result};
use tar::Archive;

use crate::files::{Compression, atomic};

/// Writes the member of `archive` whose file name is `member` to `path`, and returns the names of
/// the others. The file is created only after the whole archive was read with the right checksum.
///
/// # Errors
/// [`Error::Format`] when the archive is damaged or lacks the member, [`Error::Io`] when `path`
/// cannot be written.
pub(super) fn extract(
    archive: &Path,
    member: &str,
    path: &Path,
    compression: Compression,
) -> Result<Vec<String>> {
    let file = File::open(archive).map_err(|source| Error::Io {
        path: archive.into(),
        action: "read",
        source,
    })?;
    // Errors of reading the archive and of writing the file are distinguished: only the former mean
    // that it is damaged.
    let (mut others, mut damaged) = (Vec::new(), None);
    let written = atomic::write(path, compression, |to| {
        unpack(file, member, &mut others, to).map_err(|side| match side {
            Side::Reading(reason) => {
                damaged = Some(reason);
                io::ErrorKind::InvalidData.into()
            }
            Side::Writing(e) => e,
        })
    });
    match damaged {
        Some(reason) => Err(Error::Format {
            path: Some(archive.into()),
            format: "tar.gz",
            reason: format!("{reason}; the file is removed, fetch it again"),
        }),
        None => written.map(|()| others),
    }
}

enum Side {
    Reading(String),
    Writing(io::Error),
}

fn damaged(e: io::Error) -> Side {
    Side::Reading(e.to_string())
}

/// Reads the archive to its end, writes `member` to `to` and names the others.
fn unpack(
    archive: File,
    member: &str,
    others: &mut Vec<String>,
    to: &mut dyn io::Write,
) -> std::result::Result<(), Side> {
    let mut members = Archive::new(GzDecoder::new(BufReader::new(archive)));
    let mut found = false;
    for entry in members.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = entry.path().map_err(damaged)?.into_owned();
        if !entry.header().entry_type().is_file() {
            continue;
        }
        if name.file_name().is_some_and(|n| n == member) && !found {
            copy(&mut entry, to)?;
            found = true;
        } else {
            others.push(name.display().to_string());
        }
    }
    // The tar ends before the gzip stream does; the rest is read because gzip checks length and
    // checksum at its end.
    io::copy(&mut members.into_inner(), &mut io::sink()).map_err(damaged)?;
    if found {
        return Ok(());
    }
    Err(Side::Reading(format!("expected a file {member}, found {}", others.join(", "))))
}

fn copy(from: &mut dyn io::Read, to: &mut dyn io::Write) -> std::result::Result<(), Side> {
    let mut block = vec![0; 1 << 16];
    loop {
        match from.read(&mut block).map_err(damaged)? {
            0 => return Ok(()),
            count => to.write_all(&block[..count]).map_err(Side::Writing)?,
        }
    }
}
