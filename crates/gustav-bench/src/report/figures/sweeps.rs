//! Families of generated matrices in which one thing varies: density at one shape, shape at one
//! number of nonzeros (figures 1, 4 and 7 of Yang, Buluç, Owens, 2018).

use std::collections::{BTreeMap, BTreeSet};

use super::super::axis::Axis;
use super::super::figure::{Figure, Mark, slug};
use super::super::site::{Product, Site, density as fill, gflops};
use super::series;
use crate::Record;

type Points = Vec<(f64, f64)>;

/// Generators whose matrices differ in nothing but shape and density.
pub(super) const RANDOM: [&str; 2] = ["uniform", "sparse"];

/// Points of every engine, by a key that the sweep keeps fixed; sweeps of fewer than three
/// values are left out. Places along x that differ by less than a twentieth are one value.
pub(super) fn sweep<K: Ord>(
    site: &Site,
    key: impl Fn(&Record) -> Option<K>,
    point: impl Fn(&Record) -> Option<(f64, f64)>,
) -> BTreeMap<(K, Product), BTreeMap<String, Points>> {
    let mut groups = BTreeMap::<_, BTreeMap<_, Points>>::new();
    // One number of threads: how times change with it is a figure of its own.
    let threads = site.records.iter().map(|r| r.threads).max();
    for (case, round) in site.rounds() {
        for r in round.into_iter().filter(|r| Some(r.threads) == threads) {
            let Some((key, point)) = key(r).zip(point(r)) else { continue };
            let engines = groups.entry((key, Product::of(case))).or_default();
            engines.entry(site.engine(r)).or_default().push(point);
        }
    }
    let values = |points: &Points| {
        let step = |x: f64| (x.ln() * 20.0).round() as i64;
        points.iter().map(|p| step(p.0)).collect::<BTreeSet<_>>().len()
    };
    for engines in groups.values_mut() {
        engines.retain(|_, points| values(points) >= 3);
        for points in engines.values_mut() {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
    }
    groups.retain(|_, engines| !engines.is_empty());
    groups
}

/// Time against the share of A that is filled.
pub(crate) fn density(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in sites {
        let random = |r: &Record| RANDOM.contains(&r.kind.as_str()).then_some((r.rows, r.cols));
        let point = |r: &Record| Some((100.0 * fill(r), r.execute_ms?));
        for (((rows, cols), product), engines) in sweep(site, random, point) {
            let (name, variant) = (product.name(), product.variant());
            figures.push(Figure {
                id: slug(&format!("density {} {name} {variant} {rows}x{cols}", site.name)),
                title: format!("{name} {variant}, {}: {rows} x {cols} by density", site.name),
                caption: "Random matrices of one shape; on the most threads that were measured."
                    .into(),
                x: Axis::log("filled (%)"),
                y: Axis::log("time (ms)"),
                series: series(engines, Mark::Line),
                rules: Vec::new(),
            });
        }
    }
    figures
}

/// GFLOP/s of full matrices of one number of nonzeros against their number of rows.
pub(crate) fn aspect_ratio(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in sites {
        // Sizes that differ by rounding alone are one.
        let size = |r: &Record| ((r.nnz as f64).log2() * 8.0).round() as i64;
        let full = |r: &Record| (r.nnz > 0 && fill(r) >= 1.0).then(|| size(r));
        let point = |r: &Record| Some((r.rows as f64, gflops(r)?));
        for ((size, product), engines) in sweep(site, full, point) {
            let (name, variant) = (product.name(), product.variant());
            let nnz = 2f64.powf(size as f64 / 8.0);
            figures.push(Figure {
                id: slug(&format!("aspect {} {name} {variant} {size}", site.name)),
                title: format!("{name} {variant}, {}: from wide to tall", site.name),
                caption: format!(
                    "Full matrices of about {:.1} million nonzeros, stored as CSR: few long rows \
                     at the left, many short ones at the right.",
                    nnz / 1e6
                ),
                x: Axis::log("rows"),
                y: Axis::linear("GFLOP/s"),
                series: series(engines, Mark::Line),
                rules: Vec::new(),
            });
        }
    }
    figures
}
