//! How long features and row orders take on the CPU.
//!
//! - `orders OUT.jsonl FILES`: features and row orders on all threads, what a sample misses of the features, and how
//!   near the bounded searches are to the exact ones; one JSON object a line.
//! - `orders --features-only OUT.csv FILES`: the features beside passes that do less, with 1, 2, 4, 8 and 16 threads as
//!   far as there are cores; the columns of `bench/records/cpu-features.csv`.

mod features;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use gustav_core::{Csr, Error, Result, parallel};
use gustav_io::{ReadOptions, read_csr};
use gustav_plan::RowOrder;
use gustav_plan::facts::CacheLines;
use gustav_plan::orders::{Order, Search, WarpShape};
use serde::Serialize;

// Rows up to which exact searches are compared with bounded ones.
const EXACT_ROWS: usize = 30_000;

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
    let (features_only, words) = match words.as_slice() {
        [switch, words @ ..] if switch == "--features-only" => (true, words),
        words => (false, words),
    };
    let [out, files @ ..] = words else {
        eprintln!("usage: orders [--features-only] OUT FILES");
        return ExitCode::from(2);
    };
    let all = |work: fn(&Path, &str, &Csr<f32>) -> Result<()>| {
        files.iter().try_for_each(|file| {
            let a = read_csr(file, &ReadOptions::default())?;
            let name = Path::new(file).file_name().and_then(|n| n.to_str()).unwrap_or_default();
            work(Path::new(out), name.split('.').next().unwrap_or_default(), &a)
        })
    };
    let done = match features_only {
        true => all(features::by_threads),
        false => all(features::sampled).and_then(|()| all(orders)),
    };
    match done {
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

/// Sum of the distances of rows `step` slots apart.
fn apart(lines: &CacheLines, order: &RowOrder, step: usize) -> usize {
    let rows: Vec<usize> = order.sequence().map(|row| row as usize).collect();
    rows.iter().zip(rows.iter().skip(step)).map(|(r, s)| lines.distance(*r, *s)).sum()
}

fn write(out: &Path, line: &impl Serialize) -> Result<()> {
    append(out, &serde_json::to_string(line).map_err(|e| unwritten(out, e.into()))?)
}

/// Appends `line` to the file `out`.
fn append(out: &Path, line: &str) -> Result<()> {
    let file = std::fs::OpenOptions::new().append(true).create(true).open(out);
    file.and_then(|mut file| writeln!(file, "{line}")).map_err(|e| unwritten(out, e))
}

fn unwritten(out: &Path, source: std::io::Error) -> Error {
    Error::Io { path: out.into(), action: "write", source }
}
