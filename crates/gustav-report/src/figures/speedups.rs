//! Speed-up over the best peer: boxes over the matrices, and against mean row length (figure 6 of
//! Yang, Buluç, Owens, "Design Principles for Sparse Matrix Multiplication on the GPU", Euro-Par
//! 2018).

use std::collections::BTreeMap;

use crate::analysis::{Comparison, Platform, Product, grouped, percentiles, row_length_rules};
use crate::draw::{self, Axis, Figure, Mark, Points, fullest, series};

type Box = (String, [f64; 5]);

const Y: &str = "time of the best peer / ours";

/// The percentiles of the speed-ups of every product of a platform.
fn percentiles_of(platform: &Platform) -> Vec<(Product, [f64; 5])> {
    let five = |(product, own): (Product, Vec<(f64, Comparison<'_>)>)| {
        let ratios: Vec<_> = own.iter().map(|f| f.0).collect();
        Some((product, percentiles(&ratios)?))
    };
    platform.products("auto").into_iter().filter_map(five).collect()
}

/// Speed-ups over the best peer for every platform: a box for every product.
pub(crate) fn overview(platforms: &[Platform]) -> Vec<Figure> {
    let of = |platform: &Platform| {
        let found = percentiles_of(platform).into_iter().map(|(p, five)| (p.title(), five));
        let found: Vec<_> = found.collect();
        let title = "speed-up of every product";
        (!found.is_empty()).then(|| boxed(platform, "overview", title, found))
    };
    platforms.iter().filter_map(of).collect()
}

/// Speed-ups over the best peer for every platform and operation: a box for every type and n.
pub(super) fn boxes(platforms: &[Platform]) -> Vec<Figure> {
    let of = |platform: &Platform| {
        let named = percentiles_of(platform).into_iter();
        let found = grouped(named.map(|(p, five)| (p.name().to_owned(), (p.variant(), five))));
        let figure = |(name, found): (String, Vec<Box>)| {
            boxed(platform, &format!("boxes {name}"), &format!("speed-up of {name}"), found)
        };
        found.into_iter().map(figure).collect::<Vec<_>>()
    };
    platforms.iter().flat_map(of).collect()
}

fn boxed(platform: &Platform, id: &str, title: &str, found: Vec<Box>) -> Figure {
    let (names, found): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let reference_peers = platform.reference_peer_names();
    Figure::new(
        format!("{id} {}", platform.name),
        format!("{}: {title}", platform.name),
        format!(
            "Boxes span the quartiles of the matrices, whiskers the 5th to the 95th percentile; \
             the line is the median. Reference peers: {reference_peers}."
        ),
        [Axis::names("", names), Axis::log(Y)],
        draw::boxes(found),
    )
    .rule(1.0, format!("as fast as the best of {reference_peers}"))
}

/// A point for each comparison: mean row length and speed-up.
fn points(found: &[(f64, Comparison<'_>)]) -> Points {
    found.iter().map(|(ratio, c)| (c.ours.mean_row_length, *ratio)).collect()
}

fn figure(id: &str, title: String, caption: String, groups: Vec<(String, Points)>) -> Figure {
    let (groups, left_out) = fullest(groups);
    let axes = [Axis::log("mean row length (nonzeros)"), Axis::log(Y)];
    Figure::new(id, title, caption + &left_out, axes, series(groups, Mark::Points))
        .rule(1.0, "as fast as the best peer")
}

/// A figure for every platform, operation and type; a series for every n or order of C.
pub(super) fn by_row_length(platforms: &[Platform]) -> Vec<Figure> {
    let of = |platform: &Platform| {
        let products = platform.products("auto").into_iter();
        let groups = grouped(products.map(|(p, found)| (p.kind(), (p.detail(), points(&found)))));
        let draw = |(kind, groups): (String, Vec<(String, Points)>)| {
            figure(
                &format!("speedup {} {kind}", platform.name),
                format!("{kind}, {}: speed-up against mean row length", platform.name),
                format!(
                    "One point per matrix. Reference peers: {}.",
                    platform.reference_peer_names()
                ),
                groups,
            )
        };
        groups.into_iter().map(draw).collect::<Vec<_>>()
    };
    platforms.iter().flat_map(of).collect()
}

/// For every platform and operation, the product with the most measured algorithms of Gustav: a
/// series for every algorithm.
pub(super) fn by_algorithm(platforms: &[Platform]) -> Vec<Figure> {
    platforms.iter().flat_map(algorithms).collect()
}

fn algorithms(platform: &Platform) -> Vec<Figure> {
    let rules = row_length_rules(&platform.records);
    let plain = platform.algorithms().into_iter().filter(|n| !n.contains(['#', '@']));
    let found = plain.flat_map(|name| {
        let products = platform.products(name).into_iter();
        products.map(move |(product, found)| (product, (name.to_owned(), points(&found))))
    });
    let mut best = BTreeMap::<String, (Product, Vec<(String, Points)>)>::new();
    for (product, algorithms) in grouped(found).into_iter().filter(|(_, a)| a.len() > 1) {
        let weight = |p: &Product, a: &[(String, Points)]| {
            (a.iter().map(|(_, points)| points.len()).sum::<usize>(), p.columns == 64)
        };
        let own = weight(&product, &algorithms);
        if best.get(product.name()).is_none_or(|(p, a)| own > weight(p, a)) {
            best.insert(product.name().to_owned(), (product, algorithms));
        }
    }
    let draw = |(name, (product, algorithms)): (String, (Product, _))| {
        let key = (product.operation.as_str(), product.dtype.as_str(), product.columns);
        let rule = rules.get(&key).map_or(String::new(), |rule| {
            format!(
                " The rule of nonzero-split below a mean row length, else row-split, is {rule} ({} \
                 matrices).",
                rule.matrices
            )
        });
        figure(
            &format!("algorithms {} {name}", platform.name),
            format!("{}, {}: every algorithm", product.title(), platform.name),
            format!(
                "One point per matrix and algorithm. Reference peers: {}.{rule}",
                platform.reference_peer_names()
            ),
            algorithms,
        )
    };
    best.into_iter().map(draw).collect()
}
