//! bench/RECORDS.md and the records agree.

use std::collections::BTreeSet;
use std::path::Path;

use gustav_report::{Stage, read_records};

#[test]
fn every_key_is_documented_and_every_documented_key_is_there() {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let page = std::fs::read_to_string(bench.join("RECORDS.md")).expect("bench/RECORDS.md");
    let key = |line: &str| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned());
    let documented: BTreeSet<String> = page.lines().filter_map(key).collect();

    let mut record =
        read_records(&bench.join("records/cpu-spmm-f32.jsonl")).expect("records").remove(0);
    let stage = Stage { lane: "CPU".into(), name: "convert".into(), start_ms: 0.0, end_ms: 1.0 };
    // Keys that are absent when there is nothing to say.
    record.timeline = vec![stage];
    record.spy = vec!["9".into()];
    record.case.layout = "column-major".into();
    record.case.mask = "own".into();
    record.case.heads = 4;
    (record.nnz_mask, record.miss_ms) = (Some(1), Some(1.0));
    (record.sets, record.single_ms, record.overlapping_ms) = (Some(2), Some(1.0), Some(1.0));
    let value = serde_json::to_value(&record).expect("JSON");
    let written: BTreeSet<String> = value.as_object().expect("an object").keys().cloned().collect();
    assert_eq!(documented, written);
}
