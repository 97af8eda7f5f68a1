//! Matrices with measured times, to which the costs of simulated candidates are fitted.

use std::collections::BTreeMap;

use gustav_core::{Csr, Result};
use gustav_plan::predictor::{Candidate, Case, Inputs, Table};
use gustav_report::Gpu;
use rayon::prelude::*;

use super::timed::Timed;
use crate::BenchArgs;
use crate::workload::Workload;

/// Matrices of the sources that a predictor is trained on, and of those that it is tested on.
#[derive(Debug)]
pub struct CostSamples {
    /// The GPU that the times are of.
    pub gpu: Gpu,
    /// Columns of B.
    pub columns: usize,
    /// The candidates.
    pub candidates: Vec<Candidate>,
    /// Matrices of the training sources.
    pub learn: Vec<CostSample>,
    /// Matrices of the test sources.
    pub test: Vec<CostSample>,
    /// Matrices without a time of every candidate.
    pub left_out: Vec<String>,
}

/// A matrix with the times of the candidates.
#[derive(Debug)]
pub struct CostSample {
    /// Its name.
    pub matrix: String,
    /// Milliseconds of each candidate.
    pub ms: Vec<f64>,
    /// The matrix.
    pub a: Csr<f64>,
}

/// Reads the record file of `bench`, and loads at most `most` matrices of each source, evenly spaced in the order of
/// the suite. The test sources are those of [`Table::split`] over all matrices, as in
/// [`train_predictor`](crate::train_predictor).
///
/// # Errors
/// As [`measure_candidates`](crate::measure_candidates) before it measures; when there are too few sources, for a
/// record file that cannot be read, and those of generators and files of matrices.
pub fn cost_samples(bench: &BenchArgs, most: usize) -> Result<CostSamples> {
    let Timed { gpu, columns, candidates, matrices, left_out } = Timed::read(bench)?;
    let workloads: BTreeMap<String, Workload> =
        matrices.iter().map(|(workload, _)| (workload.name.clone(), workload.clone())).collect();
    let case = |(workload, ms): (Workload, Vec<f64>)| Case {
        matrix: workload.name,
        source: workload.source,
        inputs: Inputs::default(),
        ms,
    };
    let table = Table::new(candidates.clone(), matrices.into_iter().map(case).collect())?;
    let (learn, test) = table.split()?;
    let load = |case: &Case| -> Result<CostSample> {
        let a = workloads[&case.matrix].load(bench.seed)?;
        Ok(CostSample { matrix: case.matrix.clone(), ms: case.ms.clone(), a })
    };
    let loaded = |table: &Table| -> Result<_> {
        evenly(table.cases(), most).into_par_iter().map(load).collect()
    };
    let (learn, test) = (loaded(&learn)?, loaded(&test)?);
    Ok(CostSamples { gpu, columns, candidates, learn, test, left_out })
}

/// At most `most` cases of each source, evenly spaced.
fn evenly(cases: &[Case], most: usize) -> Vec<&Case> {
    let mut by_source = BTreeMap::<&str, Vec<&Case>>::new();
    cases.iter().for_each(|case| by_source.entry(&case.source).or_default().push(case));
    let of_source = |cases: Vec<_>| {
        let (all, taken) = (cases.len(), cases.len().min(most));
        (0..taken).map(move |k| cases[k * all / taken]).collect::<Vec<_>>()
    };
    by_source.into_values().flat_map(of_source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_of_a_source_are_evenly_spaced() {
        let of = |source: &str, k: usize| Case {
            matrix: format!("{source} {k}"),
            source: source.into(),
            inputs: Inputs::default(),
            ms: vec![1.0, 2.0],
        };
        let many = (0..7).map(|k| of("many", k));
        let cases: Vec<Case> = many.chain([of("few", 0), of("few", 1)]).collect();
        let taken: Vec<_> = evenly(&cases, 3).into_iter().map(|c| c.matrix.as_str()).collect();
        assert_eq!(taken, ["few 0", "few 1", "many 0", "many 2", "many 4"]);
    }
}
