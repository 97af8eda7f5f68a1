//! Gustav's algorithms compared with each other.

use std::collections::BTreeMap;

use super::ratios::{PRODUCT, RATIOS, by_product, cells, product_cells};
use crate::CHOOSERS;
use crate::WHOLE;
use crate::analysis::Platform;
use crate::table::{Table, row};
use crate::{Case, Status};

/// The time of Gustav's fastest algorithm (selected by name) in the rounds of every case.
fn fastest_of_ours(platform: &Platform) -> BTreeMap<(&Case, u64), f64> {
    let mut found = BTreeMap::new();
    let ours = platform.records.iter().filter(|r| r.is_ours() && r.status == Status::Ok);
    for r in ours.filter(|r| !CHOOSERS.contains(&r.algorithm.as_str()) && r.algorithm != WHOLE) {
        if let Some(ms) = r.execute_ms {
            let best = found.entry((&r.case, r.group)).or_insert(ms);
            *best = ms.min(*best);
        }
    }
    found
}

pub(super) fn algorithms(platforms: &[Platform]) -> Table {
    let mut rows = Vec::new();
    for platform in platforms {
        let fastest_of_ours = fastest_of_ours(platform);
        for name in platform.algorithms() {
            for (product, found) in platform.products(name) {
                let ratios: Vec<_> = found.iter().map(|f| f.0).collect();
                let fastest = found.iter().filter(|(_, c)| {
                    let best = fastest_of_ours.get(&(&c.ours.case, c.ours.group));
                    c.ours.execute_ms.as_ref() == best
                });
                let mut names = product_cells(platform, &product);
                names.insert(1, name.to_owned());
                let cells = cells(&ratios).unwrap_or_default();
                rows.push([names, cells, row![fastest.count()]].concat());
            }
        }
    }
    let caption = "The ratios of the summary for algorithms that were selected by name, and on \
                   how many matrices each was the fastest of ours.";
    let columns =
        format!("platform, algorithm, product, type, variant, matrices, {RATIOS}, fastest of ours");
    Table::new("algorithms", "Algorithm by algorithm", &columns, caption, rows)
}

pub(super) fn choice(platforms: &[Platform]) -> Table {
    let fastest: Vec<_> = platforms.iter().flat_map(fastest_of_ours).collect();
    let fastest: BTreeMap<_, _> = fastest.into_iter().collect();
    let rows = by_product(platforms, "auto", |c| {
        let best = fastest.get(&(&c.ours.case, c.ours.group))?;
        Some(best.min(c.ours.execute_ms?) / c.ours.execute_ms?)
    });
    let caption = "Time of the fastest of our algorithms in the same rounds over the time of auto; \
                   below 1 auto chose a slower one.";
    let columns = format!("{PRODUCT}, matrices, {RATIOS}");
    Table::new("choice", "Choices of auto", &columns, caption, rows)
}
