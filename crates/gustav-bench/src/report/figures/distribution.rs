//! Distributions over the matrices: speed-ups as boxes, losses against the best engine, calls
//! until a plan has paid.

use std::collections::BTreeMap;

use super::super::axis::Axis;
use super::super::figure::{Figure, Mark, Series, distribution, percentiles, slug};
use super::super::site::{CHOOSERS, Product, Site};
use super::{fullest, series};

/// Speed-ups over the best peer for every place: a box for every product.
pub(crate) fn overview(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in sites {
        let mut found = Vec::new();
        for (product, own) in site.products(&site.ours("auto")) {
            let ratios: Vec<_> = own.iter().map(|f| f.0).collect();
            let name = format!("{} {}", product.name(), product.variant());
            found.extend(percentiles(&ratios).map(|five| (name, five)));
        }
        if !found.is_empty() {
            figures.push(boxed(site, "overview", "speed-up of every product", found));
        }
    }
    figures
}

fn boxed(site: &Site, id: &str, title: &str, found: Vec<(String, [f64; 5])>) -> Figure {
    let (names, boxes): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let boxes = boxes.into_iter().enumerate().map(|(k, five)| (k as f64, five));
    Figure {
        id: slug(&format!("{id} {}", site.name)),
        title: format!("{}: {title}", site.name),
        caption: format!(
            "Boxes hold the middle half of the matrices, whiskers 90 % of them, the line across is \
             the median. Peers that count: {}.",
            site.rivals_named()
        ),
        x: Axis::names("", names),
        y: Axis::log("time of the best peer / ours"),
        series: vec![Series { name: String::new(), mark: Mark::Boxes(boxes.collect()) }],
        rules: vec![(1.0, format!("as fast as the best of {}", site.rivals_named()))],
    }
}

/// Speed-ups over the best peer for every place and operation: a box for every type and n.
pub(crate) fn boxes(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in sites {
        let comparisons = site.ours("auto");
        let mut groups = BTreeMap::<String, Vec<(String, [f64; 5])>>::new();
        for (product, found) in site.products(&comparisons) {
            let ratios: Vec<_> = found.iter().map(|f| f.0).collect();
            let name = product.name().to_owned();
            if let Some(five) = percentiles(&ratios) {
                groups.entry(name).or_default().push((product.variant(), five));
            }
        }
        for (name, found) in groups {
            let title = format!("speed-up of {name}");
            figures.push(boxed(site, &format!("boxes {name}"), &title, found));
        }
    }
    figures
}

/// For every place and operation, how far each engine is behind the fastest one of the case.
pub(crate) fn losses(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in sites {
        let mut groups = BTreeMap::<String, BTreeMap<String, Vec<f64>>>::new();
        for (case, round) in site.rounds() {
            // Algorithms by name are what auto chooses from, not engines beside it.
            let engines = round.iter().filter(|r| r.engine != "gustav" || r.algorithm == "auto");
            let times: Vec<_> =
                engines.filter_map(|r| Some((r.engine_name(), r.execute_ms?))).collect();
            let Some(best) = times.iter().map(|t| t.1).reduce(f64::min) else { continue };
            let own = groups.entry(Product::of(case).name().to_owned()).or_default();
            for (name, ms) in times {
                own.entry(name).or_default().push(ms / best);
            }
        }
        groups.retain(|_, engines| engines.len() > 1);
        for (name, engines) in groups {
            let curves = engines.into_iter().map(|(name, losses)| (name, distribution(losses)));
            figures.push(Figure {
                id: slug(&format!("losses {} {name}", site.name)),
                title: format!("{name}, {}: how far behind the fastest", site.name),
                caption: "For every engine the share of the cases on which it takes at most so \
                          many times as long as the fastest engine of the case; the higher and \
                          the further left, the better. All types and columns."
                    .into(),
                x: Axis::log("time / time of the fastest"),
                y: Axis::linear("share of the cases (%)"),
                series: series(curves, Mark::Steps),
                rules: Vec::new(),
            });
        }
    }
    figures
}

/// For every place and operation, calls after which planning has paid against the best peer.
pub(crate) fn break_even(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in sites {
        let mut groups = BTreeMap::<String, BTreeMap<Product, Vec<f64>>>::new();
        for (case, round) in site.rounds() {
            let product = Product::of(case);
            // The time of an SpGEMM holds that of its plan.
            if case.operation == "spgemm" {
                continue;
            }
            for r in round.iter().filter(|r| r.engine == "gustav" && r.algorithm == CHOOSERS[0]) {
                let own = groups.entry(product.name().to_owned()).or_default();
                own.entry(product.clone()).or_default().extend(r.break_even_calls);
            }
        }
        for (name, mut products) in groups {
            products.retain(|_, calls| calls.len() > 1);
            let curves = products.into_iter().map(|(p, calls)| (p.variant(), distribution(calls)));
            let (curves, left_out) = fullest(curves.collect());
            if !curves.is_empty() {
                figures.push(Figure {
                    id: slug(&format!("break-even {} {name}", site.name)),
                    title: format!("{name}, {}: calls until a plan has paid", site.name),
                    caption: String::from(
                        "Of the cases on which auto is faster than every peer, the share whose \
                         planning time is earned back after so many calls.",
                    ) + &left_out,
                    x: Axis::log("calls"),
                    y: Axis::linear("share of the cases won (%)"),
                    series: series(curves, Mark::Steps),
                    rules: Vec::new(),
                });
            }
        }
    }
    figures
}
