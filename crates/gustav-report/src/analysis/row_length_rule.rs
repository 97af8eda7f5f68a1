//! The rule of Yang, Buluç and Owens (2018, §5.4): nonzero-split below a mean row length, else
//! row-split; how often it chooses the faster of the two, and what wrong choices cost. Beside it, the
//! opposite one by the longest row: nonzero-split from a length on.

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
    /// The length of the longest row from which on nonzero-split is the faster one most often.
    pub longest: f64,
    /// Fraction of matrices on which that chooses the faster kernel.
    pub longest_right: f64,
}

/// A matrix on which both kernels were measured.
struct Both {
    mean: f64,
    longest: f64,
    /// Time of row-split over that of nonzero-split.
    gain: f64,
}

impl RowLengthRule {
    /// The best thresholds for `cases`.
    fn fit(cases: &[Both]) -> Self {
        let part = |found: usize| found as f64 / cases.len() as f64;
        let right = |threshold: f64| {
            part(cases.iter().filter(|c| (c.mean < threshold) == (c.gain > 1.0)).count())
        };
        let cost = |threshold: f64| {
            let wrong = cases.iter().filter(|c| (c.mean < threshold) != (c.gain > 1.0));
            (wrong.map(|c| c.gain.ln().abs()).sum::<f64>() / cases.len() as f64).exp()
        };
        let by_longest = |threshold: f64| {
            part(cases.iter().filter(|c| (c.longest >= threshold) == (c.gain > 1.0)).count())
        };
        let lengths = cases.iter().map(|c| c.mean);
        let best = lengths.fold(PAPER, |best, x| if right(x) > right(best) { x } else { best });
        let lengths = cases.iter().map(|c| c.longest);
        let longest =
            lengths.fold(PAPER, |best, x| if by_longest(x) > by_longest(best) { x } else { best });
        RowLengthRule {
            matrices: cases.len(),
            paper_right: right(PAPER),
            paper_cost: cost(PAPER),
            best,
            best_right: right(best),
            best_cost: cost(best),
            longest,
            longest_right: by_longest(longest),
        }
    }
}

impl std::fmt::Display for RowLengthRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "right on {:.0}% with the threshold {PAPER}, on {:.0}% with {:.2}, the best here; \
             {:.2} and {:.2} times as long as the faster of the two; nonzero-split from a longest \
             row of {:.0} nonzeros on is right on {:.0}%",
            100.0 * self.paper_right,
            100.0 * self.best_right,
            self.best,
            self.paper_cost,
            self.best_cost,
            self.longest,
            100.0 * self.longest_right
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
        let both = Both {
            mean: row.ours.mean_row_length,
            longest: row.ours.max_row_length as f64,
            gain: row.ours.execute_ms? / merged.ours.execute_ms?,
        };
        // Without generated matrices: the rule is meant for those of applications.
        (!case.matrix.contains(':')).then_some((key, both))
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
            max_row_length: 100 - mean as usize,
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
        let expected = "from a longest row of 88 nonzeros on is right on 100%";
        assert!(rule.to_string().ends_with(expected), "{rule}");
    }
}
