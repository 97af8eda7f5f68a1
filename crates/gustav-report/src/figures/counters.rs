//! Hardware counters by aspect ratio (figure 1 of Yang, Buluç, Owens, 2018; of figure 4 the
//! instructions per cycle).

use crate::Counters;
use crate::analysis::grouped_twice;
use crate::draw::{Axis, Figure, Mark, series};

/// Fewest matrices of a figure.
const FEWEST: usize = 3;

/// A counter: its name, its meaning, its axis, its value.
type Counter = (&'static str, &'static str, &'static str, fn(&Counters) -> Option<f64>);

const COUNTERS: [Counter; 3] = [
    (
        "achieved occupancy",
        "Warps on a multiprocessor over those that it could hold, while it has any",
        "achieved occupancy (%)",
        |c| Some(100.0 * c.occupancy?),
    ),
    (
        "warp efficiency",
        "Lanes that take part in an instruction over those of a warp",
        "warp efficiency (%)",
        |c| Some(100.0 * c.warp_efficiency?),
    ),
    (
        "instructions per cycle",
        "Instructions of a multiprocessor in a cycle in which it is busy",
        "instructions per cycle",
        |c| c.ipc,
    ),
];

/// A figure for every GPU, operation and counter; a series for every algorithm.
pub(super) fn all(counters: &[Counters]) -> Vec<Figure> {
    COUNTERS.iter().flat_map(|counter| of(counter, counters)).collect()
}

fn of((name, meaning, axis, value): &Counter, counters: &[Counters]) -> Vec<Figure> {
    // Kernels without a number from the profiler are left out.
    let points = counters.iter().filter_map(|c| {
        let nnz = (c.rows * c.row_length) as u64;
        let product = match c.operation.as_str() {
            "spmv" => "SpMV".into(),
            _ => format!("SpMM n = {}", c.columns),
        };
        let key = ((&c.gpu, &c.operation, c.columns, nnz), product);
        Some((key, &c.algorithm, (c.rows, value(c)?)))
    });
    let mut groups = grouped_twice(points);
    // A sweep has one number of nonzeros; those of too few matrices are left out.
    groups.retain(|(_, engines)| engines.iter().any(|(_, points)| points.len() >= FEWEST));
    let mut figures = Vec::new();
    for (((gpu, _, _, nnz), product), mut engines) in groups {
        engines.iter_mut().for_each(|(_, p)| p.sort_by(|a, b| a.0.total_cmp(&b.0)));
        figures.push(Figure::new(
            format!("counters {gpu} {product} {name} {nnz}"),
            format!("{product}, {gpu}: {name} by aspect ratio"),
            format!(
                "{meaning}. Full matrices of {:.1} million nonzeros, stored as CSR: few long \
                 rows at the left, many short ones at the right.",
                nnz as f64 / 1e6
            ),
            [Axis::log("rows"), Axis::linear(axis)],
            series(engines, Mark::Line),
        ));
    }
    figures
}
