//! Long rows and short rows (figure 5 of Yang, Buluç, Owens, 2018): matrices whose mean row lengths
//! are nearest to those of the paper's two groups, with the kernel that the paper has for each.

use std::collections::BTreeMap;

use super::super::axis::Axis;
use super::super::figure::{Figure, Mark, slug};
use super::super::site::{Product, Site, gflops};
use super::series;
use crate::summary::Ratios;
use crate::{Case, Record};

/// Columns of B in the paper's figure.
const COLUMNS: usize = 64;
/// Nonzeros that a matrix has at least: smaller ones time the launch of a kernel.
const NONZEROS: usize = 100_000;
/// Matrices of a group, as in the paper.
const MATRICES: usize = 10;

struct Group {
    name: &'static str,
    /// The paper's kernel for it.
    kernel: &'static str,
    /// The paper's mean row length.
    length: f64,
    /// What the paper measured on a Tesla K40c.
    paper: &'static str,
}

const GROUPS: [Group; 2] = [
    Group {
        name: "long rows",
        kernel: "row-split",
        length: 62.5,
        paper: "1.31 in the geometric mean over the next fastest, 1.39 at best",
    },
    Group {
        name: "short rows",
        kernel: "nonzero-split",
        length: 7.92,
        paper: "1.53 in the geometric mean over csrmm2, 3.37 at best",
    },
];

/// Engines that are shown beside the peers.
const OURS: [&str; 5] = ["auto", "row-split", "nonzero-split", "sell-p", "ell-r"];

type Round<'a> = (&'a Case, Vec<&'a Record>);

/// A figure for every place, product and group.
pub(crate) fn all(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in sites {
        let both = |round: &[&Record]| GROUPS.iter().all(|g| ours(round, g.kernel).is_some());
        let beside = |round: &[&Record]| {
            both(round) && round.iter().any(|r| site.rivals.contains(&r.engine))
        };
        let mut products = BTreeMap::<Product, Vec<Round<'_>>>::new();
        for (case, round) in site.rounds_with(beside) {
            // Names with a colon are descriptions of generated matrices.
            let counts = case.operation == "spmm"
                && case.columns == COLUMNS
                && round[0].nnz >= NONZEROS
                && !case.matrix.contains(':');
            if counts && beside(&round) {
                products.entry(Product::of(case)).or_default().push((case, round));
            }
        }
        for rounds in products.values() {
            figures.extend(GROUPS.iter().filter_map(|group| figure(site, group, rounds)));
        }
    }
    figures
}

fn ours<'a>(round: &[&'a Record], algorithm: &str) -> Option<&'a Record> {
    round.iter().find(|r| r.engine == "gustav" && r.algorithm == algorithm).copied()
}

fn figure(site: &Site, group: &Group, rounds: &[Round<'_>]) -> Option<Figure> {
    let border = GROUPS.iter().map(|g| g.length).product::<f64>().sqrt();
    let length = |round: &Round<'_>| round.1[0].mean_row_length;
    let far = |round: &Round<'_>| (length(round) / group.length).ln().abs();
    let mut own: Vec<_> =
        rounds.iter().filter(|round| (length(round) > border) == (group.length > border)).collect();
    own.sort_by(|a, b| far(a).total_cmp(&far(b)));
    own.truncate(MATRICES);
    own.sort_by(|a, b| length(b).total_cmp(&length(a)));
    let product = Product::of(own.first()?.0);
    let shown = |r: &Record| match r.engine.as_str() {
        "gustav" => OURS.contains(&r.algorithm.as_str()),
        _ => true,
    };
    let mut points = BTreeMap::<String, Vec<(f64, f64)>>::new();
    let mut ratios = Vec::new();
    for (k, (_, round)) in own.iter().enumerate() {
        for r in round.iter().filter(|r| shown(r)) {
            let at = gflops(r).map(|rate| (rate, k as f64));
            points.entry(site.engine(r)).or_default().extend(at);
        }
        let rivals = round.iter().filter(|r| r.engine != "gustav" || r.algorithm == "sell-p");
        let best = rivals.filter_map(|r| r.execute_ms).reduce(f64::min);
        let kernel = ours(round, group.kernel).and_then(|r| r.execute_ms);
        ratios.extend(best.zip(kernel).map(|(best, kernel)| best / kernel));
    }
    let mean = own.iter().map(|round| length(round)).sum::<f64>() / own.len() as f64;
    let said = Ratios::of(&ratios).map_or(String::new(), |found| {
        format!(
            " {} over the fastest of the peers and sell-p: {:.2} in the \
             geometric mean, {:.2} at best (the paper, on a Tesla K40c: {}).",
            group.kernel, found.geomean, found.best, group.paper
        )
    });
    let (name, variant) = (product.name(), product.variant());
    let label = |round: &&Round<'_>| format!("{} ({:.1})", round.0.matrix, length(round));
    Some(Figure {
        id: slug(&format!("rows {} {name} {variant} {}", site.name, group.name)),
        title: format!("{name} {variant}, {}: {}", site.name, group.name),
        caption: format!(
            "Matrices by mean row length, {mean:.1} nonzeros on average (the paper's group: {}).{said}",
            group.length
        ),
        x: Axis::linear("GFLOP/s"),
        y: Axis::names("matrix (nonzeros a row)", own.iter().map(label).collect()),
        series: series(points, Mark::Points),
        rules: Vec::new(),
    })
}
