//! The kernel that orders are studied with, without an order, beside the fastest peer
//! (figures 3 and 4 of the study).

use super::super::super::axis::Axis;
use super::super::super::figure::{Figure, Mark};
use super::super::super::site::{Site, density, gflops};
use super::super::series;
use super::{Study, time};

/// Speed-up and throughput against density.
pub(crate) fn all(sites: &[Site]) -> Vec<Figure> {
    Study::all(sites).iter().flat_map(of).collect()
}

fn of(study: &Study<'_>) -> Vec<Figure> {
    let beside: Vec<_> = study.matrices.iter().filter_map(|m| Some((m.own, m.peer?))).collect();
    if beside.is_empty() {
        return Vec::new();
    }
    let filled = |r| 100.0 * density(r);
    let gains = beside.iter().map(|(own, peer)| (filled(own), time(peer) / time(own))).collect();
    let rate = |r| gflops(r).unwrap_or(0.0);
    let ours = beside.iter().map(|(own, _)| (filled(own), rate(own))).collect();
    let theirs = beside.iter().map(|(_, peer)| (filled(peer), rate(peer))).collect();
    let rivals = study.site.rivals_named();
    let figure = |what: &str, title: &str, y: &str, groups| Figure {
        id: study.id(what),
        title: study.title(title),
        caption: format!("A point a matrix, without an order. Peers that count: {rivals}."),
        x: Axis::log("filled (%)"),
        y: Axis::log(y),
        series: series(groups, Mark::Points),
        rules: Vec::new(),
    };
    let speedup = figure(
        "kernel-speedup",
        "speed-up by density",
        "time of the best peer / ours",
        vec![(String::new(), gains)],
    );
    vec![
        Figure { rules: vec![(1.0, "as fast as the best peer".into())], ..speedup },
        figure(
            "kernel-throughput",
            "throughput by density",
            "GFLOP/s",
            vec![(format!("gustav:{}", study.algorithm), ours), ("best peer".into(), theirs)],
        ),
    ]
}
