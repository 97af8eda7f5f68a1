//! One case: every engine is prepared, checked and timed in rounds.

use std::time::{SystemTime, UNIX_EPOCH};

use gustav_core::buffer::available_memory;
use gustav_core::{Error, Operation, Result};
use gustav_cpu::Threads;
use gustav_report::{CUBLAS, Record, Status, UNFUSED, WHOLE};

use crate::Bandwidth;
use crate::check::{check, note, rows_to_check};
use crate::cold::{self, Cold, Copies, Sweep};
use crate::cuda::{self, Operands, PROCESSES, Started, TRYING, gather_ms};
use crate::engine::{Engine, Outcome, Prepared, Task};
use crate::peers::Peers;
use crate::timing::{Runner, Samples, Timing, interleave};
use crate::value::Value;

// Work up to which every row of Gustav's result, of a peer's, and of one configuration among many is checked.
const OURS_IN_FULL: u64 = 60_000_000;
const PEERS_IN_FULL: u64 = 4_000_000;
const CONFIGURATION_IN_FULL: u64 = 500_000;

/// The parts of a run that all cases share.
pub(crate) struct Setting<'a> {
    pub ours: &'a [String],
    /// Requested peers, available or not.
    pub peers: &'a [String],
    pub timing: Timing,
    pub threads: &'a Threads,
    pub gpu: Option<&'a Started>,
    pub bandwidth: &'a Bandwidth,
    /// Flushes the caches of a CPU.
    pub sweep: Option<&'a Sweep<'a>>,
}

impl Setting<'_> {
    fn asks_for(&self, peer: &str) -> bool {
        self.peers.iter().any(|p| p == peer)
    }
}

/// One engine and its measurements.
struct Entry<'a, T: Value> {
    record: Record,
    engine: Option<Box<dyn Engine<T> + 'a>>,
    samples: Option<Samples>,
    /// Samples with cold caches, if they were taken.
    cold: Option<Samples>,
}

/// Measures `task`, of which `blank` is the record without results.
pub(crate) fn measure<T: Value>(
    setting: &Setting<'_>,
    peers: &mut Peers<'_>,
    task: Task<'_, T>,
    b_is_a: bool,
    work: u64,
    blank: &Record,
) -> Vec<Record> {
    let group = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64);
    let blank = Record { group, ..blank.clone() };
    let engines = setting.ours.len() + peers.names().len();
    // Peers in processes of their own time single executions.
    let single = PROCESSES.iter().any(|peer| setting.asks_for(peer))
        || setting.ours.iter().any(|name| TRYING.contains(&name.as_str()));
    let rotate = (setting.timing.rotate && !single).then(|| engines + setting.peers.len());
    let resident = match setting.gpu.map(|gpu| Operands::new(gpu, &task, rotate)).transpose() {
        Ok(resident) => resident,
        Err(e) => return nobody(setting, task.operation, &blank, &e),
    };
    let transfer_ms = resident.as_ref().map(Operands::transfer_ms);
    let blank = Record { transfer_ms, sets: resident.as_ref().and_then(Operands::sets), ..blank };
    let there = setting.gpu.zip(resident.as_ref());
    let result = result_bytes(&task);
    // The factor 2: some engines have 64-bit indices, and each may have a copy or a workspace of
    // its product.
    let fits = |free: u64| 2 * engines as u64 * result <= free;
    let one_result = there.is_none() && !available_memory().is_none_or(fits);
    let sweep = setting.sweep.filter(|s| !one_result && s.is_for(&task, result, engines));
    // Without memory for copies, there are only hot times.
    let copies = sweep.and_then(|_| Copies::new(&task, b_is_a).ok());
    let copy = copies.as_ref().map(|copies| copies.task(&task));
    let mut entries = Vec::new();
    for algorithm in setting.ours {
        let engine = match there {
            Some((gpu, on)) => on.ours(gpu, task, algorithm),
            None => T::on_cpu(task, copy, algorithm, setting.threads),
        };
        entries.push(Entry::new(&blank, "gustav", algorithm, engine));
    }
    if let Some((gpu, on)) = there {
        let peers = gpu.peers(task.operation).filter(|_| !task.gradients);
        for name in peers.filter(|name| setting.asks_for(name)) {
            let engine = on.vendor(gpu, task, name);
            entries.push(Entry::new(&blank, name, "default", engine));
        }
    }
    for (name, engine) in peers.prepare(setting.peers, task, copy, b_is_a, one_result) {
        entries.push(Entry::new(&blank, &name, "default", engine));
    }
    // Gradients are sums over rows and over columns: those of some rows alone are no result.
    let rows = |full| if task.gradients { None } else { rows_to_check(task.a, work, full) };
    let (full, part) = (rows(OURS_IN_FULL), rows(PEERS_IN_FULL));
    let few = rows(CONFIGURATION_IN_FULL);
    for entry in &mut entries {
        let rows = match entry.record.engine == "gustav" {
            true if entry.record.algorithm.contains('#') => &few,
            true => &full,
            false => &part,
        };
        // One engine computes all of C, the others only the mask.
        let mask = task.mask.filter(|_| entry.record.algorithm != WHOLE);
        entry.verify(&Task { mask, ..task }, rows.as_deref(), one_result);
        entry.verify_succession();
    }
    time(&mut entries, &setting.timing, one_result);
    if let Some(sweep) = sweep {
        time_cold(&mut entries, &setting.timing, sweep);
    }
    let miss_ms = setting.gpu.and_then(|gpu| cuda::miss_ms(&task, &gpu.about));
    let finish = |e: Entry<'_, T>| e.finish(&task, setting, miss_ms);
    let mut records: Vec<_> = entries.into_iter().map(finish).collect();
    compare(&mut records);
    records
}

/// Records of a case whose operands do not fit in memory.
fn nobody(
    setting: &Setting<'_>,
    operation: Operation,
    blank: &Record,
    error: &Error,
) -> Vec<Record> {
    let ours = setting.ours.iter().map(|a| ("gustav", a.as_str()));
    let peers = setting.gpu.into_iter().flat_map(|g| g.peers(operation));
    let peers = peers.filter(|name| setting.asks_for(name)).map(|name| (name, "default"));
    let failed = |(engine, algorithm): (&str, &str)| {
        let (engine, algorithm) = (engine.into(), algorithm.into());
        let mut record = Record { engine, algorithm, ..blank.clone() };
        record.set_fault(Status::Failed, error);
        record
    };
    ours.chain(peers).map(failed).collect()
}

impl<'a, T: Value> Entry<'a, T> {
    fn new(
        blank: &Record,
        name: &str,
        algorithm: &str,
        engine: Result<Box<dyn Engine<T> + 'a>>,
    ) -> Self {
        let mut record =
            Record { engine: name.into(), algorithm: algorithm.into(), ..blank.clone() };
        let engine = match engine {
            Ok(engine) => {
                let Prepared { plan_ms, chosen, reason, products, versions, features_ms } =
                    engine.prepared().clone();
                record.products = record.products.or(products);
                record.versions = versions;
                (record.plan_ms, record.chosen, record.reason) = (plan_ms, chosen, reason);
                record.features_ms = features_ms;
                Some(engine)
            }
            // An unsupported product is not a failure, nor is a dense A that does not fit for
            // cuBLAS.
            Err(e)
                if matches!(e, Error::Unsupported { .. })
                    || name == CUBLAS && matches!(e, Error::OutOfMemory { .. }) =>
            {
                record.set_fault(Status::Skipped, e);
                None
            }
            Err(e) => {
                record.set_fault(Status::Failed, e);
                None
            }
        };
        Entry { record, engine, samples: None, cold: None }
    }

    /// Checks the result; an engine that is wrong or fails is left out of the rounds.
    fn verify(&mut self, task: &Task<'_, T>, rows: Option<&[usize]>, one_result: bool) {
        let Some(engine) = &mut self.engine else { return };
        let record = &mut self.record;
        let composed = record.engine != "gustav" || record.algorithm == UNFUSED;
        let checked = engine.result(rows).and_then(|outcome| {
            if let (Outcome::Sparse(c), None) = (&outcome, rows) {
                record.nnz_c = Some(c.nnz() as u64);
            }
            let verdict = check(task, rows, &outcome, composed)?;
            match engine.last_result(rows)? {
                Some(last) if verdict.ok => check(task, rows, &last, composed),
                _ => Ok(verdict),
            }
        });
        let yielded = if one_result { engine.yield_memory() } else { Ok(()) };
        match checked.and_then(|verdict| yielded.map(|()| verdict)) {
            Ok(verdict) => {
                note(record, &verdict, rows.map_or(task.a.nrows(), <[usize]>::len));
                if !verdict.ok {
                    self.engine = None;
                }
            }
            Err(e) => {
                record.set_fault(Status::Failed, e);
                self.engine = None;
            }
        }
    }

    /// Checks that a product waits for the one before it. A peer that does not is timed with an empty launch between
    /// products; an engine of ours is wrong, and so is a peer that does not wait for that launch.
    fn verify_succession(&mut self) {
        let Some(engine) = &mut self.engine else { return };
        let ours = self.record.is_ours();
        let waits = engine.waits().and_then(|waits| match waits || ours {
            true => Ok(waits),
            false => {
                engine.separate();
                engine.waits()
            }
        });
        match waits {
            Ok(true) => return,
            Ok(false) => {
                let between = if ours { "" } else { ", nor for an empty launch between them" };
                let why = format!(
                    "a product does not wait for the one before it, which writes its B{between}"
                );
                self.record.set_fault(Status::Wrong, why);
            }
            // Memory for the check is no memory that the product needs.
            Err(Error::OutOfMemory { .. }) => return,
            Err(e) => self.record.set_fault(Status::Failed, e),
        }
        self.engine = None;
    }

    fn finish(mut self, task: &Task<'_, T>, setting: &Setting<'_>, miss_ms: Option<f64>) -> Record {
        let record = &mut self.record;
        if let Some(samples) = &self.samples {
            let timed = self.cold.as_ref().unwrap_or(samples);
            record.set_times(&timed.ms, timed.repeats);
            let limit = match &self.cold {
                Some(_) => Bandwidth::cold_floor_ms,
                None => Bandwidth::floor_ms,
            };
            record.floor_ms = floor_bytes(task).map(|bytes| limit(setting.bandwidth, bytes));
            let row = task.gathers() * task.width() * size_of::<T>();
            let gather = |gpu: &Started| gather_ms(task.a.nnz(), row, gpu.about.l2_bandwidth);
            // Not for a sparse B, whose rows differ in length.
            record.gather_ms = setting.gpu.filter(|_| task.b.is_none()).map(gather);
            record.miss_ms = miss_ms;
        }
        if let Some(engine) = &mut self.engine {
            // Only some algorithms can reuse symbolic work; an error means no such time.
            record.reuse_ms = engine.reuse_ms().unwrap_or(None);
            record.hot_ms = match (&self.cold, &self.samples) {
                (Some(_), Some(hot)) => hot.quantile(0.5),
                _ if setting.timing.hot => engine.hot_ms().unwrap_or(None),
                _ => None,
            };
            record.single_ms = engine.single_ms().unwrap_or(None);
            let repeats = self.samples.as_ref().map(|samples| samples.repeats);
            let overlapping = repeats.map(|repeats| engine.overlapping_ms(repeats));
            record.overlapping_ms = overlapping.and_then(|ms| ms.unwrap_or(None));
            record.convert_ms = engine.convert_ms().unwrap_or(None);
            let memory = engine.memory().unwrap_or(None);
            (record.peak_memory, record.memory_bar) = (memory.map(|m| m[0]), memory.map(|m| m[1]));
        }
        self.record
    }
}

/// Stores the samples of the rounds in their entries, by `set`; engines that failed get none.
fn settle<T: Value>(
    running: Vec<&mut Entry<'_, T>>,
    samples: Vec<Result<Samples>>,
    set: fn(&mut Entry<'_, T>, Option<Samples>),
) {
    for (entry, samples) in running.into_iter().zip(samples) {
        if let Err(e) = &samples {
            entry.record.set_fault(Status::Failed, e);
            (entry.engine, entry.samples) = (None, None);
        }
        set(entry, samples.ok());
    }
}

/// The same with cold caches, if every engine has a copy of the operands: times of one case must be
/// comparable.
fn time_cold<T: Value>(entries: &mut [Entry<'_, T>], hot: &Timing, sweep: &Sweep<'_>) {
    let mut running: Vec<_> = entries.iter_mut().filter(|e| e.engine.is_some()).collect();
    if !running.iter().all(|e| e.engine.as_ref().is_some_and(|engine| engine.has_copy())) {
        return;
    }
    let samples = {
        let engines = running.iter_mut().filter_map(|e| e.engine.as_mut());
        let mut cold: Vec<_> =
            engines.map(|engine| Cold { engine: &mut **engine, sweep }).collect();
        let mut runners: Vec<&mut dyn Runner> =
            cold.iter_mut().map(|c| c as &mut dyn Runner).collect();
        interleave(&mut runners, &cold::timing(hot), false)
    };
    settle(running, samples, |entry, samples| entry.cold = samples);
}

fn time<T: Value>(entries: &mut [Entry<'_, T>], timing: &Timing, one_result: bool) {
    let mut running: Vec<_> = entries.iter_mut().filter(|e| e.engine.is_some()).collect();
    let samples = {
        let engines = running.iter_mut().filter_map(|e| e.engine.as_mut());
        let mut runners: Vec<&mut dyn Runner> =
            engines.map(|e| &mut **e as &mut dyn Runner).collect();
        interleave(&mut runners, timing, one_result)
    };
    settle(running, samples, |entry, samples| entry.samples = samples);
}

/// Compares every record with the fastest correct peer.
pub(crate) fn compare(records: &mut [Record]) {
    let right = records.iter().filter(|r| r.engine != "gustav" && r.status == Status::Ok);
    let times = right.filter_map(|r| Some((r.execute_ms?, r.engine.clone())));
    let Some((best, name)) = times.min_by(|a, b| a.0.total_cmp(&b.0)) else { return };
    for record in records.iter_mut().filter(|r| r.engine == "gustav") {
        record.best_peer = Some(name.clone());
        record.ratio = record.execute_ms.map(|ms| best / ms);
        let saved = record.execute_ms.map(|ms| best - ms).filter(|saved| *saved > 0.0);
        // The time of an SpGEMM includes its plan.
        let plan = record.plan_ms.filter(|_| record.case.operation != Operation::Spgemm.name());
        record.break_even_calls = saved.zip(plan).map(|(saved, plan)| plan / saved);
    }
}

/// An upper bound for the bytes of a sparse product; 0 for a dense one, whose size was checked
/// before.
fn result_bytes<T: Value>(task: &Task<'_, T>) -> u64 {
    let Some(b) = task.b else { return 0 };
    let row = |r| task.a.row(r).0.iter().map(|k| b.row_len(*k as usize)).sum::<usize>();
    let entries: usize = (0..task.a.nrows()).map(|r| row(r).min(b.ncols())).sum();
    entries as u64 * (8 + size_of::<T>()) as u64
}

/// Bytes of A, B and C, each once, or of the operands and results of gradients; `None` for an SpGEMM, whose B is
/// read many times over.
fn floor_bytes<T: Value>(task: &Task<'_, T>) -> Option<f64> {
    if task.b.is_some() {
        return None;
    }
    let (m, n, nnz) = (task.a.nrows(), task.a.ncols(), task.a.nnz());
    let (value, row) = (size_of::<T>(), task.width() * size_of::<T>());
    let pattern = nnz * 4 + m * 4;
    let bytes = match (task.operation, task.gradients) {
        // Q and O; K and V.
        (Operation::Attention, false) => pattern + 2 * (m + n) * row,
        // Q, O and their gradients, K and V and theirs; lse; the pattern and its transpose.
        (Operation::Attention, true) => {
            2 * pattern + 4 * (m + n) * row + m * task.heads * size_of::<T::Accum>()
        }
        // The gradient of C, B and its own; A's values and theirs.
        (_, true) => pattern + 2 * nnz * value + (m + 2 * n) * row,
        (_, false) => pattern + nnz * value + (m + n) * row,
    };
    Some(bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine whose products wait for one another, or only for an empty launch, or for neither.
    #[derive(Default)]
    struct Fake {
        waits: bool,
        waits_for_launches: bool,
        separated: bool,
        prepared: Prepared,
    }

    impl Runner for Fake {
        fn run(&mut self, _: usize, repeats: usize) -> Result<Vec<f64>> {
            Ok(vec![2.0; repeats])
        }
    }

    impl Engine<f32> for Fake {
        fn prepared(&self) -> &Prepared {
            &self.prepared
        }

        fn result(&mut self, _: Option<&[usize]>) -> Result<Outcome<f32>> {
            Ok(Outcome::Dense(Vec::new()))
        }

        fn waits(&mut self) -> Result<bool> {
            Ok(self.waits || self.separated && self.waits_for_launches)
        }

        fn separate(&mut self) {
            self.separated = true;
        }

        fn overlapping_ms(&mut self, repeats: usize) -> Result<Option<f64>> {
            Ok(self.separated.then_some(repeats as f64))
        }
    }

    #[test]
    fn only_a_peer_may_have_launches_between_its_products() {
        let checked = |name: &str, fake: Fake| {
            let mut entry =
                Entry::<f32>::new(&Record::default(), name, "default", Ok(Box::new(fake)));
            entry.verify_succession();
            let ms = entry.engine.map(|mut engine| engine.overlapping_ms(3).expect("a time"));
            (entry.record.status, entry.record.message.is_some(), ms)
        };
        let waits = || Fake { waits: true, ..Fake::default() };
        let overtakes = || Fake { waits_for_launches: true, ..Fake::default() };
        assert_eq!(checked("gustav", waits()), (Status::Ok, false, Some(None)));
        assert_eq!(checked("gustav", overtakes()), (Status::Wrong, true, None));
        assert_eq!(checked("cusparse-alg3", waits()), (Status::Ok, false, Some(None)));
        assert_eq!(checked("cusparse-alg3", overtakes()), (Status::Ok, false, Some(Some(3.0))));
        assert_eq!(checked("cusparse-alg3", Fake::default()), (Status::Wrong, true, None));
    }
}
