//! What row orders gain: time in the matrix's own order over time in another (figure 8 of the
//! study of row permutations for SpMM on GPUs).

use std::collections::BTreeMap;

use super::super::axis::Axis;
use super::super::figure::{Figure, Mark, Series, percentiles, slug};
use super::super::site::{Product, Site};

/// For every place, product and algorithm: a box for every order.
pub(crate) fn boxes(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in sites {
        let mut gains = BTreeMap::<(Product, &str), BTreeMap<&str, Vec<f64>>>::new();
        for (case, round) in site.rounds() {
            let ours = || round.iter().filter(|r| r.engine == "gustav");
            for r in ours() {
                // `ALGORITHM@ORDER` beside the same algorithm in the matrix's own order.
                let Some((algorithm, order)) = r.algorithm.split_once('@') else { continue };
                let plain = ours().find(|p| p.algorithm == algorithm);
                let times = plain.and_then(|p| p.execute_ms).zip(r.execute_ms);
                if let Some((before, after)) = times {
                    let own = gains.entry((Product::of(case), algorithm)).or_default();
                    own.entry(order).or_default().push(before / after);
                }
            }
        }
        for ((product, algorithm), orders) in gains {
            let (name, variant) = (product.name(), product.variant());
            let (names, boxes): (Vec<_>, Vec<_>) = orders
                .into_iter()
                .filter_map(|(order, gains)| Some((order.to_owned(), percentiles(&gains)?)))
                .unzip();
            let boxes = boxes.into_iter().enumerate().map(|(k, five)| (k as f64, five));
            figures.push(Figure {
                id: slug(&format!("orders {} {name} {variant} {algorithm}", site.name)),
                title: format!("{algorithm}, {name} {variant}, {}: gain of row orders", site.name),
                caption: "Time of the same algorithm in the matrix's own order over its time in \
                          another. Boxes hold the middle half of the matrices, whiskers 90 %."
                    .into(),
                x: Axis::names("row order", names),
                y: Axis::log("speed-up over the matrix's own order"),
                series: vec![Series { name: String::new(), mark: Mark::Boxes(boxes.collect()) }],
                rules: vec![(1.0, "no gain".into())],
            });
        }
    }
    figures
}
