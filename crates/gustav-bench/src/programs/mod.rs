//! Whole programs around the product: time to solution, and the fraction of it that products take. The
//! programs themselves are an example of the library, `crates/gustav/examples/applications`.

#[path = "../../../gustav/examples/applications/algebra/mod.rs"]
mod algebra;
#[path = "../../../gustav/examples/applications/conjugate_gradients.rs"]
mod conjugate_gradients;
#[path = "../../../gustav/examples/applications/eigenvectors.rs"]
mod eigenvectors;
#[path = "../../../gustav/examples/applications/engine/mod.rs"]
mod engine;
#[path = "../../../gustav/examples/applications/graph.rs"]
mod graph;
#[path = "../../../gustav/examples/applications/graph_attention.rs"]
mod graph_attention;
#[path = "../../../gustav/examples/applications/graph_convolution.rs"]
mod graph_convolution;
#[path = "../../../gustav/examples/applications/page_rank.rs"]
mod page_rank;
#[path = "../../../gustav/examples/applications/program.rs"]
mod program;
#[path = "../../../gustav/examples/applications/shortest_paths.rs"]
mod shortest_paths;
#[path = "../../../gustav/examples/applications/training.rs"]
mod training;

mod child;
mod network;
mod runner;

use std::time::{SystemTime, UNIX_EPOCH};

use gustav::Device;
use gustav_core::{Csr, DType, Error, Operation, Result};
use gustav_report::{CUSPARSE_BEST, Case, MeasurementId, Record, RecordFile, Status};

use crate::cuda::Started;
use crate::listing;
use crate::measure::compare;
use crate::peers::{Launch, Peers};
use crate::suite::Source;
use crate::timing::{Runner, interleave};
use crate::workload::Workload;
use crate::{BenchArgs, Outcome, Suite};

use program::{Check, Description, PROGRAMS, difference};
use runner::Solver;

/// The peer that is a loop over rows on one thread, in host memory.
const LOOP: &str = "loop";
/// Peers that train networks of their own, and do nothing else.
const NETWORKS: [&str; 2] = ["pyg", "pyg-csr"];
/// Whose losses others are compared with, the first that is there: those that share no code with the rest.
const REFERENCES: [&str; 4] = [LOOP, "pyg", "pyg-csr", CUSPARSE_BEST];

/// A program on matrices, as a suite names it.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Solve {
    /// The program: `cg`, `eigenvectors`, `pagerank`, `gcn-training`, `gat-training` or `paths`.
    pub program: String,
    /// The matrices, of which only the patterns are used.
    pub matrices: Vec<Source>,
    /// Right-hand sides, columns of the hidden layer, or ends of paths: no more than the matrix has columns.
    #[serde(default = "one")]
    pub columns: usize,
}

fn one() -> usize {
    1
}

impl Solve {
    /// The case, under which records are kept.
    pub(crate) fn case(&self, workload: &Workload) -> Case {
        let operation = self.program.clone();
        Case { operation, ..Case::new(&workload.name, Operation::Spmm, self.columns, DType::F32) }
    }

    /// What a record file must hold for the program to be done.
    pub(crate) fn asked(
        &self,
        workload: &Workload,
        threads: usize,
        seed: u64,
        gpu: Option<&str>,
    ) -> MeasurementId {
        let gpu = gpu.map(str::to_owned);
        MeasurementId { case: self.case(workload), shape: None, threads, seed, gpu }
    }

    /// Whether a peer in a process of its own has what the program needs: networks, or one product.
    fn takes(&self, peer: &str) -> bool {
        let trains = self.program().is_ok_and(|p| matches!(p.check, Check::Losses { .. }));
        [LOOP, CUSPARSE_BEST].contains(&peer) || NETWORKS.contains(&peer) == trains
    }

    fn program(&self) -> Result<&'static Description> {
        let found = PROGRAMS.iter().find(|p| p.name == self.program);
        found.ok_or_else(|| Error::Argument {
            name: "program",
            found: self.program.clone(),
            expected: PROGRAMS.each_ref().map(|p| p.name).join(", "),
        })
    }
}

/// The programs of `suite` with their matrices that `args` asks for, and notes on what is missing.
///
/// # Errors
/// For a path that is missing and not optional, and a description that no generator has.
pub(crate) fn cases<'s>(
    args: &BenchArgs,
    suite: &'s Suite,
) -> Result<(Vec<(&'s Solve, Workload)>, Vec<String>)> {
    let (mut all, mut notes) = (Vec::new(), Vec::new());
    for solve in &suite.programs {
        let (workloads, missing) = listing::of(&solve.matrices, &[])?;
        notes.extend(missing.into_iter().filter(|note| !notes.contains(note)).collect::<Vec<_>>());
        all.extend(workloads.into_iter().map(|workload| (solve, workload)));
    }
    let mut count = 0..;
    all.retain(|_| args.part.is_none_or(|part| count.next().is_none_or(|k| part.holds(k))));
    all.retain(|(solve, workload)| args.only.matches(&solve.case(workload)));
    Ok((all, notes))
}

/// Engines of `peers` that are measured with a program, as records name them.
pub(crate) fn engines(solve: &Solve, peers: &[String]) -> Vec<String> {
    let own = peers.iter().filter(|peer| solve.takes(peer)).cloned();
    ["gustav:auto".to_owned()].into_iter().chain(own).collect()
}

/// Runs the programs of `suite` that `args` asks for and the file does not hold.
///
/// # Errors
/// For unknown programs and devices, a file that cannot be written, no memory.
pub(crate) fn run(args: &BenchArgs, suite: &Suite) -> Result<Outcome> {
    let (cases, notes) = cases(args, suite)?;
    cases.iter().try_for_each(|(solve, _)| solve.program().map(drop))?;
    let mut records = RecordFile::open(&args.record)?;
    let mut outcome = Outcome { notes, ..Outcome::default() };
    let gpu = suite.device.as_ref().map(|d| Started::new(d, &[])).transpose()?;
    let device: Device = suite.device.as_deref().unwrap_or("cpu").parse()?;
    let device = match args.threads {
        Some(count) => device.with_threads(count)?,
        None => device,
    };
    let folder = tempfile::tempdir().map_err(|source| Error::Io {
        path: std::env::temp_dir(),
        action: "make a folder in",
        source,
    })?;
    let threads = device.threads().count();
    let own = |peer: &&String| peer.as_str() == if device.is_cuda() { CUSPARSE_BEST } else { LOOP };
    let within: Vec<String> = suite.engines.peers.iter().filter(own).cloned().collect();
    let others: Vec<String> =
        suite.engines.peers.iter().filter(|peer| !own(peer)).cloned().collect();
    let launch = Launch::new(args, threads, folder.path());
    let (mut peers, missing) = Peers::start(&others, launch);
    outcome.notes.extend(missing);
    let end = args.end();
    for (solve, workload) in cases {
        let name = gpu.as_ref().map(|g| g.about.name.as_str());
        let asked = solve.asked(&workload, threads, args.seed, name);
        let engines = engines(solve, &[within.clone(), peers.process_names()].concat());
        if records.holds(&asked, &engines) {
            outcome.resumed += 1;
        } else if !end.is_due() {
            outcome.left += 1;
        } else {
            let gpu = gpu.as_ref().map(|g| g.about.clone());
            let done = measured(args, suite, (solve, &workload), &device, gpu, &within, &mut peers);
            match done {
                Ok(done) => {
                    outcome.count(&done);
                    records.append(&done)?;
                }
                Err(e) => {
                    outcome.notes.push(format!("{} of {}: {e}", solve.program, workload.name));
                    outcome.unread += 1;
                }
            }
        }
    }
    Ok(outcome)
}

/// The records of one program on one matrix.
fn measured(
    args: &BenchArgs,
    suite: &Suite,
    (solve, workload): (&Solve, &Workload),
    device: &Device,
    gpu: Option<gustav_report::Gpu>,
    within: &[String],
    peers: &mut Peers<'_>,
) -> Result<Vec<Record>> {
    let program = solve.program()?;
    let pattern = workload.load(args.seed)?.pattern().clone();
    let ones = vec![1.0f32; pattern.nnz()];
    let a = (program.prepare)(&Csr::from_pattern(&pattern, ones)?)?;
    let columns = program.columns(solve.columns, &a);
    let group = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64);
    let blank = Record {
        suite: suite.name.clone(),
        machine: crate::machine::describe(),
        gpu,
        threads: device.threads().count(),
        seed: args.seed,
        group,
        ..Record::blank(solve.case(workload)).on(&workload.kind, &a.view())
    };
    let engines = [None].into_iter().chain(within.iter().map(|peer| Some(peer.as_str())));
    let mut solvers: Vec<_> =
        engines.map(|peer| Solver::new(program, &a, columns, device, peer, false)).collect();
    if program.attends() {
        solvers.push(Solver::new(program, &a, columns, device, None, true));
    }
    let others = peers.running()?.filter(|process| solve.takes(process.name()));
    solvers.extend(others.map(|process| Solver::peer(program, &a, columns, device, process)));
    let samples = {
        let mut runners: Vec<&mut dyn Runner> =
            solvers.iter_mut().map(|s| s as &mut dyn Runner).collect();
        interleave(&mut runners, &suite.timing, false)
    };
    let reference = REFERENCES
        .iter()
        .find_map(|name| solvers.iter().find(|s| s.name() == *name).and_then(|s| s.result.clone()));
    // The rest of the program is the same for everybody, and its time is taken where passing operands
    // to another process disturbs no cache.
    let rest = samples.first().zip(solvers.first()).and_then(|(samples, solver)| {
        Some(samples.as_ref().ok()?.quantile(0.5)? - solver.product_ms(0.5)?)
    });
    let mut done = Vec::new();
    for (solver, samples) in solvers.iter_mut().zip(samples) {
        let samples = samples.and_then(|samples| solver.time_products().map(|()| samples));
        let mut record = solver.describe(&blank);
        match (samples, &solver.result) {
            (Ok(samples), Some(result)) => {
                let (found, most) = checked(program, &a, columns, result, reference.as_deref());
                record.max_error = found;
                record.error_bound = Some(most);
                record.rows_checked = a.nrows();
                if found.is_none_or(|found| found <= most) {
                    (record.rounds, record.repeats) = (samples.ms.len(), samples.repeats);
                    let time = |q: f64| match solver.is_apart() {
                        true => Some(rest? + solver.product_ms(q)?),
                        false => samples.quantile(q),
                    };
                    record.execute_ms = time(0.5);
                    record.lower_ms = time(0.25);
                    record.upper_ms = time(0.75);
                    record.product_ms = solver.product_ms(0.5);
                } else {
                    let why = format!("off by {:e}, more than {most:e}", found.unwrap_or(f64::NAN));
                    record.set_fault(Status::Wrong, why);
                }
            }
            (Err(e), _) => record.set_fault(Status::Failed, e),
            // An engine that was not ready has said why.
            (Ok(_), None) => {}
        }
        done.push(record);
    }
    compare(&mut done);
    Ok(done)
}

/// How far a result is off, and how far it may be; losses without others to compare with are not checked.
fn checked(
    program: &Description,
    a: &Csr<f32>,
    columns: usize,
    result: &[f32],
    reference: Option<&[f32]>,
) -> (Option<f64>, f64) {
    match program.check {
        Check::Residual { of, most } => (Some(of(a, columns, result)), most),
        Check::Losses { most, .. } => (reference.map(|losses| difference(result, losses)), most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustav_report::read_records;

    #[test]
    fn programs_are_measured_checked_and_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("p.jsonl");
        let matrices = [Source { generate: vec!["grid5:6x6".into()], ..Source::default() }];
        let solve = |program: &str| Solve {
            program: program.into(),
            matrices: matrices.to_vec(),
            columns: 4,
        };
        let mut suite = Suite {
            programs: PROGRAMS.iter().map(|p| solve(p.name)).collect(),
            ..Suite::find("programs").unwrap()
        };
        suite.engines.peers = vec![LOOP.into()];
        let args = BenchArgs { threads: Some(1), quiet: true, ..BenchArgs::new("x", &record) };
        let outcome = run(&args, &suite).unwrap();
        assert_eq!((outcome.measured, outcome.wrong, outcome.failed), (6, 0, 0));
        for r in read_records(&record).unwrap() {
            assert!(r.product_ms.is_some_and(|ms| ms > 0.0) && r.execute_ms.is_some(), "{r:?}");
            assert!(r.max_error <= r.error_bound && r.error_bound.is_some(), "{r:?}");
            assert_eq!(r.best_peer.is_some(), r.engine == "gustav");
        }
        assert_eq!(run(&args, &suite).unwrap().resumed, 6);
        let unknown = Suite { programs: vec![solve("qr")], ..suite };
        assert!(run(&args, &unknown).unwrap_err().to_string().contains("gcn-training"));
    }

    #[test]
    fn losses_that_are_off_are_wrong() {
        let a = Csr::<f32>::new(1, 1, vec![0, 1], vec![0], vec![1.0]).unwrap();
        let training = PROGRAMS.iter().find(|p| p.name == "gat-training").unwrap();
        let off = |losses: &[f32]| {
            let (found, most) = checked(training, &a, 1, losses, Some(&[2.0, 1.0]));
            found.unwrap() > most || found.unwrap().is_nan()
        };
        assert!(!off(&[2.0, 1.00001]));
        assert!(off(&[2.0, 1.001]) && off(&[f32::NAN, 1.0]));
    }
}
