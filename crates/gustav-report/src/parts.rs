//! The parts of a report, in their order.

use crate::figures::Chapter;
use crate::table::Table;

/// Tables and families of figures under one title.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Its title.
    pub title: &'static str,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Its families of figures.
    pub chapters: Vec<Chapter>,
}

/// A title with ids of tables and names of families.
type Plan = (&'static str, &'static [&'static str], &'static [&'static str]);

/// What stands beside peers first, then each paper in its own order; what was lost at the end.
const PARTS: [Plan; 8] = [
    (
        "Beside the peers",
        &["summary", "targets", "kinds", "peers", "peers-by-product", "programs", "program-ratios"],
        &["Overview", "Distribution of speed-ups"],
    ),
    (
        "Yang, Bulu\u{e7}, Owens 2018: SpMM",
        &["row-length-rule", "vendor-functions"],
        &[
            "Occupancy, warp efficiency and instructions per cycle",
            "Aspect-ratio sweep",
            "Long rows and short rows",
            "Speed-up against mean row length",
            "Algorithms against mean row length",
            "Density sweep",
        ],
    ),
    (
        "Chen, Chen, Shih, Lee 2025: SpGEMM",
        &["implementations", "claims", "tiles"],
        &[
            "Implementations of A times A",
            "Scaling with N",
            "Scaling with threads",
            "Timeline of the pipeline",
        ],
    ),
    (
        "Row permutations for SpMM",
        &["strip-widths", "orders", "break-even-of-orders", "predictor", "features"],
        &[
            "The kernel of row orders by density",
            "Row orders",
            "Which orders to keep",
            "Break-even executions of a row order",
            "Predictor of the study's classes",
            "Predictor",
        ],
    ),
    (
        "Limits and costs",
        &["limits", "relations", "plans", "one-call", "reuse", "masks", "memory"],
        &["Roofline", "Fraction of the memory floor", "Break-even calls"],
    ),
    (
        "Over many machines",
        &["ranks-beside-petsc", "ranks-losses", "ranks-bytes"],
        &["Bytes and times over ranks"],
    ),
    ("Choices of auto", &["choice", "algorithms"], &["Regret of choices", "Choices of the rules"]),
    (
        "Losses, machines, matrices",
        &["losses", "faults", "machines"],
        &["Loss against the best", "Spy plots"],
    ),
];

/// The parts that `tables` and `chapters` fill.
pub(crate) fn arranged(tables: Vec<Table>, chapters: Vec<Chapter>) -> Vec<Part> {
    let (mut tables, mut chapters) = (tables, chapters);
    let parts = PARTS.map(|(title, of_tables, of_chapters)| {
        let take = |id: &&str| tables.extract_if(.., |table| table.id == *id).next();
        let own_tables = of_tables.iter().filter_map(take).collect();
        let take = |name: &&str| chapters.extract_if(.., |chapter| chapter.name == *name).next();
        Part { title, tables: own_tables, chapters: of_chapters.iter().filter_map(take).collect() }
    });
    let left: Vec<_> = tables.iter().map(|t| t.id).chain(chapters.iter().map(|c| c.name)).collect();
    debug_assert!(left.is_empty(), "no part has {left:?}");
    let is_filled = |part: &Part| !(part.tables.is_empty() && part.chapters.is_empty());
    parts.into_iter().filter(is_filled).collect()
}
