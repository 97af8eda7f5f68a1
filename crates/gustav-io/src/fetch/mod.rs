//! Matrices of the SuiteSparse Matrix Collection (Davis and Hu, "The University of Florida Sparse
//! Matrix Collection", 2011), by group and name.
//!
//! ```no_run
//! use gustav_io::fetch::Fetch;
//!
//! let fetched = Fetch::new("HB/bcsstk16".parse()?).to("bcsstk16.mtx".as_ref())?;
//! println!("{} bytes", fetched.bytes);
//! # Ok::<(), gustav_core::Error>(())
//! ```

mod archive;
mod checksum;
mod download;
mod name;
mod part;

use std::path::{Path, PathBuf};

use gustav_core::{Error, Result};

use crate::files::Progress;
use part::Part;

pub use checksum::Checksum;
pub use name::MatrixName;

/// Default address of the collection: archives are at `GROUP/NAME.tar.gz` below it. Builds without
/// the feature `tls` use an http address.
pub const COLLECTION: &str = match cfg!(feature = "tls") {
    true => "https://sparse.tamu.edu/MM",
    false => "http://sparse-files.engr.tamu.edu/MM",
};

/// A download of a matrix.
pub struct Fetch<'a> {
    name: MatrixName,
    base: String,
    checksum: Option<Checksum>,
    progress: Option<&'a dyn Progress>,
}

/// The result of a download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Bytes of the archive.
    pub bytes: u64,
    /// Bytes of it from an earlier attempt.
    pub resumed: u64,
    /// The file of the matrix.
    pub path: PathBuf,
    /// Other files in the archive, which were not extracted: right-hand sides, coordinates.
    pub others: Vec<String>,
}

impl<'a> Fetch<'a> {
    /// The matrix `name` of the collection at [`COLLECTION`].
    pub fn new(name: MatrixName) -> Self {
        Fetch { name, base: COLLECTION.into(), checksum: None, progress: None }
    }

    /// Sets the address of the collection in place of [`COLLECTION`].
    #[must_use]
    pub fn base(mut self, address: &str) -> Self {
        self.base = address.trim_end_matches('/').into();
        self
    }

    /// Sets the checksum that the archive must have.
    #[must_use]
    pub fn checksum(mut self, checksum: Checksum) -> Self {
        self.checksum = Some(checksum);
        self
    }

    /// Sets a receiver of progress reports.
    #[must_use]
    pub fn progress(mut self, progress: &'a dyn Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    /// The archive's address.
    pub fn address(&self) -> String {
        format!("{}/{}/{}.tar.gz", self.base, self.name.group(), self.name.name())
    }

    /// Downloads the archive and writes its matrix to `path`, in Matrix Market form, compressed by
    /// its extension. An incomplete archive is stored as `GROUP.NAME.tar.gz.part` in the same
    /// folder, with its address, length and version (entity tag or date) in a file beside it; an
    /// interrupted download resumes there if the server still has that version. The file is created
    /// only after the whole archive was read with the right checksums.
    ///
    /// # Errors
    /// [`Error::Argument`] for a name that the collection does not have and for a path without the
    /// extension of a Matrix Market file, [`Error::Io`] with the address when it cannot be reached
    /// and with the file when that cannot be written, [`Error::Format`] when the archive is damaged
    /// or has another checksum; it is then removed.
    pub fn to(&self, path: &Path) -> Result<Fetched> {
        let (format, compression) = crate::format_of_name(path)?;
        if format != crate::Format::MatrixMarket {
            return Err(Error::Argument {
                name: "output",
                found: path.display().to_string(),
                expected: "a name ending in .mtx, .mtx.gz or .mtx.zst, as the collection has \
                           matrices; gustav convert makes other files of it"
                    .into(),
            });
        }
        let (group, name) = (self.name.group(), self.name.name());
        let part = Part::new(path.with_file_name(format!("{group}.{name}.tar.gz.part")));
        let found = download::download(&self.address(), &part, self.progress)?;
        let unpacked = self.check(part.path()).and_then(|()| {
            archive::extract(part.path(), &format!("{name}.mtx"), path, compression)
        });
        // A complete but wrong archive is removed: resuming could not mend it.
        let wrong = matches!(unpacked, Err(Error::Format { .. }));
        if unpacked.is_ok() || wrong {
            part.remove()?;
        }
        Ok(Fetched {
            bytes: found.bytes,
            resumed: found.resumed,
            path: path.into(),
            others: unpacked?,
        })
    }

    fn check(&self, part: &Path) -> Result<()> {
        self.checksum.as_ref().map_or(Ok(()), |checksum| checksum.verify(part))
    }
}
