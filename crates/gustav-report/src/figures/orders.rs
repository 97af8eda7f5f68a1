//! Gains of row orders (figures 3 to 10 of the study of row permutations for SpMM on GPUs).

use crate::Record;
use crate::analysis::{OrderStudy, Platform, distribution, grouped, histogram, percentiles};
use crate::draw::{self, Axis, Figure, Mark, Points, Series, one, series};

/// The two orders that are shown matrix by matrix: one for load balance, one for locality.
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

/// A figure of a study, with an id and a title.
fn figure(
    study: &OrderStudy<'_>,
    (id, title): (&str, &str),
    caption: String,
    axes: [Axis; 2],
    series: Vec<Series>,
) -> Figure {
    let OrderStudy { platform, product, algorithm, .. } = study;
    let (product, suite) = (product.title(), study.matrices_of());
    let title = format!("{algorithm}, {product}, suite {suite}, {}: {title}", platform.name);
    Figure::new(format!("{id} {}", study.id()), title, caption, axes, series)
}

/// Boxes of every order; those of `SHOWN` by density, by size and as histograms (figures 5, 6, 8).
pub(super) fn spread(platforms: &[Platform]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for study in OrderStudy::all(platforms) {
        figures.push(boxes(&study));
        for order in SHOWN.into_iter().filter(|order| study.orders().contains(order)) {
            figures.push(points(&study, order, "density (%)", "density", |r| 100.0 * r.density()));
            figures.push(points(&study, order, "rows", "size", |r| r.rows as f64));
            figures.push(bars(&study, order));
        }
    }
    figures
}

/// The title of an axis.
fn gain(study: &OrderStudy<'_>) -> String {
    format!("gain over {}", study.over())
}

fn boxes(study: &OrderStudy<'_>) -> Figure {
    let orders = study.gains_by_order().into_iter();
    let (names, boxes): (Vec<_>, Vec<_>) =
        orders.filter_map(|(order, gains)| Some((order, percentiles(&gains)?))).unzip();
    let caption = format!(
        "Time of the same algorithm with {} over its time in another order. Boxes span the \
         quartiles of the matrices, whiskers the 5th to the 95th percentile. The best of all may be \
         none of them.",
        study.over()
    );
    let axes = [Axis::names("row order", names), Axis::log(&gain(study))];
    figure(study, ("orders", "gain of row orders"), caption, axes, draw::boxes(boxes))
        .rule(1.0, "no gain")
}

fn points(
    study: &OrderStudy<'_>,
    order: &str,
    label: &str,
    by: &str,
    x: impl Fn(&Record) -> f64,
) -> Figure {
    let own = study.matrices.iter().filter_map(|m| Some((x(m.own), *m.gains.get(order)?)));
    let (id, title) = (format!("order-{order}-{by}"), format!("{order} by {by}"));
    let caption = format!("One point per matrix: what the order gains over {}.", study.over());
    let axes = [Axis::log(label), Axis::log(&gain(study))];
    figure(study, (&id, &title), caption, axes, one(Mark::Points(own.collect())))
        .rule(1.0, "no gain")
}

fn bars(study: &OrderStudy<'_>, order: &str) -> Figure {
    let gains = study.gains(order);
    let counts = histogram(&BINS, gains.iter().copied()).into_iter();
    let percentage = |count| 100.0 * count as f64 / gains.len().max(1) as f64;
    let bars = draw::bars(counts.map(percentage));
    let harmed = gains.iter().filter(|gain| **gain < 1.0).count();
    let (id, title) = (format!("order-{order}-histogram"), format!("gains of {order}"));
    let caption = format!("{harmed} of {} matrices are slower in this order.", gains.len());
    let bins = Axis::names(&gain(study), BINS.map(|bin| bin.1));
    let axes = [bins, Axis::linear("matrices (%)")];
    figure(study, (&id, &title), caption, axes, bars)
}

/// The case for several orders: how often each is the best, and the gain of the best of several
/// (figures 9 and 10).
pub(super) fn portfolio(platforms: &[Platform]) -> Vec<Figure> {
    let studies = OrderStudy::all(platforms);
    let several = studies.iter().filter(|s| s.orders().len() > 1);
    several.flat_map(|study| [chances(study), growth(study)]).collect()
}

fn chances(study: &OrderStudy<'_>) -> Figure {
    let best = grouped(study.matrices.iter().map(|matrix| (matrix.best(), ())));
    let mut counts: Vec<_> = best.into_iter().map(|(order, won)| (order, won.len())).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let percentage = |count: usize| 100.0 * count as f64 / study.matrices.len() as f64;
    let bars = draw::bars(counts.iter().map(|c| percentage(c.1)));
    let names = Axis::names("row order", counts.iter().map(|c| c.0));
    let axes = [names, Axis::linear("matrices (%)")];
    let caption = format!("Of {} matrices.", study.matrices.len());
    figure(study, ("orders-best", "which order is the best"), caption, axes, bars)
}

fn growth(study: &OrderStudy<'_>) -> Figure {
    let steps = [(study.base, 1.0)].into_iter().chain(study.portfolio()).enumerate();
    let (names, points): (Vec<_>, Vec<_>) =
        steps.map(|(k, (order, gain))| (order, (k as f64, gain))).unzip();
    let caption = format!(
        "Mean gain over {} if the best of the orders up to this one is used for each matrix. Each \
         order is the one that adds the most to those before it.",
        study.over()
    );
    let axes = [Axis::names("orders, one more at each step", names), Axis::log("mean gain")];
    let words = ("orders-portfolio", "the best of several orders");
    figure(study, words, caption, axes, one(Mark::Line(points)))
}

/// For every study the percentage of its matrices whose best order is amortized after x executions.
pub(super) fn break_even(platforms: &[Platform]) -> Vec<Figure> {
    OrderStudy::all(platforms).iter().filter_map(repaid).collect()
}

fn repaid(study: &OrderStudy<'_>) -> Option<Figure> {
    let repaid: Vec<_> = study.matrices.iter().filter_map(|m| m.break_even()).collect();
    let curves = [
        ("the order", repaid.iter().map(|r| r.executions()).collect::<Vec<_>>()),
        ("the order and the features", repaid.iter().filter_map(|r| r.with_features()).collect()),
    ];
    let curves = curves.into_iter().filter(|(_, executions)| !executions.is_empty());
    let curves = curves.map(|(name, executions)| (name, distribution(executions)));
    let (gaining, matrices) = (repaid.len(), study.matrices.len());
    let caption = format!(
        "Percentage of the {gaining} of {matrices} matrices on which an order gains, whose best \
         order is amortized after x executions."
    );
    let axes = [Axis::log("executions"), Axis::linear("matrices (%)")];
    let words = ("order-break-even", "break-even executions of an order");
    (gaining > 0).then(|| figure(study, words, caption, axes, series(curves, Mark::Steps)))
}

/// The kernel of the study without an order, and the fastest peer: speed-up and throughput against
/// density (figures 3 and 4).
pub(super) fn kernel(platforms: &[Platform]) -> Vec<Figure> {
    OrderStudy::all(platforms).iter().flat_map(beside_peers).collect()
}

fn beside_peers(study: &OrderStudy<'_>) -> Vec<Figure> {
    let beside: Vec<_> = study.matrices.iter().filter_map(|m| Some((m.own, m.peer?))).collect();
    if beside.is_empty() {
        return Vec::new();
    }
    let points = |y: fn(&Record, &Record) -> f64| -> Points {
        beside.iter().map(|(own, peer)| (100.0 * own.density(), y(own, peer))).collect()
    };
    let gains = points(|own, peer| peer.time() / own.time());
    let ours = points(|own, _| own.gflops().unwrap_or(0.0));
    let theirs = points(|_, peer| peer.gflops().unwrap_or(0.0));
    let reference_peers = study.platform.reference_peer_names();
    let caption =
        format!("One point per matrix, without an order. Reference peers: {reference_peers}.");
    let axes = |y: &str| [Axis::log("density (%)"), Axis::log(y)];
    let groups = [(format!("gustav:{}", study.algorithm), ours), ("best peer".into(), theirs)];
    let speedup = ("kernel-speedup", "speed-up by density");
    let throughput = ("kernel-throughput", "throughput by density");
    let y = "time of the best peer / ours";
    vec![
        figure(study, speedup, caption.clone(), axes(y), one(Mark::Points(gains)))
            .rule(1.0, "as fast as the best peer"),
        figure(study, throughput, caption, axes("GFLOP/s"), series(groups, Mark::Points)),
    ]
}
