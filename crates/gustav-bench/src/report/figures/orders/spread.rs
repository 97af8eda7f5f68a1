//! How the gain of each order spreads over the matrices (figures 5, 6 and 8 and table I of the
//! study).

use super::super::super::axis::Axis;
use super::super::super::figure::{Figure, Mark, Series, percentiles};
use super::super::super::site::{Site, density};
use super::super::super::table::Table;
use super::Study;
use crate::Record;

// The two orders that the study shows matrix by matrix: one for load balance, one for locality.
const SHOWN: [&str; 2] = ["lpt", "warp-aware"];
/// Upper ends of the bars of a histogram, and their names.
const BINS: [(f64, &str); 8] = [
    (0.6, "up to 0.6"),
    (0.8, "0.6-0.8"),
    (0.95, "0.8-0.95"),
    (1.05, "0.95-1.05"),
    (1.2, "1.05-1.2"),
    (1.5, "1.2-1.5"),
    (2.0, "1.5-2"),
    (f64::INFINITY, "over 2"),
];

/// Boxes of every order; the shown ones by density, by size and as histograms.
pub(crate) fn all(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for study in Study::all(sites) {
        figures.push(boxes(&study));
        for order in SHOWN.into_iter().filter(|order| study.orders().contains(order)) {
            let filled = |r: &Record| 100.0 * density(r);
            figures.push(points(&study, order, "filled (%)", "density", filled));
            figures.push(points(&study, order, "rows", "size", |r| r.rows as f64));
            figures.push(histogram(&study, order));
        }
    }
    figures
}

/// The title of an axis.
fn gain(study: &Study<'_>) -> String {
    format!("gain over {}", study.over())
}

fn boxes(study: &Study<'_>) -> Figure {
    let oracle = study.matrices.iter().map(|m| m.oracle()).collect::<Vec<_>>();
    let orders = study.orders().into_iter().map(|order| (order, study.of(order)));
    let (names, boxes): (Vec<_>, Vec<_>) = orders
        .chain([("best of all", oracle)])
        .filter_map(|(order, gains)| Some((order.to_owned(), percentiles(&gains)?)))
        .unzip();
    let boxes = boxes.into_iter().enumerate().map(|(k, five)| (k as f64, five)).collect();
    Figure {
        id: study.id("orders"),
        title: study.title("gain of row orders"),
        caption: format!(
            "Time of the same algorithm with {} over its time in another order. Boxes hold the middle \
             half of the matrices, whiskers 90 %. The best of all may be none of them.",
            study.over()
        ),
        x: Axis::names("row order", names),
        y: Axis::log(&gain(study)),
        series: vec![Series { name: String::new(), mark: Mark::Boxes(boxes) }],
        rules: vec![(1.0, "no gain".into())],
    }
}

fn points(
    study: &Study<'_>,
    order: &str,
    label: &str,
    by: &str,
    x: impl Fn(&Record) -> f64,
) -> Figure {
    let own = study.matrices.iter().filter_map(|m| Some((x(m.own), *m.gains.get(order)?)));
    Figure {
        id: study.id(&format!("order-{order}-{by}")),
        title: study.title(&format!("{order} by {by}")),
        caption: format!("A point a matrix: what the order gains over {}.", study.over()),
        x: Axis::log(label),
        y: Axis::log(&gain(study)),
        series: vec![Series { name: String::new(), mark: Mark::Points(own.collect()) }],
        rules: vec![(1.0, "no gain".into())],
    }
}

fn histogram(study: &Study<'_>, order: &str) -> Figure {
    let gains = study.of(order);
    let mut counts = [0usize; BINS.len()];
    for gain in &gains {
        counts[BINS.iter().position(|(end, _)| gain <= end).unwrap_or(BINS.len() - 1)] += 1;
    }
    let share = |count: &usize| 100.0 * *count as f64 / gains.len().max(1) as f64;
    let bars = counts.iter().enumerate().map(|(k, count)| (k as f64, share(count))).collect();
    let harmed = gains.iter().filter(|gain| **gain < 1.0).count();
    Figure {
        id: study.id(&format!("order-{order}-histogram")),
        title: study.title(&format!("gains of {order}")),
        caption: format!("{harmed} of {} matrices are slower in this order.", gains.len()),
        x: Axis::names(&gain(study), BINS.iter().map(|b| b.1.to_owned()).collect()),
        y: Axis::linear("share of the matrices (%)"),
        series: vec![Series { name: String::new(), mark: Mark::Bars(bars) }],
        rules: Vec::new(),
    }
}

/// Largest, mean and smallest gain of every order (table I), geometric mean beside.
pub(crate) fn table(sites: &[Site]) -> Table {
    let mut rows = Vec::new();
    for study in Study::all(sites) {
        let oracle = study.matrices.iter().map(|m| m.oracle()).collect::<Vec<_>>();
        let orders = study.orders().into_iter().map(|order| (order, study.of(order)));
        for (order, gains) in orders.chain([("best of all", oracle)]) {
            let count = gains.len().max(1) as f64;
            let mean = gains.iter().sum::<f64>() / count;
            let geomean = (gains.iter().map(|g| g.ln()).sum::<f64>() / count).exp();
            let most = gains.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
            let names = [
                study.site.name.clone(),
                study.product.variant(),
                study.algorithm.to_owned(),
                study.over().to_owned(),
                order.to_owned(),
                gains.len().to_string(),
            ];
            let numbers = [most, mean, geomean, least].map(|x| format!("{x:.2}"));
            rows.push(names.into_iter().chain(numbers).collect());
        }
    }
    Table {
        id: "orders",
        title: "Gains of row orders",
        caption: "Time of the same algorithm with rows as stored over time in another order, its own list \
                  among them; where rows as stored were not measured, over its own list."
            .into(),
        head: &[
            "place",
            "of",
            "algorithm",
            "over",
            "order",
            "matrices",
            "largest",
            "mean",
            "geomean",
            "smallest",
        ],
        rows,
    }
}
