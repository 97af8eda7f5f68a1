//! Implementations of A times A, beside tables 1 to 3 of Chen, Chen, Shih, Lee (2025).

use std::collections::BTreeSet;

use crate::analysis::{PaperB, Platform};
use crate::table::{Row, Table, row};

/// The pair that the tables of the study compare: transfers and allocation are in its times (section
/// 5.3.2).
const PUBLISHED_PAIR: [&str; 2] = ["shared-row+transfers", "hash-rows"];

/// The pairs that are compared here.
const PAIRS: [[&str; 2]; 6] = [
    ["shared-row", "hash-rows"],
    PUBLISHED_PAIR,
    ["shared-row", "gustavson"],
    ["shared-row+transfers", "gustavson"],
    ["pipeline", "convert-then-multiply"],
    ["pipeline+download", "convert-then-multiply+download"],
];

/// Sizes of the tables of the study.
const PUBLISHED_SIZES: [usize; 4] = [1024, 2048, 4096, 8192];

/// A line of the tables of the study: GPU-only CSR over CPU-only CSR Parallel.
struct Published {
    /// Sparsity in thousandths.
    sparsity: i64,
    threads: usize,
    /// By the sizes.
    gains: [f64; 4],
}

const fn published(sparsity: i64, threads: usize, gains: [f64; 4]) -> Published {
    Published { sparsity, threads, gains }
}

/// Tables 1 (85 % zeros), 2 (90 %) and 3 (95 %).
const PUBLISHED: [Published; 12] = [
    published(850, 4, [156.6, 172.4, 167.7, 126.5]),
    published(850, 8, [77.6, 99.3, 94.7, 76.3]),
    published(850, 16, [69.4, 77.3, 62.7, 48.0]),
    published(850, 32, [66.9, 57.6, 56.2, 46.9]),
    published(900, 4, [149.2, 194.6, 171.2, 169.2]),
    published(900, 8, [98.4, 120.5, 105.9, 97.7]),
    published(900, 16, [74.9, 79.0, 65.5, 59.5]),
    published(900, 32, [74.9, 71.0, 57.2, 49.0]),
    published(950, 4, [154.8, 187.4, 209.7, 144.4]),
    published(950, 8, [104.5, 121.8, 125.7, 90.8]),
    published(950, 16, [76.1, 88.3, 87.6, 60.3]),
    published(950, 32, [66.0, 77.2, 75.2, 56.4]),
];

/// Speed-ups of the study's implementations. The mean of a line is that of its ratios.
pub(super) fn implementations(platforms: &[Platform]) -> Table {
    let studies = PaperB::all(platforms);
    let sizes: BTreeSet<usize> = studies.iter().flat_map(PaperB::sizes).collect();
    let mut rows: Vec<Row> = Vec::new();
    for study in &studies {
        for sparsity in study.sparsities() {
            for pair in PAIRS {
                for threads in study.threads() {
                    let cell = |n: &usize| gain(study, pair, sparsity, *n, threads);
                    let found: Vec<_> = sizes.iter().map(cell).collect();
                    let names = row![study.gpu, pair.join(" over "), zeros(sparsity), threads];
                    rows.extend(line(names, found));
                    if pair == PUBLISHED_PAIR {
                        rows.extend(paper(sparsity, threads, &sizes));
                    }
                }
            }
        }
    }
    let sizes: Vec<_> = sizes.iter().map(usize::to_string).collect();
    let columns =
        format!("platform, implementations, zeros (%), threads, {}, mean", sizes.join(", "));
    let caption = "Time of the second over the time of the first by N, on this number of CPU threads: the kernel \
                   alone, with transfers and allocation, and the pipeline without and with C copied back. In brackets \
                   what quartiles of the times leave possible, where one was scaled up from some of the rows. The paper's lines are tables 1 to \
                   3 of Chen, Chen, Shih, Lee, 2025, whose times have transfers and allocation in them; it names no \
                   processors. Their means are over the line, as table 3 repeats its first column for them.";
    Table::new("implementations", "Implementations of A times A", &columns, caption, rows)
}

fn zeros(sparsity: i64) -> f64 {
    sparsity as f64 / 10.0
}

/// A gain, and the same as a cell.
type Cell = Option<(f64, String)>;

fn gain(study: &PaperB<'_>, pair: [&str; 2], sparsity: i64, n: usize, threads: usize) -> Cell {
    let gain = study.gain(pair, sparsity, n, threads)?;
    let quartiles = study.gain_quartiles(pair, sparsity, n, threads);
    let quartiles =
        quartiles.map_or(String::new(), |[lower, upper]| format!(" ({lower:.2}-{upper:.2})"));
    Some((gain, format!("{gain:.2}{quartiles}")))
}

/// What the study reports of a sparsity and a number of threads.
fn paper(sparsity: i64, threads: usize, sizes: &BTreeSet<usize>) -> Option<Row> {
    let own = PUBLISHED.iter().find(|p| (p.sparsity, p.threads) == (sparsity, threads))?;
    let cell = |n: &usize| {
        let gain = own.gains[PUBLISHED_SIZES.iter().position(|size| size == n)?];
        Some((gain, gain.to_string()))
    };
    let names = row!["paper", "GPU-only CSR over CPU-only CSR", zeros(sparsity), threads];
    line(names, sizes.iter().map(cell).collect())
}

/// A line with the mean of its gains, if it has any.
fn line(names: Row, found: Vec<Cell>) -> Option<Row> {
    let known: Vec<f64> = found.iter().flatten().map(|(gain, _)| *gain).collect();
    if known.is_empty() {
        return None;
    }
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let cells = found.into_iter().map(|cell| cell.map_or("-".into(), |(_, text)| text));
    Some(names.into_iter().chain(cells).chain([format!("{mean:.2}")]).collect())
}
