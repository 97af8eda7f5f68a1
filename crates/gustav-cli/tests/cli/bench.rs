//! `gustav bench`: dry runs, runs in pieces, and what cannot be run.

use crate::support::Folder;

/// Two small matrices, with SpMM of two widths and SpMV each.
const TWO: &str = "bench gen:diagonal:9 gen:grid5:3x3 --peers= --quiet --json --only op=spmv|spmm";

#[test]
fn a_dry_run_measures_nothing_and_says_how_long() {
    let folder = Folder::new();
    let told = folder.json(&format!("{TWO} --dry-run --record r.jsonl"));
    assert_eq!((&told["cases"], &told["held"]), (&6.into(), &0.into()));
    assert!(told["least_s"].as_f64() < told["most_s"].as_f64(), "{told}");
    assert!(folder.names().is_empty());
    let run = folder.run("bench regression --dry-run");
    assert!(run.status == 0 && run.stdout.contains(" cases on 9 matrices"), "{run:?}");
}

#[test]
fn a_run_goes_on_where_its_time_was_up() {
    let folder = Folder::new();
    let told = folder.json(&format!("{TWO} --record r.jsonl --minutes 0"));
    assert_eq!((&told["measured"], &told["left"]), (&0.into(), &6.into()));
    let first = TWO.replace("op=spmv|spmm", "op=spmv");
    let told = folder.json(&format!("{first} --record r.jsonl"));
    assert_eq!((&told["measured"], &told["left"]), (&2.into(), &0.into()));
    let told = folder.json(&format!("{TWO} --record r.jsonl"));
    assert_eq!((&told["measured"], &told["resumed"]), (&4.into(), &2.into()));
    let told = folder.json(&format!("{TWO} --record r.jsonl --dry-run"));
    assert_eq!((&told["held"], &told["most_s"]), (&6.into(), &0.0.into()));
}

#[test]
fn parts_make_up_the_whole() {
    let folder = Folder::new();
    for part in 1..=2 {
        let told = folder.json(&format!("{TWO} --record {part}.jsonl --part {part}/2"));
        assert_eq!(told["measured"], 3, "{told}");
    }
    let records = [folder.read("1.jsonl"), folder.read("2.jsonl")].concat();
    folder.write("all.jsonl", records);
    let told = folder.json(&format!("{TWO} --record all.jsonl"));
    assert_eq!((&told["measured"], &told["resumed"]), (&0.into(), &6.into()));
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let folder = Folder::new();
    for (line, part) in [
        ("bench quick", "--record"),
        ("bench no-such-suite --record r.jsonl", "regression"),
        ("bench quick --record r.jsonl --part 3/2", "K/N"),
        ("bench quick --record r.jsonl --only colour=red", "colour=red"),
        ("bench quick --record r.jsonl --device gpu --peers=", "cuda:K"),
    ] {
        let message = folder.error(line);
        assert!(message.contains(part), "{line}: {message}");
    }
}
