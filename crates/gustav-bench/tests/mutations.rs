//! Seeded mutations of documents and names through the functions of the fuzz targets.

use gustav_testkit::mutation;

#[path = "../../../fuzz/src/documents.rs"]
mod gustav_fuzz;

fn seeds(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[test]
fn mutated_suites_are_read_or_refused() {
    let shipped = [
        include_str!("../../../bench/suites/quick.toml"),
        include_str!("../../../bench/suites/paper-b.toml"),
        include_str!("../../../bench/suites/programs.toml"),
    ];
    assert!(mutation::run(&seeds(&shipped), |_, text| gustav_fuzz::suite(text)) > 0);
}

#[test]
fn mutated_records_are_read_or_refused() {
    let kept = include_str!("../../../bench/records/cpu-spgemm-f32.jsonl");
    let lines: Vec<&str> = kept.split_inclusive('\n').take(4).collect();
    assert!(mutation::run(&seeds(&lines), |_, text| gustav_fuzz::records(text)) > 0);
}

#[test]
fn mutated_models_are_read_or_refused() {
    let model = r#"{"format": "gustav-predictor", "version": 1, "device": "d", "columns": 8,
        "kind": "regression", "candidates": ["segmented", "segmented@min-hash"],
        "inputs": ["nrow", "ncol"], "mean": [0.5, 0.5], "deviation": [0.5, 0.5],
        "layers": [{"weights": [[1, 0], [0, 2]], "bias": [0.5, 1]},
                   {"weights": [[9, 1], [9, 0.5]], "bias": [0.5, 0.5]}]}"#;
    assert!(mutation::run(&seeds(&[model]), |_, text| gustav_fuzz::model(text)) > 0);
}

#[test]
fn mutated_names_are_read_or_refused() {
    let names = ["op=spmm|spmv, n=8|32, matrix=dlmc*", "row-split", "auto", "segmented@min-hash"];
    assert!(mutation::run(&seeds(&names), |_, text| gustav_fuzz::names(text)) > 0);
}
