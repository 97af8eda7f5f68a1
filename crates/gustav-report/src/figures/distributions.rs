//! Distributions over the cases: losses relative to the fastest engine, break-even calls.

use crate::CHOOSERS;
use crate::analysis::{Groups, Platform, Product, distribution, grouped_twice};
use crate::draw::{Axis, Figure, Mark, fullest, series};

/// For every platform and operation, how far each engine is behind the fastest one of the case.
pub(super) fn losses(platforms: &[Platform]) -> Vec<Figure> {
    platforms.iter().flat_map(losses_on).collect()
}

fn losses_on(platform: &Platform) -> Vec<Figure> {
    let mut losses = Vec::new();
    for (case, round) in platform.rounds() {
        // Algorithms by name are left out: auto chooses among them.
        let engines = round.iter().filter(|r| !r.is_ours() || r.algorithm == CHOOSERS[0]);
        let engines: Vec<_> = engines.collect();
        let best = engines.iter().map(|r| r.time()).fold(f64::INFINITY, f64::min);
        let name = Product::of(case).name().to_owned();
        losses.extend(engines.iter().map(|r| (name.clone(), r.engine_name(), r.time() / best)));
    }
    let mut groups = grouped_twice(losses);
    groups.retain(|(_, engines)| engines.len() > 1);
    let figure = |(name, engines): (String, Groups<String, f64>)| {
        let curves = engines.into_iter().map(|(name, losses)| (name, distribution(losses)));
        Figure::new(
            format!("losses {} {name}", platform.name),
            format!("{name}, {}: time relative to the fastest", platform.name),
            "Performance profile: for every engine the percentage of cases on which its time is at most x \
             times that of the fastest engine. Higher and further left is better. All types and \
             columns.",
            [Axis::log("time / time of the fastest"), Axis::linear("cases (%)")],
            series(curves, Mark::Steps),
        )
    };
    groups.into_iter().map(figure).collect()
}

/// For every platform and operation, calls that amortize planning against the best peer.
pub(super) fn break_even(platforms: &[Platform]) -> Vec<Figure> {
    platforms.iter().flat_map(break_even_on).collect()
}

fn break_even_on(platform: &Platform) -> Vec<Figure> {
    let rounds = platform.latest();
    // Without SpGEMM, whose time includes its plan.
    let own = rounds.filter(|r| r.is_ours() && r.algorithm == CHOOSERS[0]);
    let calls = own.filter(|r| r.case.operation != "spgemm").filter_map(|r| {
        let product = Product::of(&r.case);
        Some((product.name().to_owned(), product, r.break_even_calls?))
    });
    let mut figures = Vec::new();
    for (name, mut products) in grouped_twice(calls) {
        products.retain(|(_, calls)| calls.len() > 1);
        let curves = products.into_iter().map(|(p, calls)| (p.variant(), distribution(calls)));
        let (curves, left_out) = fullest(curves);
        if !curves.is_empty() {
            let caption = "Percentage of the cases on which auto is faster than every peer, whose \
                           planning time is amortized after x calls.";
            figures.push(Figure::new(
                format!("break-even {} {name}", platform.name),
                format!("{name}, {}: break-even calls", platform.name),
                format!("{caption}{left_out}"),
                [Axis::log("calls"), Axis::linear("cases won (%)")],
                series(curves, Mark::Steps),
            ));
        }
    }
    figures
}
