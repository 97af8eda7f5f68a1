//! A whole run: matrices, cases, progress and the record file.

use gustav_core::{
    Csr, DType, Error, Operation, Result, Scalar, bf16, buffer::available_memory, f16,
};
use gustav_cpu::Threads;
use gustav_plan::Density;
use gustav_report::{Filter, Machine, Record, RecordFile, Status};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::End;
use crate::cold::Sweep;
use crate::cuda::{self, PROCESSES, Started};
use crate::engine::{Task, pool_rows};
use crate::listing;
use crate::mask::mask_of;
use crate::measure::{Setting, measure};
use crate::peers::{Launch, Peers};
use crate::schedule::{self, Typed};
use crate::value::Value;
use crate::workload::{Workload, products, random, with_fresh_values};
use crate::{Bandwidth, BenchArgs, Outcome, Suite, allocator, programs, study};

// Nonzeros times columns of gradients that the oracle compares in full.
const GRADIENTS: usize = 1 << 30;
// Bins of the picture of a matrix that its first record keeps.
const SPY: usize = 32;

/// Measures the cases of `args`, and appends a record per engine and case to its file.
///
/// Cases for which the file has records of every available engine are skipped, so that an
/// interrupted run resumes. On a terminal, a progress bar on standard error shows the time left,
/// unless `args.quiet`.
///
/// # Errors
/// For failures that stop the whole run: a suite or matrix that cannot be read, a record file that
/// cannot be written, no memory. A failure of an engine becomes a record, a missing peer a note.
pub fn run(args: &BenchArgs) -> Result<Outcome> {
    allocator::keep_freed_memory();
    let suite = schedule::suite(args)?;
    if !suite.programs.is_empty() {
        return programs::run(args, &suite);
    }
    if suite.study && suite.device.is_some() {
        return study::run(args, &suite);
    }
    let threads = Threads::new(args.threads(), true)?;
    let folder = tempfile::tempdir().map_err(|source| Error::Io {
        path: std::env::temp_dir(),
        action: "make a folder in",
        source,
    })?;
    let launch = Launch::new(args, threads.count(), folder.path());
    let (workloads, mut notes) = listing::list(&suite)?;
    let mut records = RecordFile::open(&args.record)?;
    let mut asked = suite.peers();
    if suite.device.is_none() {
        let elsewhere = asked.extract_if(.., |peer| cuda::is_peer(peer));
        notes.extend(elsewhere.map(|peer| {
            format!("peer {peer} does not take part: it multiplies on a GPU (--device cuda:0)")
        }));
    }
    let program = |peer: &String| args.programs.iter().any(|program| program.name == *peer);
    if suite.device.is_some() && args.peers.is_none() {
        let unnamed = asked.extract_if(.., |peer| !cuda::is_peer(peer) && !program(peer));
        notes.extend(unnamed.map(|peer| {
            format!("peer {peer} does not take part: --peer-program {peer}=FILE names its program")
        }));
    }
    let (within, without): (Vec<_>, Vec<_>) = asked.into_iter().partition(|peer| {
        let process = PROCESSES.contains(&peer.as_str()) || program(peer);
        suite.device.is_some() && !process
    });
    let mut gpu = suite.device.as_ref().map(|d| Started::new(d, &within)).transpose()?;
    gpu.iter_mut().for_each(|gpu| gpu.time_plans = suite.timing.plans);
    notes.extend(gpu.iter().flat_map(|gpu| gpu.idle(&suite.products.operations)));
    let (peers, missing) = Peers::start(&without, launch);
    notes.extend(missing);

    let mut outcome = Outcome { notes, ..Outcome::default() };
    let mut plan = Vec::new();
    for (workload, mut cases) in schedule::cases(args, &suite, &workloads) {
        let all = cases.len();
        cases.retain(|c| {
            let there = gpu.iter().flat_map(|g| g.peers(c.operation)).map(str::to_owned);
            let name = gpu.as_ref().map(|g| g.about.name.as_str());
            let asked = c.asked(workload, threads.count(), args.seed, name);
            !records.holds(&asked, &c.engines(peers.names().into_iter().chain(there)))
        });
        outcome.resumed += all - cases.len();
        plan.push((workload, cases));
    }
    let total: usize = plan.iter().map(|(_, cases)| cases.len()).sum();
    if total == 0 {
        if outcome.resumed == 0 && !workloads.is_empty() {
            return Err(nothing(args));
        }
        return Ok(outcome);
    }
    let bandwidth = match &gpu {
        Some(gpu) => gpu.bandwidth(),
        None => Bandwidth::measure(&threads)?,
    };
    let machine = crate::machine::describe();
    // Without memory for it, there are only hot times.
    let sweep = match &gpu {
        Some(_) => None,
        None => Sweep::new(&threads, machine.llc_bytes).ok(),
    };
    let bar = progress(total as u64, args.quiet);
    let mut session = Session {
        args,
        suite: &suite,
        peers,
        gpu: gpu.as_ref(),
        threads: &threads,
        bandwidth: &bandwidth,
        sweep: sweep.as_ref(),
        machine,
        end: args.end(),
    };
    for (workload, cases) in plan.into_iter().filter(|(_, cases)| !cases.is_empty()) {
        if !session.end.is_due() {
            break;
        }
        bar.set_message(workload.name.clone());
        let pattern = match workload.load(args.seed) {
            Ok(pattern) => pattern,
            Err(e) => {
                outcome.notes.push(format!("{}: {e}", workload.name));
                outcome.unread += 1;
                bar.inc(cases.len() as u64);
                continue;
            }
        };
        let mut spy = Density::new(&pattern.pattern().view(), SPY, 1).digits();
        for dtype in [DType::F32, DType::F64, DType::F16, DType::Bf16] {
            let own: Vec<_> = cases.iter().filter(|c| c.dtype == dtype).collect();
            let mut keep = |mut done: Vec<Record>| {
                if let Some(first) = done.first_mut() {
                    first.spy = std::mem::take(&mut spy);
                }
                outcome.count(&done);
                bar.inc(1);
                records.append(&done)
            };
            match dtype {
                DType::F32 => session.matrix::<f32>(workload, &pattern, &own, &mut keep)?,
                DType::F16 => session.matrix::<f16>(workload, &pattern, &own, &mut keep)?,
                DType::Bf16 => session.matrix::<bf16>(workload, &pattern, &own, &mut keep)?,
                _ => session.matrix::<f64>(workload, &pattern, &own, &mut keep)?,
            }
        }
    }
    outcome.left = total.saturating_sub(bar.position() as usize);
    bar.finish_and_clear();
    Ok(outcome)
}

/// The error for a run without cases.
fn nothing(args: &BenchArgs) -> Error {
    let (name, expected) = match args.only == Filter::default() {
        true => ("suite", "matrices and products: spmm needs columns, spgemm sorted"),
        false => ("only", "operations, types and matrices of the suite (--dry-run counts them)"),
    };
    Error::Argument { name, found: "no case".into(), expected: expected.into() }
}

fn progress(total: u64, quiet: bool) -> ProgressBar {
    // Indicatif draws nothing if standard error is not a terminal.
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}, {eta} left");
    ProgressBar::with_draw_target(Some(total), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

struct Session<'a> {
    args: &'a BenchArgs,
    suite: &'a Suite,
    peers: Peers<'a>,
    gpu: Option<&'a Started>,
    threads: &'a Threads,
    bandwidth: &'a Bandwidth,
    /// What empties the caches of a CPU.
    sweep: Option<&'a Sweep<'a>>,
    machine: Machine,
    end: End,
}

impl Session<'_> {
    /// Measures the cases of one matrix and one type.
    fn matrix<T: Value>(
        &mut self,
        workload: &Workload,
        pattern: &Csr<f64>,
        cases: &[&Typed],
        keep: &mut dyn FnMut(Vec<Record>) -> Result<()>,
    ) -> Result<()> {
        if cases.is_empty() {
            return Ok(());
        }
        let seed = self.args.seed;
        let a = with_fresh_values::<T>(pattern, seed.wrapping_mul(3) + 1)?;
        let square = a.nrows() == a.ncols();
        let sparse = cases.iter().any(|c| c.operation == Operation::Spgemm);
        let b = (sparse && !square).then(|| a.view().transpose()).transpose()?;
        let factor = b.as_ref().unwrap_or(&a);
        let products = if sparse { products(&a, factor) } else { 0 };
        let columns = cases.iter().map(|c| c.case.columns * c.case.heads).max().unwrap_or(0);
        let columns = columns.min(self.columns_that_fit(&a));
        let rows = |c: &&Typed| pool_rows(c.operation, c.gradients, a.nrows(), a.ncols());
        let lines = cases.iter().map(rows).max().unwrap_or(0);
        let pool = random::<T>(lines * columns, seed.wrapping_mul(5) + 2)?;
        self.peers.give(a.view(), b.as_ref().map(|b| b.view()), &pool)?;
        for typed in cases {
            if !self.end.is_due() {
                break;
            }
            let blank = self.blank(workload, &a, typed);
            let case = &typed.case;
            let spgemm = typed.operation == Operation::Spgemm;
            let too_large = if spgemm && products > self.suite.products.max_products {
                Some(format!("{products} intermediate products, more than the suite asks for"))
            } else if case.columns * case.heads > columns {
                Some(format!(
                    "dense operands of {} columns do not fit in memory",
                    case.columns * case.heads
                ))
            } else if typed.gradients && a.nnz() * case.columns * case.heads > GRADIENTS {
                Some("more multiplications than the oracle has time for".into())
            } else {
                None
            };
            let mask = typed.mask.filter(|_| too_large.is_none());
            let mask = mask
                .map(|mask| with_fresh_values::<T>(&mask_of(mask, pattern, self.threads)?, seed));
            let (mask, unfit) = match mask.transpose() {
                Ok(mask) => (mask, None),
                Err(e) => (None, Some(e.to_string())),
            };
            if let Some(reason) = too_large.or(unfit) {
                let skip = |engine: String, algorithm: &str| Record {
                    engine,
                    algorithm: algorithm.into(),
                    status: Status::Skipped,
                    message: Some(reason.clone()),
                    ..blank.clone()
                };
                let ours = typed.ours.iter().map(|a| skip("gustav".into(), a));
                let mut peers = self.peers.names();
                let there = self.gpu.iter().flat_map(|gpu| gpu.peers(typed.operation));
                peers.extend(there.map(str::to_owned));
                peers.retain(|peer| typed.peers.contains(peer));
                keep(ours.chain(peers.into_iter().map(|p| skip(p, "default"))).collect())?;
                continue;
            }
            let task = Task {
                operation: typed.operation,
                a: a.view(),
                b: spgemm.then(|| factor.view()),
                columns: case.columns,
                heads: case.heads,
                gradients: typed.gradients,
                sorted: case.sorted,
                mask: mask.as_ref().map(|mask| mask.view()),
                layouts: typed.layouts,
                pool: &pool,
            };
            let dense = a.nnz() * case.columns * case.heads;
            let work = if spgemm { products } else { dense as u64 };
            let products = spgemm.then_some(products);
            let nnz_mask = mask.as_ref().map(|mask| mask.nnz() as u64);
            let blank = Record { products, nnz_mask, ..blank };
            let setting = Setting {
                ours: &typed.ours,
                peers: &typed.peers,
                timing: self.suite.timing,
                threads: self.threads,
                gpu: self.gpu,
                bandwidth: self.bandwidth,
                sweep: self.sweep,
            };
            keep(measure(&setting, &mut self.peers, task, b.is_none(), work, &blank))?;
        }
        Ok(())
    }

    /// The most columns for which every engine's B and C fit in three quarters of the free memory.
    fn columns_that_fit<T: Scalar>(&self, a: &Csr<T>) -> usize {
        let engines = self.suite.engines.ours.len() + self.peers.processes() + 1;
        let column = (a.nrows() + a.ncols()).max(1) * size_of::<T>() * engines;
        available_memory().map_or(usize::MAX, |free| free as usize / 4 * 3 / column)
    }

    /// The record of a case before measurement.
    fn blank<T: Scalar>(&self, workload: &Workload, a: &Csr<T>, typed: &Typed) -> Record {
        Record {
            suite: self.suite.name.clone(),
            machine: self.machine.clone(),
            gpu: self.gpu.map(|g| g.about.clone()),
            threads: self.threads.count(),
            seed: self.args.seed,
            ..Record::blank(typed.case.clone()).on(&workload.kind, &a.view())
        }
    }
}
