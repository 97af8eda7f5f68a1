//! Tables of the papers.

use super::*;

/// A record of an order, with its time and that of planning.
fn ordered(matrix: &str, algorithm: &str, execute_ms: f64, plan_ms: f64) -> Record {
    Record {
        execute_ms: Some(execute_ms),
        plan_ms: Some(plan_ms),
        features_ms: algorithm.contains('@').then_some(6.0),
        ..record(matrix, "gustav", algorithm)
    }
}

#[test]
fn executions_repay_what_the_order_and_the_features_took() {
    let records = [
        ordered("a", "segmented", 3.0, 1.0),
        ordered("a", "segmented@lpt", 2.0, 5.0),
        ordered("a", "segmented@plain", 1.0, 9.0),
        ordered("a", "predictor", 1.5, 20.0),
        ordered("b", "segmented", 1.0, 1.0),
        ordered("b", "segmented@lpt", 2.0, 5.0),
    ]
    .map(|r| Record { floor_ms: Some(0.5), ..r });
    let found = rows(&records, "break-even-of-orders");
    let best = ["a", "plain", "", "3.000", "2.000", "8.00", "6.00", "4", "7", "17", "50"];
    assert_eq!(found[0][3..], best);
    let own = ["b", "its own list", "", "1.000", "", "", "", "never", "never", "", ""];
    assert_eq!(found[1][3..], own);
    // With rows as stored, which may be the best: then they count as an order that gains over the
    // list.
    let records = [
        ordered("c", "segmented", 3.0, 1.0),
        ordered("c", "segmented@lpt", 2.0, 5.0),
        ordered("c", "segmented@stored", 1.0, 3.0),
        ordered("d", "segmented", 1.0, 1.0),
        ordered("d", "segmented@lpt", 2.0, 5.0),
        ordered("d", "segmented@stored", 1.5, 3.0),
    ];
    let found = rows(&records, "break-even-of-orders");
    assert_eq!(found[0][3..12], ["c", "stored", "1.000", "3.000", "", "2.00", "6.00", "1", "4"]);
    let own = ["d", "its own list", "1.500", "1.000", "", "", "", "never", "never"];
    assert_eq!(found[1][3..12], own);
    let gains = rows(&records, "orders");
    assert_eq!(
        gains.iter().map(|row| row[4].as_str()).collect::<Vec<_>>(),
        ["stored", "its own list", "lpt", "best of all"]
    );
}

#[test]
fn the_papers_gains_stand_beside_those_of_its_kernel() {
    let of = |algorithm: &str, ms| on_gpu("gustav", algorithm, ms);
    let records = [
        of("output-stationary", 4.0),
        of("output-stationary@lpt:exact", 2.0),
        of("output-stationary@min-hash", 1.0),
        on_gpu("cusparse-default", "default", 6.0),
    ];
    let found = rows(&records, "orders");
    let line = |order: &str| found.iter().find(|r| r[4] == order).expect("a line")[6..].join(" ");
    assert_eq!(line("stored"), "1.00 1.00 1.00 1.00 1.50       1.67-1.89");
    assert_eq!(line("lpt:exact"), "2.00 2.00 2.00 2.00 3.00 3.5 1.10 0.8 1.9 1.06 0.6 ");
    assert_eq!(line("min-hash"), "4.00 4.00 4.00 4.00 6.00       ");
    assert_eq!(line("best of all"), "4.00 4.00 4.00 4.00 6.00       ");
    let oracle = "2.00 2.00 2.00 2.00 3.00 13.5 1.4 1 20.2 1.37 1 2.31-2.65";
    assert_eq!(line("best of the study's"), oracle);
    let bounded = "searched among 8 candidates a neighbourhood".to_owned();
    let mut records = records;
    records[1].reason = Some(bounded);
    let found = rows(&records, "orders");
    assert!(found.iter().all(|row| row.len() == 19));
    let counts: Vec<_> = found.iter().map(|row| row[18].as_str()).collect();
    assert_eq!(counts, ["", "1", "", "", ""]);
}

#[test]
fn products_as_wide_as_their_matrices_are_one_study() {
    let of = |matrix: &str, algorithm: &str, columns| {
        let record = record(matrix, "gustav", algorithm);
        Record { cols: columns, ..with_case(record, |case| case.columns = columns) }
    };
    let matrices = [("a", 30), ("b", 40)];
    let all = matrices.map(|(m, n)| [of(m, "segmented", n), of(m, "segmented@lpt", n)]);
    let found = rows(&all.concat(), "break-even-of-orders");
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|row| row[0] == "f32 n = columns of A"), "{found:?}");
}

#[test]
fn means_of_implementations_are_those_of_their_lines() {
    let mut records = crate::analysis::paper_b_round(
        1024,
        0.95,
        &[("shared-row+transfers", 0, 2.0), ("hash-rows", 4, 20.0)],
    );
    let second = [("shared-row+transfers", 0, 4.0), ("hash-rows", 4, 80.0)];
    records.extend(crate::analysis::paper_b_round(2048, 0.95, &second));
    let scaled = records.iter_mut().filter(|r| r.algorithm == "hash-rows" && r.rows == 2048);
    for r in scaled {
        r.message = Some("times of 64 rows each, scaled up".into());
        (r.lower_ms, r.upper_ms) = (Some(60.0), Some(100.0));
    }
    let found = rows(&records, "implementations");
    let ours =
        ["shared-row+transfers over hash-rows", "95", "4", "10.00", "20.00 (15.00-25.00)", "15.00"];
    assert_eq!(found[0], ours);
    let paper = ["GPU-only CSR over CPU-only CSR", "95", "4", "154.8", "187.4", "171.10"];
    assert_eq!(found[1..], [paper]);
}

#[test]
fn tiles_stand_beside_the_whole_product() {
    let of = |algorithm, ms, reason: Option<&str>| Record {
        reason: reason.map(str::to_owned),
        ..on_gpu("gustav", algorithm, ms)
    };
    let records = [
        of("auto+transfers", 50.0, None),
        of("tiled", 60.0, Some("tiles: 1, for 9 MiB")),
        of("tiled#1", 75.0, Some("tiles: 4, for 3 MiB")),
    ];
    let found = rows(&records, "tiles");
    let ends: Vec<_> = found.iter().map(|row| row[row.len() - 3..].join(" ")).collect();
    assert_eq!(
        ends,
        ["the whole 50 1.00", "tiles: 1, for 9 MiB 60 1.20", "tiles: 4, for 3 MiB 75 1.50"]
    );
}

#[test]
fn kernels_stand_beside_the_peers_in_other_layouts() {
    let of = |engine, algorithm, layout: &str, ms| {
        with_case(on_gpu(engine, algorithm, ms), |case| case.layout = layout.into())
    };
    let records = [
        of("gustav", "mean-row-length", "row-major", 1.0),
        of("cusparse-default", "default", "row-major", 0.5),
        of("cusparse-default", "default", "column-major", 2.0),
    ];
    let paper = "2.69 in the geometric mean, 22.4 at best";
    let csrmm = "csrmm: column-major";
    let line = ["f32 n = 8", "mean-row-length", csrmm, "1", "2.00", "2.00", "2.00", "0", paper];
    assert_eq!(rows(&records, "vendor-functions"), [line]);
}

#[test]
fn widths_of_a_strip_are_compared_at_the_best() {
    let of = |algorithm, ms| on_gpu("gustav", algorithm, ms);
    let mut records = vec![
        of("output-stationary", 4.0),
        of("output-stationary#7", 1.0),
        on_gpu("cusparse-default", "default", 2.0),
        of("dcsr", 1.0),
    ];
    let long = [of("output-stationary", 1.0), of("output-stationary#7", 4.0)];
    let long = long.into_iter().chain([on_gpu("cusparse-default", "default", 8.0)]).map(|r| {
        Record { mean_row_length: 64.0, ..with_case(r, |case| case.matrix = "long".into()) }
    });
    records.extend(long);
    let found = rows(&records, "strip-widths");
    let found: Vec<_> = found.iter().map(|row| row[2..].join(" ")).collect();
    // Of two configurations that are the best as often, the last name.
    let expected = [
        "all 2 4.00 2.00 8.00 0 5.00 1.67-1.89 2.00 output-stationary#7",
        "below 16 1 2.00 2.00 2.00 0 2.00  0.50 output-stationary#7",
        "64 and more 1 8.00 8.00 8.00 0 8.00  8.00 output-stationary",
    ];
    assert_eq!(found, expected);
    records.truncate(4);
    records.remove(1);
    assert!(rows(&records, "strip-widths").is_empty(), "one configuration is no sweep");
}
