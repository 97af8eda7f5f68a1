//! How long the features of a matrix take, as example `orders` of `gustav-bench` records it.

use std::path::Path;

use gustav_core::Result;

use crate::Ratios;
use crate::csv::{self, Csv, Line};

/// Passes over a matrix that do less than counting its features: the column of their time, and what
/// they do. A file may lack some.
const PASSES: [(&str, &str); 4] = [
    ("pass_ms", "column indices"),
    ("row_sums_ms", "offsets and indices"),
    ("touches_ms", "with counts"),
    ("rows_ms", "row by row"),
];

/// Times of the features of matrices beside those of passes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeatureTimes {
    /// What the passes do that the features are compared with.
    pub passes: Vec<&'static str>,
    /// A line for each matrix and number of threads.
    pub lines: Vec<FeatureTime>,
}

/// The features of one matrix on a number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureTime {
    /// The matrix.
    pub matrix: String,
    /// Nonzeros per row.
    pub mean_row_length: f64,
    /// Threads.
    pub threads: usize,
    /// Time of the features ÷ time of each pass.
    pub ratios: Vec<f64>,
}

/// The times in a file.
///
/// # Errors
/// [`gustav_core::Error::Io`] when it cannot be read, [`gustav_core::Error::Format`] for columns that are missing,
/// [`gustav_core::Error::Parse`] for a line that lacks a number.
pub fn read(path: &Path) -> Result<FeatureTimes> {
    parse(&csv::text(path)?).map_err(|e| e.in_file(path))
}

fn parse(text: &str) -> Result<FeatureTimes> {
    let csv = Csv::parse(text, "times of features", "example orders of gustav-bench");
    let [matrix, rows, nnz] = [csv.column("matrix")?, csv.column("rows")?, csv.column("nnz")?];
    let [threads, features] = [csv.column("threads")?, csv.column("features_ms")?];
    let own = PASSES.iter().filter(|(column, _)| csv.has(column));
    let (columns, passes): (Vec<_>, Vec<_>) = own.copied().unzip();
    let columns = columns.into_iter().map(|name| csv.column(name)).collect::<Result<Vec<_>>>()?;
    let of_line = |line: Line<'_>| {
        let ratio = |column: &usize| Ok(line.number(features)? / line.number(*column)?);
        Ok(FeatureTime {
            matrix: line.word(matrix).to_owned(),
            mean_row_length: line.number(nnz)? / line.number(rows)?,
            threads: line.number(threads)? as usize,
            ratios: columns.iter().map(ratio).collect::<Result<_>>()?,
        })
    };
    let lines = csv.lines().map(of_line).collect::<Result<_>>()?;
    Ok(FeatureTimes { passes, lines })
}

impl FeatureTimes {
    /// Numbers of threads, each with the geometric mean of the ratios to each pass.
    pub fn means(&self) -> Vec<(usize, Vec<f64>)> {
        let mut threads: Vec<_> = self.lines.iter().map(|line| line.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        let mean = |threads: usize, pass: usize| {
            let own = self.lines.iter().filter(|line| line.threads == threads);
            let ratios: Vec<_> = own.map(|line| line.ratios[pass]).collect();
            Ratios::of(&ratios).map(|ratios| ratios.geomean)
        };
        let means = |threads| (0..self.passes.len()).filter_map(|k| mean(threads, k)).collect();
        threads.into_iter().map(|threads| (threads, means(threads))).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const LINES: &str = "matrix,rows,nnz,threads,pass_ms,touches_ms,features_ms\n\
                         \"uniform:4x9,2\",4,8,1,1.0,2.0,8.0\n\
                         grid,2,8,1,2.0,4.0,4.0\n\
                         grid,2,8,2,1.0,1.0,1.0\n";

    /// Times that fill the table.
    pub(crate) fn feature_times() -> FeatureTimes {
        parse(LINES).expect("times")
    }

    #[test]
    fn passes_are_those_that_the_file_has() {
        let found = feature_times();
        assert_eq!(found.passes, ["column indices", "with counts"]);
        assert_eq!(
            (found.lines[0].matrix.as_str(), found.lines[1].mean_row_length),
            ("uniform:4x9,2", 4.0)
        );
        assert_eq!(found.means(), [(1, vec![4.0, 2.0]), (2, vec![1.0, 1.0])]);
        let more = LINES.replace("touches_ms", "row_sums_ms");
        assert_eq!(parse(&more).expect("times").passes, ["column indices", "offsets and indices"]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = parse("matrix,rows,nnz,pass_ms\n").expect_err("no threads").to_string();
        assert!(error.contains("threads") && error.contains("example orders"), "{error}");
        let error = parse(&LINES.replace("2.0,8.0", "2.0,")).expect_err("no time").to_string();
        assert!(error.contains("features_ms"), "{error}");
    }
}
