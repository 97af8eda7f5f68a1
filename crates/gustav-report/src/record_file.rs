//! Files of records that are appended to, with an index of their contents.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use gustav_core::{Error, Result};
use gustav_io::Compression;

use crate::record::read;
use crate::{Case, Record};

/// The recorded engines, by measurement.
#[derive(Debug, Default)]
pub struct RecordIndex(BTreeMap<MeasurementId, BTreeSet<String>>);

impl RecordIndex {
    /// The index of `records`.
    pub fn new(records: &[Record]) -> Self {
        let mut index = RecordIndex::default();
        index.add(records);
        index
    }

    fn add(&mut self, records: &[Record]) {
        for record in records {
            self.0.entry(MeasurementId::of(record)).or_default().insert(record.engine_name());
        }
    }

    /// Whether there is a record of `wanted` for each of `engines`.
    pub fn holds(&self, wanted: &MeasurementId, engines: &[String]) -> bool {
        let mut found = self.0.iter().filter(|(id, _)| wanted.matches(id));
        found.any(|(_, names)| engines.iter().all(|e| names.contains(e)))
    }
}

/// A record file that is appended to, with an index.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    file: File,
    index: RecordIndex,
}

/// Identifies a measurement of a case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MeasurementId {
    /// The case.
    pub case: Case,
    /// Rows and columns of the matrix; `None` if they are not known before it is loaded: only the
    /// name is compared.
    pub shape: Option<(usize, usize)>,
    /// Threads of every engine.
    pub threads: usize,
    /// Seed of matrix and values.
    pub seed: u64,
    /// Name of the GPU, when it ran on one; empty: any GPU.
    pub gpu: Option<String>,
}

impl MeasurementId {
    fn of(record: &Record) -> Self {
        MeasurementId {
            case: record.case.clone(),
            shape: Some((record.rows, record.cols)),
            threads: record.threads,
            seed: record.seed,
            gpu: record.gpu.as_ref().map(|gpu| gpu.name.clone()),
        }
    }

    /// Whether `found` is such a measurement.
    fn matches(&self, found: &MeasurementId) -> bool {
        let any = found.gpu.is_some() && self.gpu.as_deref() == Some("");
        let gpu = if any { &found.gpu } else { &self.gpu };
        let shape = self.shape.or(found.shape);
        *found == MeasurementId { shape, gpu: gpu.clone(), ..self.clone() }
    }
}

impl RecordFile {
    /// Opens or creates the file. A last line that an interruption cut short is removed.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be opened for writing, and as [`read`].
    pub fn open(path: &Path) -> Result<Self> {
        let io = |source| Error::Io { path: path.into(), action: "write", source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(io)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(io)?;
        if Compression::of_content(&text) != Compression::None {
            return Err(Error::Argument {
                name: "record file",
                found: format!("{}, which is compressed", path.display()),
                expected: "one that can be continued: decompress it".into(),
            });
        }
        let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |k| k + 1);
        file.set_len(whole as u64).map_err(io)?;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        Ok(RecordFile { path: path.into(), file, index: RecordIndex::new(&read(path)?) })
    }

    /// Whether the file has a record of `wanted` for each of `engines`.
    pub fn holds(&self, wanted: &MeasurementId, engines: &[String]) -> bool {
        self.index.holds(wanted, engines)
    }

    /// Appends the records of one case and flushes them.
    ///
    /// # Errors
    /// [`Error::Io`] when they cannot be written.
    pub fn append(&mut self, records: &[Record]) -> Result<()> {
        let io = |source| Error::Io { path: self.path.clone(), action: "write", source };
        let mut text = String::new();
        for record in records {
            text += &serde_json::to_string(record).map_err(|e| io(e.into()))?;
            text.push('\n');
        }
        self.file.write_all(text.as_bytes()).map_err(io)?;
        self.file.flush().map_err(io)?;
        self.index.add(records);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn records_come_back_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        let records = [record("a", "gustav", "auto"), record("a", "mkl", "default")];
        RecordFile::open(&path).unwrap().append(&records).unwrap();
        assert_eq!(read(&path).unwrap(), records);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.lines().all(|l| l.contains("\"matrix\":\"a\"")), "{text}");
    }

    #[test]
    fn a_run_that_was_cut_short_resumes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        let first = record("a", "gustav", "auto");
        RecordFile::open(&path).unwrap().append(std::slice::from_ref(&first)).unwrap();
        let mut text = std::fs::read_to_string(&path).unwrap();
        text += "{\"suite\":\"te";
        std::fs::write(&path, text).unwrap();
        assert_eq!(read(&path).unwrap().len(), 1);

        let mut file = RecordFile::open(&path).unwrap();
        let names = |n: &[&str]| n.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let wanted = MeasurementId::of(&first);
        assert!(file.holds(&wanted, &names(&["gustav:auto"])));
        assert!(!file.holds(&wanted, &names(&["gustav:auto", "mkl"])));
        assert!(
            file.holds(&MeasurementId { shape: None, ..wanted.clone() }, &names(&["gustav:auto"]))
        );
        for other in [
            MeasurementId { threads: 1, ..wanted.clone() },
            MeasurementId { seed: 7, ..wanted.clone() },
            MeasurementId { shape: Some((11, 10)), ..wanted.clone() },
            MeasurementId { gpu: Some("a GPU".into()), ..wanted.clone() },
        ] {
            assert!(!file.holds(&other, &names(&["gustav:auto"])), "{other:?}");
        }
        file.append(&[record("a", "mkl", "default")]).unwrap();
        assert!(file.holds(&wanted, &names(&["gustav:auto", "mkl"])));
        assert_eq!(read(&path).unwrap().len(), 2);
    }

    #[test]
    fn a_compressed_file_is_not_continued_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.mtx.gz");
        let a = gustav_core::Csr::<f64>::new(1, 1, vec![0, 1], vec![0], vec![1.0]).unwrap();
        gustav_io::write_csr(&path, a.view(), &gustav_io::WriteOptions::default()).unwrap();
        let before = std::fs::read(&path).unwrap();
        let Err(error) = RecordFile::open(&path) else { panic!("a compressed file was opened") };
        assert!(error.to_string().contains("decompress it"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
        let inside = read(&path).unwrap_err().to_string();
        assert!(inside.contains("line 1"), "{inside}");
    }
}
