//! The study of Chen, Chen, Shih, Lee ("Accelerating Sparse Matrix Multiplication", 2025): its five
//! implementations and variants on its matrices, as records of the suite `paper-b`.
//!
//! Per matrix: `dense-naive`, its variant and every configuration of `shared-row` with a dense C on the GPU;
//! `shared-row+csr` with C in CSR form, allocation included; `shared-row+transfers`, which starts and ends in host
//! memory; `dense-naive` on a thread of the CPU; and for 4, 8, 16 and 32 threads, as far as there are cores,
//! `pipeline` and `convert-then-multiply` from dense matrices on the host, `hash-rows` and `gustavson`. Of matrices from
//! 16,000 rows on, which the paper cuts into tiles: `tiled`, for several sizes of memory, beside the whole product.
//! `--ours dense-naive+cpu` measures that alone: 4096 rows take minutes, and several matrices can run at a time, each
//! on a core of its own.

mod device;
mod host;
mod tiles;

use std::time::{SystemTime, UNIX_EPOCH};

use gustav_core::{Csr, CsrView, DType, Error, Operation, Result, Scalar};
use gustav_cpu::Threads;
use gustav_report::{Case, Machine, Record, RecordFile, Status};
use gustav_testkit::oracle;

use crate::affinity::Pinned;
use crate::check::{note, take_rows};
use crate::cuda::Started;
use crate::engine::{our_version, timed};
use crate::listing;
use crate::schedule::{self, Typed};
use crate::value::Value;
use crate::workload::{products, with_fresh_values};
use crate::{BenchArgs, Outcome, Suite};

/// Threads of the paper's tables.
const THREADS: [usize; 4] = [4, 8, 16, 32];

// Rows of A from which the paper cuts products into tiles (§7.2).
const TILED: usize = 16_000;

// Rows of C that are compared with the oracle.
const ROWS: usize = 24;

/// Whether `ours` is `dense-naive` on the CPU alone, a name of records that no algorithm has.
pub(crate) fn is_dense_alone(ours: &[String]) -> bool {
    ours == [host::DENSE]
}

/// Measures the matrices of `suite` that `args` selects and the file lacks, on the GPU of the
/// suite.
///
/// # Errors
/// For failures that stop the whole run: a matrix that cannot be generated, no GPU, a file that
/// cannot be written. A failure of an implementation becomes a record.
pub(crate) fn run(args: &BenchArgs, suite: &Suite) -> Result<Outcome> {
    let gpu = Started::new(suite.device.as_deref().unwrap_or("cuda:0"), &[])?;
    let mut file = RecordFile::open(&args.record)?;
    let machine = crate::machine::describe();
    let threads = THREADS.into_iter().filter(|t| *t <= machine.cores);
    let threads = threads.map(|t| Threads::new(t, true)).collect::<Result<Vec<_>>>()?;
    let dense_alone = args.ours.as_deref().is_some_and(is_dense_alone);
    let ours = args.ours.clone().filter(|_| !dense_alone);
    let args = &BenchArgs { ours, ..args.clone() };
    let (machine, threads) = (&machine, &threads[..]);
    let study = Study { suite, gpu: &gpu, machine, threads, seed: args.seed, dense_alone };
    let (mut outcome, end) = (Outcome::default(), args.end());
    for (workload, cases) in schedule::cases(args, suite, &listing::list(suite)?.0) {
        // The last of the measurements on the GPU alone, to tell whether a matrix is done.
        let last = if dense_alone { [host::DENSE; 2] } else { [device::LAST, tiles::LAST] };
        let last = last.map(|name| [format!("gustav:{name}")]);
        let held = |c: &Typed| {
            let on_gpu = (!dense_alone).then_some(gpu.about.name.as_str());
            let asked = c.asked(workload, 0, args.seed, on_gpu);
            last.iter().any(|last| file.holds(&asked, last))
        };
        let (done, left): (Vec<_>, Vec<_>) = cases.into_iter().partition(held);
        outcome.resumed += done.len();
        if left.is_empty() {
            continue;
        }
        if !end.is_due() {
            outcome.left += left.len();
            continue;
        }
        let pattern = workload.load(args.seed)?;
        for case in left {
            let records = match case.dtype {
                DType::F64 => {
                    study.matrix(&workload.name, &with_fresh_values::<f64>(&pattern, 3)?)?
                }
                _ => study.matrix(&workload.name, &with_fresh_values::<f32>(&pattern, 3)?)?,
            };
            outcome.count(&records);
            file.append(&records)?;
        }
    }
    Ok(outcome)
}

/// The state for all matrices.
struct Study<'a> {
    suite: &'a Suite,
    gpu: &'a Started,
    machine: &'a Machine,
    threads: &'a [Threads],
    seed: u64,
    /// Whether `dense-naive` on the CPU alone is measured.
    dense_alone: bool,
}

impl Study<'_> {
    /// Every implementation on A·A.
    fn matrix<T: Value>(&self, name: &str, a: &Csr<T>) -> Result<Vec<Record>> {
        let case = Case::new(name, Operation::Spgemm, 0, T::DTYPE).sorted(true);
        let group = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
        let blank = Record {
            suite: self.suite.name.clone(),
            products: Some(products(a, a)),
            engine: "gustav".into(),
            machine: self.machine.clone(),
            gpu: Some(self.gpu.about.clone()),
            group: group as u64,
            seed: self.seed,
            versions: our_version(),
            ..Record::blank(case).on(name.split(':').next().unwrap_or_default(), &a.view())
        };
        let on_the_host = Record { gpu: None, ..blank.clone() };
        if self.dense_alone {
            return Ok(vec![host::dense_naive(a, &on_the_host)]);
        }
        if a.nrows() >= TILED {
            return tiles::all(self.gpu, a, &blank);
        }
        let mut records = device::dense_c(self.gpu, a, &blank)?;
        records.extend(device::csr_c(self.gpu, a, &blank)?);
        records.push(host::dense_naive(a, &on_the_host));
        let dense = a.view().to_dense(gustav_core::Layout::RowMajor)?;
        // The library's threads leave the first core to this thread, which works as one of them.
        let _pinned = Pinned::to_first_core();
        for threads in self.threads {
            let blank = Record { threads: threads.count(), ..blank.clone() };
            records.extend(device::from_dense(self.gpu, threads, a, &dense, &blank)?);
            let blank = Record { gpu: None, ..blank };
            records.extend(host::implementations(threads, a, &blank)?);
        }
        Ok(records)
    }
}

/// The record of the result of `measured`, also of a failure.
fn record(
    blank: &Record,
    algorithm: &str,
    measured: impl FnOnce(&mut Record) -> Result<()>,
) -> Record {
    let mut record = Record { algorithm: algorithm.into(), ..blank.clone() };
    if let Err(e) = measured(&mut record) {
        record.set_fault(Status::Failed, e);
        record.execute_ms = None;
    }
    record
}

/// Milliseconds of `work` by the host's clock.
fn clocked<R>(work: impl FnOnce() -> Result<R>) -> Result<(f64, R)> {
    let (ms, result) = timed(work);
    Ok((ms, result?))
}

/// A sample of the rows of A·A, from the first to the last.
fn sample(rows: usize) -> Vec<usize> {
    let count = ROWS.min(rows);
    (0..count).map(|k| k * (rows - 1) / count.saturating_sub(1).max(1)).collect()
}

/// Compares rows `rows` of A·A, `found`, with the oracle; a wrong result has no time.
fn verify<T: Scalar>(
    record: &mut Record,
    a: &Csr<T>,
    rows: &[usize],
    found: CsrView<'_, T>,
) -> Result<()> {
    let part = take_rows(a.view(), rows)?;
    let verdict = oracle::Spgemm::new(part.view(), a.view()).verify(found)?;
    note(record, &verdict, rows.len());
    Ok(())
}

/// Dense rows as a sparse matrix; `is_entry` selects the stored elements.
fn sparse_of<T: Scalar>(
    dense: &[T],
    columns: usize,
    is_entry: impl Fn(&T) -> bool,
) -> Result<Csr<T>> {
    let (mut offsets, mut indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for row in dense.chunks_exact(columns.max(1)) {
        for (j, value) in row.iter().enumerate().filter(|(_, v)| is_entry(v)) {
            indices.push(j as u32);
            values.push(*value);
        }
        let end = u32::try_from(indices.len()).map_err(|_| Error::Overflow {
            what: "row offset",
            need: indices.len() as u128,
            index_type: gustav_core::IndexType::U32,
        })?;
        offsets.push(end);
    }
    Csr::new(offsets.len() - 1, columns, offsets, indices, values)
}
