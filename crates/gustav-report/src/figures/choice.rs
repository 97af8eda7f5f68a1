//! Quality of the rules of `auto`: chosen against fastest algorithms, and the cost of wrong choices
//! (figures 13 and 14 of the study of row permutations for SpMM on GPUs).

use std::collections::BTreeSet;

use crate::CHOOSERS;
use crate::Record;
use crate::analysis::{Groups, Platform, Product, grouped, histogram};
use crate::draw::{Axis, Figure, Mark, bars, lines_and_columns, one};

/// Upper ends of the bars of the histogram, in percent, and their names.
const BINS: [(f64, &str); 8] = [
    (1.0, "up to 1"),
    (2.0, "1-2"),
    (5.0, "2-5"),
    (10.0, "5-10"),
    (20.0, "10-20"),
    (50.0, "20-50"),
    (100.0, "50-100"),
    (f64::INFINITY, "over 100"),
];

/// One case: the fastest algorithm, the one that auto chose, and how much longer auto took, in
/// percent.
struct Choice<'a> {
    fastest: &'a str,
    chosen: &'a str,
    loss: f64,
}

impl<'a> Choice<'a> {
    /// `None` unless auto and two or more algorithms were timed.
    fn of(round: &[&'a Record]) -> Option<Self> {
        let auto = round.iter().find(|r| r.is_ours() && r.algorithm == "auto")?;
        let named = |r: &&&'a Record| r.is_ours() && !CHOOSERS.contains(&plain(&r.algorithm));
        let named: Vec<_> = round.iter().filter(named).copied().collect();
        let best = named.iter().min_by(|a, b| a.time().total_cmp(&b.time()))?;
        let chosen = plain(auto.chosen.as_deref()?);
        // Auto may choose a configuration that was not measured by name.
        let fastest = if auto.time() <= best.time() { chosen } else { plain(&best.algorithm) };
        let loss = 100.0 * (auto.time() / auto.time().min(best.time()) - 1.0);
        (named.len() > 1).then_some(Choice { fastest, chosen, loss })
    }
}

/// The algorithm without its configuration and row order.
fn plain(name: &str) -> &str {
    name.split(['#', '@']).next().unwrap_or(name)
}

/// Time of auto over that of the fastest of our algorithms, for every case with two or more of them, by
/// the name of the operation.
pub(super) fn lost(platform: &Platform) -> Groups<String, f64> {
    let rounds = platform.rounds_with(|round| Choice::of(round).is_some()).into_iter();
    grouped(rounds.filter_map(|(case, round)| {
        Some((Product::of(case).name().to_owned(), 1.0 + Choice::of(&round)?.loss / 100.0))
    }))
}

/// A confusion matrix and a histogram of losses for every platform and operation.
pub(super) fn all(platforms: &[Platform]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for platform in platforms {
        let rounds = platform.rounds_with(|round| Choice::of(round).is_some()).into_iter();
        let choices = rounds.filter_map(|(case, round)| {
            Some((Product::of(case).name().to_owned(), Choice::of(&round)?))
        });
        for (name, choices) in grouped(choices) {
            // Not drawn if the same algorithm is always the fastest and chosen.
            figures.extend(confusion(&platform.name, &name, &choices));
            figures.push(losses(&platform.name, &name, &choices));
        }
    }
    figures
}

fn confusion(platform: &str, name: &str, choices: &[Choice<'_>]) -> Option<Figure> {
    let known: BTreeSet<&str> = choices.iter().flat_map(|c| [c.fastest, c.chosen]).collect();
    let known: Vec<&str> = known.into_iter().collect();
    if known.len() < 2 {
        return None;
    }
    let at = |name: &str| known.iter().position(|k| *k == name).unwrap_or(0);
    let mut counts = vec![vec![0usize; known.len()]; known.len()];
    for c in choices {
        counts[at(c.fastest)][at(c.chosen)] += 1;
    }
    let mut cells = Vec::new();
    for (y, row) in counts.iter().enumerate() {
        let total: usize = row.iter().sum();
        for (x, count) in row.iter().enumerate() {
            let fraction = *count as f64 / total.max(1) as f64;
            cells.push((x as f64, y as f64, fraction, count.to_string()));
        }
    }
    let right = choices.iter().filter(|c| c.fastest == c.chosen).count();
    let (lines, columns) = lines_and_columns(known.iter().map(|k| (*k).to_owned()).collect());
    Some(Figure::new(
        format!("confusion {platform} {name}"),
        format!("{name}, {platform}: chosen and fastest algorithm"),
        format!(
            "Cases by the algorithm of ours that was fastest and the one that auto chose; shades show the fraction of the row. Auto chose the fastest algorithm in {right} of {} cases. \
             Algorithms by name run their usual configuration; auto may run another.",
            choices.len()
        ),
        [Axis::names("chosen by auto", columns), Axis::names("fastest of ours", lines)],
        one(Mark::Cells(cells)),
    ))
}

fn losses(platform: &str, name: &str, choices: &[Choice<'_>]) -> Figure {
    let counts = histogram(&BINS, choices.iter().map(|c| c.loss));
    let mean = choices.iter().map(|c| c.loss).sum::<f64>() / choices.len() as f64;
    Figure::new(
        format!("loss {platform} {name}"),
        format!("{name}, {platform}: loss by the choice"),
        format!(
            "How much longer auto takes than the fastest of ours; {mean:.1} % on average over {} \
             cases.",
            choices.len()
        ),
        [Axis::names("loss (%)", BINS.map(|bin| bin.1)), Axis::linear("cases")],
        bars(counts.into_iter().map(|count| count as f64)),
    )
}
