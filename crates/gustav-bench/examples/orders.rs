//! `orders OUT.jsonl FILES`: how long row orders and features take on the CPU, and how near the
//! bounded searches come to the exact ones; one JSON object a line.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use gustav_core::{Csr, Error, Result};
use gustav_io::{ReadOptions, read_csr};
use gustav_plan::facts::CacheLines;
use gustav_plan::orders::{Order, Search, WarpShape};
use gustav_plan::{Features, RowOrder};
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
    /// One pass over the column indices, and the 24 features.
    pass_ms: f64,
    features_ms: f64,
    threads: usize,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [out, files @ ..] = words.as_slice() else {
        eprintln!("usage: orders OUT.jsonl FILES");
        return ExitCode::from(2);
    };
    match files.iter().try_for_each(|file| measure(Path::new(out), Path::new(file))) {
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

fn measure(out: &Path, file: &Path) -> Result<()> {
    let a: Csr<f32> = read_csr(file, &ReadOptions::default())?;
    let (view, shape) = (a.view(), WarpShape::default());
    let (pass_ms, sum) = timed(|| a.indices().iter().map(|c| u64::from(*c)).sum::<u64>());
    std::hint::black_box(sum);
    let (features_ms, features) = timed(|| Features::new(&view, shape));
    features?;
    let lines = CacheLines::new(&view, shape.line)?;
    let name = file.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let matrix = name.split('.').next().unwrap_or_default();
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
                pass_ms,
                features_ms,
                threads: gustav_core::parallel::threads(),
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

fn write(out: &Path, line: &Line<'_>) -> Result<()> {
    let io = |source| Error::Io { path: out.into(), action: "write", source };
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(out).map_err(io)?;
    let text = serde_json::to_string(line).map_err(|e| io(e.into()))?;
    writeln!(file, "{text}").map_err(io)
}
