//! The figures of a report, family by family. A family whose data the records lack is listed as
//! absent.

mod choice;
mod counters;
mod distributions;
mod glance;
mod limits;
mod orders;
mod paper_b;
mod predictor;
mod ranks;
mod regrets;
mod row_groups;
mod speedups;
mod spy;
mod sweeps;
mod threads;
mod timeline;

use std::collections::{BTreeMap, BTreeSet};

use super::draw::Figure;
use crate::Beside;
use crate::analysis::Platform;

pub use ranks::picture_of_ranks;
pub(crate) use speedups::overview;

type Draw = fn(&[Platform]) -> Vec<Figure>;

/// The family that stands before everything else.
pub(crate) const GLANCE: &str = "At a glance";

const BESIDE_A_PEER: &str = "products by auto beside a peer";
const FLOOR: &str = "products with a memory floor";

/// The name of each family, the records that it needs, and its function.
const FAMILIES: [(&str, &str, Draw); 22] = [
    (GLANCE, BESIDE_A_PEER, glance::all),
    ("Overview", BESIDE_A_PEER, speedups::overview),
    ("Speed-up against mean row length", BESIDE_A_PEER, speedups::by_row_length),
    (
        "Algorithms against mean row length",
        "two or more of our algorithms by name, beside a peer",
        speedups::by_algorithm,
    ),
    (
        "Long rows and short rows",
        "row-split and nonzero-split by name beside a peer, SpMM of 64 columns, on matrix \
         files of 100,000 nonzeros and more",
        row_groups::all,
    ),
    ("Distribution of speed-ups", BESIDE_A_PEER, speedups::boxes),
    ("Loss against the best", BESIDE_A_PEER, distributions::losses),
    ("Break-even calls", "plans faster than every peer", distributions::break_even),
    ("Roofline", FLOOR, limits::roofline),
    ("Fraction of the memory floor", FLOOR, limits::fractions),
    ("Density sweep", "random matrices of one shape in three or more densities", sweeps::density),
    (
        "Aspect-ratio sweep",
        "full matrices of one size in three or more shapes",
        sweeps::aspect_ratio,
    ),
    ("Implementations of A times A", "the study of suite paper-b on a GPU", paper_b::all),
    (
        "Scaling with N",
        "SpGEMM on random square matrices of one density in three or more sizes",
        sweeps::sizes,
    ),
    ("Scaling with threads", "the same cases on two or more numbers of threads", threads::all),
    (
        "Row orders",
        "an algorithm with a row order (NAME@ORDER) beside the same one without",
        orders::spread,
    ),
    (
        "Which orders to keep",
        "an algorithm in two or more row orders beside the same one without",
        orders::portfolio,
    ),
    (
        "Break-even executions of a row order",
        "an algorithm with a row order that is faster than the same one without",
        orders::break_even,
    ),
    (
        "The kernel of row orders by density",
        "an algorithm with and without a row order, beside a peer",
        orders::kernel,
    ),
    ("Choices of the rules", "auto beside two or more of our algorithms by name", choice::all),
    ("Timeline of the pipeline", "records with a timeline", timeline::all),
    ("Spy plots", "records that hold pictures of their matrices", spy::all),
];

/// The figures that need the report of a tuning: with the classes of the row orders study, or others.
const TUNINGS: [(&str, &str); 2] = [
    ("Predictor of the study's classes", "the report of gustav tune tune (--tuning)"),
    ("Predictor", "the report of gustav tune (--tuning)"),
];

/// The figures that need hardware counters.
const COUNTERS: (&str, &str) =
    ("Occupancy, warp efficiency and instructions per cycle", "hardware counters (--counters)");

/// The figures that need records of products over ranks.
const RANKS: (&str, &str) =
    ("Bytes and times over ranks", "records of products over ranks (--ranks)");

/// The figures that need what choices lose.
const REGRETS: (&str, &str) = ("Regret of choices", "what choices lose (--regrets)");

/// The figures of one family.
#[derive(Clone, Debug)]
pub(crate) struct Chapter {
    /// Its title.
    pub name: &'static str,
    /// Its figures, at least one.
    pub figures: Vec<Figure>,
    /// Number of figures that the records would fill beside them.
    pub left_out: usize,
}

/// Most figures of a family.
const MOST: usize = 8;

impl Chapter {
    /// The fullest figure of each kind, then the fullest of the others, in their order.
    fn new(name: &'static str, figures: Vec<Figure>) -> Self {
        let mut fullest: Vec<_> = (0..figures.len()).collect();
        fullest.sort_by_key(|k| std::cmp::Reverse(figures[*k].size()));
        let mut kinds = BTreeSet::new();
        let (first, others): (Vec<_>, Vec<_>) =
            fullest.into_iter().partition(|k| kinds.insert(kind(&figures[*k]).to_owned()));
        let taken: BTreeSet<_> = first.into_iter().chain(others).take(MOST).collect();
        let left_out = figures.len() - taken.len();
        let own = figures.into_iter().enumerate().filter(|(k, _)| taken.contains(k));
        Chapter { name, figures: own.map(|(_, figure)| figure).collect(), left_out }
    }
}

/// What a figure shows, whatever of: its title behind the platform, or before it.
fn kind(figure: &Figure) -> &str {
    let title = figure.title.as_str();
    let behind = title.rsplit_once(": ").map(|(_, kind)| kind);
    behind.or(title.split(", ").next()).unwrap_or(title)
}

/// The families that the records fill, and of the others the name and what they need.
pub(crate) fn all(
    platforms: &[Platform],
    beside: &Beside,
) -> (Vec<Chapter>, Vec<(&'static str, &'static str)>) {
    let families = FAMILIES.iter().map(|(name, needs, draw)| ((*name, *needs), draw(platforms)));
    let [of_the_study, of_others] = predictor::all(&beside.tunings);
    let extra = [
        (TUNINGS[0], of_the_study),
        (TUNINGS[1], of_others),
        (COUNTERS, counters::all(&beside.counters)),
        (RANKS, ranks::all(&beside.ranks)),
        (REGRETS, regrets::all(&beside.regrets)),
    ];
    let (mut drawn, mut absent) = (Vec::new(), Vec::new());
    for (family, figures) in families.chain(extra) {
        match figures.is_empty() {
            true => absent.push(family),
            false => drawn.push(Chapter::new(family.0, figures)),
        }
    }
    // Ids that differ only in punctuation have the same slug; number them, as slugs are file names.
    let mut seen = BTreeMap::<String, usize>::new();
    for figure in drawn.iter_mut().flat_map(|chapter| &mut chapter.figures) {
        let count = seen.entry(figure.id.clone()).or_default();
        *count += 1;
        if *count > 1 {
            figure.id = format!("{}-{count}", figure.id);
        }
    }
    (drawn, absent)
}
