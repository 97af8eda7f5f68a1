//! Networks and their rivals: trained on records, and tested on held-out sources.

mod folds;
mod rivals;

use std::collections::BTreeMap;
use std::sync::Mutex;

use gustav_core::Result;
use gustav_plan::Features;
use gustav_plan::predictor::{
    Candidate, Case, Evaluation, Inputs, Kind, Model, Table, Training, Tree,
};
use gustav_train::train;
use rayon::prelude::*;

use self::rivals::{First, GOALS, INPUTS, Simulation, TOPOLOGIES, suffix};
use super::timed::Timed;
use super::{PassCallback, TuneArgs, TuneReport, Tuned};
use crate::workload::Workload;

/// Implements [`train_predictor`](super::train_predictor).
pub(super) fn rivals(args: &TuneArgs, callback: &mut PassCallback<'_>) -> Result<Tuned> {
    let Timed { gpu, columns, candidates, matrices, left_out } = Timed::read(&args.bench)?;
    let device = gpu.name;
    let timed = matrices.into_par_iter();
    let cases = timed.map(|(w, ms)| case(&w, args.bench.seed, ms, &candidates));
    let table = Table::new(candidates.clone(), cases.collect::<Result<_>>()?)?;
    let all = table.inputs();
    let seen: Vec<usize> = match all {
        Features::COUNT => INPUTS.into(),
        all => [&[all], &INPUTS[..]].concat(),
    };
    let topologies = if args.topologies { &TOPOLOGIES[..] } else { &[] };
    // Every network is trained for validation, for the test, and for each fold.
    let times = if args.folds { 2 + Table::FOLDS } else { 2 };
    let networks = GOALS.len() * seen.len() * times + topologies.len();
    let progress = Progress::new(callback, networks * args.training.passes);
    let folds = match args.folds {
        true => folds::over(&table, &seen, &args.training, &progress)?,
        false => BTreeMap::new(),
    };
    let (learn, test) = table.split()?;
    let mut rivals = BTreeMap::new();
    let mut networks = Vec::new();
    let mut errors = BTreeMap::new();
    // Which network is taken must not depend on what it is tested on.
    let (fit, validate) = learn.split()?;
    let network = |(name, training): (String, Training)| {
        let model = train(&fit, &training, &device, columns, |_| progress.pass(&name))?;
        let loss = Evaluation::new(&validate, &model).mean_loss;
        let model = train(&learn, &training, &device, columns, |_| progress.pass(&name))?;
        Ok((loss, name, training.inputs, model))
    };
    let trained: Vec<_> = rivals::networks(&seen, &args.training)
        .into_par_iter()
        .map(network)
        .collect::<Result<_>>()?;
    let mut validation = BTreeMap::new();
    for (loss, name, inputs, model) in trained {
        let found = Evaluation::new(&test, &model);
        if model.kind == Kind::Regression {
            errors.insert(name.clone(), percent_errors(&test, &model));
        }
        validation.insert(name.clone(), loss);
        networks.push((loss, name.clone(), inputs, model));
        rivals.insert(name, found);
    }
    for &inputs in seen.iter().filter(|inputs| **inputs >= Features::COUNT) {
        let name = format!("tree{}", suffix(inputs));
        rivals.insert(name, Evaluation::new(&test, &Tree::train(&learn, inputs)));
    }
    if all > Features::COUNT {
        rivals.insert("simulation".into(), Evaluation::new(&test, &Simulation));
    }
    rivals.insert("first".into(), Evaluation::new(&test, &First));
    let size = |hidden: &&[usize]| {
        let layers: Vec<String> = hidden.iter().map(ToString::to_string).collect();
        let name = layers.join(", ");
        let training = Training { hidden: hidden.to_vec(), ..args.training.clone() };
        let model = train(&learn, &training, &device, columns, |_| progress.pass(&name))?;
        Ok((name, Evaluation::new(&test, &model).mean_loss))
    };
    let topologies: Vec<_> = topologies.par_iter().map(size).collect::<Result<_>>()?;
    networks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (_, taken, inputs, mut model) = networks.swap_remove(0);
    let regression =
        networks.iter().find(|(.., seen, m)| *seen == inputs && m.kind == Kind::Regression);
    if let (Kind::Softmax, Some((.., regression))) = (model.kind, regression) {
        model = model.with_times(regression)?;
    }
    let mut tested_sources: Vec<_> = test.cases().iter().map(|c| c.source.clone()).collect();
    tested_sources.sort();
    tested_sources.dedup();
    let matrices = (learn.cases().len(), test.cases().len());
    let report = TuneReport {
        device,
        columns,
        matrices,
        tested_sources,
        left_out,
        rivals,
        errors,
        classes: learn.wins(),
        topologies,
        validation,
        folds,
        taken,
    };
    Ok(Tuned { model, report })
}

/// Counts epochs.
struct Progress<'t, 'a> {
    callback: Mutex<(&'t mut PassCallback<'a>, usize)>,
    of: usize,
}

impl<'t, 'a> Progress<'t, 'a> {
    fn new(callback: &'t mut PassCallback<'a>, of: usize) -> Self {
        Progress { callback: Mutex::new((callback, 0)), of }
    }

    /// Counts an epoch of a network.
    fn pass(&self, network: &str) {
        if let Ok(mut callback) = self.callback.lock() {
            let (callback, done) = &mut *callback;
            *done += 1;
            callback(network, *done, self.of);
        }
    }
}

/// |measured − predicted| ÷ measured of every candidate of every matrix, in percent.
fn percent_errors(table: &Table, model: &Model) -> Vec<f64> {
    let of = |case: &Case| {
        let predicted = model.predict(&case.inputs).scores;
        let pairs = case.ms.iter().zip(predicted);
        pairs.map(|(ms, p)| 100.0 * (ms - p).abs() / ms).collect::<Vec<_>>()
    };
    table.cases().iter().flat_map(of).collect()
}

fn case(workload: &Workload, seed: u64, ms: Vec<f64>, candidates: &[Candidate]) -> Result<Case> {
    let matrix = workload.load(seed)?;
    let inputs = Inputs::with_costs(&matrix.pattern().view(), candidates)?;
    Ok(Case { matrix: workload.name.clone(), source: workload.source.clone(), inputs, ms })
}

#[cfg(test)]
mod tests {
    use gustav_core::{DType, Operation};
    use gustav_report::Record;

    use super::*;
    use crate::workload::Origin;
    use crate::{BenchArgs, Suite, listing, train_predictor};

    #[test]
    fn a_predictor_is_trained_on_records() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tune.jsonl");
        let suite = Suite::find("tune").expect("a suite");
        let mut text = String::new();
        let all = listing::list(&suite).expect("matrices").0;
        let small = |w: &&Workload| {
            matches!(w.origin, Origin::Generated(_)) && w.shape.is_some_and(|s| s.0 <= 5000)
        };
        let generated: Vec<&str> =
            all.iter().filter(small).step_by(3).map(|w| w.name.as_str()).collect();
        for (k, matrix) in generated.iter().enumerate() {
            for (j, algorithm) in suite.engines.ours.iter().enumerate() {
                let case = gustav_report::Case::new(matrix, Operation::Spmm, 64, DType::F32);
                let mut r = Record::blank(case);
                (r.engine, r.algorithm) = ("gustav".into(), algorithm.clone());
                // DCSR is fastest if many rows are empty, and has no time on one matrix.
                let fast = (algorithm == "dcsr") == matrix.starts_with("empty");
                r.execute_ms = Some(if fast { 1.0 } else { 2.0 } + j as f64 / 10.0);
                r.group = k as u64;
                r.gpu = Some(gustav_report::Gpu {
                    name: "a GPU".into(),
                    ..gustav_report::Gpu::default()
                });
                if k > 0 || algorithm != "dcsr" {
                    text += &(serde_json::to_string(&r).expect("a record") + "\n");
                }
            }
        }
        std::fs::write(&path, text).expect("records");
        let training = Training { passes: 10, ..Training::default() };
        let bench = BenchArgs::new("tune", &path);
        let args = TuneArgs { bench, training, topologies: true, folds: true };
        let mut calls = Vec::new();
        let mut tell = |_: &str, done: usize, of: usize| calls.push((done, of));
        let tuned = train_predictor(&args, &mut tell).expect("a model");
        // Three goals with three sets of features, twice and over five folds, and eight sizes.
        let passes = 10 * (3 * 3 * 7 + 8);
        assert!(calls.into_iter().eq((1..=passes).map(|done| (done, passes))));
        let TuneReport { device, columns, matrices, left_out, rivals, .. } = &tuned.report;
        assert_eq!((device.as_str(), *columns), ("a GPU", 64));
        assert_eq!(left_out.len(), all.len() - (generated.len() - 1));
        assert_eq!(matrices.0 + matrices.1, generated.len() - 1);
        // Networks with three sets of features, trees with two, the simulation and the first
        // candidate.
        assert_eq!(rivals.len(), 9 + 2 + 2);
        let folds = &tuned.report.folds;
        assert!(folds.keys().eq(rivals.keys()));
        assert!(folds.values().all(|f| f.cases == matrices.0 + matrices.1));
        // The bound is at most the loss of either of the two.
        let first = &folds["first"];
        for f in folds.values() {
            for alone in [f, first] {
                assert!(f.guarded_mean_loss <= alone.mean_loss + 1e-12, "{f:?}, {alone:?}");
                assert!(f.guarded_worst_loss <= alone.worst_loss, "{f:?}, {alone:?}");
            }
        }
        assert!((first.guarded_mean_loss - first.mean_loss).abs() < 1e-12);
        let (validation, taken) = (&tuned.report.validation, &tuned.report.taken);
        assert_eq!(validation.len(), 9);
        let least = validation.values().copied().fold(f64::INFINITY, f64::min);
        assert!(validation[taken].total_cmp(&least).is_eq(), "{taken}");
        assert_eq!(tuned.model.sees_costs(), taken.ends_with("with costs"));
        let TuneReport { errors, classes, topologies, .. } = &tuned.report;
        assert_eq!(classes.iter().sum::<usize>(), matrices.0);
        assert_eq!(errors["regression"].len(), matrices.1 * suite.engines.ours.len());
        assert_eq!(topologies.len(), TOPOLOGIES.len());
        let text = serde_json::to_string(&tuned.report).expect("JSON");
        assert_eq!(serde_json::from_str::<TuneReport>(&text).expect("a report"), tuned.report);
        assert!(matrices.1 >= 5 && tuned.report.tested_sources.len() >= 2);
        assert_eq!(tuned.model.device, "a GPU");
        assert!(tuned.model.to_text().is_ok());
    }
}
