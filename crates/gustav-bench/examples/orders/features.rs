//! How long the 24 features take beside passes that do less.

use std::hint::black_box;
use std::ops::Range;
use std::path::Path;

use gustav_core::{Csr, Error, Result, parallel};
use gustav_plan::Features;
use gustav_plan::facts::SampledFeatures;
use gustav_plan::orders::WarpShape;
use rayon::ThreadPoolBuilder;
use serde::Serialize;

use super::{append, timed, write};

// Threads, as far as there are cores.
const THREADS: [usize; 5] = [1, 2, 4, 8, 16];
// Rows of a sample.
const SAMPLE: usize = 4096;
// Repetitions of which the median is taken.
const TIMES: usize = 15;

/// How long the features of a matrix take.
#[derive(Serialize)]
struct Counted<'a> {
    matrix: &'a str,
    rows: usize,
    nnz: usize,
    threads: usize,
    /// A pass over the column indices.
    pass_ms: f64,
    /// One over row offsets and column indices, which adds up the indices of each row.
    row_sums_ms: f64,
    /// One over the column indices that counts each in its cache line.
    touches_ms: f64,
    /// The same row by row.
    rows_ms: f64,
    /// The features.
    features_ms: f64,
}

impl<'a> Counted<'a> {
    /// Measured on the current threads; with the features.
    fn new(matrix: &'a str, a: &Csr<f32>) -> Result<(Self, Features)> {
        let (view, shape) = (a.pattern().view(), WarpShape::default());
        let parts = parts(a);
        let (features_ms, features) = median(|| Features::new(&view, shape))?;
        let counted = Counted {
            matrix,
            rows: a.nrows(),
            nnz: a.nnz(),
            threads: parallel::threads(),
            pass_ms: median(|| Ok(pass(a)))?.0,
            row_sums_ms: median(|| Ok(row_sums(a, &parts)))?.0,
            touches_ms: median(|| Ok(touches(a, shape.line)))?.0,
            rows_ms: median(|| Ok(touches_by_row(a, shape.line, &parts)))?.0,
            features_ms,
        };
        println!(
            "{matrix}, {} threads: features in {features_ms:.3} ms, {:.1} passes, {:.1} with row sums, \
             {:.1} with a count each, {:.1} row by row",
            counted.threads,
            features_ms / counted.pass_ms,
            features_ms / counted.row_sums_ms,
            features_ms / counted.touches_ms,
            features_ms / counted.rows_ms,
        );
        Ok((counted, features))
    }
}

/// The same beside a sample.
#[derive(Serialize)]
struct Sampled<'a> {
    #[serde(flatten)]
    counted: Counted<'a>,
    /// The features from a sample.
    sample_ms: f64,
    /// Rows that the sample saw.
    sample_rows: usize,
    /// The largest error of the sample among the means, over the mean itself.
    sample_error: f64,
    /// What the sample states of that error, in the same measure.
    sample_stated: f64,
}

/// Measures features and a sample on all threads.
pub fn sampled(out: &Path, matrix: &str, a: &Csr<f32>) -> Result<()> {
    let (counted, features) = Counted::new(matrix, a)?;
    let view = a.pattern().view();
    let (sample_ms, sampled) =
        median(|| SampledFeatures::new(&view, WarpShape::default(), SAMPLE))?;
    let (sample_error, sample_stated) = missed(&features, &sampled);
    let sample_rows = sampled.rows;
    write(out, &Sampled { counted, sample_ms, sample_rows, sample_error, sample_stated })
}

/// Measures features with each number of threads, and appends a line for each to a CSV file.
pub fn by_threads(out: &Path, matrix: &str, a: &Csr<f32>) -> Result<()> {
    if !out.exists() {
        append(out, "matrix,rows,nnz,threads,pass_ms,row_sums_ms,touches_ms,rows_ms,features_ms")?;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for threads in THREADS.into_iter().filter(|threads| *threads <= cores) {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|e| Error::Argument {
            name: "threads",
            found: e.to_string(),
            expected: "as many as cores".into(),
        })?;
        let (counted, _) = pool.install(|| Counted::new(matrix, a))?;
        let Counted { rows, nnz, pass_ms, row_sums_ms, touches_ms, rows_ms, features_ms, .. } =
            counted;
        let times =
            [pass_ms, row_sums_ms, touches_ms, rows_ms, features_ms].map(|ms| format!("{ms}"));
        append(out, &format!("{matrix},{rows},{nnz},{threads},{}", times.join(",")))?;
    }
    Ok(())
}

/// Sums of the column indices, of a part for each thread.
fn pass(a: &Csr<f32>) -> Vec<u64> {
    let (nnz, parts) = (a.nnz(), parallel::threads());
    parallel::map(parts, |k| sum(&a.indices()[nnz * k / parts..nnz * (k + 1) / parts]))
}

/// Sums of the column indices of each row, combined in a part for each thread.
fn row_sums(a: &Csr<f32>, parts: &[Range<usize>]) -> Vec<u64> {
    parallel::map(parts.len(), |k| {
        parts[k].clone().map(|row| sum(a.view().row(row).0)).fold(0, |all, sum| all ^ sum)
    })
}

fn sum(columns: &[u32]) -> u64 {
    columns.iter().map(|column| u64::from(*column)).sum()
}

/// How many entries each line of `width` columns has, of a part for each thread: what a pass that knows lines cannot
/// do without.
fn touches(a: &Csr<f32>, width: usize) -> Vec<Vec<u32>> {
    let (nnz, parts) = (a.nnz(), parallel::threads());
    parallel::map(parts, |k| {
        let mut lines = Lines::new(a, width);
        lines.count(&a.indices()[nnz * k / parts..nnz * (k + 1) / parts]);
        lines.counts
    })
}

/// The same row by row.
fn touches_by_row(a: &Csr<f32>, width: usize, parts: &[Range<usize>]) -> Vec<Vec<u32>> {
    parallel::map(parts.len(), |k| {
        let mut lines = Lines::new(a, width);
        parts[k].clone().for_each(|row| lines.count(a.view().row(row).0));
        lines.counts
    })
}

/// Numbers of entries by line.
struct Lines {
    counts: Vec<u32>,
    /// The logarithm of a line's width.
    bits: u32,
}

impl Lines {
    fn new(a: &Csr<f32>, width: usize) -> Self {
        Lines { counts: vec![0; a.ncols().div_ceil(width)], bits: width.ilog2() }
    }

    fn count(&mut self, columns: &[u32]) {
        columns.iter().for_each(|column| self.counts[(column >> self.bits) as usize] += 1);
    }
}

/// The rows of each thread: as many rows plus nonzeros as of every other.
fn parts(a: &Csr<f32>) -> Vec<Range<usize>> {
    let work: Vec<usize> =
        a.offsets().iter().enumerate().map(|(row, start)| row + *start as usize).collect();
    let parts = parallel::threads();
    let all = a.nrows() + a.nnz();
    let cut = |k: usize| work.partition_point(|work| work * parts < all * k);
    (0..parts).map(|k| cut(k)..cut(k + 1)).collect()
}

/// The median time of some repetitions, and what the last returned.
fn median<R>(mut work: impl FnMut() -> Result<R>) -> Result<(f64, R)> {
    let (first, mut last) = timed(&mut work);
    let mut times = vec![first];
    for _ in 1..TIMES {
        let (ms, result) = timed(|| black_box(work()));
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
