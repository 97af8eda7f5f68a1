//! Checksums of files.

use std::fs::File;
use std::io;
use std::path::Path;
use std::str::FromStr;

use gustav_core::{Error, Result};
use md5::Md5;
use sha2::{Digest, Sha256};

/// A checksum as `md5:HEX` or `sha256:HEX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checksum {
    kind: Kind,
    hex: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Md5,
    Sha256,
}

impl FromStr for Checksum {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let found = text.split_once(':').and_then(|(kind, hex)| {
            let (kind, digits) = match kind {
                "md5" => (Kind::Md5, 32),
                "sha256" => (Kind::Sha256, 64),
                _ => return None,
            };
            let whole = hex.len() == digits && hex.bytes().all(|b| b.is_ascii_hexdigit());
            whole.then(|| Checksum { kind, hex: hex.to_ascii_lowercase() })
        });
        found.ok_or_else(|| Error::Argument {
            name: "checksum",
            found: text.into(),
            expected: "md5: with 32 or sha256: with 64 hexadecimal digits".into(),
        })
    }
}

impl Checksum {
    /// Compares the checksum with that of a file.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it has another one.
    pub fn verify(&self, path: &Path) -> Result<()> {
        let found = match self.kind {
            Kind::Md5 => digest::<Md5>(path),
            Kind::Sha256 => digest::<Sha256>(path),
        };
        let found =
            found.map_err(|source| Error::Io { path: path.into(), action: "read", source })?;
        if found == self.hex {
            return Ok(());
        }
        Err(Error::Format {
            path: Some(path.into()),
            format: "checksum",
            reason: format!("expected {}, found {found}; the file is removed", self.hex),
        })
    }
}

fn digest<D: Digest>(path: &Path) -> io::Result<String> {
    let (mut file, mut hasher) = (File::open(path)?, D::new());
    let mut block = vec![0; 1 << 16];
    loop {
        match io::Read::read(&mut file, &mut block)? {
            0 => break,
            count => hasher.update(&block[..count]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_checksum_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "abc").unwrap();
        // The digests of "abc" in RFC 1321 and FIPS 180-4.
        for text in [
            "md5:900150983CD24FB0D6963F7D28E17F72",
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ] {
            let checksum: Checksum = text.parse().unwrap();
            checksum.verify(&path).unwrap();
            let other = Checksum { hex: checksum.hex.replace('0', "1"), ..checksum };
            assert!(other.verify(&path).unwrap_err().to_string().contains("expected"));
        }
    }

    #[test]
    fn what_is_no_checksum_is_refused() {
        for bad in ["abc", "md5:12", "sha1:1234", "sha256:zz"] {
            assert!(bad.parse::<Checksum>().unwrap_err().to_string().contains("sha256:"));
        }
    }
}
