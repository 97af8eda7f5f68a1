//! Cubins kept on disk.
//!
//! An entry is one file: a line of magic, the lengths of key and cubin, a checksum, the key, the
//! cubin. Its name is the key's hash; the key itself is compared, so that a collision is only a
//! miss. Files are written under a temporary name and renamed. Whatever does not read back whole
//! is a miss, and is written anew.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::request::fnv;

const MAGIC: &[u8] = b"gustav cubin 1\n";
const HEADER: usize = MAGIC.len() + 3 * 8;

/// A folder of cubins, or none.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
}

impl Cache {
    /// The cache in `folder`, which need not exist; `None` keeps nothing.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Cache { folder }
    }

    /// The cubin of `key`, if a whole one is there.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let mut entry = fs::read(self.path(key)?).ok()?;
        let body = entry.strip_prefix(MAGIC)?;
        let word =
            |i: usize| Some(u64::from_le_bytes(body.get(8 * i..8 * i + 8)?.try_into().ok()?));
        let (key_len, cubin_len) =
            (usize::try_from(word(0)?).ok()?, usize::try_from(word(1)?).ok()?);
        let (found, cubin) = entry.get(HEADER..)?.split_at_checked(key_len)?;
        let whole = found == key.as_bytes() && cubin.len() == cubin_len && fnv(cubin) == word(2)?;
        whole.then(|| entry.split_off(HEADER + key_len))
    }

    /// Keeps the cubin of `key`. Failing to is no error: the next process compiles again.
    pub fn put(&self, key: &str, cubin: &[u8]) {
        if let Some(path) = self.path(key) {
            let _ = write(&path, key.as_bytes(), cubin);
        }
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{:016x}.cubin", fnv(key.as_bytes()))))
    }
}

fn write(path: &Path, key: &[u8], cubin: &[u8]) -> std::io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("{}-{number}.tmp", std::process::id()));
    let written = (|| {
        let mut file = fs::File::create(&temporary)?;
        file.write_all(MAGIC)?;
        for word in [key.len() as u64, cubin.len() as u64, fnv(cubin)] {
            file.write_all(&word.to_le_bytes())?;
        }
        file.write_all(key)?;
        file.write_all(cubin)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}
