//! The implementations on the GPU, or on both.

use gustav_core::{Csr, Dense, DenseView, Layout, Problem, Result, Scalar};
use gustav_cpu::Threads;
use gustav_cpu::dense::{CsrRowsMut, compress};
use gustav_cuda::spgemm::pipeline::{Block, Config, Pipeline};
use gustav_cuda::spgemm::{self, DensePlan, Options, SpgemmPlan};
use gustav_cuda::{Call, DeviceCsr, DeviceDense, PinnedBuffer, SpgemmCall};
use gustav_plan::{Algorithm, Chooser};
use gustav_report::{Record, Stage};

use super::{clocked, record, sample, sparse_of, verify};
use crate::cuda::Started;
use crate::value::Value;

/// The name of the last measurement of a matrix that is the GPU's alone.
pub(super) const LAST: &str = "shared-row+transfers";

// Timed executions, and the number for those longer than `LONG_MS`.
const RUNS: usize = 15;
const LONG_RUNS: usize = 5;
const LONG_MS: f64 = 20.0;
// Most and fewest rounds for products from dense matrices, and the time after which the fewest
// suffice.
const LEAST_ROUNDS: usize = 15;
const MOST_ROUNDS: usize = 61;
const ROUNDS_MS: f64 = 400.0;

/// `dense-naive` as published and with its test of factors (`dense-naive#2`), and every configuration
/// of `shared-row`, C dense, operands in the GPU's memory: the kernels alone, with cold caches.
pub(super) fn dense_c<T: Value>(gpu: &Started, a: &Csr<T>, blank: &Record) -> Result<Vec<Record>> {
    let on = DeviceCsr::upload(&gpu.device, &a.view())?;
    let (m, n) = (a.nrows(), a.ncols());
    let mut c = DeviceDense::<T>::zeros(&gpu.device, m, n, Layout::RowMajor)?;
    // The values of benchmarks are finite.
    let problem = Problem::spgemm(&a.view(), &a.view()).finite(true);
    let naive = spgemm::Config::candidates(Algorithm::DenseNaive, &problem);
    let shared = spgemm::Config::candidates(Algorithm::SharedRow, &problem);
    let numbered = |of: Vec<spgemm::Config>| of.into_iter().enumerate();
    let mut records = Vec::new();
    for (k, config) in numbered(naive).step_by(2).chain(numbered(shared)) {
        let name = match k {
            0 => config.algorithm().to_string(),
            _ => format!("{}#{k}", config.algorithm()),
        };
        records.push(record(blank, &name, |r| {
            let options = Options { config: Some(config), ..Options::default() };
            let (_, warm) =
                clocked(|| DensePlan::<T>::new(on.pattern(), on.pattern(), &problem, &options))?;
            drop(warm);
            let stream = gpu.device.stream();
            let (plan_ms, mut plan) = clocked(|| {
                let plan = DensePlan::<T>::new(on.pattern(), on.pattern(), &problem, &options)?;
                stream.synchronize()?;
                Ok(plan)
            })?;
            (r.plan_ms, r.chosen) = (Some(plan_ms), Some(config.algorithm().to_string()));
            r.reason = Some(format!("{config:?}"));
            c.data_mut().fill(0xff, stream)?;
            let mut run = |c: &mut DeviceDense<T>| plan.execute(&on, &on, c, Call::new());
            let warm = gpu.probe.cold_ms(stream, || run(&mut c))?;
            let runs = if warm > LONG_MS { LONG_RUNS } else { RUNS };
            let times = (0..runs).map(|_| gpu.probe.cold_ms(stream, || run(&mut c)));
            r.set_times(&times.collect::<Result<Vec<_>>>()?, 1);
            let rows = sample(m);
            let mut found = vec![<T as Scalar>::zero(); rows.len() * n];
            for (row, to) in rows.iter().zip(found.chunks_exact_mut(n.max(1))) {
                c.data().read_at(row * n, to)?;
            }
            let absent = |v: &T| v.is_zero() && 1.0 / v.to_f64() < 0.0;
            verify(r, a, &rows, sparse_of(&found, n, |v| !absent(v))?.view())
        }));
    }
    Ok(records)
}

/// `shared-row` with C in CSR form, including allocation and the conversion from dense to CSR; that
/// conversion alone; and the whole from and to host memory.
pub(super) fn csr_c<T: Value>(gpu: &Started, a: &Csr<T>, blank: &Record) -> Result<Vec<Record>> {
    let chooser = Chooser::Named(Algorithm::SharedRow);
    let options = Options { chooser, ..Options::default() };
    let (device, stream) = (&gpu.device, gpu.device.stream());
    let on = DeviceCsr::upload(device, &a.view())?;
    let problem = Problem::spgemm(&a.view(), &a.view());
    let runs = |execute: &mut dyn FnMut() -> Result<f64>| {
        let warm = execute()?;
        let runs = if warm > LONG_MS { LONG_RUNS } else { RUNS };
        (0..runs).map(|_| execute()).collect::<Result<Vec<_>>>()
    };
    let resident = record(blank, "shared-row+csr", |r| {
        let mut plan = SpgemmPlan::<T>::new(on.pattern(), on.pattern(), &problem, &options)?;
        let mut last = None;
        let times = runs(&mut || {
            last = None;
            gpu.probe.flush(stream)?;
            stream.synchronize()?;
            let (ms, c) = clocked(|| {
                let c = plan.execute(&on, &on, SpgemmCall::new())?;
                stream.synchronize()?;
                Ok(c)
            })?;
            last = Some(c);
            Ok(ms)
        })?;
        r.set_times(&times, 1);
        if let Some(c) = last {
            let (c, rows) = (c.download()?, sample(a.nrows()));
            r.nnz_c = Some(c.nnz() as u64);
            verify(r, a, &rows, crate::check::take_rows(c.view(), &rows)?.view())?;
        }
        Ok(())
    });
    let step = record(blank, "dense-to-csr", |r| {
        let mut plan = DensePlan::<T>::new(on.pattern(), on.pattern(), &problem, &options)?;
        let mut c = DeviceDense::<T>::zeros(device, a.nrows(), a.ncols(), Layout::RowMajor)?;
        plan.execute(&on, &on, &mut c, Call::new())?;
        let times = runs(&mut || {
            gpu.probe.flush(stream)?;
            stream.synchronize()?;
            let (ms, _) = clocked(|| {
                let sparse = c.to_csr(gustav_cuda::Entries::Pattern, stream)?;
                stream.synchronize()?;
                Ok(sparse)
            })?;
            Ok(ms)
        })?;
        r.set_times(&times, 1);
        Ok(())
    });
    let moved = record(blank, LAST, |r| {
        let mut parts = Vec::new();
        let times = runs(&mut || {
            let (up, operands) = clocked(|| {
                let a_on = DeviceCsr::upload(device, &a.view())?;
                Ok((a_on, DeviceCsr::upload(device, &a.view())?))
            })?;
            let (on_a, on_b) = &operands;
            let (ms, c) = clocked(|| {
                let c = spgemm::multiply(on_a, on_b, &problem, &options, Call::new())?;
                stream.synchronize()?;
                Ok(c)
            })?;
            let (down, _) = clocked(|| c.download())?;
            parts.push(up + down);
            Ok(up + ms + down)
        })?;
        r.set_times(&times, 1);
        r.transfer_ms = gustav_report::quantile(&parts, 0.5);
        Ok(())
    });
    Ok(vec![resident, step, moved])
}

/// `pipeline`, with the library's block size and others, and `convert-then-multiply`, of dense
/// matrices in host memory, with C left on the GPU and copied back, alternately.
pub(super) fn from_dense<T: Value>(
    gpu: &Started,
    threads: &Threads,
    a: &Csr<T>,
    dense: &Dense<T>,
    blank: &Record,
) -> Result<Vec<Record>> {
    let (m, n) = (a.nrows(), a.ncols());
    let mut c = DeviceDense::<T>::zeros(&gpu.device, m, n, Layout::RowMajor)?;
    let mut host = PinnedBuffer::<T>::zeroed(&gpu.device, m * n, "C on the host")?;
    let own = Config::default();
    let sixteen = Config { block_rows: Some(m.div_ceil(16).max(1)), ..own };
    let sequential = Config { overlapped: false, ..own };
    let all = [("pipeline", own), ("pipeline#1", sixteen), ("convert-then-multiply", sequential)];
    let mut engines = Vec::new();
    for (name, config) in all {
        let (ms, pipeline) = clocked(|| Pipeline::<T>::new(&gpu.device, [m, n, n], config))?;
        let record = Record {
            algorithm: name.into(),
            plan_ms: Some(ms),
            reason: Some(format!("{config:?}")),
            ..blank.clone()
        };
        engines.push((record, pipeline));
    }
    let mut records = Vec::new();
    for down in [false, true] {
        let mut times = vec![Vec::new(); engines.len()];
        let (mut round, mut rounds) = (0, LEAST_ROUNDS);
        // The first two rounds warm up.
        while round < rounds + 2 {
            let mut each = |(engine, times): (&mut (Record, Pipeline<T>), &mut Vec<f64>)| {
                let host = down.then_some(&mut host);
                let (ms, ()) = clocked(|| run(&mut engine.1, threads, dense, &mut c, host))?;
                if round >= 2 {
                    times.push(ms);
                }
                Ok::<_, gustav_core::Error>(ms)
            };
            // Alternating direction, so that no engine always follows the same one.
            let both = engines.iter_mut().zip(&mut times);
            let all: f64 = match round % 2 {
                0 => both.map(&mut each).sum::<Result<f64>>()?,
                _ => both.rev().map(&mut each).sum::<Result<f64>>()?,
            };
            if round == 1 {
                rounds = ((ROUNDS_MS / all) as usize).clamp(LEAST_ROUNDS, MOST_ROUNDS);
            }
            round += 1;
        }
        for ((record, pipeline), times) in engines.iter_mut().zip(&times) {
            let mut record = record.clone();
            record.timeline = pipeline.timeline().iter().map(stage).collect();
            record.set_times(times, 1);
            if down {
                record.algorithm += "+download";
            }
            c.data_mut().fill(0xff, gpu.device.stream())?;
            run(pipeline, threads, dense, &mut c, Some(&mut host))?;
            let rows = sample(m);
            let found: Vec<T> =
                rows.iter().flat_map(|r| &host[r * n..(r + 1) * n]).copied().collect();
            let absent = |v: &T| v.is_zero() && 1.0 / v.to_f64() < 0.0;
            verify(&mut record, a, &rows, sparse_of(&found, n, |v| !absent(v))?.view())?;
            records.push(record);
        }
    }
    Ok(records)
}

fn run<T: Value>(
    pipeline: &mut Pipeline<T>,
    threads: &Threads,
    dense: &Dense<T>,
    c: &mut DeviceDense<T>,
    host: Option<&mut PinnedBuffer<T>>,
) -> Result<()> {
    let (mut of_b, mut of_a) = (convert(threads, dense.view()), convert(threads, dense.view()));
    pipeline.run(&mut of_b, &mut of_a, <T as Scalar>::one().to_accum(), c, host)
}

/// Conversion of blocks of `dense` on `threads`.
fn convert<'a, T: Scalar>(
    threads: &'a Threads,
    dense: DenseView<'a, T>,
) -> impl FnMut(Block<'_, T>) -> Result<usize> + 'a {
    move |block| {
        let Block { rows, first, offsets, indices, values } = block;
        compress(threads, dense, rows, first, CsrRowsMut { offsets, indices, values })
    }
}

fn stage(s: &spgemm::pipeline::Stage) -> Stage {
    let (lane, name) = (s.lane.into(), s.name.into());
    Stage { lane, name, start_ms: s.start_ms, end_ms: s.end_ms }
}
