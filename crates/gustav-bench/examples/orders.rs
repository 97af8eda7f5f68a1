//! `orders OUT.jsonl FILES`: how long features and row orders take on the CPU, what a sample misses of
//! the features, and how near the bounded searches come to the exact ones; one JSON object a line.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use gustav_core::{Csr, Error, Result, parallel};
use gustav_io::{ReadOptions, read_csr};
use gustav_plan::facts::{CacheLines, SampledFeatures};
use gustav_plan::orders::{Order, Search, WarpShape};
use gustav_plan::{Features, RowOrder};
use serde::Serialize;

// Rows up to which exact searches are compared with bounded ones.
const EXACT_ROWS: usize = 30_000;

// Rows of a sample.
const SAMPLE: usize = 4096;
// Passes and countings of which the median is printed.
const TIMES: usize = 15;

/// How long the features of a matrix take.
#[derive(Serialize)]
struct Counted<'a> {
    matrix: &'a str,
    rows: usize,
    nnz: usize,
    /// A pass over the column indices; one that counts each in its cache line; that one row by row; the
    /// 24 features; the same from a sample. All on all threads.
    pass_ms: f64,
    touches_ms: f64,
    rows_ms: f64,
    features_ms: f64,
    sample_ms: f64,
    /// Rows that the sample saw.
    sample_rows: usize,
    /// The largest error of the sample among the means, over the mean itself, and what the sample says of
    /// that feature's error in the same measure.
    sample_error: f64,
    sample_stated: f64,
    threads: usize,
}

/// A matrix under one order.
#[derive(Serialize)]
struct Line<'a> {
    matrix: &'a str,
    rows: usize,
    nnz: usize,
    order: Order,
    search: Search,
    /// Candidates a neighbourhood, where the search was bounded.
    bound: Option<usize>,
    order_ms: f64,
    /// Sum over the rows of the distance to the row before in the same warp, and in the CTA.
    warp_distance: usize,
    cta_distance: usize,
    threads: usize,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [out, files @ ..] = words.as_slice() else {
        eprintln!("usage: orders OUT.jsonl FILES");
        return ExitCode::from(2);
    };
    let all = |work: fn(&Path, &str, &Csr<f32>) -> Result<()>| {
        files.iter().try_for_each(|file| {
            let a = read_csr(file, &ReadOptions::default())?;
            let name = Path::new(file).file_name().and_then(|n| n.to_str()).unwrap_or_default();
            work(Path::new(out), name.split('.').next().unwrap_or_default(), &a)
        })
    };
    match all(features).and_then(|()| all(orders)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}

fn timed<R>(work: impl FnOnce() -> R) -> (f64, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64() * 1e3, result)
}

fn features(out: &Path, matrix: &str, a: &Csr<f32>) -> Result<()> {
    let (view, shape) = (a.pattern().view(), WarpShape::default());
    let (pass_ms, _) = median(|| Ok(pass(a)))?;
    let (touches_ms, _) = median(|| Ok(touches(a, shape.line, false)))?;
    let (rows_ms, _) = median(|| Ok(touches(a, shape.line, true)))?;
    let (features_ms, features) = median(|| Features::new(&view, shape))?;
    let (sample_ms, sampled) = median(|| SampledFeatures::new(&view, shape, SAMPLE))?;
    let (sample_error, sample_stated) = missed(&features, &sampled);
    let counted = Counted {
        matrix,
        rows: a.nrows(),
        nnz: a.nnz(),
        pass_ms,
        touches_ms,
        rows_ms,
        features_ms,
        sample_ms,
        sample_rows: sampled.rows,
        sample_error,
        sample_stated,
        threads: parallel::threads(),
    };
    write(out, &counted)?;
    let over = |ms: f64| features_ms / ms;
    println!(
        "{matrix}: features in {features_ms:.3} ms, {:.1} passes, {:.1} with a count each, {:.1} row by row",
        over(pass_ms),
        over(touches_ms),
        over(rows_ms),
    );
    Ok(())
}

fn orders(out: &Path, matrix: &str, a: &Csr<f32>) -> Result<()> {
    let (view, shape) = (a.pattern().view(), WarpShape::default());
    let lines = CacheLines::new(&view, shape.line)?;
    for &order in Order::ALL {
        // Those that search nothing are the same under every search.
        let greedy = order.of(&view, shape, Search::Bounded(1))?.bound().is_some();
        let searches = [Search::Auto, Search::Exact, Search::Bounded(2), Search::Bounded(8)];
        let taken = if greedy && a.nrows() <= EXACT_ROWS { 4 } else { 1 };
        for search in searches.into_iter().take(taken) {
            let (order_ms, made) = timed(|| order.of(&view, shape, search));
            let made = made?;
            let line = Line {
                matrix,
                rows: a.nrows(),
                nnz: a.nnz(),
                order,
                search,
                bound: made.bound(),
                order_ms,
                warp_distance: apart(&lines, &made, shape.warps),
                cta_distance: apart(&lines, &made, 1),
                threads: parallel::threads(),
            };
            write(out, &line)?;
        }
    }
    Ok(())
}

/// Sums of the column indices, of a part for each thread.
fn pass(a: &Csr<f32>) -> Vec<u64> {
    let (nnz, parts) = (a.nnz(), parallel::threads());
    parallel::map(parts, |k| {
        let part = &a.indices()[nnz * k / parts..nnz * (k + 1) / parts];
        part.iter().map(|column| u64::from(*column)).sum()
    })
}

/// How many entries each line of `width` columns has, of a part for each thread; what a walk over the
/// entries cannot do without, where it is to know lines.
fn touches(a: &Csr<f32>, width: usize, by_rows: bool) -> Vec<Vec<u32>> {
    let (bits, lines) = (width.ilog2(), a.ncols().div_ceil(width));
    let (rows, nnz, parts) = (a.nrows(), a.nnz(), parallel::threads());
    let count = |counts: &mut [u32], columns: &[u32]| {
        columns.iter().for_each(|column| counts[(column >> bits) as usize] += 1);
    };
    parallel::map(parts, |k| {
        let mut counts = vec![0; lines];
        match by_rows {
            true => (rows * k / parts..rows * (k + 1) / parts)
                .for_each(|row| count(&mut counts, a.view().row(row).0)),
            false => count(&mut counts, &a.indices()[nnz * k / parts..nnz * (k + 1) / parts]),
        }
        counts
    })
}

/// The median time of some rounds, and what the last returned.
fn median<R>(mut work: impl FnMut() -> Result<R>) -> Result<(f64, R)> {
    let (first, mut last) = timed(&mut work);
    let mut times = vec![first];
    for _ in 1..TIMES {
        let (ms, result) = timed(&mut work);
        times.push(ms);
        last = result;
    }
    times.sort_by(f64::total_cmp);
    Ok((times[TIMES / 2], last?))
}

/// The mean that the sample is furthest from, by the mean itself: its error, and the error that the sample states.
fn missed(exact: &Features, sampled: &SampledFeatures) -> (f64, f64) {
    let (found, stated) = (sampled.features.values(), sampled.errors);
    let means = Features::NAMES.iter().enumerate().filter(|(_, name)| name.ends_with("-mean"));
    let of = |(k, _): (usize, &&str)| {
        let value = exact.values()[k];
        let over = |error: f64| if value > 0.0 { error / value } else { 0.0 };
        (over((found[k] - value).abs()), over(stated[k]))
    };
    means.map(of).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
}

/// Sum of the distances of rows `step` slots apart.
fn apart(lines: &CacheLines, order: &RowOrder, step: usize) -> usize {
    let rows: Vec<usize> = order.sequence().map(|row| row as usize).collect();
    rows.iter().zip(rows.iter().skip(step)).map(|(r, s)| lines.distance(*r, *s)).sum()
}

fn write(out: &Path, line: &impl Serialize) -> Result<()> {
    let io = |source| Error::Io { path: out.into(), action: "write", source };
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(out).map_err(io)?;
    let text = serde_json::to_string(line).map_err(|e| io(e.into()))?;
    writeln!(file, "{text}").map_err(io)
}
