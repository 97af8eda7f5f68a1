//! Long rows and short rows (figure 5 of Yang, Buluç, Owens, 2018): the matrices whose mean row
//! lengths are nearest to those of the paper's two groups, with the paper's kernel for each, beside the
//! peers in its layouts and in those of the functions that the paper measured beside.

use crate::analysis::{Platform, Product, Ratios, VENDOR_FUNCTIONS, grouped};
use crate::draw::{Axis, Figure, Mark, series};
use crate::{Case, Record};

/// Columns of B in the paper's figure.
const COLUMNS: usize = 64;
/// Fewest nonzeros of a matrix: with fewer, the time is that of the launch.
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

/// Algorithms of Gustav that are shown with the peers.
const OURS: [&str; 5] = ["auto", "row-split", "nonzero-split", "sell-p", "ell-r"];

type Round<'a> = (&'a Case, Vec<&'a Record>);

/// A figure for every platform, product and group.
pub(super) fn all(platforms: &[Platform]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for platform in platforms {
        let beside = |round: &[&Record]| {
            GROUPS.iter().all(|g| ours(round, g.kernel).is_some())
                && round.iter().any(|r| platform.reference_peers.contains(&r.engine))
        };
        let rounds = platform.rounds_with(beside).into_iter();
        // Without generated matrices, whose names have a colon.
        let rounds = rounds.filter(|(case, round)| {
            case.operation == "spmm"
                && case.columns == COLUMNS
                && round[0].nnz >= NONZEROS
                && !case.matrix.contains(':')
                && beside(round)
        });
        for (_, rounds) in grouped(rounds.map(|round| (Product::of(round.0), round))) {
            figures.extend(GROUPS.iter().filter_map(|group| figure(platform, group, &rounds)));
        }
    }
    figures
}

fn ours<'a>(round: &[&'a Record], algorithm: &str) -> Option<&'a Record> {
    round.iter().find(|r| r.is_ours() && r.algorithm == algorithm).copied()
}

fn figure(platform: &Platform, group: &Group, rounds: &[Round<'_>]) -> Option<Figure> {
    let border = GROUPS.iter().map(|g| g.length).product::<f64>().sqrt();
    let length = |round: &Round<'_>| round.1[0].mean_row_length;
    let far = |round: &Round<'_>| (length(round) / group.length).ln().abs();
    let mut own: Vec<_> =
        rounds.iter().filter(|round| (length(round) > border) == (group.length > border)).collect();
    own.sort_by(|a, b| far(a).total_cmp(&far(b)));
    own.truncate(MATRICES);
    own.sort_by(|a, b| length(b).total_cmp(&length(a)));
    let product = Product::of(own.first()?.0);
    let shown = |r: &Record| !r.is_ours() || OURS.contains(&r.algorithm.as_str());
    let (mut points, mut ratios) = (Vec::new(), Vec::new());
    let mut over_functions = VENDOR_FUNCTIONS.map(|_| Vec::new());
    for (k, (_, round)) in own.iter().enumerate() {
        let shown = round.iter().filter(|r| shown(r));
        let point = |r: &&Record| Some((platform.engine(r), (r.gflops()?, k as f64)));
        points.extend(shown.filter_map(point));
        let others = round.iter().filter(|r| !r.is_ours() || r.algorithm == "sell-p");
        let best = others.filter_map(|r| r.execute_ms).reduce(f64::min);
        let Some((record, kernel)) =
            ours(round, group.kernel).and_then(|r| Some((r, r.execute_ms?)))
        else {
            continue;
        };
        ratios.extend(best.map(|best| best / kernel));
        for (function, over) in VENDOR_FUNCTIONS.iter().zip(&mut over_functions) {
            let Some(ms) = function.ms(platform, record) else { continue };
            points.push((function.title(), (record.flops() / ms / 1e6, k as f64)));
            over.push(ms / kernel);
        }
    }
    let mean = own.iter().map(|round| length(round)).sum::<f64>() / own.len() as f64;
    let said = Ratios::of(&ratios).map_or(String::new(), |found| {
        format!(
            " {} over the fastest of the peers and sell-p: {:.2} in the \
             geometric mean, {:.2} at best (the paper, on a Tesla K40c: {}).",
            group.kernel, found.geomean, found.best, group.paper
        )
    });
    let functions = VENDOR_FUNCTIONS.iter().zip(&over_functions).filter_map(|(function, over)| {
        let found = Ratios::of(over)?;
        let (title, Ratios { geomean, best, .. }) = (function.title(), found);
        Some(format!(" Over the peers in the layouts of {title}: {geomean:.2} and {best:.2}."))
    });
    let said = said + &functions.collect::<String>();
    let (name, product) = (&platform.name, product.title());
    let label = |round: &&Round<'_>| format!("{} ({:.1})", round.0.matrix, length(round));
    let matrices = Axis::names("matrix (nonzeros a row)", own.iter().map(label));
    Some(Figure::new(
        format!("rows {name} {product} {}", group.name),
        format!("{product}, {name}: {}", group.name),
        format!(
            "Matrices by mean row length, {mean:.1} nonzeros on average (the paper's group: {}).{said}",
            group.length
        ),
        [Axis::linear("GFLOP/s"), matrices],
        series(grouped(points), Mark::Points),
    ))
}
