//! Speed-up over the best peer against mean row length (figure 6 of Yang, Buluç, Owens, "Design
//! Principles for Sparse Matrix Multiplication on the GPU", Euro-Par 2018).

use std::collections::BTreeMap;

use super::super::axis::Axis;
use super::super::figure::{Figure, Mark, slug};
use super::super::site::{Product, Site};
use super::{fullest, series};
use crate::threshold::thresholds;

const X: &str = "mean row length (nonzeros)";
const Y: &str = "time of the best peer / ours";

fn figure(id: &str, title: String, caption: String, groups: Vec<(String, Points)>) -> Figure {
    let (groups, left_out) = fullest(groups);
    Figure {
        id: slug(id),
        title,
        caption: caption + &left_out,
        x: Axis::log(X),
        y: Axis::log(Y),
        series: series(groups, Mark::Points),
        rules: vec![(1.0, "as fast as the best peer".into())],
    }
}

type Points = Vec<(f64, f64)>;

/// A figure for every place, operation and type; a series for every n or order of C.
pub(crate) fn by_row_length(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in sites {
        let comparisons = site.ours("auto");
        let mut groups = BTreeMap::<_, Vec<(String, Points)>>::new();
        for (product, found) in site.products(&comparisons) {
            let points = found.iter().map(|(ratio, c)| (c.ours.mean_row_length, *ratio));
            let key = (product.name().to_owned(), product.dtype.clone());
            groups.entry(key).or_default().push((product.detail(), points.collect()));
        }
        for ((name, dtype), groups) in groups {
            figures.push(figure(
                &format!("speedup {} {name} {dtype}", site.name),
                format!("{name} {dtype}, {}: speed-up against mean row length", site.name),
                format!("A point a matrix. Peers that count: {}.", site.rivals_named()),
                groups,
            ));
        }
    }
    figures
}

/// For every place and operation, the product that most algorithms of ours were measured on: a
/// series for every algorithm.
pub(crate) fn by_algorithm(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in sites {
        let thresholds = thresholds(&site.records);
        let mut groups = BTreeMap::<Product, BTreeMap<&str, Points>>::new();
        for name in site.algorithms().into_iter().filter(|n| !n.contains(['#', '@'])) {
            for (product, found) in site.products(&site.ours(name)) {
                let points = found.iter().map(|(ratio, c)| (c.ours.mean_row_length, *ratio));
                groups.entry(product).or_default().insert(name, points.collect());
            }
        }
        let mut best = BTreeMap::<String, (Product, BTreeMap<&str, Points>)>::new();
        for (product, algorithms) in groups.into_iter().filter(|(_, a)| a.len() > 1) {
            let weight = |p: &Product, a: &BTreeMap<&str, Points>| {
                let points: usize = a.values().map(Vec::len).sum();
                (points, p.columns == 64)
            };
            let better = match best.get(product.name()) {
                Some((p, a)) => weight(&product, &algorithms) > weight(p, a),
                None => true,
            };
            if better {
                best.insert(product.name().to_owned(), (product, algorithms));
            }
        }
        for (name, (product, algorithms)) in best {
            let variant = product.variant();
            let key = (product.operation.as_str(), product.dtype.as_str(), product.columns);
            let rule = match thresholds.get(&key) {
                Some(t) => format!(
                    " The rule of nonzero-split below a mean row length, else row-split, is {t} ({} \
                     matrices).",
                    t.matrices
                ),
                None => String::new(),
            };
            let named = algorithms.into_iter().map(|(name, points)| (name.to_owned(), points));
            figures.push(figure(
                &format!("algorithms {} {name}", site.name),
                format!("{name} {variant}, {}: every algorithm", site.name),
                format!(
                    "A point a matrix and algorithm. Peers that count: {}.{rule}",
                    site.rivals_named()
                ),
                named.collect(),
            ));
        }
    }
    figures
}
