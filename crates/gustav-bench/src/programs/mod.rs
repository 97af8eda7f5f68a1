//! Whole programs around the product: time to solution, and the fraction of it that products take. The
//! programs themselves are an example of the library, `crates/gustav/examples/applications`.

#[path = "../../../gustav/examples/applications/conjugate_gradients.rs"]
mod conjugate_gradients;
#[path = "../../../gustav/examples/applications/engine.rs"]
mod engine;
#[path = "../../../gustav/examples/applications/graph_convolution.rs"]
mod graph_convolution;
#[path = "../../../gustav/examples/applications/program.rs"]
mod program;
#[path = "../../../gustav/examples/applications/shortest_paths.rs"]
mod shortest_paths;

mod child;
mod runner;

use std::time::{SystemTime, UNIX_EPOCH};

use gustav::Device;
use gustav_core::{Csr, DType, Error, Operation, Result};
use gustav_io::generate::Generator;
use gustav_report::{Case, MeasurementId, Record, RecordFile, Status};

use crate::cuda::Started;
use crate::measure::compare;
use crate::peers::{Launch, Peers};
use crate::timing::{Runner, interleave};
use crate::{BenchArgs, Outcome, Suite};

use engine::Rival;
use program::{PROGRAMS, Program};
use runner::Solver;

/// Solutions may differ by so much, relative to their largest element: they are iterated in f32.
const TOLERANCE: f64 = 1e-3;

/// A program on a matrix, as a suite names it.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Solve {
    /// The program: `cg`, `gcn` or `paths`.
    pub program: String,
    /// Description of the matrix, as `gustav generate` takes it; only its pattern is used.
    pub generate: String,
    /// Columns; no more than the matrix has.
    pub columns: usize,
}

impl Solve {
    /// The case, under which records are kept.
    pub(crate) fn case(&self) -> Case {
        Case {
            operation: self.program.clone(),
            ..Case::new(&self.generate, Operation::Spmm, self.columns, DType::F32)
        }
    }

    /// What a record file must hold for the program to be done.
    pub(crate) fn asked(&self, threads: usize, seed: u64, gpu: Option<&str>) -> MeasurementId {
        let gpu = gpu.map(str::to_owned);
        MeasurementId { case: self.case(), shape: None, threads, seed, gpu }
    }

    /// Engines that are measured on `device`, as records name them; `peers` are in processes of their
    /// own.
    pub(crate) fn engines(&self, device: Option<&str>, peers: Vec<String>) -> Vec<String> {
        let vendor = device.is_some() && self.program().is_ok_and(Program::vendor);
        let names = ["gustav:auto"].into_iter().chain(vendor.then_some("vendor")).chain(["loop"]);
        names.map(str::to_owned).chain(peers).collect()
    }

    fn program(&self) -> Result<&'static Program> {
        let found = PROGRAMS.iter().find(|p| p.name == self.program);
        found.ok_or_else(|| Error::Argument {
            name: "program",
            found: self.program.clone(),
            expected: PROGRAMS.map(|p| p.name).join(", "),
        })
    }
}

/// Runs the programs of `suite` that `args` asks for and the file does not hold.
///
/// # Errors
/// For unknown programs and devices, a file that cannot be written, no memory.
pub(crate) fn run(args: &BenchArgs, suite: &Suite) -> Result<Outcome> {
    let mut records = RecordFile::open(&args.record)?;
    let mut outcome = Outcome::default();
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
    let launch = Launch::new(args, threads, folder.path());
    let (mut peers, notes) = Peers::start(&suite.engines.peers, launch);
    outcome.notes = notes;
    let end = args.end();
    let own = suite.programs.iter().enumerate();
    let own = own.filter(|(k, _)| args.part.is_none_or(|part| part.holds(*k)));
    for (_, solve) in own.filter(|(_, solve)| args.only.matches(&solve.case())) {
        let name = gpu.as_ref().map(|g| g.about.name.as_str());
        let asked = solve.asked(threads, args.seed, name);
        let engines = solve.engines(suite.device.as_deref(), peers.process_names());
        if records.holds(&asked, &engines) {
            outcome.resumed += 1;
        } else if !end.is_due() {
            outcome.left += 1;
        } else {
            let gpu = gpu.as_ref().map(|g| g.about.clone());
            let done = measured(args, suite, solve, &device, gpu, &mut peers)?;
            outcome.count(&done);
            records.append(&done)?;
        }
    }
    Ok(outcome)
}

/// The records of one program on one matrix.
fn measured(
    args: &BenchArgs,
    suite: &Suite,
    solve: &Solve,
    device: &Device,
    gpu: Option<gustav_report::Gpu>,
    peers: &mut Peers<'_>,
) -> Result<Vec<Record>> {
    let program = solve.program()?;
    let pattern: Csr<f32> = solve.generate.parse::<Generator>()?.build(args.seed)?;
    let a = (program.prepare)(&pattern.canonicalize()?)?;
    let columns = solve.columns.min(a.ncols());
    let kind = solve.generate.split(':').next().unwrap_or_default();
    let group = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64);
    let blank = Record {
        suite: suite.name.clone(),
        machine: crate::machine::describe(),
        gpu,
        threads: device.threads().count(),
        seed: args.seed,
        group,
        ..Record::blank(solve.case()).on(kind, &a.view())
    };
    let vendor = (device.is_cuda() && program.vendor()).then_some(Some(Rival::Vendor));
    let rivals = [None].into_iter().chain(vendor).chain([Some(Rival::Loop)]);
    let mut solvers: Vec<_> =
        rivals.map(|rival| Solver::new(program, &a, columns, device, rival)).collect();
    let own = solvers.len();
    let others = peers.running()?.map(|process| Solver::peer(program, &a, columns, process));
    solvers.extend(others);
    let samples = {
        let mut runners: Vec<&mut dyn Runner> =
            solvers.iter_mut().map(|s| s as &mut dyn Runner).collect();
        interleave(&mut runners, &suite.timing, false)
    };
    // The plain loop is what the others are checked against.
    let reference = solvers[own - 1].solution.as_ref();
    // The rest of the program is the same for everybody, and its time is taken where passing operands
    // to another process disturbs no cache.
    let rest = solvers[..own].iter().zip(&samples).find_map(|(solver, samples)| {
        Some(samples.as_ref().ok()?.quantile(0.5)? - solver.product_ms(0.5)?)
    });
    let mut done = Vec::new();
    for (solver, samples) in solvers.iter().zip(samples) {
        let mut record = solver.describe(&blank);
        match (samples, &solver.solution) {
            (Ok(samples), Some(solution)) => {
                let difference = reference.map_or(0.0, |r| engine::difference(solution, r));
                record.max_error = Some(difference);
                record.error_bound = Some(TOLERANCE);
                record.rows_checked = a.nrows();
                if difference <= TOLERANCE {
                    (record.rounds, record.repeats) = (samples.ms.len(), samples.repeats);
                    let time = |q: f64| match solver.elsewhere {
                        true => Some(rest? + solver.product_ms(q)?),
                        false => samples.quantile(q),
                    };
                    record.execute_ms = time(0.5);
                    record.lower_ms = time(0.25);
                    record.upper_ms = time(0.75);
                    record.product_ms = solver.product_ms(0.5);
                } else {
                    let why = format!("differs from the plain loop by {difference:e}");
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

#[cfg(test)]
mod tests {
    use super::*;
    use gustav_report::read_records;

    #[test]
    fn programs_are_measured_checked_and_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("p.jsonl");
        let solve = |program: &str| Solve {
            program: program.into(),
            generate: "grid5:6x6".into(),
            columns: 4,
        };
        let suite = Suite {
            programs: PROGRAMS.iter().map(|p| solve(p.name)).collect(),
            ..Suite::find("programs").unwrap()
        };
        let args = BenchArgs { threads: Some(1), quiet: true, ..BenchArgs::new("x", &record) };
        let outcome = run(&args, &suite).unwrap();
        assert_eq!((outcome.measured, outcome.wrong, outcome.failed), (3, 0, 0));
        for r in read_records(&record).unwrap() {
            assert!(r.product_ms.is_some_and(|ms| ms > 0.0) && r.execute_ms.is_some(), "{r:?}");
            assert_eq!(r.best_peer.is_some(), r.engine == "gustav");
        }
        assert_eq!(run(&args, &suite).unwrap().resumed, 3);
        let unknown = Suite { programs: vec![solve("qr")], ..suite };
        assert!(run(&args, &unknown).unwrap_err().to_string().contains("gcn"));
    }
}
