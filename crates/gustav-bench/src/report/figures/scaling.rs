//! Scaling with the size of random square matrices (figures 5 to 11 of Chen, Chen, Shih, Lee,
//! "Accelerating Sparse Matrix Multiplication", 2025) and with the number of threads.

use std::collections::{BTreeMap, BTreeSet};

use super::super::axis::Axis;
use super::super::figure::{Figure, Mark, slug};
use super::super::site::{Product, Site, density};
use super::series;
use super::sweeps::{RANDOM, sweep, widest};
use crate::summary::Ratios;
use crate::{Case, Record, Status};

type Points = Vec<(f64, f64)>;

/// Time against N for every density, and speed-up over the best peer against N by density.
pub(crate) fn sizes(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in widest(sites) {
        // Sparsity in thousandths: 950 for 95 %.
        let sparsity = |r: &Record| (1000.0 * (1.0 - density(r))).round() as i64;
        let square = |r: &Record| {
            let random = RANDOM.contains(&r.kind.as_str()) && r.rows == r.cols;
            (random && r.case.operation == "spgemm").then(|| sparsity(r))
        };
        let point = |r: &Record| Some((r.rows as f64, r.execute_ms?));
        let mut speedups = BTreeMap::<Product, Vec<(String, Points)>>::new();
        for ((sparsity, product), engines) in sweep(site, square, point) {
            let percent = sparsity as f64 / 10.0;
            let (name, variant) = (product.name(), product.variant());
            if let Some(ours) = engines.get("gustav:auto") {
                let rivals: Vec<_> = site.rivals.iter().filter_map(|r| engines.get(r)).collect();
                let best = |n: f64| {
                    let own = rivals.iter().flat_map(|p| p.iter().filter(|p| p.0 == n));
                    own.map(|p| p.1).reduce(f64::min)
                };
                let points: Points =
                    ours.iter().filter_map(|(n, ms)| Some((*n, best(*n)? / ms))).collect();
                if !points.is_empty() {
                    let own = speedups.entry(product.clone()).or_default();
                    own.push((format!("{percent} % zeros"), points));
                }
            }
            figures.push(Figure {
                id: slug(&format!("size {} {name} {variant} {sparsity}", site.name)),
                title: format!("{name} {variant}, {}: {percent} % zeros", site.name),
                caption: "Random N x N matrices times themselves, on the most threads that were \
                          measured."
                    .into(),
                x: Axis::doubling("N"),
                y: Axis::log("time (ms)"),
                series: series(engines, Mark::Line),
                rules: Vec::new(),
            });
        }
        for (product, groups) in speedups {
            let (name, variant) = (product.name(), product.variant());
            figures.push(Figure {
                id: slug(&format!("size speedup {} {name} {variant}", site.name)),
                title: format!("{name} {variant}, {}: speed-up by size", site.name),
                caption: format!("Peers that count: {}.", site.rivals_named()),
                x: Axis::doubling("N"),
                y: Axis::log("time of the best peer / ours"),
                series: series(groups, Mark::Line),
                rules: vec![(1.0, "as fast as the best peer".into())],
            });
        }
    }
    figures
}

/// Speed-up over the fewest threads for every engine, as the geomean of the cases that all
/// numbers of threads have.
pub(crate) fn threads(sites: &[Site]) -> Vec<Figure> {
    let mut times = BTreeMap::<(&str, String), BTreeMap<usize, BTreeMap<&Case, f64>>>::new();
    for r in sites.iter().flat_map(|s| &s.records) {
        if let (None, Status::Ok, Some(ms)) = (&r.gpu, r.status, r.execute_ms) {
            let name = Product::of(&r.case).name().to_owned();
            let own = times.entry((&r.machine.cpu, format!("{name}\n{}", r.engine_name())));
            own.or_default().entry(r.threads).or_default().insert(&r.case, ms);
        }
    }
    let mut figures = BTreeMap::<(&str, String), Vec<(String, Points)>>::new();
    for ((cpu, key), counts) in times.into_iter().filter(|(_, counts)| counts.len() > 1) {
        let (operation, engine) = key.split_once('\n').unwrap_or((&key, ""));
        let sets = counts.values().map(|own| own.keys().copied().collect::<BTreeSet<_>>());
        let common = sets.reduce(|a, b| &a & &b).unwrap_or_default();
        let Some(first) = counts.values().next() else { continue };
        let speedup = |(count, own): (&usize, &BTreeMap<&Case, f64>)| {
            let ratios: Vec<_> =
                common.iter().filter_map(|c| Some(first.get(c)? / own.get(c)?)).collect();
            Some((*count as f64, Ratios::of(&ratios)?.geomean))
        };
        let points: Points = counts.iter().filter_map(speedup).collect();
        if points.len() > 1 {
            let own = figures.entry((cpu, operation.to_owned())).or_default();
            own.push((engine.to_owned(), points));
        }
    }
    let drawn = figures.into_iter().map(|((cpu, operation), groups)| Figure {
        id: slug(&format!("threads {cpu} {operation}")),
        title: format!("{operation}: scaling with threads"),
        caption: format!(
            "Time on the fewest threads over time: the geomean of the cases that every number of \
             threads has. {cpu}."
        ),
        x: Axis::doubling("threads"),
        y: Axis::doubling("speed-up"),
        series: series(groups, Mark::Line),
        rules: Vec::new(),
    });
    drawn.collect()
}
