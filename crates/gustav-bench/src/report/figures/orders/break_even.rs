//! How many executions repay a row order: what making it and counting the features takes over what
//! each execution saves.

use super::super::super::axis::Axis;
use super::super::super::figure::{Figure, Mark, distribution};
use super::super::super::site::Site;
use super::super::super::table::Table;
use super::super::series;
use super::{Matrix, STORED, Study, time};

const NEVER: &str = "never";

/// What the order that gains most on a matrix takes and saves.
struct Repaid {
    /// Planning with the order less planning without.
    order_ms: f64,
    features_ms: Option<f64>,
    saved_ms: f64,
}

impl Repaid {
    /// None where no order gains.
    fn of(matrix: &Matrix<'_>) -> Option<Self> {
        let best = matrix.orders.values().min_by(|a, b| time(a).total_cmp(&time(b)));
        let r = best.filter(|r| time(r) < time(matrix.own))?;
        Some(Repaid {
            order_ms: r.plan_ms? - matrix.own.plan_ms?,
            features_ms: r.features_ms,
            saved_ms: time(matrix.own) - time(r),
        })
    }

    /// Executions that repay the order.
    fn executions(&self) -> f64 {
        (self.order_ms / self.saved_ms).max(1.0)
    }

    /// Executions that repay the order and the features that name it.
    fn with_features(&self) -> Option<f64> {
        Some(((self.order_ms + self.features_ms?) / self.saved_ms).max(1.0))
    }
}

/// The best order of every matrix, and the executions that repay it.
pub(crate) fn table(sites: &[Site]) -> Table {
    let mut rows = Vec::new();
    for study in Study::all(sites) {
        for matrix in &study.matrices {
            let repaid = Repaid::of(matrix);
            let over_stored = match matrix.base {
                STORED => format!("{:.3}", matrix.oracle()),
                _ => String::new(),
            };
            let cell = |value: Option<String>| value.unwrap_or_else(|| NEVER.into());
            let ms = |ms: f64| format!("{ms:.2}");
            let count = |calls: f64| format!("{:.0}", calls.ceil());
            rows.push(vec![
                study.site.name.clone(),
                study.product.variant(),
                study.algorithm.to_owned(),
                matrix.own.case.matrix.clone(),
                matrix.best().to_owned(),
                over_stored,
                format!("{:.3}", matrix.over_own()),
                matrix
                    .predicted
                    .map(|r| format!("{:.3}", time(matrix.own) / time(r)))
                    .unwrap_or_default(),
                repaid.as_ref().map(|r| ms(r.order_ms)).unwrap_or_default(),
                repaid.as_ref().and_then(|r| r.features_ms).map(ms).unwrap_or_default(),
                cell(repaid.as_ref().map(|r| count(r.executions()))),
                match &repaid {
                    Some(repaid) => repaid.with_features().map(count).unwrap_or_default(),
                    None => NEVER.into(),
                },
            ]);
        }
    }
    Table {
        id: "break-even-of-orders",
        title: "Executions that repay a row order",
        caption: "What is best on each matrix and what it gains over rows as stored, where those were \
                  measured; what the best order gains over the algorithm without one, and the executions \
                  whose saving over that is as long as making it on the host; then with counting the \
                  features, which a predictor needs. Moving the pattern to the host is left out. \
                  The predictor's gain is over the algorithm without an order too, for as many calls as \
                  repay any; another algorithm may be what it takes."
            .into(),
        head: &[
            "place",
            "of",
            "algorithm",
            "matrix",
            "best",
            "over stored",
            "over none",
            "predictor's",
            "order (ms)",
            "features (ms)",
            "executions",
            "with features",
        ],
        rows,
    }
}

/// Of every study the share of its matrices whose best order is repaid by so many executions.
pub(crate) fn all(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for study in Study::all(sites) {
        let repaid: Vec<_> = study.matrices.iter().filter_map(Repaid::of).collect();
        let alone: Vec<f64> = repaid.iter().map(Repaid::executions).collect();
        if alone.is_empty() {
            continue;
        }
        let both: Vec<f64> = repaid.iter().filter_map(Repaid::with_features).collect();
        let mut curves = vec![("the order".to_owned(), distribution(alone))];
        if !both.is_empty() {
            curves.push(("the order and the features".to_owned(), distribution(both)));
        }
        let (gaining, matrices) = (repaid.len(), study.matrices.len());
        figures.push(Figure {
            id: study.id("order-break-even"),
            title: study.title("executions that repay an order"),
            caption: format!(
                "Of the {gaining} of {matrices} matrices on which an order gains, the share on which \
                 the best one is repaid by so many executions."
            ),
            x: Axis::log("executions"),
            y: Axis::linear("share of the matrices (%)"),
            series: series(curves, Mark::Steps),
            rules: Vec::new(),
        });
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use crate::record::tests::record;

    #[test]
    fn executions_repay_what_the_order_and_the_features_took() {
        let of = |matrix: &str, algorithm: &str, execute_ms, plan_ms| Record {
            execute_ms: Some(execute_ms),
            plan_ms: Some(plan_ms),
            features_ms: algorithm.contains('@').then_some(6.0),
            ..record(matrix, "gustav", algorithm)
        };
        let records = [
            of("a", "segmented", 3.0, 1.0),
            of("a", "segmented@lpt", 2.0, 5.0),
            of("a", "segmented@plain", 1.0, 9.0),
            of("a", "predictor", 1.5, 20.0),
            of("b", "segmented", 1.0, 1.0),
            of("b", "segmented@lpt", 2.0, 5.0),
        ];
        let sites = Site::all(&records);
        let table = table(&sites);
        assert_eq!(
            table.rows[0][3..],
            ["a", "plain", "", "3.000", "2.000", "8.00", "6.00", "4", "7"]
        );
        let own = ["b", "its own list", "", "1.000", "", "", "", NEVER, NEVER];
        assert_eq!(table.rows[1][3..], own);
        let figures = all(&sites);
        assert_eq!((figures.len(), figures[0].series.len()), (1, 2));
        assert!(figures[0].caption.contains("1 of 2"), "{}", figures[0].caption);
        assert!(all(&Site::all(&records[4..])).is_empty());
        // Beside rows as stored, which may be the best, as an order that gains over the list.
        let records = [
            of("c", "segmented", 3.0, 1.0),
            of("c", "segmented@lpt", 2.0, 5.0),
            of("c", "segmented@stored", 1.0, 3.0),
            of("d", "segmented", 1.0, 1.0),
            of("d", "segmented@lpt", 2.0, 5.0),
            of("d", "segmented@stored", 1.5, 3.0),
        ];
        let rows = super::table(&Site::all(&records)).rows;
        let stored = ["c", "stored", "1.000", "3.000", "", "2.00", "6.00", "1", "4"];
        let own = ["d", "its own list", "1.500", "1.000", "", "", "", NEVER, NEVER];
        assert_eq!(
            (&rows[0][3..], &rows[1][3..]),
            (&stored.map(str::to_owned)[..], &own.map(str::to_owned)[..])
        );
    }

    #[test]
    fn products_as_wide_as_their_matrices_are_one_study() {
        let of = |matrix: &str, algorithm: &str, columns| {
            let mut r = record(matrix, "gustav", algorithm);
            (r.case.columns, r.cols) = (columns, columns);
            r
        };
        let matrices = [("a", 30), ("b", 40)];
        let all = matrices.map(|(m, n)| [of(m, "segmented", n), of(m, "segmented@lpt", n)]);
        let table = table(&Site::all(&all.concat()));
        assert_eq!(table.rows.len(), 2);
        assert!(table.rows.iter().all(|row| row[1] == "f32 n = columns of A"), "{:?}", table.rows);
    }
}
