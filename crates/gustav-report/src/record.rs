//! Records of measurements: one JSON line per engine and case.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use gustav_core::{CsrView, Error, Result, Scalar};
use serde::{Deserialize, Serialize};

use crate::{Case, Gpu, Machine, quantile};

/// The outcome of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Correct, and timed.
    #[default]
    Ok,
    /// Rejected by the oracle, or a product did not wait for the one before it; it has no time.
    Wrong,
    /// The engine failed, with its error in `message`.
    Failed,
    /// Not run, with the reason in `message`.
    Skipped,
}

/// One stage of one execution. Times in milliseconds since the execution began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Where it ran: a processor, a stream.
    pub lane: String,
    /// What was done.
    pub name: String,
    /// When it started.
    pub start_ms: f64,
    /// When it ended.
    pub end_ms: f64,
}

/// One engine on one case. Times in milliseconds; `None` where a quantity has no meaning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The suite.
    pub suite: String,
    /// The case.
    #[serde(flatten)]
    pub case: Case,
    /// Kind of the matrix, as the manifest or the generator names it.
    pub kind: String,
    /// Rows of A.
    pub rows: usize,
    /// Columns of A.
    pub cols: usize,
    /// Stored entries of A.
    pub nnz: usize,
    /// Entries per row, on average.
    pub mean_row_length: f64,
    /// Entries of the longest row.
    pub max_row_length: usize,
    /// Intermediate products of an SpGEMM.
    pub products: Option<u64>,
    /// Stored entries of C of an SpGEMM.
    pub nnz_c: Option<u64>,
    /// Stored entries of the mask of an SpGEMM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nnz_mask: Option<u64>,
    /// `gustav`, or the name of a peer.
    pub engine: String,
    /// The requested algorithm, `auto`, or `default`.
    pub algorithm: String,
    /// The algorithm that ran, if the engine reports it.
    pub chosen: Option<String>,
    /// The engine's reason for it.
    pub reason: Option<String>,
    /// The outcome.
    pub status: Status,
    /// The error or reason.
    pub message: Option<String>,
    /// Time to plan, inspect or convert, before the first execution.
    pub plan_ms: Option<f64>,
    /// Time to compute the features of A on the host, for engines with a row order (GPUs).
    pub features_ms: Option<f64>,
    /// Median time of one execution. An SpGEMM includes all symbolic work.
    pub execute_ms: Option<f64>,
    /// Median time with warm caches, if `execute_ms` is with cold ones.
    pub hot_ms: Option<f64>,
    /// Number of sets of operands, on a GPU, between which back-to-back executions alternated;
    /// `None` if caches were flushed before single executions instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sets: Option<usize>,
    /// Median time of a single execution after a flush of caches, if sets of operands alternated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single_ms: Option<f64>,
    /// Median time of an execution in series whose products may begin before the one before has ended, of an engine
    /// that does not wait for it: right only if no product reads what the one before wrote. `execute_ms` has an empty
    /// launch between products.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlapping_ms: Option<f64>,
    /// Part of `execute_ms` that converts the values of A to the algorithm's format (GPUs).
    pub convert_ms: Option<f64>,
    /// Time to move A and B to a GPU.
    pub transfer_ms: Option<f64>,
    /// First quartile of the executions.
    pub lower_ms: Option<f64>,
    /// Third quartile of the executions.
    pub upper_ms: Option<f64>,
    /// Median time of an execution that reuses the symbolic work of a plan (SpGEMM).
    pub reuse_ms: Option<f64>,
    /// Median time of the products in one run of a program; `execute_ms` is the whole run.
    pub product_ms: Option<f64>,
    /// Most bytes of a GPU's memory in use during an SpGEMM, operands and C included.
    pub peak_memory: Option<u64>,
    /// Bytes of the operands and twice those of C, which `peak_memory` should not exceed.
    pub memory_bar: Option<u64>,
    /// Rounds in which this engine was timed.
    pub rounds: usize,
    /// Executions timed in each round; their median is one sample.
    pub repeats: usize,
    /// The fastest correct peer of the same rounds.
    pub best_peer: Option<String>,
    /// Its time over this engine's; above 1, this engine is faster than every peer.
    pub ratio: Option<f64>,
    /// Calls that amortize planning against the best peer.
    pub break_even_calls: Option<f64>,
    /// The memory floor: time to move A, B and C once at the copy bandwidth measured for their
    /// size.
    pub floor_ms: Option<f64>,
    /// Time that reading a row of B once for every nonzero takes at the bandwidth of a GPU's L2; of K and of V, for an
    /// attention.
    pub gather_ms: Option<f64>,
    /// Time that the memory of a GPU takes for what its L2 misses of an attention, by a model of L2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miss_ms: Option<f64>,
    /// What ran when, of an engine that overlaps its stages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Stage>,
    /// A spy plot of A: shades of equal bins from 0 (empty) to 9, one string a row of bins; stored
    /// in one record of a matrix in a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spy: Vec<String>,
    /// Error of the element whose error is largest relative to its bound.
    pub max_error: Option<f64>,
    /// The bound of that element.
    pub error_bound: Option<f64>,
    /// Rows of C that were compared with the oracle.
    pub rows_checked: usize,
    /// Versions of Gustav or the peer and of the libraries that it uses.
    pub versions: BTreeMap<String, String>,
    /// Where it ran.
    pub machine: Machine,
    /// The GPU, when it ran on one.
    pub gpu: Option<Gpu>,
    /// Threads.
    pub threads: usize,
    /// Seed of the values.
    pub seed: u64,
    /// Start of the case in milliseconds since 1970: equal for engines that were timed in the same rounds.
    pub group: u64,
    /// Whether no rule was fitted to its matrix: it was read from a file whose name says so.
    #[serde(skip)]
    pub unseen: bool,
}

/// The version of cuSPARSE beside which the records of each group were measured, if it was.
pub fn cusparse_of_groups<'a>(
    records: impl IntoIterator<Item = &'a Record>,
) -> BTreeMap<u64, &'a str> {
    let version = |r: &'a Record| Some((r.group, r.versions.get("cusparse")?.as_str()));
    records.into_iter().filter_map(version).collect()
}

impl Record {
    /// A record of `case` without results.
    pub fn blank(case: Case) -> Self {
        Record { case, ..Record::default() }
    }

    /// The record with the properties of A, a matrix of `kind`.
    pub fn on<T: Scalar>(self, kind: &str, a: &CsrView<'_, T>) -> Self {
        Record {
            kind: kind.into(),
            rows: a.nrows(),
            cols: a.ncols(),
            nnz: a.nnz(),
            mean_row_length: a.nnz() as f64 / a.nrows().max(1) as f64,
            max_row_length: (0..a.nrows()).map(|r| a.row_len(r)).max().unwrap_or(0),
            ..self
        }
    }

    /// Sets the time of an execution to the median of `samples`, each of `repeats` executions, with
    /// its quartiles.
    pub fn set_times(&mut self, samples: &[f64], repeats: usize) {
        (self.rounds, self.repeats) = (samples.len(), repeats);
        self.execute_ms = quantile(samples, 0.5);
        (self.lower_ms, self.upper_ms) = (quantile(samples, 0.25), quantile(samples, 0.75));
    }

    /// Sets the status to `status`, because of `why`.
    pub fn set_fault(&mut self, status: Status, why: impl ToString) {
        (self.status, self.message) = (status, Some(why.to_string()));
    }

    /// Whether `execute_ms` is with cold caches: if there is a separate warm time, and on a GPU. There
    /// programs are as warm as they leave their operands, and an SpGEMM without a warm time is from
    /// when it was measured with warm caches alone.
    pub fn is_cold(&self) -> bool {
        let always = self.case.product() != "spgemm" && !self.is_program();
        self.hot_ms.is_some() || self.gpu.is_some() && always
    }

    /// Median time with warm caches.
    pub fn warm_ms(&self) -> Option<f64> {
        if self.is_cold() { self.hot_ms } else { self.execute_ms }
    }

    /// Median time of a single execution with cold caches on a GPU.
    pub fn alone_ms(&self) -> Option<f64> {
        if self.sets.is_some() { self.single_ms } else { self.execute_ms }
    }

    /// Median time of an execution of products of which none reads what the one before wrote.
    pub fn independent_ms(&self) -> Option<f64> {
        [self.execute_ms, self.overlapping_ms].into_iter().flatten().reduce(f64::min)
    }

    /// Whether the engine is Gustav, not a peer.
    pub fn is_ours(&self) -> bool {
        self.engine == "gustav"
    }

    /// Whether it is of a whole program, not of one product.
    pub(crate) fn is_program(&self) -> bool {
        !["spmm", "spmv", "spgemm", "sddmm", "attention"].contains(&self.case.product())
    }

    /// Time of one execution for comparisons: infinite if there is none.
    pub(crate) fn time(&self) -> f64 {
        self.execute_ms.unwrap_or(f64::INFINITY)
    }

    /// Multiplications and additions of the product, as 2 · multiplications.
    pub(crate) fn flops(&self) -> f64 {
        let products = self.products.map(|p| p as f64);
        2.0 * products.unwrap_or(self.nnz as f64 * self.case.columns as f64)
    }

    /// 10⁹ operations per second.
    pub(crate) fn gflops(&self) -> Option<f64> {
        Some(self.flops() / self.execute_ms? / 1e6)
    }

    /// Fraction of the positions of A that are stored.
    pub(crate) fn density(&self) -> f64 {
        self.nnz as f64 / (self.rows as f64 * self.cols as f64).max(1.0)
    }

    /// Percentage of the time of a program that its products take.
    pub(crate) fn product_percentage(&self) -> Option<f64> {
        Some(100.0 * self.product_ms? / self.execute_ms?)
    }

    /// The engine and the requested algorithm, as tables name them.
    pub fn engine_name(&self) -> String {
        match self.algorithm.as_str() {
            "default" => self.engine.clone(),
            algorithm => format!("{}:{algorithm}", self.engine),
        }
    }
}

/// What the names of files contain whose matrices no rule was fitted to.
const UNSEEN: &str = "-unseen";

/// Reads records, also from a compressed file. A last line that an interruption cut short is
/// ignored.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Parse`] for a line that is no record.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    let mut records = parse(&gustav_io::read_bytes(path)?[..], path)?;
    let unseen = path.file_name().is_some_and(|name| name.to_string_lossy().contains(UNSEEN));
    records.iter_mut().for_each(|r| r.unseen = unseen);
    Ok(records)
}

/// The records in the text of a file, which errors name as `path`; as [`read`].
///
/// # Errors
/// As [`read`].
pub fn parse(mut text: impl BufRead, path: &Path) -> Result<Vec<Record>> {
    let io = |source| Error::Io { path: path.into(), action: "read", source };
    let (mut records, mut line, mut number) = (Vec::new(), String::new(), 0);
    while text.read_line(&mut line).map_err(io)? > 0 {
        number += 1;
        if !line.ends_with('\n') {
            break;
        }
        if !line.trim().is_empty() {
            let record = serde_json::from_str(&line).map_err(|e| Error::Parse {
                path: Some(path.into()),
                line: number,
                column: e.column() as u64,
                expected: "a benchmark record (bench/RECORDS.md has its keys; remove the line to continue without it)".into(),
                found: e.to_string(),
            })?;
            records.push(record);
        }
        line.clear();
    }
    Ok(records)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use gustav_core::{DType, Operation};

    pub(crate) fn record(matrix: &str, engine: &str, algorithm: &str) -> Record {
        Record {
            suite: "test".into(),
            case: Case::new(matrix, Operation::Spmm, 8, DType::F32),
            kind: "grid5".into(),
            rows: 10,
            cols: 10,
            nnz: 200_000,
            mean_row_length: 2.0,
            max_row_length: 3,
            engine: engine.into(),
            algorithm: algorithm.into(),
            chosen: Some("row-split".into()),
            plan_ms: Some(0.25),
            execute_ms: Some(1.5),
            rounds: 15,
            repeats: 1,
            max_error: Some(1e-7),
            error_bound: Some(1e-6),
            rows_checked: 10,
            versions: BTreeMap::from([("gustav".into(), "0.1.0".into())]),
            threads: 2,
            seed: 1,
            group: 7,
            ..Record::default()
        }
    }

    /// Records of `auto` and both CPU vendors, with these times.
    pub(crate) fn beside_vendors(
        case: &str,
        group: u64,
        ours: f64,
        mkl: f64,
        graphblas: f64,
    ) -> Vec<Record> {
        let engines = [
            ("gustav", "auto", ours),
            ("mkl", "default", mkl),
            ("graphblas", "default", graphblas),
        ];
        let timed = |(engine, algorithm, ms): (&str, &str, f64)| Record {
            group,
            execute_ms: Some(ms),
            ..record(case, engine, algorithm)
        };
        engines.map(timed).into()
    }

    #[test]
    fn a_line_that_is_no_record_is_refused_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        std::fs::write(&path, "\n{\"suite\": 3}\n").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
