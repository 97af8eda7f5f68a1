//! Tuning on the CPU: records are kept, and a build with training continues with them.

#[cfg(feature = "train")]
use crate::documents::{documented, page, printed};
use crate::support::Folder;

const SUITE: &str = r#"
name = "small"
description = "Two ways on small matrices"

[[matrices]]
generate = "grid5:{m}x{m}"
over = { m = [4, 5] }

[[matrices]]
generate = "diagonal:{m}"
over = { m = [9, 12] }

[[matrices]]
generate = "uniform:{m}x{m},2"
over = { m = [16, 20] }

[products]
operations = ["spmm"]
columns = [4]
dtypes = ["f32"]

[engines]
ours = ["row-split", "merge-path"]

[timing]
rounds = 1
min_rounds = 1
budget_s = 0.001
"#;

#[test]
fn zero_epochs_are_refused_before_anything_is_measured() {
    let folder = Folder::new();
    folder.write("small.toml", SUITE);
    let message = folder.error("tune small.toml --record r.jsonl --passes 0");
    assert!(message.contains("passes: 0 is not valid, expected at least 1"), "{message}");
    assert_eq!(folder.names(), ["small.toml"]);
}

#[test]
fn records_of_a_cpu_calibrate_nothing() {
    let folder = Folder::new();
    folder.write("small.toml", SUITE);
    for more in ["--calibrate", "--calibrate --train-only -o c.json"] {
        let message = folder.error(&format!("tune small.toml --record r.jsonl {more}"));
        assert!(message.contains("no measurement of a configuration"), "{message}");
        assert!(message.contains("expected measurements on one GPU"), "{message}");
    }
    assert_eq!(folder.names(), ["r.jsonl", "small.toml"]);
    let message = folder.error("tune small.toml --record r.jsonl --calibrate --folds");
    assert!(message.contains("--folds"), "{message}");
}

#[cfg(not(feature = "train"))]
#[test]
fn a_build_that_cannot_train_measures_and_says_so() {
    let folder = Folder::new();
    folder.write("small.toml", SUITE);
    let advice = ["cargo build --release --features train", "--train-only"];
    // Options that need training are refused before anything is measured.
    for more in ["--install", "-o m.json", "--train-only", "--folds", "--topologies"] {
        let message = folder.error(&format!("tune small.toml --record r.jsonl {more}"));
        assert_eq!(message.lines().count(), 1, "{message}");
        advice.iter().for_each(|part| assert!(message.contains(part), "{more}: {message}"));
        assert_eq!(folder.names(), ["small.toml"], "{more}");
    }
    let message = folder.error("tune small.toml --record r.jsonl");
    let lines: Vec<&str> = message.lines().collect();
    assert!(lines[0].starts_with("note: this build does not support training"), "{message}");
    assert!(message.contains("note: 6 cases measured, 0 resumed"), "{message}");
    let last = lines.last().expect("a line");
    assert!(last.starts_with("gustav: this build"), "{message}");
    advice.iter().for_each(|part| assert!(last.contains(part), "{message}"));
    let record = folder.read("r.jsonl");
    assert_eq!(record.iter().filter(|byte| **byte == b'\n').count(), 12);
    // Existing records are not measured again.
    let message = folder.error("tune small.toml --record r.jsonl");
    assert!(message.contains("note: 0 cases measured, 6 resumed"), "{message}");
    assert_eq!(folder.read("r.jsonl"), record);
    let quiet = folder.error("tune small.toml --record r.jsonl --quiet");
    assert_eq!(quiet.lines().count(), 1, "{quiet}");
}

#[cfg(feature = "train")]
#[test]
fn a_build_that_trains_writes_a_model() {
    let folder = Folder::new();
    folder.write("small.toml", SUITE);
    let trained = folder.json("tune small.toml --record r.jsonl --passes 3 -o m.json --json");
    assert_eq!((&trained["measured"], &trained["resumed"]), (&6.into(), &0.into()));
    assert_eq!(printed(&trained), documented(&page(), "tune", &[]));
    let model = folder.read("m.json");
    let text = String::from_utf8(model.clone()).expect("UTF-8");
    assert!(text.starts_with("{\"format\":\"gustav-predictor\""), "{text}");
    assert!(text.contains("[\"row-split\",\"merge-path\"]"), "{text}");
    // Models are not used on the CPU.
    let refused =
        folder.error("tune small.toml --record r.jsonl --passes 3 --train-only --install");
    assert!(refused.contains("install: the records are of no GPU"), "{refused}");
    let record = folder.read("r.jsonl");
    let line = "tune small.toml --record r.jsonl --passes 3 -o m.json --train-only --quiet --json";
    let again = folder.json(line);
    assert_eq!((&again["measured"], &again["taken"]), (&0.into(), &trained["taken"]));
    assert_eq!((folder.read("m.json"), folder.read("r.jsonl")), (model, record));
}
