//! Tuning: candidates are measured over matrices, and a predictor is trained on what was measured.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use gustav_core::{Error, Result};
use gustav_plan::Features;
use gustav_plan::predictor::{
    Candidate, Case, Chooses, Evaluation, Inputs, Kind, Model, Table, Training, Tree, simulates,
    train,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::listing;
use crate::workload::Workload;
use crate::{BenchArgs, Outcome, Record, Status, Suite, read_records, run};

/// What to tune with.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneArgs {
    /// What is measured, and where records go: a suite whose engines are the candidates, with one
    /// number of columns or a filter that takes one. What the record file holds already is not
    /// measured again.
    pub bench: BenchArgs,
    /// Train on what the record file holds, and measure nothing.
    pub train_only: bool,
    /// How the networks are trained.
    pub training: Training,
    /// Train networks of other sizes too, to see what size buys.
    pub topologies: bool,
    /// Train and test on five folds of the sources in turn, so that every matrix is tested on, and take
    /// the network that loses least over all.
    pub folds: bool,
}

impl TuneArgs {
    /// Networks that will be trained.
    ///
    /// # Errors
    /// As [`tune`] for the suite and its candidates.
    pub fn networks(&self) -> Result<usize> {
        let (_, candidates) = self.candidates()?;
        let sizes = if self.topologies { TOPOLOGIES.len() } else { 0 };
        let folds = if self.folds { Table::FOLDS } else { 0 };
        let seen = INPUTS.len() + usize::from(candidates.iter().all(simulates));
        Ok(GOALS.len() * seen * (1 + folds) + sizes)
    }

    fn candidates(&self) -> Result<(Suite, Vec<Candidate>)> {
        let mut suite = Suite::of_targets(&self.bench.targets)?;
        if let Some(folder) = &self.bench.corpus {
            suite.use_corpus(folder);
        }
        let names = self.bench.ours.as_ref().unwrap_or(&suite.engines.ours);
        let candidates = names.iter().map(|n| n.parse()).collect::<Result<_>>()?;
        Ok((suite, candidates))
    }
}

// What networks learn: times, the fastest candidate, what each candidate loses.
const GOALS: [&str; 3] = ["regression", "softmax", "softmax of losses"];
const INPUTS: [usize; 2] = [Features::COUNT, Features::MATRIX_ONLY];
// Hidden layers that the study of row permutations compares (its figure 15).
const TOPOLOGIES: [&[usize]; 8] =
    [&[16], &[32], &[64], &[128], &[32, 16], &[64, 32], &[128, 64], &[64, 32, 16]];

/// How good the rivals are on matrices of sources that none was trained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneReport {
    /// The device that was measured.
    pub device: String,
    /// Columns of B.
    pub columns: usize,
    /// Matrices that were trained on, and tested on.
    pub matrices: (usize, usize),
    /// Sources of the matrices that were tested on.
    pub tested_sources: Vec<String>,
    /// Matrices left out, for want of a time of every candidate.
    pub left_out: Vec<String>,
    /// Each rival: `regression`, `softmax`, `softmax of losses`, all with all features and with
    /// `matrix-only` ones, `tree`, and `first`, which always takes the first candidate. Where costs of the candidates
    /// are simulated, networks and tree `with costs` as well, and `simulation`, which takes the
    /// candidate of the least cost.
    pub rivals: BTreeMap<String, Evaluation>,
    /// Of every regression the errors of its times on the matrices that it was tested on, in
    /// percent of the measured time: every candidate of every matrix.
    pub errors: BTreeMap<String, Vec<f64>>,
    /// How often each candidate is the fastest among the matrices that were trained on.
    pub classes: Vec<usize>,
    /// Mean loss of regressions by their hidden layers, when they were asked for.
    pub topologies: Vec<(String, f64)>,
    /// What every rival loses over five folds of the sources, when that was asked for.
    #[serde(default)]
    pub folds: BTreeMap<String, Folded>,
    /// The network with the least mean loss of those that see most: over the folds, else on the matrices
    /// that were tested on.
    pub taken: String,
}

/// A rival on every matrix, trained on sources other than the matrix's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Folded {
    /// Matrices.
    pub cases: usize,
    /// Share of them for which the fastest was chosen.
    pub right: f64,
    /// Mean loss.
    pub mean_loss: f64,
    /// Largest loss.
    pub worst_loss: f64,
    /// Mean loss, where the first candidate is taken instead wherever that is faster: no guard that
    /// falls back on it, whatever it goes by, loses less.
    #[serde(default)]
    pub guarded_mean_loss: f64,
    /// Largest loss of the same.
    #[serde(default)]
    pub guarded_worst_loss: f64,
}

impl Folded {
    /// What `chooser` does on `test`.
    fn new(test: &Table, chooser: &impl Chooses) -> Self {
        let found = Evaluation::new(test, chooser);
        let guarded = |case: &Case| {
            let chosen = chooser.choose(&case.inputs).min(case.ms.len() - 1);
            1.0 - case.ms[case.oracle()] / case.ms[chosen].min(case.ms[0])
        };
        let guarded: Vec<f64> = test.cases().iter().map(guarded).collect();
        Folded {
            cases: found.cases,
            right: found.right,
            mean_loss: found.mean_loss,
            worst_loss: found.worst_loss,
            guarded_mean_loss: guarded.iter().sum::<f64>() / guarded.len() as f64,
            guarded_worst_loss: guarded.into_iter().fold(0.0, f64::max),
        }
    }

    /// These matrices and those of another fold.
    fn and(self, fold: &Folded) -> Self {
        let cases = self.cases + fold.cases;
        let mean = |so_far: f64, new: f64| {
            (so_far * self.cases as f64 + new * fold.cases as f64) / cases as f64
        };
        Folded {
            cases,
            right: mean(self.right, fold.right),
            mean_loss: mean(self.mean_loss, fold.mean_loss),
            worst_loss: self.worst_loss.max(fold.worst_loss),
            guarded_mean_loss: mean(self.guarded_mean_loss, fold.guarded_mean_loss),
            guarded_worst_loss: self.guarded_worst_loss.max(fold.guarded_worst_loss),
        }
    }
}

/// What tuning gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// What was measured now.
    pub outcome: Outcome,
    /// The network that was taken.
    pub model: Model,
    /// How good it is, beside its rivals.
    pub report: TuneReport,
}

/// Hears of every pass over a training set, with the name of the network.
pub type Told<'a> = dyn FnMut(&str, usize) + Send + 'a;

/// Measures what the record file does not hold yet, trains, and evaluates on held-out sources;
/// `told` hears of every pass over the training set, with the name of the network.
///
/// # Errors
/// As [`run`]; [`Error::Argument`] for a suite that has not one number of columns or a name that
/// is no candidate, and when too few matrices were measured.
pub fn tune(args: &TuneArgs, told: &mut Told<'_>) -> Result<Tuned> {
    let (suite, candidates) = args.candidates()?;
    let taken = |n: &usize| args.bench.only.admits_columns(*n);
    let columns: Vec<usize> = suite.products.columns.iter().copied().filter(taken).collect();
    let &[columns] = columns.as_slice() else {
        return Err(Error::Argument {
            name: "suite to tune with",
            found: format!("{} numbers of columns", columns.len()),
            expected: "one, which --only n=K takes of several".into(),
        });
    };
    let outcome = match args.train_only {
        true => Outcome::default(),
        false => run(&args.bench)?,
    };
    let records = read_records(&args.bench.record)?;
    let device = records.iter().rev().find_map(|r| r.gpu.as_ref()).map(|gpu| gpu.name.clone());
    let (mut timed, mut left_out) = (Vec::new(), Vec::new());
    for workload in listing::list(&suite)?.0 {
        match times(&records, &workload.name, columns, &candidates) {
            Some(ms) => timed.push((workload, ms)),
            None => left_out.push(workload.name),
        }
    }
    let cases = timed.into_par_iter().map(|(w, ms)| case(&w, args.bench.seed, ms, &candidates));
    let table = Table::new(candidates.clone(), cases.collect::<Result<_>>()?)?;
    let all = table.inputs();
    let seen: Vec<usize> = match all {
        Features::COUNT => INPUTS.into(),
        all => [&[all], &INPUTS[..]].concat(),
    };
    let folds = match args.folds {
        true => over_folds(&table, &seen, &args.training, told)?,
        false => BTreeMap::new(),
    };
    let (learn, test) = table.split()?;
    let device = device.unwrap_or_default();
    let mut rivals = BTreeMap::new();
    let mut networks = Vec::new();
    let mut errors = BTreeMap::new();
    for goal in GOALS {
        for &inputs in &seen {
            let name = format!("{goal}{}", suffix(inputs));
            let training = Training { inputs, ..towards(goal, &args.training) };
            let model = train(&learn, &training, &device, columns, |pass| told(&name, pass));
            let found = Evaluation::new(&test, &model);
            if training.kind == Kind::Regression {
                errors.insert(name.clone(), percent_errors(&test, &model));
            }
            if inputs == all {
                let loss = folds.get(&name).map_or(found.mean_loss, |f| f.mean_loss);
                networks.push((loss, name.clone(), model));
            }
            rivals.insert(name, found);
        }
    }
    for &inputs in seen.iter().filter(|inputs| **inputs >= Features::COUNT) {
        let name = format!("tree{}", suffix(inputs));
        rivals.insert(name, Evaluation::new(&test, &Tree::train(&learn, inputs)));
    }
    if all > Features::COUNT {
        rivals.insert("simulation".into(), Evaluation::new(&test, &Simulation));
    }
    rivals.insert("first".into(), Evaluation::new(&test, &First));
    let mut topologies = Vec::new();
    for hidden in if args.topologies { &TOPOLOGIES[..] } else { &[] } {
        let layers: Vec<String> = hidden.iter().map(ToString::to_string).collect();
        let name = layers.join(", ");
        let training = Training { hidden: hidden.to_vec(), ..args.training.clone() };
        let model = train(&learn, &training, &device, columns, |pass| told(&name, pass));
        topologies.push((name, Evaluation::new(&test, &model).mean_loss));
    }
    let regression = networks.iter().position(|(.., model)| model.kind == Kind::Regression);
    let regression = regression.map(|place| networks[place].2.clone());
    networks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (_, taken, mut model) = networks.swap_remove(0);
    if let (Kind::Softmax, Some(regression)) = (model.kind, &regression) {
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
        folds,
        taken,
    };
    Ok(Tuned { outcome, model, report })
}

/// The report in a file, as `gustav tune --json` prints it.
///
/// # Errors
/// [`Error::Io`] when it cannot be read, [`Error::Format`] when it is no such report.
pub fn read_tuning(path: &Path) -> Result<TuneReport> {
    let io = |source| Error::Io { path: path.into(), action: "read", source };
    let text = std::fs::read_to_string(path).map_err(io)?;
    serde_json::from_str(&text).map_err(|e| Error::Format {
        path: Some(path.into()),
        format: "tuning report",
        reason: format!("{e}; gustav tune --json prints one"),
    })
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

/// Every rival on every fold.
fn over_folds(
    table: &Table,
    seen: &[usize],
    training: &Training,
    told: &mut Told<'_>,
) -> Result<BTreeMap<String, Folded>> {
    let told = Mutex::new(told);
    let ways: Vec<(&str, usize)> =
        GOALS.iter().flat_map(|goal| seen.iter().map(|inputs| (*goal, *inputs))).collect();
    let mut all = BTreeMap::<String, Folded>::new();
    for fold in 0..Table::FOLDS {
        let (learn, test) = table.fold(fold)?;
        let network = |&(goal, inputs): &(&str, usize)| {
            let name = format!("{goal}{}", suffix(inputs));
            let training = Training { inputs, ..towards(goal, training) };
            let model = train(&learn, &training, "", 0, |pass| {
                if let Ok(mut told) = told.lock() {
                    told(&name, pass);
                }
            });
            (name, Folded::new(&test, &model))
        };
        let mut found: Vec<_> = ways.par_iter().map(network).collect();
        for &inputs in seen.iter().filter(|inputs| **inputs >= Features::COUNT) {
            let tree = Tree::train(&learn, inputs);
            found.push((format!("tree{}", suffix(inputs)), Folded::new(&test, &tree)));
        }
        if table.inputs() > Features::COUNT {
            found.push(("simulation".into(), Folded::new(&test, &Simulation)));
        }
        found.push(("first".into(), Folded::new(&test, &First)));
        for (name, folded) in found {
            let so_far = all.entry(name).or_default();
            *so_far = so_far.and(&folded);
        }
    }
    Ok(all)
}

fn towards(goal: &str, training: &Training) -> Training {
    match goal {
        "regression" => Training { kind: Kind::Regression, ..training.clone() },
        "softmax" => Training { kind: Kind::Softmax, ..training.clone() },
        _ => training.clone().by_losses(),
    }
}

/// What a rival's name says of how much it sees.
fn suffix(inputs: usize) -> &'static str {
    match inputs.cmp(&Features::COUNT) {
        Ordering::Less => ", matrix-only",
        Ordering::Equal => "",
        Ordering::Greater => ", with costs",
    }
}

/// Always the first candidate.
struct First;

impl Chooses for First {
    fn choose(&self, _: &Inputs) -> usize {
        0
    }
}

/// The candidate of the least simulated cost; costs are told beside the first candidate's.
struct Simulation;

impl Chooses for Simulation {
    fn choose(&self, inputs: &Inputs) -> usize {
        let costs: Vec<f64> = std::iter::once(0.0).chain(inputs.costs.iter().copied()).collect();
        (0..costs.len()).min_by(|a, b| costs[*a].total_cmp(&costs[*b])).unwrap_or(0)
    }
}

/// The latest times of all candidates that took turns on a matrix.
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

fn case(workload: &Workload, seed: u64, ms: Vec<f64>, candidates: &[Candidate]) -> Result<Case> {
    let matrix = workload.load(seed)?;
    let inputs = Inputs::with_costs(&matrix.view(), candidates)?;
    Ok(Case { matrix: workload.name.clone(), source: workload.source.clone(), inputs, ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;
    use crate::workload::Origin;

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
            all.iter().filter(small).step_by(8).map(|w| w.name.as_str()).collect();
        for (k, matrix) in generated.iter().enumerate() {
            for (j, algorithm) in suite.engines.ours.iter().enumerate() {
                let mut r = record(matrix, "gustav", algorithm);
                // DCSR wins where many rows are empty, and misses one matrix.
                let fast = (algorithm == "dcsr") == matrix.starts_with("empty");
                r.execute_ms = Some(if fast { 1.0 } else { 2.0 } + j as f64 / 10.0);
                (r.case.columns, r.group) = (64, k as u64);
                r.gpu = Some(crate::Gpu { name: "a GPU".into(), ..crate::Gpu::default() });
                if k > 0 || algorithm != "dcsr" {
                    text += &(serde_json::to_string(&r).expect("a record") + "\n");
                }
            }
        }
        std::fs::write(&path, text).expect("records");
        let training = Training { passes: 10, ..Training::default() };
        let bench = BenchArgs::new("tune", &path);
        let args = TuneArgs { bench, train_only: true, training, topologies: true, folds: true };
        let mut passes = 0;
        let tuned = tune(&args, &mut |_, _| passes += 1).expect("a model");
        assert_eq!(passes, 10 * args.networks().expect("a suite"));
        let TuneReport { device, columns, matrices, left_out, rivals, .. } = &tuned.report;
        assert_eq!((device.as_str(), *columns), ("a GPU", 64));
        assert_eq!(left_out.len(), all.len() - (generated.len() - 1));
        assert_eq!(matrices.0 + matrices.1, generated.len() - 1);
        // Networks of three views, trees of two, the simulation and the first candidate.
        assert_eq!(rivals.len(), 9 + 2 + 2);
        let folds = &tuned.report.folds;
        assert!(folds.keys().eq(rivals.keys()));
        assert!(folds.values().all(|f| f.cases == matrices.0 + matrices.1));
        // A guard never loses more than either of the two it chooses between.
        let first = &folds["first"];
        for f in folds.values() {
            for alone in [f, first] {
                assert!(f.guarded_mean_loss <= alone.mean_loss + 1e-12, "{f:?}, {alone:?}");
                assert!(f.guarded_worst_loss <= alone.worst_loss, "{f:?}, {alone:?}");
            }
        }
        assert!((first.guarded_mean_loss - first.mean_loss).abs() < 1e-12);
        let least = |name: &&String| name.starts_with("regression") || name.starts_with("softmax");
        let seeing = folds.keys().filter(least).filter(|name| name.ends_with("with costs"));
        let best = seeing.min_by(|a, b| folds[*a].mean_loss.total_cmp(&folds[*b].mean_loss));
        assert_eq!(best, Some(&tuned.report.taken));
        assert!(tuned.model.sees_costs());
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
