//! The rule of Yang, Buluç and Owens (2018, §5.4): nonzero-split below a mean row length, else
//! row-split; how often it names the faster of the two, and what it costs.

use std::collections::BTreeMap;

use crate::{Record, compare};

/// The paper's threshold of mean row length.
pub(crate) const PAPER: f64 = gustav_plan::heuristics::mean_row_length::THRESHOLD;

/// How well the rule does on the matrix files that both kernels were measured on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Threshold {
    /// Matrices.
    pub matrices: usize,
    /// Share of them on which the paper's threshold names the faster kernel.
    pub paper_right: f64,
    /// Geomean of the time of the kernel that it names over that of the faster one.
    pub paper_cost: f64,
    /// The threshold that names it most often.
    pub best: f64,
    /// How often that is.
    pub best_right: f64,
    /// Its geomean.
    pub best_cost: f64,
}

impl Threshold {
    /// Fitted to pairs of mean row length and time of row-split over that of nonzero-split.
    fn fit(cases: &[(f64, f64)]) -> Self {
        let right = |threshold: f64| {
            let named = cases.iter().filter(|(mean, gain)| (*mean < threshold) == (*gain > 1.0));
            named.count() as f64 / cases.len() as f64
        };
        let cost = |threshold: f64| {
            let wrong = cases.iter().filter(|(mean, gain)| (*mean < threshold) != (*gain > 1.0));
            (wrong.map(|(_, gain)| gain.ln().abs()).sum::<f64>() / cases.len() as f64).exp()
        };
        let lengths = cases.iter().map(|(mean, _)| *mean);
        let best = lengths.fold(PAPER, |best, x| if right(x) > right(best) { x } else { best });
        Threshold {
            matrices: cases.len(),
            paper_right: right(PAPER),
            paper_cost: cost(PAPER),
            best,
            best_right: right(best),
            best_cost: cost(best),
        }
    }
}

impl std::fmt::Display for Threshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "right on {:.0}% with the threshold {PAPER}, on {:.0}% with {:.2}, the best here; \
             {:.2} and {:.2} times as long as the faster of the two",
            100.0 * self.paper_right,
            100.0 * self.best_right,
            self.best,
            self.paper_cost,
            self.best_cost
        )
    }
}

/// The rule on every operation, type and number of columns of `records`.
pub(crate) fn thresholds(records: &[Record]) -> BTreeMap<(&str, &str, usize), Threshold> {
    let split = compare(records, "row-split");
    let merged = compare(records, "nonzero-split");
    let mut cases = BTreeMap::<_, Vec<(f64, f64)>>::new();
    for (r, m) in split.iter().filter_map(|r| {
        let same = |m: &&crate::Comparison<'_>| m.ours.group == r.ours.group;
        Some((r, merged.iter().find(same)?))
    }) {
        let case = &r.ours.case;
        // Generated matrices, in which one thing varies, are not what the rule is for.
        if case.matrix.contains(':') {
            continue;
        }
        let Some(gain) = r.ours.execute_ms.zip(m.ours.execute_ms).map(|(r, m)| r / m) else {
            continue;
        };
        let key = (case.operation.as_str(), case.dtype.as_str(), case.columns);
        cases.entry(key).or_default().push((r.ours.mean_row_length, gain));
    }
    cases.into_iter().map(|(key, cases)| (key, Threshold::fit(&cases))).collect()
}
