//! The times of candidates, read from records.

use gustav_core::{Error, Operation, Result};
use gustav_plan::predictor::Candidate;
use gustav_report::{Gpu, Record, Status, read_records};

use crate::workload::Workload;
use crate::{BenchArgs, Suite, listing};

/// The matrices of a suite with the times of its candidates.
pub(super) struct Timed {
    /// The GPU.
    pub gpu: Gpu,
    /// Columns of B.
    pub columns: usize,
    pub candidates: Vec<Candidate>,
    /// Each matrix with the milliseconds of every candidate.
    pub matrices: Vec<(Workload, Vec<f64>)>,
    /// Matrices without a time of every candidate.
    pub left_out: Vec<String>,
}

impl Timed {
    /// Reads the record file of `bench`, which is of its suite.
    pub fn read(bench: &BenchArgs) -> Result<Self> {
        let (suite, candidates, columns) = selection(bench)?;
        let records = read_records(&bench.record)?;
        let gpu = records.iter().rev().find_map(|r| r.gpu.clone()).unwrap_or_default();
        let (mut matrices, mut left_out) = (Vec::new(), Vec::new());
        for workload in listing::list(&suite)?.0 {
            match times(&records, &workload.name, columns, &candidates) {
                Some(ms) => matrices.push((workload, ms)),
                None => left_out.push(workload.name),
            }
        }
        Ok(Timed { gpu, columns, candidates, matrices, left_out })
    }
}

/// The suite, the candidates that it measures, and columns of B.
pub(super) fn selection(bench: &BenchArgs) -> Result<(Suite, Vec<Candidate>, usize)> {
    let mut suite = Suite::of_targets(&bench.targets)?;
    if let Some(folder) = &bench.corpus {
        suite.use_corpus(folder);
    }
    let names = bench.ours.as_ref().unwrap_or(&suite.engines.ours);
    let candidates: Vec<Candidate> = names.iter().map(|n| n.parse()).collect::<Result<_>>()?;
    let wrong = |found: String, expected: &str| {
        Err(Error::Argument { name: "suite to tune with", found, expected: expected.into() })
    };
    if let Some(twice) = (1..candidates.len()).find(|k| candidates[..*k].contains(&candidates[*k]))
    {
        return wrong(format!("candidate {} twice", candidates[twice]), "each once");
    }
    if candidates.len() < 2 {
        return wrong(format!("{} candidates", candidates.len()), "at least 2 to choose among");
    }
    if suite.products.operations != [Operation::Spmm] {
        return wrong(
            "other products than spmm".into(),
            "operations = [\"spmm\"], for which models choose",
        );
    }
    let taken = |n: &usize| bench.only.admits_columns(*n);
    let columns: Vec<usize> = suite.products.columns.iter().copied().filter(taken).collect();
    let &[columns] = columns.as_slice() else {
        let found = format!("{} numbers of columns", columns.len());
        return wrong(found, "one, which --only n=K takes of several");
    };
    Ok((suite, candidates, columns))
}

/// The latest times of all candidates on a matrix, measured in the same rounds.
fn times(
    records: &[Record],
    matrix: &str,
    columns: usize,
    candidates: &[Candidate],
) -> Option<Vec<f64>> {
    let of_case = |r: &&Record| r.case.matrix == matrix && r.case.columns == columns;
    let mut groups: Vec<u64> = records.iter().filter(of_case).map(|r| r.group).collect();
    groups.sort_unstable();
    groups.dedup();
    let of_group = |group: u64| {
        let time = |candidate: &Candidate| {
            let name = candidate.to_string();
            let own = |r: &&Record| r.group == group && r.algorithm == name;
            let right = records.iter().filter(of_case).filter(own).find(|r| r.status == Status::Ok);
            right.and_then(|r| r.execute_ms)
        };
        candidates.iter().map(time).collect::<Option<Vec<f64>>>()
    };
    groups.into_iter().rev().find_map(of_group)
}
