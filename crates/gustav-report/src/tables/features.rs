//! What the features of the row orders study cost.

use crate::FeatureTimes;
use crate::table::{Table, number, row};

/// The table that the times fill, if there are any.
pub(crate) fn all(times: &FeatureTimes) -> Option<Table> {
    let numbers = |ratios: &[f64]| ratios.iter().map(|ratio| number(*ratio, 2)).collect::<Vec<_>>();
    let line = |line: &crate::FeatureTime| {
        let names = row![line.matrix, number(line.mean_row_length, 1), line.threads];
        [names, numbers(&line.ratios)].concat()
    };
    let mean = |(threads, ratios): (usize, Vec<f64>)| {
        [row!["geomean", "", threads], numbers(&ratios)].concat()
    };
    let rows: Vec<_> =
        times.means().into_iter().map(mean).chain(times.lines.iter().map(line)).collect();
    let caption = "Time of counting the 24 features of table II over that of passes of the same number of threads \
                   that do less: over the column indices alone; over row offsets and column indices, with a sum for \
                   each row; over the column indices with a count for each cache line; that row by row.";
    let columns = format!("matrix, nonzeros a row, threads, {}", times.passes.join(", "));
    (!rows.is_empty())
        .then(|| Table::new("features", "Cost of the features", &columns, caption, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature_times::tests::feature_times;

    #[test]
    fn means_of_each_number_of_threads_come_first() {
        let table = all(&feature_times()).expect("a table");
        let found: Vec<_> = table.rows.iter().map(|row| row.join(" ")).collect();
        assert_eq!(
            found,
            [
                "geomean  1 4.00 2.00",
                "geomean  2 1.00 1.00",
                "uniform:4x9,2 2.0 1 8.00 4.00",
                "grid 4.0 1 2.00 1.00",
                "grid 4.0 2 1.00 1.00",
            ]
        );
        assert_eq!(table.columns.len(), 5);
        assert_eq!(all(&FeatureTimes::default()), None);
    }
}
