//! `gustav compare`: verdicts, exit statuses, and records that cannot be compared.

use serde_json::{Value, json};

use crate::support::Folder;

/// A folder with `old.jsonl`, measured by the program itself.
fn measured() -> Folder {
    let folder = Folder::new();
    let run = folder.run("bench gen:diagonal:40 --record old.jsonl --peers= --quiet");
    assert_eq!(run.status, 0, "{run:?}");
    folder
}

/// Writes `new.jsonl`: the old records with `change` applied to each.
fn rewrite(folder: &Folder, change: impl Fn(&mut Value)) {
    let old = String::from_utf8(folder.read("old.jsonl")).expect("UTF-8");
    let line = |line: &str| {
        let mut record: Value = serde_json::from_str(line).expect("a record");
        change(&mut record);
        format!("{record}\n")
    };
    folder.write("new.jsonl", old.lines().map(line).collect::<String>());
}

/// Times of a record set to `ms` with no spread.
fn exactly(record: &mut Value, ms: f64) {
    for key in ["execute_ms", "lower_ms", "upper_ms"] {
        record[key] = json!(ms);
    }
}

#[test]
fn a_slower_result_has_status_one_and_a_faster_one_zero() {
    let folder = measured();
    rewrite(&folder, |r| exactly(r, 1.0));
    folder.write("old.jsonl", folder.read("new.jsonl"));
    for (ms, status, word) in [(1.0, 0, "0 slower"), (2.0, 1, "slower"), (0.5, 0, "faster")] {
        rewrite(&folder, |r| exactly(r, ms));
        let run = folder.run("compare old.jsonl new.jsonl");
        assert_eq!(run.status, status, "{run:?}");
        assert!(run.stdout.contains(word), "{run:?}");
    }
    let run = folder.run("compare old.jsonl new.jsonl --json");
    let report: Value = serde_json::from_str(&run.stdout).expect("one object");
    assert_eq!(report["faster"], report["ours"]["count"]);
    assert_eq!(report["changes"][0]["speedup"], 2.0);
}

#[test]
fn a_wrong_result_is_broken() {
    let folder = measured();
    rewrite(&folder, |r| {
        r["status"] = json!("wrong");
        r["execute_ms"] = Value::Null;
    });
    let run = folder.run("compare old.jsonl new.jsonl");
    assert_eq!(run.status, 1, "{run:?}");
    assert!(run.stdout.starts_with("broken"), "{run:?}");
}

#[test]
fn another_machine_is_an_error_that_names_the_option() {
    let folder = measured();
    rewrite(&folder, |r| r["machine"]["cpu"] = json!("another processor"));
    let message = folder.error("compare old.jsonl new.jsonl");
    assert!(message.contains("another processor") && message.contains("--across-machines"));
    assert_eq!(folder.run("compare old.jsonl new.jsonl --across-machines").status, 0);
}

#[test]
fn malformed_records_name_file_and_line() {
    let folder = measured();
    folder.write("new.jsonl", "\n{\"suite\": 3}\n");
    let message = folder.error("compare old.jsonl new.jsonl");
    assert!(message.contains("new.jsonl: line 2") && message.contains("expected"), "{message}");
    assert!(folder.error("compare old.jsonl none.jsonl").contains("none.jsonl"));
    assert!(folder.error("compare old.jsonl old.jsonl --threshold=-1").contains("threshold"));
}
