//! Tables of published studies, and their claims with the results here.

use crate::analysis::{PaperB, Platform, row_length_rules};
use crate::table::{Row, Table, row};

/// The pairs that tables 1 to 3 of Chen, Chen, Shih, Lee (2025) compare, and further ones.
const PAIRS: [[&str; 2]; 6] = [
    ["shared-row", "hash-rows"],
    ["shared-row", "gustavson"],
    ["shared-row+transfers", "hash-rows"],
    ["shared-row+transfers", "gustavson"],
    ["pipeline", "convert-then-multiply"],
    ["pipeline+download", "convert-then-multiply+download"],
];

/// Speed-ups of the study's implementations. The mean of a line is that of its ratios.
pub(super) fn implementations(platforms: &[Platform]) -> Table {
    let studies = PaperB::all(platforms);
    let sizes: std::collections::BTreeSet<usize> = studies.iter().flat_map(PaperB::sizes).collect();
    let mut rows: Vec<Row> = Vec::new();
    for study in &studies {
        for sparsity in study.sparsities() {
            for pair in PAIRS {
                for threads in study.threads() {
                    let of = |n: &usize| study.gain(pair, sparsity, *n, threads);
                    let gains: Vec<_> = sizes.iter().map(of).collect();
                    let known: Vec<_> = gains.iter().flatten().copied().collect();
                    if known.is_empty() {
                        continue;
                    }
                    let mean = known.iter().sum::<f64>() / known.len() as f64;
                    let numbers = gains.into_iter().chain([Some(mean)]);
                    let number = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.2}"));
                    let (pair, zeros) = (pair.join(" over "), sparsity as f64 / 10.0);
                    let names = row![study.gpu, pair, zeros, threads];
                    rows.push(names.into_iter().chain(numbers.map(number)).collect());
                }
            }
        }
    }
    let sizes: Vec<_> = sizes.iter().map(usize::to_string).collect();
    let columns =
        format!("platform, implementations, zeros (%), threads, {}, mean", sizes.join(", "));
    let caption = "Time of the second over the time of the first by N, on this number of CPU threads \
                   (tables 1 to 3 of Chen, Chen, Shih, Lee, 2025): the kernel alone, with \
                   transfers and allocation, and the pipeline without and with C copied back.";
    Table::new("implementations", "Implementations of A times A", &columns, caption, rows)
}

/// Claims of that study, with the results here.
pub(super) fn claims(platforms: &[Platform]) -> Table {
    let mut rows: Vec<Row> = Vec::new();
    for study in PaperB::all(platforms) {
        let claims = study.claims().into_iter();
        rows.extend(claims.map(|(claim, found)| row![study.gpu, claim, found]));
    }
    let caption = "Claims of the study on its kernels, and the results here.";
    Table::new("claims", "Claims of the study", "platform, claim, found", caption, rows)
}

/// The rule of Yang, Buluc and Owens (section 5.4), which chooses between their two kernels.
pub(super) fn row_length_rule(platforms: &[Platform]) -> Table {
    let mut rows: Vec<Row> = Vec::new();
    for platform in platforms {
        for ((operation, dtype, columns), rule) in row_length_rules(&platform.records) {
            rows.push(row![platform.name, operation, dtype, columns, rule.matrices, rule]);
        }
    }
    let caption = "nonzero-split below a mean row length, else row-split: how often the faster of the \
                   two is chosen (99.3 % in the paper, with 9.35, on 157 matrices).";
    let columns = "platform, product, type, columns, matrices, found";
    Table::new("row-length-rule", "The mean row length as the rule", columns, caption, rows)
}
