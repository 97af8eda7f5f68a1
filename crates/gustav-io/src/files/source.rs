//! The bytes of a file: mapped into memory, decompressed when they are compressed.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use gustav_core::{Error, Result, buffer::available_memory};
use memmap2::Mmap;

use super::format::Compression;
use super::options::ReadOptions;

// Smallest step by which the buffer of decompressed text grows.
const STEP: usize = 1 << 20;
// Bytes that suffice to detect the format.
const HEAD: u64 = 1 << 10;

/// The whole content of a file.
pub(crate) enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

/// Opens `path`. Files that cannot be mapped (a pipe, an empty file) are read, beyond their first
/// bytes only if these are `wanted`: a device may be endless.
pub(crate) fn open(path: &Path, wanted: impl Fn(&[u8]) -> bool) -> Result<Bytes> {
    let failed = |source| Error::Io { path: path.to_path_buf(), action: "read", source };
    let mut file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    if size > 0 {
        // SAFETY: nothing here writes through the mapping. If somebody else changes the file, a
        // second read may return other bytes. No reader bases a write, an unchecked access or a
        // `str` on an earlier read (entries are checked against the space allocated for them; names
        // and headers are copied before they are checked for UTF-8), so such a file gives an error
        // or a matrix of old and new entries. Truncating the file ends the process with a signal,
        // as for any program that maps its input.
        if let Ok(map) = unsafe { Mmap::map(&file) } {
            return Ok(Bytes::Mapped(map));
        }
    }
    let mut bytes = Vec::new();
    let mut read = |limit| -> Result<bool> {
        read_all(&mut file, &mut bytes, limit).map_err(|e| match e {
            Stop::Io(source) => failed(source),
            Stop::Memory(error) => error,
        })?;
        Ok(wanted(&bytes))
    };
    if read(HEAD)? {
        read(u64::MAX)?;
    }
    Ok(Bytes::Owned(bytes))
}

/// The decompressed content of `bytes`, or `None` if it is not compressed.
pub(crate) fn decompress(bytes: &[u8], options: &ReadOptions<'_>) -> Result<Option<Vec<u8>>> {
    let compression = Compression::of_content(bytes);
    if compression == Compression::None {
        return Ok(None);
    }
    decompress_head(bytes, compression, u64::MAX, options).map(Some)
}

/// As [`decompress`], the first `limit` bytes only.
pub(crate) fn decompress_head(
    bytes: &[u8],
    compression: Compression,
    limit: u64,
    options: &ReadOptions<'_>,
) -> Result<Vec<u8>> {
    let damaged = |error: io::Error| {
        let reason = if error.kind() == io::ErrorKind::UnexpectedEof {
            "the compressed data ends too early; the file is truncated".to_string()
        } else {
            format!("the compressed data is damaged ({error})")
        };
        Error::Format { path: None, format: compression.name(), reason }
    };
    let counted = Counted { bytes, options };
    let mut text = Vec::new();
    let result = match compression {
        Compression::Zstd => {
            let mut decoder = zstd::Decoder::new(counted).map_err(damaged)?;
            read_all(&mut decoder, &mut text, limit)
        }
        _ => read_all(&mut MultiGzDecoder::new(counted), &mut text, limit),
    };
    match result {
        Ok(()) => Ok(text),
        Err(Stop::Io(error)) => Err(damaged(error)),
        Err(Stop::Memory(error)) => Err(error),
    }
}

/// A reader that reports its progress.
struct Counted<'a> {
    bytes: &'a [u8],
    options: &'a ReadOptions<'a>,
}

impl Read for Counted<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.bytes.read(to)?;
        self.options.advance(n);
        Ok(n)
    }
}

/// Why reading stopped.
pub(crate) enum Stop {
    Io(io::Error),
    Memory(Error),
}

/// Reads up to `limit` bytes, allocating memory only as data arrives.
pub(crate) fn read_all(from: &mut impl Read, to: &mut Vec<u8>, limit: u64) -> Result<(), Stop> {
    loop {
        let left = limit - to.len() as u64;
        if left == 0 {
            return Ok(());
        }
        if to.len() == to.capacity() {
            reserve(to).map_err(Stop::Memory)?;
        }
        let free = ((to.capacity() - to.len()) as u64).min(left);
        match from.by_ref().take(free).read_to_end(to) {
            Ok(n) if (n as u64) < free => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(Stop::Io(error)),
        }
    }
}

fn reserve(to: &mut Vec<u8>) -> Result<()> {
    let more = to.len().max(STEP);
    let out_of_memory = || Error::OutOfMemory {
        what: "decompressed file",
        needed: to.len() as u128 + more as u128,
        available: available_memory(),
    };
    if more >= 1 << 30 && available_memory().is_some_and(|free| more as u64 > free) {
        return Err(out_of_memory());
    }
    let mut grown = Vec::new();
    grown.try_reserve_exact(to.len() + more).map_err(|_| out_of_memory())?;
    grown.extend_from_slice(to);
    *to = grown;
    Ok(())
}
