//! Studies of synthetic records.

use super::*;
use crate::record::tests::record;

#[test]
fn the_portfolio_takes_the_order_that_adds_most() {
    let mut records = Vec::new();
    // Gains of lpt: 2 and 1; of flipped: 1 and 1.5; of plain: 1.9 and 0.5.
    let times = [("a", [2.0, 1.0, 2.0, 2.0 / 1.9]), ("b", [3.0, 3.0, 2.0, 6.0])];
    for (matrix, times) in times {
        let orders = ["segmented", "segmented@lpt", "segmented@flipped", "segmented@plain"];
        records.extend(orders.into_iter().zip(times).map(|(algorithm, ms)| Record {
            execute_ms: Some(ms),
            ..record(matrix, "gustav", algorithm)
        }));
    }
    let platforms = Platform::all(&records);
    let study = &OrderStudy::all(&platforms)[0];
    let (names, gains): (Vec<_>, Vec<_>) = study.portfolio().into_iter().unzip();
    assert_eq!(names, ["lpt", "flipped", "plain"]);
    for (gain, expected) in gains.into_iter().zip([1.5, 1.75, 1.75]) {
        assert!((gain - expected).abs() < 1e-12, "{gain}");
    }
    let best: Vec<_> = study.matrices.iter().map(OrderedMatrix::best).collect();
    assert_eq!(best, ["lpt", "flipped"]);
}

#[test]
fn the_format_and_the_order_of_one_name_are_two() {
    let times = [
        ("output-stationary", 4.0),
        ("dcsr", 1.0),
        ("output-stationary@dcsr", 2.0),
        ("output-stationary@lpt", 8.0),
    ];
    let records = times
        .map(|(algorithm, ms)| Record { execute_ms: Some(ms), ..record("m", "gustav", algorithm) });
    let platforms = Platform::all(&records);
    let study = &OrderStudy::all(&platforms)[0];
    let gains = [("dcsr", 2.0), ("dcsr (format)", 4.0), ("lpt", 0.5), ("best of all", 4.0)];
    assert_eq!(study.gains_by_order(), gains.map(|(order, gain)| (order, vec![gain])));
    // A format alone is no study of orders.
    assert!(OrderStudy::all(&Platform::all(&records[..2])).is_empty());
}

#[test]
fn suites_and_derived_matrices_are_studies_apart() {
    let of =
        |suite: &str, matrix: &str, group, order: &str| {
            ["output-stationary".to_owned(), format!("output-stationary@{order}")].map(|name| {
                Record { suite: suite.into(), group, ..record(matrix, "gustav", &name) }
            })
        };
    let records = [
        of("paper-c", "a", 1, "flipped"),
        // Later, with another order of the same case.
        of("tune", "a", 2, "lpt"),
        of("tune", "a copies:2", 3, "lpt"),
    ];
    let platforms = Platform::all(&records.concat());
    let found: Vec<_> = OrderStudy::all(&platforms)
        .iter()
        .map(|s| (s.matrices_of(), s.matrices.len(), s.orders().contains("flipped")))
        .collect();
    let names = [("paper-c", true), ("tune", false), ("tune, derived", false)];
    assert_eq!(found, names.map(|(name, flipped)| (name.to_owned(), 1, flipped)));
}

#[test]
fn searches_with_a_bound_are_counted_where_records_say_how_they_searched() {
    let of = |matrix: &str, algorithm: &str, reason: &str| Record {
        reason: Some(format!("named by the caller; rows in the order lpt, {reason}")),
        ..record(matrix, "gustav", algorithm)
    };
    let bounded = "searched among 8 candidates a neighbourhood: OutputStationary";
    let records = [
        record("a", "gustav", "output-stationary"),
        of("a", "output-stationary@lpt", "as it is defined: OutputStationary"),
        of("a", "output-stationary@warp-aware", bounded),
        record("b", "gustav", "output-stationary"),
        of("b", "output-stationary@warp-aware", "as it is defined: OutputStationary"),
        record("b", "gustav", "output-stationary@flipped"),
    ];
    let platforms = Platform::all(&records);
    let study = &OrderStudy::all(&platforms)[0];
    let found = ["lpt", "warp-aware", "flipped"].map(|order| study.bounded(order));
    assert_eq!(found, [Some(0), Some(1), None]);
}
