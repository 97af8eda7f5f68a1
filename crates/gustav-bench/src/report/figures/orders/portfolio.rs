//! Why several orders are kept: which is the best how often, and what a best of so many gains
//! (figures 9 and 10 of the study).

use std::collections::BTreeMap;

use super::super::super::axis::Axis;
use super::super::super::figure::{Figure, Mark, Series};
use super::super::super::site::Site;
use super::Study;

/// Shares of being the best, and the gain of the best of so many.
pub(crate) fn all(sites: &[Site]) -> Vec<Figure> {
    let studies = Study::all(sites);
    studies.iter().filter(|s| s.orders().len() > 1).flat_map(|s| [chances(s), growth(s)]).collect()
}

fn chances(study: &Study<'_>) -> Figure {
    let mut counts = BTreeMap::<&str, usize>::new();
    for matrix in &study.matrices {
        *counts.entry(matrix.best()).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let share = |count: usize| 100.0 * count as f64 / study.matrices.len() as f64;
    let bars = counts.iter().enumerate().map(|(k, c)| (k as f64, share(c.1))).collect();
    Figure {
        id: study.id("orders-best"),
        title: study.title("which order is the best"),
        caption: format!("Of {} matrices.", study.matrices.len()),
        x: Axis::names("row order", counts.iter().map(|c| c.0.to_owned()).collect()),
        y: Axis::linear("share of the matrices (%)"),
        series: vec![Series { name: String::new(), mark: Mark::Bars(bars) }],
        rules: Vec::new(),
    }
}

/// Orders in the turn in which each adds the most to the mean gain of the best, with that gain.
fn turns<'a>(study: &'a Study<'_>) -> Vec<(&'a str, f64)> {
    let mut best = vec![1.0f64; study.matrices.len()];
    let mut left: Vec<_> = study.orders().into_iter().collect();
    let mut turns = Vec::new();
    while !left.is_empty() {
        let with = |order: &str| -> Vec<f64> {
            let gain = |k: usize| study.matrices[k].gains.get(order).copied().unwrap_or(1.0);
            best.iter().enumerate().map(|(k, gained)| gained.max(gain(k))).collect()
        };
        let mean = |gains: &[f64]| gains.iter().sum::<f64>() / gains.len() as f64;
        let means: Vec<f64> = left.iter().map(|order| mean(&with(order))).collect();
        let next = (0..left.len()).max_by(|a, b| means[*a].total_cmp(&means[*b])).unwrap_or(0);
        best = with(left[next]);
        turns.push((left.remove(next), means[next]));
    }
    turns
}

fn growth(study: &Study<'_>) -> Figure {
    let turns = turns(study);
    let own = [(study.base, 1.0)].into_iter();
    let (names, points): (Vec<_>, Vec<_>) = own
        .chain(turns)
        .enumerate()
        .map(|(k, (order, gain))| (order.to_owned(), (k as f64, gain)))
        .unzip();
    Figure {
        id: study.id("orders-portfolio"),
        title: study.title("the best of so many orders"),
        caption: format!(
            "Mean gain over {} when the best of the orders up to here is taken for each matrix. Each \
             order is the one that adds the most to those before it.",
            study.over()
        ),
        x: Axis::names("orders, one more at each step", names),
        y: Axis::log("mean gain"),
        series: vec![Series { name: String::new(), mark: Mark::Line(points) }],
        rules: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn each_turn_takes_the_order_that_adds_most() {
        let mut records = Vec::new();
        // Gains of lpt: 2 and 1; of flipped: 1 and 1.5; of plain: 1.9 and 0.5.
        let times = [("a", 2.0, 1.0, 2.0, 2.0 / 1.9), ("b", 3.0, 3.0, 2.0, 6.0)];
        for (matrix, own, lpt, flipped, plain) in times {
            for (algorithm, ms) in [
                ("segmented", own),
                ("segmented@lpt", lpt),
                ("segmented@flipped", flipped),
                ("segmented@plain", plain),
            ] {
                let mut r = record(matrix, "gustav", algorithm);
                r.execute_ms = Some(ms);
                records.push(r);
            }
        }
        let sites = Site::all(&records);
        let studies = Study::all(&sites);
        let turns = turns(&studies[0]);
        let names: Vec<_> = turns.iter().map(|t| t.0).collect();
        assert_eq!(names, ["lpt", "flipped", "plain"]);
        for (turn, gain) in turns.iter().zip([1.5, 1.75, 1.75]) {
            assert!((turn.1 - gain).abs() < 1e-12, "{turns:?}");
        }
        assert_eq!(
            studies[0].matrices.iter().map(|m| m.best()).collect::<Vec<_>>(),
            ["lpt", "flipped"]
        );
    }
}
