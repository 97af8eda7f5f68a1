//! Three figures that answer first: how fast beside the best peer, how near to the limits, and what
//! the choice loses. Of all platforms they show the GPU and the CPU with the most cases.

use super::choice::lost;
use crate::analysis::{Groups, Platform, distribution, grouped, percentiles};
use crate::draw::{self, Axis, Figure, Mark, series};
use crate::{Ratios, Record};

/// The platforms that are shown, with the words that their boxes begin with.
fn shown(platforms: &[Platform]) -> Vec<(&'static str, &Platform)> {
    let on_gpu = |p: &Platform| p.records.iter().any(|r| r.gpu.is_some());
    let cases = |p: &Platform| p.products("auto").iter().map(|(_, found)| found.len()).sum();
    let fullest = |gpu: bool| {
        let own = platforms.iter().filter(|p| on_gpu(p) == gpu);
        own.max_by_key::<usize, _>(|p| cases(p))
    };
    let named = [("GPU", fullest(true)), ("CPU", fullest(false))].into_iter();
    named.filter_map(|(name, platform)| Some((name, platform?))).collect()
}

/// The figures that the records fill.
pub(super) fn all(platforms: &[Platform]) -> Vec<Figure> {
    let shown = shown(platforms);
    let names = shown.iter().map(|(name, platform)| format!("{name}: {}", platform.name));
    let names = names.collect::<Vec<_>>().join("; ");
    let figures = [speed(&shown, &names), limits(&shown, &names), choice(&shown, &names)];
    figures.into_iter().flatten().collect()
}

/// Boxes of `values`, with their geomeans in the names.
fn boxed(
    [id, title, caption, y]: [&str; 4],
    values: Groups<String, f64>,
    rule: (f64, &str),
) -> Option<Figure> {
    let found = values.into_iter().filter_map(|(name, values)| {
        let geomean = Ratios::of(&values)?.geomean;
        let digits = if geomean < 10.0 { 2 } else { 0 };
        Some((format!("{name}: {geomean:.digits$}"), percentiles(&values)?))
    });
    let (names, found): (Vec<_>, Vec<_>) = found.unzip();
    let axes = [Axis::names("", names), Axis::log(y)];
    (!found.is_empty())
        .then(|| Figure::new(id, title, caption, axes, draw::boxes(found)).rule(rule.0, rule.1))
}

fn speed(shown: &[(&str, &Platform)], names: &str) -> Option<Figure> {
    let mut values = Vec::new();
    for (k, (place, platform)) in shown.iter().enumerate() {
        for (product, found) in platform.products("auto") {
            let product = product.of_any_variant();
            values.extend(found.iter().map(|(ratio, c)| {
                let word = if c.ours.unseen { ", unseen" } else { "" };
                let name = format!("{place} {}{word}", product.kind());
                ((k, !c.ours.unseen, product.clone(), name), *ratio)
            }));
        }
    }
    let values = grouped(values).into_iter().map(|((.., name), ratios)| (name, ratios)).collect();
    let caption = format!(
        "Time of the best peer over that of auto, over all widths: quartiles, and the 5th to the 95th \
         percentile of the cases; the geomean stands in the name. No rule was fitted to unseen \
         matrices. {names}."
    );
    let title = "How fast beside the best peer";
    boxed(
        ["glance speed", title, &caption, "time of the best peer / ours"],
        values,
        (1.0, "as fast as the best peer"),
    )
}

fn limits(shown: &[(&str, &Platform)], names: &str) -> Option<Figure> {
    let share = |r: &Record| {
        let limit = r.floor_ms?.max(r.gather_ms.unwrap_or(0.0));
        Some(100.0 * limit / r.execute_ms?).filter(|share| *share > 0.0)
    };
    let mut values = Vec::new();
    for (k, (place, platform)) in shown.iter().enumerate() {
        for (product, own) in platform.with_floor() {
            let product = product.of_any_variant();
            let name = format!("{place} {}", product.kind());
            let shares = own.into_iter().filter_map(share);
            values.extend(shares.map(|share| ((k, product.clone(), name.clone()), share)));
        }
    }
    let values = grouped(values).into_iter().map(|((.., name), shares)| (name, shares)).collect();
    let caption = format!(
        "The longer limit over the time of auto: moving A, B and C once at the copy bandwidth, or, on \
         a GPU, reading a row of B from L2 for every nonzero. Above 100 % where caches above L2 \
         catch rows of B, and where little is written. {names}."
    );
    let title = "How near to the limits";
    boxed(["glance limits", title, &caption, "limit / time (%)"], values, (100.0, "the limit"))
}

fn choice(shown: &[(&str, &Platform)], names: &str) -> Option<Figure> {
    let mut curves = Vec::new();
    for (place, platform) in shown {
        let lost = lost(platform).into_iter();
        curves.extend(lost.map(|(name, losses)| (format!("{place} {name}"), distribution(losses))));
    }
    let caption = format!(
        "Share of the cases on which auto takes at most x times as long as the fastest of our \
         algorithms by name in the same rounds. {names}."
    );
    let axes = [Axis::log("time of auto / fastest of ours"), Axis::linear("cases (%)")];
    let title = "What the choice loses";
    (!curves.is_empty())
        .then(|| Figure::new("glance choice", title, caption, axes, series(curves, Mark::Steps)))
}
