//! The implementations on the CPU: the paper's two, and a fair baseline.

use gustav_core::{Csr, Problem, Result};
use gustav_cpu::spgemm::{SpgemmCall, multiply};
use gustav_cpu::{Options, Threads};
use gustav_plan::{Algorithm, Chooser};
use gustav_report::Record;

use super::{clocked, record, sample, verify};
use crate::check::take_rows;
use crate::value::Value;

// Timed executions, after one warm-up.
const RUNS: usize = 3;
// Most products per thread of A·A: for larger matrices, some of A's rows (which are random and
// similar) are multiplied, and the time is scaled up.
const HASH_PRODUCTS: u64 = 6_000_000;
const FAIR_PRODUCTS: u64 = 60_000_000;
// The same for dense rows times dense columns, for which B is converted to dense first; and the
// fewest rows with which the conversion takes little of the time.
const DENSE_PRODUCTS: usize = 100_000_000;
const DENSE_ROWS: usize = 8;

/// `dense-naive` on one thread, timed once.
pub(super) fn dense_naive<T: Value>(a: &Csr<T>, blank: &Record) -> Record {
    let blank = Record { threads: 1, ..blank.clone() };
    record(&blank, "dense-naive+cpu", |r| {
        let of_a_row = a.ncols().saturating_mul(a.ncols()).max(1);
        let rows = (DENSE_PRODUCTS / of_a_row).max(DENSE_ROWS).min(a.nrows());
        let (threads, algorithm) = (Threads::new(1, true)?, Algorithm::DenseNaive);
        r.chosen = Some(algorithm.to_string());
        rows_times(r, a, rows, 1, &options(algorithm, &threads))
    })
}

fn options(algorithm: Algorithm, threads: &Threads) -> Options {
    let chooser = Chooser::Named(algorithm);
    Options { chooser, threads: threads.clone(), ..Options::default() }
}

/// Times the first `rows` rows of A·A, `runs` times, scaled to all rows.
fn rows_times<T: Value>(
    record: &mut Record,
    a: &Csr<T>,
    rows: usize,
    runs: usize,
    options: &Options,
) -> Result<()> {
    let all: Vec<usize> = (0..rows).collect();
    let part = take_rows(a.view(), &all)?;
    let problem = Problem::spgemm(&part.view(), &a.view());
    let scale = a.nrows() as f64 / rows.max(1) as f64;
    let (mut times, mut last) = (Vec::new(), None);
    for _ in 0..runs {
        let (ms, c) = clocked(|| multiply(&part, a, &problem, options, SpgemmCall::new()))?;
        times.push(ms * scale);
        last = Some(c);
    }
    // The first of several is a warm-up.
    record.set_times(&times[usize::from(runs > 1)..], 1);
    if rows < a.nrows() {
        record.message = Some(format!("time of {rows} rows, scaled up"));
    }
    let Some(c) = last else { return Ok(()) };
    let own = sample(rows);
    verify(record, a, &own, take_rows(c.view(), &own)?.view())
}

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
            r.chosen = Some(algorithm.to_string());
            rows_times(r, a, a.nrows().div_ceil(parts), 1 + RUNS, &options(algorithm, threads))
        })
    });
    Ok(measured.into())
}
