//! Tables of synthetic records.

mod papers;

use super::super::table::Row;
use super::*;
use crate::record::tests::{beside_vendors, record};
use crate::{Case, Gpu, Record, Status};

/// The lines of one table of `records`, without the platform.
fn rows(records: &[Record], id: &str) -> Vec<Row> {
    let table = all(&Platform::all(records)).into_iter().find(|table| table.id == id);
    let mut rows = table.map_or(Vec::new(), |table| table.rows);
    rows.iter_mut().for_each(|row| drop(row.remove(0)));
    rows
}

fn on_gpu(engine: &str, algorithm: &str, ms: f64) -> Record {
    let gpu = Gpu { name: "a GPU".into(), multiprocessors: 132, ..Gpu::default() };
    Record {
        gpu: Some(gpu),
        execute_ms: Some(ms),
        hot_ms: Some(ms / 2.0),
        single_ms: Some(ms + 0.5),
        floor_ms: Some(0.25),
        gather_ms: Some(0.1),
        ..record("m", engine, algorithm)
    }
}

fn with_case(record: Record, change: impl FnOnce(&mut Case)) -> Record {
    let mut record = record;
    change(&mut record.case);
    record
}

#[test]
fn a_loss_is_listed_with_its_best_peer_and_the_target_is_not_met() {
    let records = beside_vendors("a", 1, 2.0, 1.0, 3.0);
    let loss = ["a spmm f32 n=8", "grid5", "200000", "0.50", "2.0000", "row-split", "mkl 1.0000"];
    assert_eq!(rows(&records, "losses"), [loss]);
    let targets = rows(&records, "targets");
    assert_eq!(targets[0], ["SpMM", "1", "1", "0.50", "1.3", "1.5", "NOT MET"]);
    let worst = "SpMM, worst of 100000 nonzeros and more";
    assert_eq!(targets[1], [worst, "1", "1", "0.50", "0.8", "", "NOT MET"]);
    let met = rows(&beside_vendors("a", 1, 1.0, 1.4, 2.0), "targets");
    assert_eq!(met[0], ["SpMM", "1", "0", "1.40", "1.3", "1.5", "met"]);
}

#[test]
fn the_summary_counts_cases_with_launches_between_products() {
    let mut records = [on_gpu("gustav", "auto", 1.0), on_gpu("cusparse-alg3", "default", 2.0)];
    let caption = |records: &[Record]| {
        let tables = all(&Platform::all(records)).into_iter();
        tables.filter(|table| table.id == "summary").map(|table| table.caption).collect::<String>()
    };
    assert!(!caption(&records).contains("empty launch"));
    records[1].overlapping_ms = Some(1.5);
    assert!(caption(&records).contains("has ended: 1."));
}

#[test]
fn products_are_held_to_what_others_of_the_same_matrix_take() {
    let of = |engine, algorithm, operation: &str, dtype: &str, ms| {
        let change = |case: &mut Case| {
            (case.operation, case.dtype, case.columns) = (operation.into(), dtype.into(), 128);
        };
        let record = Record { nnz: 500_000, miss_ms: Some(0.5), ..on_gpu(engine, algorithm, ms) };
        with_case(record, change)
    };
    let small = of("gustav", "auto", "sddmm", "f32", 0.25);
    let small = with_case(Record { nnz: 9, ..small }, |case| case.matrix = "small".into());
    let records = [
        of("gustav", "auto", "attention", "f16", 1.0),
        of("gustav", "unfused", "attention", "f16", 0.5),
        of("gustav", "auto", "attention-gradients", "f16", 2.0),
        of("gustav", "auto", "sddmm", "f32", 1.0),
        of("gustav", "auto", "sddmm", "f16", 0.5),
        of("cusparse-default", "default", "sddmm", "f32", 3.0),
        Record { sets: Some(2), single_ms: Some(0.8), ..of("gustav", "auto", "spmm", "f32", 0.5) },
        of("gustav", "auto", "spmm-gradients", "f32", 1.0),
        small,
    ];
    let found: Vec<_> = rows(&records, "relations")
        .into_iter()
        .map(|row| [&row[0], &row[3], &row[5], &row[9]].map(String::as_str).join("; "))
        .collect();
    assert_eq!(
        found,
        [
            "attention; time / longer limit, from 500,000 nonzeros; 2.00; NOT MET",
            "attention; three products / time; 0.50; NOT MET",
            // Of the SpMM the single execution here, and below.
            "SpMM; with gradients / time; 2.25; met",
            "attention; with gradients / time; 3.00; met",
            "SDDMM; time / SpMM of the same width; 1.25; NOT MET",
            "SDDMM; time in f32 / time; 2.00; met",
            "SDDMM; fastest peer / longer limit; 12.00; ",
            "SDDMM; fastest peer / (launch + longer limit); 6.00; ",
        ]
    );
}

#[test]
fn a_wrong_peer_is_named_and_cannot_win() {
    let mut records = beside_vendors("a", 1, 1.0, 0.5, 2.0);
    records[1].status = Status::Wrong;
    records[1].message = Some("row 3".into());
    assert_eq!(rows(&records, "faults"), [["WRONG", "mkl", "a spmm f32 n=8", "row 3"]]);
    assert!(rows(&records, "losses").is_empty());
}

#[test]
fn the_best_of_the_vendors_algorithms_counts_on_a_gpu() {
    let records = [
        Record { ratio: Some(2.0), ..on_gpu("gustav", "auto", 1.0) },
        on_gpu("gustav", "row-split", 4.0),
        on_gpu("gustav", "segmented", 0.8),
        on_gpu("cusparse-default", "default", 3.0),
        on_gpu("cusparse-alg3", "default", 2.0),
        on_gpu("cupy", "default", 5.0),
    ];
    let cells = ["SpMM", "f32", "n = 8", "1", "2.00", "2.00", "2.00", "0"];
    let cells = cells.map(str::to_owned).to_vec();
    let caches = "cold, single 1.67, hot 2.00";
    assert_eq!(rows(&records, "summary"), [[cells, vec![caches.into()]].concat()]);
    let targets = rows(&records, "targets");
    assert_eq!(targets[0], ["SpMM f32 n = 8", "1", "0", "2.00", "1.6", "", "met"]);
    assert_eq!(targets[1], ["SpMM f32 n = 8, worst", "1", "0", "2.00", "0.95", "", "met"]);
    let cupy = ["cupy", "SpMM", "f32", "n = 8", "1", "5.00", "5.00", "5.00", "0"];
    assert_eq!(rows(&records, "peers-by-product")[0], cupy);
    let limits = ["SpMM", "f32", "n = 8", "1", "25.0", "16.7", "50.0", "25.0", "100.0", "800.0"];
    assert_eq!(rows(&records, "limits"), [limits]);
    // The fastest by name is segmented.
    let choice = ["SpMM", "f32", "n = 8", "1", "0.80", "0.80", "0.80", "100"];
    assert_eq!(rows(&records, "choice"), [choice]);
}

#[test]
fn one_call_counts_its_plan_and_reuse_saves_it() {
    let once = Record { plan_ms: Some(1.0), ..on_gpu("gustav", "once", 2.0) };
    let records = [once, on_gpu("cusparse-default", "default", 6.0)];
    assert_eq!(rows(&records, "one-call")[0][3..5], ["1", "2.00"]);
    // One call follows no other.
    let sets = records.map(|r| Record { sets: Some(2), ..r });
    assert_eq!(rows(&sets, "one-call")[0][3..5], ["1", "1.86"]);
    let auto = on_gpu("gustav", "auto", 3.0);
    assert!(rows(std::slice::from_ref(&auto), "reuse").is_empty());
    let reused = [Record { reuse_ms: Some(2.0), ..auto }];
    assert_eq!(rows(&reused, "reuse")[0][3..5], ["1", "1.50"]);
}

#[test]
fn the_largest_peak_of_memory_is_named() {
    let of = |engine: &str, matrix: &str, peak: u64| {
        let algorithm = if engine == "gustav" { "auto" } else { "default" };
        let record = with_case(on_gpu(engine, algorithm, 1.0), |case| case.matrix = matrix.into());
        Record { peak_memory: Some(peak), memory_bar: Some(100), ..record }
    };
    let records =
        [of("gustav", "small", 50), of("gustav", "large", 120), of("cusparse-alg1", "small", 400)];
    let found = rows(&records, "memory");
    assert_eq!(found[0][3..], ["cusparse-alg1", "1", "4.00", "4.00", "100", "small"]);
    assert_eq!(found[1][3..], ["gustav:auto", "2", "0.77", "1.20", "50", "large"]);
    assert!(rows(&[on_gpu("gustav", "auto", 1.0)], "memory").is_empty());
}

#[test]
fn masks_are_set_beside_all_of_c() {
    let of = |algorithm: &str, mask: &str, ms: f64| {
        with_case(on_gpu("gustav", algorithm, ms), |case| case.mask = mask.into())
    };
    let records = [of("auto", "own", 2.0), of("whole", "own", 3.0), of("auto", "most", 1.0)];
    let own = ["own", "f32", "gustav:auto", "1", "1.50", "1.50", "1.50", "0"];
    assert_eq!(rows(&records, "masks"), [own]);
}

#[test]
fn few_calls_take_the_plan_that_the_rule_says() {
    let timed = |matrix: &str, engine: &str, algorithm: &str, nnz: usize, plan_ms: f64| Record {
        plan_ms: Some(plan_ms),
        nnz,
        rows: nnz / 8,
        ..with_case(on_gpu(engine, algorithm, 0.5), |case| case.matrix = matrix.into())
    };
    let mut records = Vec::new();
    for (matrix, nnz, plan_ms) in [("small", 8_000, 6.0), ("large", 800_000_000, 1.0)] {
        records.push(timed(matrix, "gustav", "auto", nnz, plan_ms));
        records.push(timed(matrix, "gustav", "once", nnz, 0.05));
        records.push(timed(matrix, "cusparse-alg2", "default", nnz, 1.0));
    }
    let rows = rows(&records, "plans");
    let of = |calls: &str| rows.iter().find(|r| r[3] == calls).expect("a row")[4..].to_vec();
    assert_eq!(of("1"), ["2", "0.10", "0.10", "0"]);
    // The rows of the small one are not inspected for a few calls, those of the large one are.
    assert_eq!(of("8"), ["2", "0.45", "2.00", "0"]);
    assert_eq!(of("1000"), ["2", "4.90", "12.00", "1"]);
}

#[test]
fn programs_are_compared_with_every_engine_over_real_and_over_generated_matrices() {
    let program = |matrix: &str, engine: &str, ms: f64, products: Option<f64>| {
        let algorithm = if engine == "gustav" { "auto" } else { "default" };
        let base = with_case(on_gpu(engine, algorithm, ms), |case| {
            case.operation = "gcn-training".into();
            case.matrix = matrix.into();
        });
        Record { product_ms: products, group: 7, ..base }
    };
    let records = [
        program("a", "gustav", 2.0, Some(1.0)),
        program("a", "cusparse", 4.0, Some(3.0)),
        program("a", "pyg", 16.0, None),
        program("b", "gustav", 2.0, Some(1.0)),
        program("b", "cusparse", 1.0, Some(0.75)),
        program("grid5:3x3", "gustav", 2.0, Some(1.0)),
        program("grid5:3x3", "cusparse", 3.0, Some(2.0)),
    ];
    let name = "gcn-training";
    let found = rows(&records, "program-ratios");
    assert_eq!(
        found[0],
        [name, "files", "gustav:auto", "cusparse", "2", "1.00", "0.50", "1.50", "0.75"]
    );
    assert_eq!(found[1], [name, "files", "gustav:auto", "pyg", "1", "8.00", "8.00", "", ""]);
    assert_eq!(
        found[2],
        [name, "generated", "gustav:auto", "cusparse", "1", "1.50", "1.50", "2.00", "2.00"]
    );
    assert_eq!(found.len(), 3);
}
