//! The kernels of the row orders study at every width of a strip.

use super::ratios::{RATIOS, cells};
use crate::analysis::{Platform, Product, grouped};
use crate::table::{Row, Table, number, row};
use crate::{Ratios, Record};

/// The kernels of the study of row orders.
const KERNELS: [&str; 2] = ["output-stationary", "dcsr"];

/// Matrices by their mean row length: from `from` on, below `below`.
struct Lengths {
    name: &'static str,
    from: f64,
    below: f64,
    /// The mean ratio to cuSPARSE in the study (section IV, before A).
    paper: &'static str,
}

/// Half a warp, and two; the study has all as one.
const LENGTHS: [Lengths; 4] = [
    Lengths { name: "all", from: 0.0, below: f64::INFINITY, paper: "1.67-1.89" },
    Lengths { name: "below 16", from: 0.0, below: 16.0, paper: "" },
    Lengths { name: "16 to 64", from: 16.0, below: 64.0, paper: "" },
    Lengths { name: "64 and more", from: 64.0, below: f64::INFINITY, paper: "" },
];

/// A kernel on a case that it was measured on in several configurations.
struct Strips {
    /// Time of the best peer over that of strips of one column and one block.
    narrow: f64,
    /// The same over that of the best configuration.
    best: f64,
    /// The name of that.
    configuration: String,
}

impl Strips {
    fn of(platform: &Platform, kernel: &str, round: &[&Record]) -> Option<Self> {
        let peers = round.iter().filter(|r| platform.reference_peers.contains(&r.engine));
        let peer = peers.filter_map(|r| r.execute_ms).reduce(f64::min)?;
        let own =
            round.iter().filter(|r| r.is_ours() && r.algorithm.split('#').next() == Some(kernel));
        let timed: Vec<_> = own.filter_map(|r| Some((r.execute_ms?, &r.algorithm))).collect();
        let narrow = timed.iter().find(|(_, name)| *name == kernel)?.0;
        let best = timed.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        let is_sweep = timed.len() > 1;
        is_sweep.then(|| Strips {
            narrow: peer / narrow,
            best: peer / best.0,
            configuration: best.1.clone(),
        })
    }
}

/// The kernels of the study of row orders at every width of a strip, each case at the best one.
pub(super) fn widths(platforms: &[Platform]) -> Table {
    let mut rows: Vec<Row> = Vec::new();
    for platform in platforms {
        let sweeps = |round: &[&Record]| round.iter().any(|r| r.algorithm.contains('#'));
        let rounds = platform.rounds_with(sweeps);
        for kernel in KERNELS {
            let found = rounds.iter().filter_map(|(_, round)| {
                let strips = Strips::of(platform, kernel, round)?;
                Some((Product::of_any_width(round[0]), (round[0].mean_row_length, strips)))
            });
            for (product, found) in grouped(found) {
                let of = |lengths| line(platform, (&product, kernel), lengths, &found);
                rows.extend(LENGTHS.iter().filter_map(of));
            }
        }
    }
    let caption = "Time of the best peer over that of the kernel, rows as stored, at the best of its \
                   configurations on each matrix: strips of 1, 2, 4 and 8 columns (#1, #2, #3) with one block \
                   each, and the same with as many blocks as fill the chip (#4 to #7). Best of them is an oracle's; the \
                   study has strips of one column. The paper's means are over the \
                   cuSPARSE of CUDA 10.2, on a GV100 and an RTX 2080 Ti. The lanes of a \
                   warp share a row, so that shorter rows leave lanes without work: the ratio follows the mean \
                   row length.";
    let columns = format!(
        "platform, product, kernel, nonzeros a row, matrices, {RATIOS}, mean, paper, strips of one column, \
         most often best"
    );
    let title = "The kernels of row orders by width of a strip";
    Table::new("strip-widths", title, &columns, caption, rows)
}

/// The line of matrices of some row lengths, among matrices with theirs.
fn line(
    platform: &Platform,
    (product, kernel): (&Product, &str),
    lengths: &Lengths,
    found: &[(f64, Strips)],
) -> Option<Row> {
    let own = found.iter().filter(|(length, _)| (lengths.from..lengths.below).contains(length));
    let own: Vec<_> = own.map(|(_, strips)| strips).collect();
    let of = |value: fn(&Strips) -> f64| own.iter().map(|s| value(s)).collect::<Vec<_>>();
    let best = of(|s| s.best);
    let ratios = cells(&best)?;
    let mean = best.iter().sum::<f64>() / best.len() as f64;
    let narrow = Ratios::of(&of(|s| s.narrow)).map(|r| r.geomean);
    let configurations = grouped(own.iter().map(|s| (s.configuration.as_str(), ())));
    let most = configurations.into_iter().max_by_key(|(_, cases)| cases.len());
    let most = most.map_or("", |(name, _)| name);
    let names = row![platform.name, product.variant(), kernel, lengths.name];
    // The study has that ratio of its kernel on CSR.
    let paper = if kernel == KERNELS[0] { lengths.paper } else { "" };
    let others = row![number(mean, 2), paper, number(narrow, 2), most];
    Some([names, ratios, others].concat())
}
