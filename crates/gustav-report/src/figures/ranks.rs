//! Products over ranks: bytes and predicted efficiency against the number of ranks, and times beside PETSc's.

use gustav_core::Result;

use crate::draw::{Axis, Figure, Mark, Points, Series, svg_file};
use crate::ranks::{CountedBytes, RankRecords, SCHEMES};

/// The first scheme of a figure of bytes: those before it are what others are relative to.
const FIRST_RELATIVE: usize = 1;

/// Bytes that ranks send, relative to sending all of B to all ranks, against their number: as an SVG file, of the
/// records of unseen and of generated matrices.
///
/// # Errors
/// When the drawing fails.
pub fn picture_of_ranks(records: &RankRecords) -> Result<String> {
    svg_file(&bytes(&records.counted()))
}

/// The figures that the records fill.
pub(super) fn all(records: &RankRecords) -> Vec<Figure> {
    let counted = records.counted();
    let mut figures = Vec::new();
    if !counted.is_empty() {
        figures.push(bytes(&counted));
    }
    if let Some(rate) = records.rate()
        && !counted.is_empty()
    {
        figures.push(efficiency(&counted, rate));
    }
    figures.extend(beside_petsc(records));
    figures
}

/// Lines over the number of ranks for the schemes from number `first` on, of unseen and of generated matrices.
fn lines(
    counted: &[CountedBytes],
    first: usize,
    value: impl Fn(&CountedBytes, usize) -> Option<f64>,
) -> Vec<Series> {
    let mut series = Vec::new();
    for matrices in ["unseen", "generated"] {
        for (k, scheme) in SCHEMES.iter().enumerate().skip(first) {
            let of_matrices = counted.iter().filter(|line| line.matrices == matrices);
            let point = |line: &CountedBytes| Some((line.ranks as f64, value(line, k)?));
            let points: Points = of_matrices.filter_map(point).collect();
            if !points.is_empty() {
                let name = format!("{}, {matrices}", scheme.replace('-', " "));
                series.push(Series { name, mark: Mark::Line(points) });
            }
        }
    }
    series
}

fn bytes(counted: &[CountedBytes]) -> Figure {
    let title = "What ranks send for a product with 64 columns, geometric means over matrices";
    let caption = "Bytes of one SpMM in f32, counted without running it, relative to the oblivious 1D algorithm, which \
                   sends all of B to all ranks. 1.5D is the oblivious algorithm with the number of copies of A, B and C \
                   that sends the fewest bytes; the others are plans of gustav. Generated matrices have up to a billion \
                   nonzeros.";
    let axes = [Axis::doubling("ranks"), Axis::log("bytes ÷ all of B to all ranks")];
    let series = lines(counted, FIRST_RELATIVE, |line, k| Some(line.relative[k]));
    Figure::new("ranks", title, caption, axes, series)
}

fn efficiency(counted: &[CountedBytes], rate: f64) -> Figure {
    let title = "Predicted efficiency of a product with 64 columns, geometric means over matrices";
    let caption = format!(
        "Time of one rank that has everything, divided by the number of ranks and by the time of the slowest: a model, not \
         a measurement. A rank multiplies {:.1} billion nonzeros times columns in a second, the median of the SpMM that \
         were measured beside PETSc; a message costs 2 µs, and bytes 12.5 GB/s in the busier direction. The rank that \
         multiplies most is taken to send most, nothing is overlapped, and one latency for every doubling of the ranks is \
         the agreement before a product. The model breaks down below some ten microseconds a product, where a rank's part \
         of B fits into a cache that the whole does not fit into, and where messages contend for the network or stay \
         within a host.",
        rate / 1e9
    );
    let axes = [Axis::doubling("ranks"), Axis::log("efficiency")];
    let series = lines(counted, 0, |line, k| Some(line.efficiency?[k]));
    Figure::new("ranks efficiency", title, caption, axes, series)
}

fn beside_petsc(records: &RankRecords) -> Option<Figure> {
    let products = records.beside_petsc();
    let series = products.iter().map(|product| {
        let count = product.each.len() as f64;
        let step = |(k, speed): (usize, &crate::ranks::Speed)| {
            (100.0 * (k + 1) as f64 / count, speed.ratio)
        };
        let name = format!("{}, {}", product.operation, product.matrices);
        Series { name, mark: Mark::Line(product.each.iter().enumerate().map(step).collect()) }
    });
    let series: Vec<_> = series.collect();
    let caption = "Time of PETSc's MatMult (SpMV) and MatMatMult (SpMM of 64 columns, f64) divided by ours, in one job of two \
                   ranks with one core each, the matrices in the order of the ratio: above 1 gustav is faster.";
    let axes = [Axis::linear("matrices (%)"), Axis::log("time of PETSc ÷ ours")];
    let title = "Products over two ranks beside PETSc";
    let figure = Figure::new("ranks beside petsc", title, caption, axes, series);
    (!figure.series.is_empty()).then(|| figure.rule(1.0, "PETSc"))
}
