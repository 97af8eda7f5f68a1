//! What hardware counters say over aspect ratios (figure 1 of Yang, Buluç, Owens, 2018; of figure 4
//! the instructions per cycle).

use std::collections::BTreeMap;

use super::super::axis::Axis;
use super::super::figure::{Figure, Mark, slug};
use super::series;
use crate::Counters;

/// Matrices that a figure has at least.
const FEWEST: usize = 3;

/// A counter: what it is called, how to read it, its axis, its value.
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
pub(crate) fn all(counters: &[Counters]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (name, meaning, axis, value) in COUNTERS {
        let mut groups = BTreeMap::<_, BTreeMap<String, Vec<(f64, f64)>>>::new();
        for c in counters {
            let nnz = (c.rows * c.row_length) as u64;
            let engines = groups.entry((&c.gpu, &c.operation, c.columns, nnz)).or_default();
            let point = value(c).map(|value| (c.rows, value));
            engines.entry(c.algorithm.clone()).or_default().extend(point);
        }
        // A kernel of which the profiler gave no number has no line.
        groups.values_mut().for_each(|engines| engines.retain(|_, points| !points.is_empty()));
        // A sweep is of one number of nonzeros; of fewer matrices there is nothing to see.
        groups.retain(|_, engines| engines.values().any(|points| points.len() >= FEWEST));
        for ((gpu, operation, columns, nnz), mut engines) in groups {
            engines.values_mut().for_each(|p| p.sort_by(|a, b| a.0.total_cmp(&b.0)));
            let product = match operation.as_str() {
                "spmv" => "SpMV".into(),
                _ => format!("SpMM n = {columns}"),
            };
            figures.push(Figure {
                id: slug(&format!("counters {gpu} {product} {name} {nnz}")),
                title: format!("{product}, {gpu}: {name} from wide to tall"),
                caption: format!(
                    "{meaning}. Full matrices of {:.1} million nonzeros, stored as CSR: few long \
                     rows at the left, many short ones at the right.",
                    nnz as f64 / 1e6
                ),
                x: Axis::log("rows"),
                y: Axis::linear(axis),
                series: series(engines, Mark::Line),
                rules: Vec::new(),
            });
        }
    }
    figures
}
