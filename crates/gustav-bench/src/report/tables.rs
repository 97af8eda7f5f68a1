//! The tables of a report: never an average alone.

use std::collections::{BTreeMap, BTreeSet};

use super::site::{CHOOSERS, Product, Site};
use super::table::Table;
use super::{figures, plans};
use crate::programs::share;
use crate::{Case, Comparison, Ratios, Record, Status, caches};

/// Every table that the records fill.
pub(crate) fn all(sites: &[Site]) -> Vec<Table> {
    let tables = [
        summary(sites),
        kinds(sites),
        peers(sites),
        algorithms(sites),
        figures::limits(sites),
        plans::table(sites),
        programs(sites),
        losses(sites),
        figures::orders(sites),
        figures::orders_break_even(sites),
        faults(sites),
        machines(sites),
    ];
    tables.into_iter().filter(|t| !t.rows.is_empty()).collect()
}

/// Count, geomean, worst, best and share lost as cells.
fn cells(ratios: &[f64]) -> Option<[String; 5]> {
    let Ratios { count, geomean, worst, best, lost } = Ratios::of(ratios)?;
    let two = |x: f64| format!("{x:.2}");
    Some([count.to_string(), two(geomean), two(worst), two(best), format!("{:.0}", 100.0 * lost)])
}

fn row(names: &[&str], ratios: &[f64]) -> Option<Vec<String>> {
    let names = names.iter().map(|n| (*n).to_owned());
    Some(names.chain(cells(ratios)?).collect())
}

/// "place: rivals" of every place.
fn marks(sites: &[Site]) -> String {
    let told = sites.iter().filter(|s| !s.rivals.is_empty());
    let words: Vec<_> = told.map(|s| format!("{}: {}", s.name, s.rivals_named())).collect();
    words.join("; ")
}

fn summary(sites: &[Site]) -> Table {
    let mut rows = Vec::new();
    for site in sites {
        for (product, found) in site.products(&site.ours("auto")) {
            let ratios: Vec<_> = found.iter().map(|f| f.0).collect();
            let detail = product.detail();
            let names = [&site.name, product.name(), &product.dtype, &detail];
            let own: Vec<_> = found.iter().map(|f| f.1).collect();
            let rivals: Vec<_> = site.rivals.iter().map(String::as_str).collect();
            if let Some(mut cells) = row(&names, &ratios) {
                cells.push(caches(&own, &rivals));
                rows.push(cells);
            }
        }
    }
    Table {
        id: "summary",
        title: "Summary",
        caption: format!(
            "Time of the best peer over the time of auto, per matrix; above 1 gustav is faster, and a \
             matrix below 1 is lost. Caches were cold or hot as the last column says, which has the \
             geomean with hot ones too, and, where executions followed one another, of single ones \
             after caches were emptied. Peers that count: {}.",
            marks(sites)
        ),
        head: &[
            "place", "product", "type", "of", "matrices", "geomean", "worst", "best", "lost (%)",
            "caches",
        ],
        rows,
    }
}

fn kinds(sites: &[Site]) -> Table {
    let mut rows = Vec::new();
    for site in sites {
        let comparisons = site.ours("auto");
        let mut groups = BTreeMap::<_, Vec<f64>>::new();
        for (product, found) in site.products(&comparisons) {
            for (ratio, c) in found {
                let key = (product.name().to_owned(), product.dtype.clone(), &c.ours.kind);
                groups.entry(key).or_default().push(ratio);
            }
        }
        for ((product, dtype, kind), ratios) in groups {
            rows.extend(row(&[&site.name, &product, &dtype, kind], &ratios));
        }
    }
    Table {
        id: "kinds",
        title: "By kind of matrix",
        caption: "The ratios of the summary by what the matrices are, over all columns and \
                  orders of rows of C."
            .into(),
        head: &[
            "place", "product", "type", "kind", "cases", "geomean", "worst", "best", "lost (%)",
        ],
        rows,
    }
}

fn peers(sites: &[Site]) -> Table {
    let mut rows = Vec::new();
    for site in sites {
        let mut groups = BTreeMap::<_, Vec<f64>>::new();
        for peer in site.peers() {
            for c in site.beside("auto", peer) {
                let key = (peer, Product::of(&c.ours.case).name().to_owned());
                groups.entry(key).or_default().extend(c.against(&[peer]));
            }
        }
        for ((peer, product), ratios) in groups {
            rows.extend(row(&[&site.name, peer, &product], &ratios));
        }
    }
    Table {
        id: "peers",
        title: "Against each peer",
        caption: "Time of the peer over the time of auto, over all types and columns.".into(),
        head: &["place", "peer", "product", "cases", "geomean", "worst", "best", "lost (%)"],
        rows,
    }
}

fn algorithms(sites: &[Site]) -> Table {
    let mut rows = Vec::new();
    for site in sites {
        let fastest_of_ours = fastest_of_ours(site);
        for name in site.algorithms() {
            for (product, found) in site.products(&site.ours(name)) {
                let ratios: Vec<_> = found.iter().map(|f| f.0).collect();
                let is_fastest = |c: &Comparison<'_>| {
                    let best = fastest_of_ours.get(&(&c.ours.case, c.ours.group));
                    c.ours.execute_ms.as_ref() == best
                };
                let fastest = found.iter().filter(|(_, c)| is_fastest(c)).count();
                let detail = product.detail();
                let names = [&site.name, name, product.name(), &product.dtype, &detail];
                if let Some(mut cells) = row(&names, &ratios) {
                    cells.push(fastest.to_string());
                    rows.push(cells);
                }
            }
        }
    }
    Table {
        id: "algorithms",
        title: "Algorithm by algorithm",
        caption: "The ratios of the summary for algorithms that were asked for by name, and on \
                  how many matrices each was the fastest of ours."
            .into(),
        head: &[
            "place",
            "algorithm",
            "product",
            "type",
            "of",
            "matrices",
            "geomean",
            "worst",
            "best",
            "lost (%)",
            "fastest of ours",
        ],
        rows,
    }
}

/// The time of the fastest of our algorithms by name in the rounds of every case.
fn fastest_of_ours(site: &Site) -> BTreeMap<(&Case, u64), f64> {
    let mut found = BTreeMap::new();
    let named = |r: &&Record| r.engine == "gustav" && !CHOOSERS.contains(&r.algorithm.as_str());
    for r in site.records.iter().filter(named).filter(|r| r.status == Status::Ok) {
        if let Some(ms) = r.execute_ms {
            let best = found.entry((&r.case, r.group)).or_insert(ms);
            *best = ms.min(*best);
        }
    }
    found
}

fn programs(sites: &[Site]) -> Table {
    let mut rows = Vec::new();
    for site in sites {
        for r in site.programs.iter().filter(|r| r.status == Status::Ok) {
            let number = |x: Option<f64>, digits: usize| {
                x.map_or_else(String::new, |x| format!("{x:.digits$}"))
            };
            rows.push(vec![
                site.name.clone(),
                r.case.operation.clone(),
                r.case.matrix.clone(),
                r.case.columns.to_string(),
                r.engine.clone(),
                number(r.execute_ms, 2),
                number(r.product_ms, 2),
                number(share(r), 0),
                number(r.ratio, 2),
            ]);
        }
    }
    Table {
        id: "programs",
        title: "Whole programs",
        caption: "Time to solution, the products in it, and the time of the best other engine \
                  over that of gustav. cg: conjugate gradients with many right-hand sides; gcn: \
                  two layers of graph convolution; paths: shortest paths over min and +. The \
                  engine loop is a loop over rows on one thread; on a GPU every product moves \
                  its operands there and back; other libraries on a CPU are timed in \
                  their products, beside the rest of the program as it was around gustav's."
            .into(),
        head: &[
            "place",
            "program",
            "matrix",
            "columns",
            "engine",
            "total (ms)",
            "products (ms)",
            "share (%)",
            "to the best other",
        ],
        rows,
    }
}

fn losses(sites: &[Site]) -> Table {
    let mut lost = Vec::new();
    for site in sites {
        for found in site.products(&site.ours("auto")).into_values() {
            for (ratio, c) in found.into_iter().filter(|(ratio, _)| *ratio < 1.0) {
                let r = c.ours;
                let best = site.rivals.iter().filter_map(|n| Some((n, *c.peers.get(n.as_str())?)));
                let best = best.min_by(|a, b| a.1.total_cmp(&b.1));
                let cells = [
                    site.name.clone(),
                    r.case.to_string(),
                    r.kind.clone(),
                    r.nnz.to_string(),
                    format!("{ratio:.2}"),
                    r.execute_ms.map_or_else(String::new, |ms| format!("{ms:.4}")),
                    r.chosen.clone().unwrap_or_default(),
                    best.map_or_else(String::new, |(name, ms)| format!("{name} {ms:.4}")),
                ];
                lost.push((ratio, cells.to_vec()));
            }
        }
    }
    lost.sort_by(|a, b| a.0.total_cmp(&b.0));
    Table {
        id: "losses",
        title: "Losses",
        caption: "Every case where a peer that counts is faster than auto, worst first.".into(),
        head: &[
            "place",
            "case",
            "kind",
            "nonzeros",
            "ratio",
            "ours (ms)",
            "algorithm",
            "best peer (ms)",
        ],
        rows: lost.into_iter().map(|(_, cells)| cells).collect(),
    }
}

// Upper over lower quartile above which a time is unsteady.
const UNSTEADY: f64 = 2.0;

fn faults(sites: &[Site]) -> Table {
    let mut rows = Vec::new();
    for site in sites {
        let all = site.records.iter().chain(&site.programs);
        for r in all {
            let spread = r.lower_ms.zip(r.upper_ms).filter(|(low, high)| *high > UNSTEADY * low);
            let (word, why) = match (r.status, spread) {
                (Status::Wrong, _) => ("WRONG", r.message.clone().unwrap_or_default()),
                (Status::Failed, _) => ("failed", r.message.clone().unwrap_or_default()),
                (Status::Skipped, _) => ("skipped", r.message.clone().unwrap_or_default()),
                (Status::Ok, Some((low, high))) => {
                    ("unsteady", format!("quartiles {low:.4} and {high:.4} ms"))
                }
                (Status::Ok, None) => continue,
            };
            rows.push(vec![
                site.name.clone(),
                word.into(),
                r.engine_name(),
                r.case.to_string(),
                why,
            ]);
        }
    }
    Table {
        id: "faults",
        title: "Wrong, failed, skipped, unsteady",
        caption: format!(
            "Results that the oracle refused, engines that gave up, and cases that were not \
             tried: none of them has a time. Of unsteady ones the upper quartile is more than \
             {UNSTEADY} times the lower: their ratios say little."
        ),
        head: &["place", "how", "engine", "case", "why"],
        rows,
    }
}

fn machines(sites: &[Site]) -> Table {
    let mut rows = Vec::new();
    for site in sites {
        let described = |r: &Record| match &r.gpu {
            Some(g) => format!(
                "{}, compute capability {}, {} multiprocessors, copies at {:.1} TB/s, L2 gives \
                 {:.1} TB/s, driver {}",
                g.name,
                g.compute_capability,
                g.multiprocessors,
                g.copy_bandwidth / 1e12,
                g.l2_bandwidth / 1e12,
                g.driver
            ),
            None => format!("{}, {} cores, {}", r.machine.cpu, r.machine.cores, r.machine.system),
        };
        let versions = |r: &Record| {
            let words = r.versions.iter().map(|(name, version)| format!("{name} {version}"));
            words.collect::<Vec<_>>().join(", ")
        };
        let mut engines = BTreeMap::<_, BTreeSet<(String, String)>>::new();
        for r in &site.records {
            engines.entry(&r.engine).or_default().insert((described(r), versions(r)));
        }
        for (engine, found) in engines {
            for (machine, versions) in found {
                rows.push(vec![site.name.clone(), engine.clone(), machine, versions]);
            }
        }
    }
    Table {
        id: "machines",
        title: "Where and with what",
        caption: "Machines, devices and versions, as the records hold them.".into(),
        head: &["place", "engine", "machine", "versions"],
        rows,
    }
}
