//! What runs on the CPU: the paper's baseline, and a fair one.

use gustav_core::{Csr, PlusTimes, Problem, Result, Scalar};
use gustav_cpu::spgemm::multiply;
use gustav_cpu::{Options, Threads};
use gustav_plan::{Algorithm, Chooser};

use super::{clocked, record, sample, set_times, verify};
use crate::Record;
use crate::check::take_rows;
use crate::value::Value;

// Timed executions, after one that warms up.
const RUNS: usize = 3;
// Products per thread that are computed of A·A: beyond that, a part of A's rows times A, which are
// random and alike, and the time in proportion.
const HASH_PRODUCTS: u64 = 6_000_000;
const FAIR_PRODUCTS: u64 = 60_000_000;

/// `hash-rows` and `gustavson` on `threads`.
pub(super) fn implementations<T: Value>(
    threads: &Threads,
    a: &Csr<T>,
    blank: &Record,
) -> Result<Vec<Record>> {
    let both = [(Algorithm::HashRows, HASH_PRODUCTS), (Algorithm::Gustavson, FAIR_PRODUCTS)];
    let measured = both.map(|(algorithm, most)| {
        record(blank, algorithm.name(), |r| {
            let all = blank.products.unwrap_or(0);
            let parts = all.div_ceil(most * threads.count() as u64).max(1) as usize;
            let rows: Vec<usize> = (0..a.nrows().div_ceil(parts)).collect();
            let part = take_rows(a.view(), &rows)?;
            let options = Options {
                chooser: Chooser::Named(algorithm),
                threads: threads.clone(),
                ..Options::default()
            };
            let problem = Problem::spgemm(&part.view(), &a.view());
            let one = <T as Scalar>::one().to_accum();
            let run = || {
                let (a, b) = (part.view(), a.view());
                clocked(|| multiply(PlusTimes, a, one, b, &problem, &options))
            };
            let (_, c) = run()?;
            let scale = a.nrows() as f64 / rows.len().max(1) as f64;
            let times = (0..RUNS).map(|_| run().map(|(ms, _)| ms * scale));
            set_times(r, &times.collect::<Result<Vec<_>>>()?);
            if parts > 1 {
                r.message = Some(format!("time of {} rows, in proportion", rows.len()));
            }
            r.chosen = Some(algorithm.to_string());
            let own = sample(rows.len());
            verify(r, a, &own, take_rows(c.view(), &own)?.view())
        })
    });
    Ok(measured.into())
}
