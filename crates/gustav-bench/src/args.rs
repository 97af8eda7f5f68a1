//! What a benchmark run is asked for, and what came of it.

use std::path::PathBuf;

use crate::Filter;

/// A benchmark run.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchArgs {
    /// The name of a shipped suite, a suite's `.toml` file, or matrices (files, folders,
    /// descriptions of generated ones), which are measured as the suite `quick` measures.
    pub targets: Vec<String>,
    /// Where records go, one JSON line each. What the file already holds is not measured again.
    pub record: PathBuf,
    /// Which cases of the suite to measure.
    pub only: Filter,
    /// Our algorithms in place of the suite's: names, `auto`, or `all`.
    pub ours: Option<Vec<String>>,
    /// Peers in place of the suite's.
    pub peers: Option<Vec<String>>,
    /// The Python interpreter of the peers; `GUSTAV_PYTHON`, else `python3`, when absent.
    pub python: Option<String>,
    /// Threads of every engine; one per core when absent.
    pub threads: Option<usize>,
    /// The folder of matrix files in place of the one that the suite names; `GUSTAV_CORPUS`,
    /// else the suite's, when absent.
    pub corpus: Option<PathBuf>,
    /// Seed of matrices and values.
    pub seed: u64,
    /// No progress bar.
    pub quiet: bool,
}

impl BenchArgs {
    /// A run of `target` with everything else as usual.
    pub fn new(target: &str, record: impl Into<PathBuf>) -> Self {
        BenchArgs {
            targets: vec![target.into()],
            record: record.into(),
            only: Filter::default(),
            ours: None,
            peers: None,
            python: None,
            threads: None,
            corpus: None,
            seed: 1,
            quiet: false,
        }
    }
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Cases measured now.
    pub measured: usize,
    /// Cases that the record file held already.
    pub resumed: usize,
    /// Results that the oracle refused.
    pub wrong: usize,
    /// Engines that failed on a case.
    pub failed: usize,
    /// What was missing: peers, folders.
    pub notes: Vec<String>,
}
