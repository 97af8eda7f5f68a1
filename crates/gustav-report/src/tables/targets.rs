//! The project's targets for `auto` relative to the vendors (bench/METHODOLOGY.md).

use crate::CUSPARSE;
use crate::Ratios;
use crate::VENDORS;
use crate::analysis::{Comparison, Platform, Product, grouped};
use crate::table::{Row, Table, row};

/// A target on CPUs: the geomean against the best vendor, over one operation.
struct Target {
    title: &'static str,
    operation: &'static str,
    sorted: bool,
    at_least: f64,
    aim: Option<f64>,
}

const fn target(
    title: &'static str,
    operation: &'static str,
    sorted: bool,
    at_least: f64,
    aim: Option<f64>,
) -> Target {
    Target { title, operation, sorted, at_least, aim }
}

const TARGETS: [Target; 4] = [
    target("SpMM", "spmm", false, 1.3, Some(1.5)),
    target("SpMV, planned", "spmv", false, 1.0, None),
    target("SpGEMM, unsorted", "spgemm", false, 1.3, Some(1.7)),
    target("SpGEMM, sorted", "spgemm", true, 2.0, Some(3.0)),
];

/// Crates, with the least geomean over each.
const CRATES: [(&str, f64); 2] = [("sprs", 2.0), ("faer", 3.0)];

/// The library that has an SDDMM, and the least geomean over it.
const SAMPLED: (&str, f64) = ("torch", 3.0);

/// Nonzeros from which no case may be below [`NEVER_BELOW`].
const LARGE: usize = 100_000;
const NEVER_BELOW: f64 = 0.8;

/// On GPUs: the least geomean, with a plan if B is dense, and the least ratio on any matrix.
fn on_gpu(product: &Product) -> (f64, f64) {
    if product.operation == "sddmm" {
        return (4.0, 1.5);
    }
    let geomean = match (product.dtype.as_str(), product.columns) {
        (_, 0) => return (4.5, 1.4),
        (_, 1) => 1.15,
        ("f64", _) => 1.4,
        (_, ..=64) => 1.6,
        _ => 1.5,
    };
    (geomean, 0.95)
}

/// A statistic of ratios and its target; `None` without ratios.
fn judged(
    platform: &Platform,
    title: &str,
    ratios: &[f64],
    statistic: fn(&Ratios) -> f64,
    at_least: f64,
    aim: Option<f64>,
) -> Option<Row> {
    let all = Ratios::of(ratios)?;
    let found = statistic(&all);
    let below = ratios.iter().filter(|r| **r < at_least).count();
    let verdict = match aim {
        _ if found < at_least => "NOT MET",
        Some(aim) if found >= aim => "met, aim too",
        _ => "met",
    };
    let aim = aim.map_or(String::new(), |aim| aim.to_string());
    let found = format!("{found:.2}");
    Some(row![platform.name, title, all.count, below, found, at_least, aim, verdict])
}

fn of_cpu(platform: &Platform, cases: &[Comparison<'_>]) -> Vec<Row> {
    let ratios = |names: &[&str], counts: &dyn Fn(&Comparison<'_>) -> bool| {
        cases.iter().filter(|c| counts(c)).filter_map(|c| c.against(names)).collect::<Vec<_>>()
    };
    let of_target = |target: &Target| {
        let own = |c: &Comparison<'_>| {
            c.ours.case.operation == target.operation && c.ours.case.sorted == target.sorted
        };
        let large = ratios(&VENDORS, &|c| own(c) && c.ours.nnz >= LARGE);
        let worst = format!("{}, worst of {LARGE} nonzeros and more", target.title);
        [
            judged(
                platform,
                target.title,
                &ratios(&VENDORS, &own),
                |r| r.geomean,
                target.at_least,
                target.aim,
            ),
            judged(platform, &worst, &large, |r| r.worst, NEVER_BELOW, None),
        ]
    };
    let of_crate = |(name, at_least): (&str, f64)| {
        let ratios = ratios(&[name], &|_| true);
        judged(platform, &format!("over {name}"), &ratios, |r| r.geomean, at_least, None)
    };
    let (library, at_least) = SAMPLED;
    let sddmm = ratios(&[library], &|c| c.ours.case.operation == "sddmm");
    let sddmm = judged(platform, "SDDMM over PyTorch", &sddmm, |r| r.geomean, at_least, None);
    TARGETS
        .iter()
        .flat_map(of_target)
        .chain(CRATES.map(of_crate))
        .chain([sddmm])
        .flatten()
        .collect()
}

fn of_gpu(platform: &Platform, cases: &[Comparison<'_>]) -> Vec<Row> {
    let ratios =
        cases.iter().filter_map(|c| Some((Product::of(&c.ours.case), c.against(&CUSPARSE)?)));
    let of_product = |(product, ratios): (Product, Vec<f64>)| {
        let ((geomean, worst), title) = (on_gpu(&product), product.title());
        [
            judged(platform, &title, &ratios, |r| r.geomean, geomean, None),
            judged(platform, &format!("{title}, worst"), &ratios, |r| r.worst, worst, None),
        ]
    };
    grouped(ratios).into_iter().flat_map(of_product).flatten().collect()
}

pub(super) fn targets(platforms: &[Platform]) -> Table {
    let of = |platform: &Platform| {
        let on_gpu = platform.records.iter().any(|r| r.gpu.is_some());
        let rows = if on_gpu { of_gpu } else { of_cpu };
        rows(platform, &platform.ours("auto"))
    };
    let rows = platforms.iter().flat_map(of).collect();
    let caption = "What the project requires: the geomean, or the worst, of the time of the best \
                   vendor over the time of auto, and how many cases are below the target.";
    let columns = "platform, product, cases, below, found, at least, aim, verdict";
    Table::new("targets", "Targets", columns, caption, rows)
}
