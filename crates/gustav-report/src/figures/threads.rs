//! Scaling with the number of threads.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::{Platform, Product, Ratios, grouped};
use crate::draw::{Axis, Figure, Mark, Points, series};
use crate::{Case, Status};

/// Times of cases, by number of threads.
type Times<'a> = BTreeMap<usize, BTreeMap<&'a Case, f64>>;

/// Speed-up over the fewest threads for every engine: the geomean of the cases that were measured
/// with every number of threads.
pub(super) fn all(platforms: &[Platform]) -> Vec<Figure> {
    let mut times = BTreeMap::<(&str, String, String), Times<'_>>::new();
    for r in platforms.iter().flat_map(|p| &p.records) {
        if let (None, Status::Ok, Some(ms)) = (&r.gpu, r.status, r.execute_ms) {
            let key = (&*r.machine.cpu, Product::of(&r.case).name().to_owned(), r.engine_name());
            times.entry(key).or_default().entry(r.threads).or_default().insert(&r.case, ms);
        }
    }
    let curves = times
        .into_iter()
        .map(|((cpu, operation, engine), times)| ((cpu, operation), (engine, speedups(&times))));
    let curves = curves.filter(|(_, (_, points))| points.len() > 1);
    let figure = |((cpu, operation), curves): ((&str, String), Vec<(String, Points)>)| {
        Figure::new(
            format!("threads {cpu} {operation}"),
            format!("{operation}: scaling with threads"),
            format!(
                "Time on the fewest threads over time: the geomean of the cases that every number \
                 of threads has. {cpu}."
            ),
            [Axis::doubling("threads"), Axis::doubling("speed-up")],
            series(curves, Mark::Line),
        )
    };
    grouped(curves).into_iter().map(figure).collect()
}

fn speedups(times: &Times<'_>) -> Points {
    let sets = times.values().map(|own| own.keys().copied().collect::<BTreeSet<_>>());
    let common = sets.reduce(|a, b| &a & &b).unwrap_or_default();
    let first = times.values().next();
    let speedup = |(count, own): (&usize, &BTreeMap<&Case, f64>)| {
        let ratio = |case| Some(first?.get(case)? / own.get(case)?);
        let ratios: Vec<_> = common.iter().filter_map(|case| ratio(*case)).collect();
        Some((*count as f64, Ratios::of(&ratios)?.geomean))
    };
    times.iter().filter_map(speedup).collect()
}
