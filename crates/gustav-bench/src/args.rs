//! Arguments and outcome of a benchmark run.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use gustav_core::{Error, Result};
use gustav_report::{Filter, Record, Status};

/// A benchmark run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchArgs {
    /// The name of a shipped suite, a suite's `.toml` file, or matrices (files, folders,
    /// descriptions of generated ones), which are measured as the suite `quick` measures.
    pub targets: Vec<String>,
    /// The file to append records to, one JSON line each. Cases that it already has are not
    /// measured again.
    pub record: PathBuf,
    /// Which cases of the suite to measure.
    pub only: Filter,
    /// Gustav's algorithms in place of the suite's: names, `auto`, or `all`.
    pub ours: Option<Vec<String>>,
    /// Peers in place of the suite's.
    pub peers: Option<Vec<String>>,
    /// The Python interpreter of the peers; `GUSTAV_PYTHON`, else `python3`, when absent.
    pub python: Option<String>,
    /// Programs that are peers (bench/PROTOCOL.md), by the names under which they are measured.
    pub programs: Vec<PeerProgram>,
    /// Threads of every engine; one per core when absent.
    pub threads: Option<usize>,
    /// The folder of matrix files in place of the one that the suite names; `GUSTAV_CORPUS`,
    /// else the suite's, when absent.
    pub corpus: Option<PathBuf>,
    /// The device in place of the suite's: `cpu` or `cuda:K`.
    pub device: Option<String>,
    /// The part of the suite's matrices to measure; all when absent.
    pub part: Option<Part>,
    /// Minutes after which no case is started; the next run resumes there.
    pub minutes: Option<f64>,
    /// Seed of matrices and values.
    pub seed: u64,
    /// No progress bar.
    pub quiet: bool,
}

impl BenchArgs {
    /// A run of `target` with defaults for everything else.
    pub fn new(target: &str, record: impl Into<PathBuf>) -> Self {
        BenchArgs {
            targets: vec![target.into()],
            record: record.into(),
            seed: 1,
            ..BenchArgs::default()
        }
    }
}

/// A program that speaks the protocol of peers, `NAME=FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerProgram {
    /// Name of the peer.
    pub name: String,
    /// The program, which is started with that name as its argument, or a shared library (.so).
    pub file: PathBuf,
}

impl FromStr for PeerProgram {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts =
            text.split_once('=').filter(|(name, file)| !(name.is_empty() || file.is_empty()));
        let (name, file) = parts.ok_or_else(|| Error::Argument {
            name: "program of a peer",
            found: text.into(),
            expected: "NAME=FILE".into(),
        })?;
        Ok(PeerProgram { name: name.into(), file: file.into() })
    }
}

/// The time after which no case is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End(Option<Instant>);

impl End {
    /// Whether there is time for another case.
    pub fn is_due(self) -> bool {
        self.0.is_none_or(|end| Instant::now() < end)
    }
}

impl BenchArgs {
    /// Threads of every engine.
    pub(crate) fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(cores)
    }

    /// The end of a run that begins now; none if the minutes exceed a `Duration`.
    pub(crate) fn end(&self) -> End {
        let wait = |m: f64| Duration::try_from_secs_f64(60.0 * m.max(0.0)).ok();
        End(self.minutes.and_then(wait).and_then(|wait| Instant::now().checked_add(wait)))
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Cases measured now.
    pub measured: usize,
    /// Cases that the record file already had.
    pub resumed: usize,
    /// Results that the oracle rejected.
    pub wrong: usize,
    /// Engines that failed on a case.
    pub failed: usize,
    /// Cases not measured because the time was up.
    pub left: usize,
    /// Matrices that could not be read.
    pub unread: usize,
    /// Notes on missing peers and folders.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Counts a case that was measured.
    pub(crate) fn count(&mut self, records: &[Record]) {
        let of = |status| records.iter().filter(|r| r.status == status).count();
        self.measured += 1;
        self.wrong += of(Status::Wrong);
        self.failed += of(Status::Failed);
    }
}

/// What a run would measure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast {
    /// Number of matrices.
    pub matrices: usize,
    /// Number of cases.
    pub cases: usize,
    /// Of them, cases that the record file already has.
    pub held: usize,
    /// Estimated seconds if all matrices are small.
    pub least_s: f64,
    /// Estimated seconds if every engine uses its whole budget.
    pub most_s: f64,
    /// Notes on missing folders.
    pub notes: Vec<String>,
}

/// One of several parts of a suite, as `K/N` with K from 1 to N: every N-th matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    part: usize,
    of: usize,
}

impl Part {
    /// Whether the part has matrix `k` of the suite, counted from 0.
    pub fn holds(self, k: usize) -> bool {
        k % self.of == self.part - 1
    }
}

impl FromStr for Part {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let numbers = text.split_once('/').and_then(|(k, n)| k.parse().ok().zip(n.parse().ok()));
        match numbers {
            Some((part, of)) if 1 <= part && part <= of => Ok(Part { part, of }),
            _ => Err(Error::Argument {
                name: "part",
                found: text.into(),
                expected: "K/N with K from 1 to N, for example 1/3".into(),
            }),
        }
    }
}
