//! The implementations on the CPU: the paper's two, and a fair baseline.

use gustav_core::{Csr, Problem, Result};
use gustav_cpu::spgemm::{SpgemmCall, multiply};
use gustav_cpu::{Options, Threads};
use gustav_plan::{Algorithm, Chooser};
use gustav_report::Record;

use super::{clocked, record, sample, verify};
use crate::check::take_rows;
use crate::value::Value;

// Timed executions.
const RUNS: usize = 3;
// Most rows of A of which all are multiplied. Of larger matrices, whose rows are random and alike, every execution
// multiplies other rows, and its time is scaled up.
const WHOLE: usize = 4096;
// Most products per thread of such an execution.
const HASH_PRODUCTS: u64 = 6_000_000;
const FAIR_PRODUCTS: u64 = 60_000_000;
const DENSE_PRODUCTS: usize = 500_000_000;
// B is converted to dense first: the fewest rows with which that takes little of the time.
const DENSE_ROWS: usize = 8;

/// The record of [`dense_naive`], as a user names it.
pub(super) const DENSE: &str = "dense-naive+cpu";

/// `dense-naive` on one thread: all rows once, or of the largest matrices some of them in every execution.
pub(super) fn dense_naive<T: Value>(a: &Csr<T>, blank: &Record) -> Record {
    let blank = Record { threads: 1, ..blank.clone() };
    record(&blank, DENSE, |r| {
        let sampled = (DENSE_PRODUCTS / a.ncols().pow(2).max(1)).max(DENSE_ROWS);
        let (threads, algorithm) = (Threads::new(1, true)?, Algorithm::DenseNaive);
        r.chosen = Some(algorithm.to_string());
        let runs = match a.nrows() <= WHOLE {
            true => Runs { rows: a.nrows(), warmups: 0, timed: 1 },
            false => Runs::of_some(a.nrows(), sampled, 0),
        };
        time_rows(r, a, &runs, &options(algorithm, &threads))
    })
}

fn options(algorithm: Algorithm, threads: &Threads) -> Options {
    let chooser = Chooser::Named(algorithm);
    Options { chooser, threads: threads.clone(), ..Options::default() }
}

/// Executions of a product.
struct Runs {
    /// Rows of A that an execution multiplies.
    rows: usize,
    warmups: usize,
    timed: usize,
}

impl Runs {
    /// Executions that multiply at most `rows` of `all` rows, none of them twice.
    fn of_some(all: usize, rows: usize, warmups: usize) -> Self {
        let runs = warmups + RUNS;
        Runs { rows: rows.min(all / runs).max(1), warmups, timed: RUNS }
    }

    /// The rows of execution `run`, spread over the matrix: all, or such that no other execution multiplies.
    fn rows_of(&self, run: usize, all: usize) -> Vec<usize> {
        let runs = self.warmups + self.timed;
        match self.rows == all {
            true => (0..all).collect(),
            false => (0..self.rows).map(|k| (k * runs + run) * all / (self.rows * runs)).collect(),
        }
    }
}

/// Times the rows of A·A that `runs` says, scaled to all rows.
fn time_rows<T: Value>(
    record: &mut Record,
    a: &Csr<T>,
    runs: &Runs,
    options: &Options,
) -> Result<()> {
    let scale = a.nrows() as f64 / runs.rows.max(1) as f64;
    let (mut times, mut last) = (Vec::new(), None);
    for run in 0..runs.warmups + runs.timed {
        let rows = runs.rows_of(run, a.nrows());
        let part = take_rows(a.view(), &rows)?;
        let problem = Problem::spgemm(&part.view(), &a.view());
        let (ms, c) = clocked(|| multiply(&part, a, &problem, options, SpgemmCall::new()))?;
        times.push(ms * scale);
        last = Some((rows, c));
    }
    record.set_times(&times[runs.warmups..], 1);
    if runs.timed == 1 {
        // One time has no spread.
        (record.lower_ms, record.upper_ms) = (None, None);
    }
    if runs.rows < a.nrows() {
        record.message = Some(format!("times of {} rows each, scaled up", runs.rows));
    }
    let Some((rows, c)) = last else { return Ok(()) };
    let own = sample(rows.len());
    let of_a: Vec<_> = own.iter().map(|k| rows[*k]).collect();
    verify(record, a, &of_a, take_rows(c.view(), &own)?.view())
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
            let runs = match a.nrows() <= WHOLE || parts == 1 {
                true => Runs { rows: a.nrows(), warmups: 1, timed: RUNS },
                false => Runs::of_some(a.nrows(), a.nrows().div_ceil(parts), 1),
            };
            time_rows(r, a, &runs, &options(algorithm, threads))
        })
    });
    Ok(measured.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_of_some_rows_have_no_row_in_common() {
        for (all, wanted) in [(8192, 16), (8192, 2731), (8192, 4096), (5000, 1249), (5, 3)] {
            let runs = Runs::of_some(all, wanted, 1);
            assert!(runs.rows <= wanted);
            let mut rows: Vec<_> = (0..4).flat_map(|run| runs.rows_of(run, all)).collect();
            rows.sort_unstable();
            rows.dedup();
            assert_eq!(rows.len(), 4 * runs.rows);
            let last = rows[rows.len() - 1];
            assert!(last < all && last >= all - 1 - all / (4 * runs.rows), "{last} of {all}");
        }
    }

    #[test]
    fn an_execution_of_all_rows_has_each_once() {
        let runs = Runs { rows: 5, warmups: 1, timed: 3 };
        assert_eq!(runs.rows_of(2, 5), [0, 1, 2, 3, 4]);
        assert!(Runs { rows: 0, warmups: 0, timed: 1 }.rows_of(0, 0).is_empty());
    }
}
