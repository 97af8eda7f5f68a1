//! Gains and costs of row orders.

use super::published_orders::{self, ORACLE, ORACLE_OVER_CUSPARSE, STORED_OVER_CUSPARSE};
use crate::Ratios;
use crate::analysis::{OrderStudy, OrderedMatrix, Platform};
use crate::table::{Row, Table, number, row};

/// Largest, mean and smallest gain of every order (table I of the study), and the geometric mean.
pub(super) fn gains(platforms: &[Platform]) -> Table {
    let studies = OrderStudy::all(platforms);
    let is_bounded = |study: &OrderStudy<'_>| {
        study.orders().into_iter().any(|order| study.bounded(order).is_some())
    };
    let has_searches = studies.iter().any(is_bounded);
    let mut rows: Vec<Row> = Vec::new();
    for study in &studies {
        for (order, gains) in with_oracle(study) {
            rows.extend(line(study, order, &gains, has_searches));
        }
    }
    let caption = "Time of the same algorithm with rows as stored over time in another order, its own list \
                   among them; where rows as stored were not measured, over its own list. Each suite by \
                   itself, and its derived matrices apart. Over peers: mean of the time of the fastest peer over \
                   the time in the order. Of the study's kernel, in any configuration and of any width, the paper's \
                   values beside (table I: 1,688 matrices, strips of one column, as many columns of B as A has rows; \
                   over cuSPARSE is that of CUDA 10.2), of which one is of all three hybrid-1; best of the study's is \
                   its oracle, over its orders alone. Bounded: matrices on which a greedy order compared a bounded \
                   number of rows at a step, where records say so. docs/orders has why orders gain less at the \
                   study's width.";
    let searches = if has_searches { ", bounded" } else { "" };
    let columns = format!(
        "platform, product, algorithm, suite, over, order, matrices, largest, mean, geomean, smallest, \
         over peers, GV100 largest, GV100 mean, GV100 smallest, 2080 Ti largest, 2080 Ti mean, \
         2080 Ti smallest, paper over cuSPARSE{searches}"
    );
    Table::new("orders", "Gains of row orders", &columns, caption, rows)
}

/// The gain of an order on each matrix of a study.
type Gains<'a> = Vec<(&'a OrderedMatrix<'a>, f64)>;

/// Rows as stored, every order, the best of all, and of the study's kernel its oracle.
fn with_oracle<'a>(study: &'a OrderStudy<'a>) -> Vec<(&'a str, Gains<'a>)> {
    let best = |of: &dyn Fn(&OrderedMatrix<'a>) -> f64| -> Gains<'a> {
        study.matrices.iter().map(|matrix| (matrix, of(matrix))).collect()
    };
    let of_order = |order: &'a str| {
        let gains = study.matrices.iter().filter_map(|m| Some((m, *m.gains.get(order)?)));
        (order, gains.collect())
    };
    let base = (study.base, best(&|_| 1.0));
    let orders = study.orders().into_iter().map(of_order);
    let all = ("best of all", best(&OrderedMatrix::best_gain));
    let of_study = |matrix: &OrderedMatrix<'a>| {
        matrix.best_gain_of(|order| published_orders::of(order).is_some())
    };
    let is_published = published_orders::is_of_study(study.algorithm);
    let oracle = is_published.then(|| (ORACLE, best(&of_study)));
    [base].into_iter().chain(orders).chain([all]).chain(oracle).collect()
}

fn line(study: &OrderStudy<'_>, order: &str, found: &Gains<'_>, has_searches: bool) -> Option<Row> {
    let gains: Vec<f64> = found.iter().map(|(_, gain)| *gain).collect();
    let all = Ratios::of(&gains)?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let over: Vec<f64> = found.iter().filter_map(|(m, gain)| m.over_peer(*gain)).collect();
    let over_peers = (!over.is_empty()).then(|| mean(&over));
    let OrderStudy { platform, product, algorithm, .. } = study;
    let names = row![
        platform.name,
        product.variant(),
        algorithm,
        study.matrices_of(),
        study.over(),
        order,
        all.count
    ];
    let numbers = [all.best, mean(&gains), all.geomean, all.worst].map(|x| number(x, 2));
    let is_published = published_orders::is_of_study(algorithm);
    let published = published_orders::of(order).filter(|_| is_published);
    let paper = published.map_or([[""; 3]; 2], |p| [p.gv100, p.rtx_2080_ti]);
    let over_cusparse = match order {
        ORACLE => ORACLE_OVER_CUSPARSE,
        order if is_published && order == study.base => STORED_OVER_CUSPARSE,
        _ => "",
    };
    let paper = paper.concat().into_iter().chain([over_cusparse]).map(str::to_owned);
    let bounded = study.bounded(order).map_or(String::new(), |count| count.to_string());
    let bounded = has_searches.then_some(bounded);
    let ours = numbers.into_iter().chain([number(over_peers, 2)]);
    Some(names.into_iter().chain(ours).chain(paper).chain(bounded).collect())
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
