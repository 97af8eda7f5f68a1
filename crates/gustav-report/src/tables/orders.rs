//! Gains and costs of row orders.

use crate::Ratios;
use crate::analysis::{OrderStudy, Platform};
use crate::table::{Row, Table, number, row};

/// Largest, mean and smallest gain of every order (table I of the study), and the geometric mean.
pub(super) fn gains(platforms: &[Platform]) -> Table {
    let mut rows: Vec<Row> = Vec::new();
    for study in OrderStudy::all(platforms) {
        for (order, gains) in study.gains_by_order() {
            let Some(all) = Ratios::of(&gains) else { continue };
            let mean = gains.iter().sum::<f64>() / all.count as f64;
            let OrderStudy { platform, product, algorithm, .. } = &study;
            let matrices_of = study.matrices_of();
            let names =
                row![platform.name, product.variant(), algorithm, matrices_of, study.over(), order];
            let numbers = [all.best, mean, all.geomean, all.worst].map(|x| number(x, 2));
            rows.push([names, row![all.count], numbers.into()].concat());
        }
    }
    let caption = "Time of the same algorithm with rows as stored over time in another order, its own list \
                   among them; where rows as stored were not measured, over its own list. Each suite by \
                   itself, and its derived matrices apart.";
    let columns = "platform, product, algorithm, suite, over, order, matrices, largest, mean, geomean, smallest";
    Table::new("orders", "Gains of row orders", columns, caption, rows)
}

/// The best order of every matrix, and the executions that repay it.
pub(super) fn break_even(platforms: &[Platform]) -> Table {
    const NEVER: &str = "never";
    let count = |calls: f64| format!("{:.0}", calls.ceil());
    let mut rows = Vec::new();
    for study in OrderStudy::all(platforms) {
        for matrix in &study.matrices {
            let predicted = matrix.predicted.map(|r| matrix.own.time() / r.time());
            let repaid = matrix.break_even();
            let of = |value: Option<f64>, digits| number(repaid.as_ref().and(value), digits);
            let (mut executions, mut with_features) = (NEVER.to_owned(), NEVER.to_owned());
            if let Some(repaid) = &repaid {
                executions = count(repaid.executions());
                with_features = repaid.with_features().map(count).unwrap_or_default();
            }
            let floors = repaid.as_ref().and_then(|r| r.floors);
            rows.push(row![
                study.platform.name,
                study.product.variant(),
                study.algorithm,
                study.suite,
                matrix.own.case.matrix,
                matrix.best(),
                number(matrix.gain_over_stored(), 3),
                number(matrix.gain_over_own(), 3),
                number(predicted, 3),
                of(repaid.as_ref().map(|r| r.order_ms), 2),
                of(repaid.as_ref().and_then(|r| r.features_ms), 2),
                executions,
                with_features,
                number(floors.map(|f| f.0), 0),
                number(floors.map(|f| f.1), 0),
            ]);
        }
    }
    let caption = "What is best on each matrix and what it gains over rows as stored, where those were \
                   measured; what the best order gains over the algorithm without one, and the executions \
                   whose saving over that is as long as making it on the host; then with counting the \
                   features, which a predictor needs. Moving the pattern to the host is left out. \
                   The predictor's gain is over the algorithm without an order too, for as many calls as \
                   repay any; another algorithm may be what it takes. The last columns have the memory \
                   floor over the time without the order and with it.";
    let columns = "platform, product, algorithm, suite, matrix, best, over stored, over none, predictor's, \
                   order (ms), features (ms), executions, with features, floor without (%), \
                   floor with (%)";
    let title = "Break-even executions of a row order";
    Table::new("break-even-of-orders", title, columns, caption, rows)
}
