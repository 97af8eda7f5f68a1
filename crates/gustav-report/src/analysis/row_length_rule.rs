//! The rule of Yang, Buluç and Owens (2018, §5.4): nonzero-split below a mean row length, else
//! row-split; how often it chooses the faster of the two, and what wrong choices cost.

use std::collections::BTreeMap;

use super::compare::compare;
use super::ratios::grouped;
use crate::Record;

/// The paper's threshold of mean row length.
pub(crate) const PAPER: f64 = gustav_plan::heuristics::mean_row_length::THRESHOLD;

/// The rule on the matrix files on which both kernels were measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RowLengthRule {
    /// Matrices.
    pub matrices: usize,
    /// Fraction of them on which the paper's threshold chooses the faster kernel.
    pub paper_right: f64,
    /// Geomean of the time of the chosen kernel over that of the faster one.
    pub paper_cost: f64,
    /// The threshold that chooses the faster one most often.
    pub best: f64,
    /// Fraction of matrices on which it does.
    pub best_right: f64,
    /// Its cost, as `paper_cost`.
    pub best_cost: f64,
}

impl RowLengthRule {
    /// The best threshold for pairs of mean row length and time of row-split over that of
    /// nonzero-split.
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
        RowLengthRule {
            matrices: cases.len(),
            paper_right: right(PAPER),
            paper_cost: cost(PAPER),
            best,
            best_right: right(best),
            best_cost: cost(best),
        }
    }
}

impl std::fmt::Display for RowLengthRule {
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
pub(crate) fn row_length_rules(records: &[Record]) -> BTreeMap<(&str, &str, usize), RowLengthRule> {
    let (split, merged) = (compare(records, "row-split"), compare(records, "nonzero-split"));
    let cases = split.iter().filter_map(|row| {
        let merged = merged.iter().find(|m| m.ours.group == row.ours.group)?;
        let case = &row.ours.case;
        let key = (case.operation.as_str(), case.dtype.as_str(), case.columns);
        let gain = row.ours.execute_ms? / merged.ours.execute_ms?;
        // Without generated matrices: the rule is meant for those of applications.
        (!case.matrix.contains(':')).then_some((key, (row.ours.mean_row_length, gain)))
    });
    grouped(cases).into_iter().map(|(key, cases)| (key, RowLengthRule::fit(&cases))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn the_threshold_is_fitted_to_the_faster_of_two() {
        let of = |name: &str, algorithm: &str, mean: f64, ms: f64| Record {
            mean_row_length: mean,
            group: mean as u64,
            execute_ms: Some(ms),
            ..record(name, "gustav", algorithm)
        };
        let times =
            [("short", 4.0, 2.0, 1.0), ("longer", 12.0, 2.0, 1.0), ("long", 40.0, 1.0, 2.0)];
        let records = times.map(|(name, mean, split, merged)| {
            [of(name, "row-split", mean, split), of(name, "nonzero-split", mean, merged)]
        });
        let records = records.concat();
        let rule = &row_length_rules(&records)[&("spmm", "f32", 8)];
        let expected = "right on 67% with the threshold 9.35, on 100% with 40.00";
        assert!(rule.to_string().starts_with(expected), "{rule}");
    }
}
