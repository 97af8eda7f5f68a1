//! A cache of compiled kernels on disk.
//!
//! An entry is one file, named by its [`Key`]: a line of magic, a SHA-256 checksum of key and
//! cubin, the cubin. An entry that does not match its checksum is a miss and is written again.
//!
//! A cubin is code, so the folder must belong to the user and be inaccessible to others. Otherwise
//! the cache is not used; [`Cache::problem`] says why.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use super::folder::Folder;
use super::request::Key;

const MAGIC: &[u8] = b"gustav cubin 2\n";
const CHECKSUM_LEN: usize = 32;
const EXTENSION: &str = "gustav-cubin";
// Age at which temporary files are removed: an interrupted process leaves them, and no write takes
// this long.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A folder of compiled kernels, or none. Clones are the same cache.
///
/// Any number of threads and processes may use one folder at once.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Result<PathBuf, String>,
    limit: u64,
    write_failure: Arc<Mutex<Option<String>>>,
}

impl Cache {
    /// Default limit of the size of a cache in bytes.
    pub const DEFAULT_LIMIT: u64 = 256 << 20;

    /// The cache in `folder`, which is created if it is missing; `None` caches nothing.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self::of(folder.ok_or_else(|| "no folder was named for compiled kernels".into()))
    }

    /// The user's cache: the folder `kernels` in `$GUSTAV_CACHE`, else in the folder `gustav` of
    /// `$XDG_CACHE_HOME`, of `%LOCALAPPDATA%` or of `~/.cache`.
    ///
    /// `GUSTAV_CACHE_BYTES` sets its limit; 0 caches nothing.
    pub fn of_user() -> Self {
        let variable = |name| std::env::var_os(name).filter(|v| !v.is_empty());
        let folder = |name| variable(name).map(PathBuf::from);
        let parent = folder("GUSTAV_CACHE")
            .or_else(|| folder("XDG_CACHE_HOME").map(|p| p.join("gustav")))
            .or_else(|| folder("LOCALAPPDATA").map(|p| p.join("gustav")))
            .or_else(|| folder("HOME").map(|p| p.join(".cache/gustav")));
        let limit = variable("GUSTAV_CACHE_BYTES");
        match limit.as_ref().map(|text| text.to_str().and_then(|t| t.parse().ok())) {
            Some(None) => Self::of(Err(format!(
                "GUSTAV_CACHE_BYTES is {}, expected a number of bytes",
                limit.unwrap_or_default().display()
            ))),
            Some(Some(bytes)) => Self::new(parent.map(|p| p.join("kernels"))).with_limit(bytes),
            None => match parent {
                Some(parent) => Self::new(Some(parent.join("kernels"))),
                None => Self::of(Err("there is no folder for compiled kernels: set GUSTAV_CACHE \
                                      or HOME"
                    .into())),
            },
        }
    }

    fn of(folder: Result<PathBuf, String>) -> Self {
        Cache { folder, limit: Self::DEFAULT_LIMIT, write_failure: Arc::default() }
    }

    /// Limits the cache to `bytes`. After each write, the entries that were used least recently are
    /// removed until the rest fits; 0 caches nothing.
    #[must_use]
    pub fn with_limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// Why the cache is not read or not written, if so.
    pub fn problem(&self) -> Option<String> {
        let found = self.open().and_then(|folder| folder.writable());
        let write_failure = || self.write_failure.lock().unwrap_or_else(PoisonError::into_inner);
        found.err().or_else(|| write_failure().clone())
    }

    /// The cubin of `key`, if there is an intact entry.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let mut entry = self.open().ok()?.read(&file_name(key)).ok()?;
        let (found, cubin) = entry.strip_prefix(MAGIC)?.split_first_chunk()?;
        let intact = *found == checksum(key, cubin);
        intact.then(|| entry.split_off(MAGIC.len() + CHECKSUM_LEN))
    }

    /// Writes the cubin of `key`. A failure is not an error, because kernels can be compiled again;
    /// [`Cache::problem`] reports it.
    pub fn put(&self, key: &Key, cubin: &[u8]) {
        let failure = self.open().and_then(|folder| {
            folder.writable()?;
            let parts = [MAGIC, &checksum(key, cubin), cubin];
            if parts.iter().map(|p| p.len() as u64).sum::<u64>() > self.limit {
                return Ok(());
            }
            let written = folder.replace(&file_name(key), &parts);
            written.and_then(|()| self.evict(&folder)).map_err(|e| folder.error(&e))
        });
        *self.write_failure.lock().unwrap_or_else(PoisonError::into_inner) = failure.err();
    }

    fn open(&self) -> Result<Folder, String> {
        if self.limit == 0 {
            return Err("the cache of compiled kernels is limited to 0 bytes".into());
        }
        Folder::open(self.folder.as_ref().map_err(String::clone)?)
    }

    /// Removes the least recently used entries until the others are within the limit. Another
    /// process may do the same concurrently: both begin with the same entries.
    fn evict(&self, folder: &Folder) -> std::io::Result<()> {
        let abandoned = SystemTime::now().checked_sub(ABANDONED);
        let mut entries = folder.files(&[EXTENSION, Folder::TEMPORARY])?;
        entries.retain(|file| {
            let stale = file.extension == Folder::TEMPORARY
                && abandoned.is_some_and(|before| file.used < before);
            if stale {
                folder.remove(&file.name);
            }
            !stale
        });
        entries.sort_by_key(|file| file.used);
        let mut total: u64 = entries.iter().map(|file| file.bytes).sum();
        for file in entries.iter().filter(|file| file.extension == EXTENSION) {
            if total <= self.limit {
                break;
            }
            folder.remove(&file.name);
            total -= file.bytes;
        }
        Ok(())
    }
}

fn file_name(key: &Key) -> String {
    format!("{key}.{EXTENSION}")
}

/// Covers the key too: an entry renamed to another key does not match.
fn checksum(key: &Key, cubin: &[u8]) -> [u8; CHECKSUM_LEN] {
    Sha256::new().chain_update(key.bytes()).chain_update(cubin).finalize().into()
}
