//! docs/json.md and the output agree, and every verb has its help.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Folder, SMALL};

/// Keys of the tables under the heading that names `verb`, up to the next heading; a table
/// introduced by a line with `adds` counts only if that line has one of `with`.
pub fn documented(page: &str, verb: &str, with: &[&str]) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let (mut inside, mut counted) = (false, false);
    for line in page.lines() {
        if line.starts_with("## ") {
            inside = line.contains(&format!("`gustav {verb}`"));
            counted = inside;
        } else if inside && line.ends_with(" adds") {
            counted = with.iter().any(|w| line.contains(w));
        } else if counted && let Some(rest) = line.strip_prefix("| `") {
            keys.insert(rest.split('`').next().expect("a closing quote").to_string());
        }
    }
    keys
}

/// The keys of an object.
pub fn printed(value: &Value) -> BTreeSet<String> {
    value.as_object().expect("an object").keys().cloned().collect()
}

pub fn page() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    std::fs::read_to_string(page).expect("docs/json.md")
}

#[test]
fn printed_keys_and_documented_keys_agree() {
    let page = page();
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    for (line, verb, with) in [
        ("spmm a.mtx --columns 2", "spmm", &[][..]),
        ("spmm a.mtx --columns 2 --verify --algorithm all", "spmm", &["--algorithm all"]),
        ("spmv a.mtx", "spmv", &[]),
        ("spgemm a.mtx --quiet", "spgemm", &["`spgemm`"]),
        ("spgemm a.mtx --quiet --algorithm all", "spgemm", &["`spgemm`", "--algorithm all"]),
        ("sddmm a.mtx --depth 2", "sddmm", &[]),
        ("info a.mtx", "info", &[]),
        ("info a.mtx --order lpt", "info", &["--order"]),
        ("info a.mtx --features", "info", &["--features"]),
        ("info a.mtx --features --sample 9", "info", &["--features"]),
        ("plan a.mtx --columns 4", "plan", &[]),
        ("plan a.mtx --operation spgemm --quiet --measure", "plan", &[]),
        ("generate diagonal:3 -o d.mtx", "generate", &[]),
        ("convert a.mtx b.npz", "convert", &[]),
        ("devices", "devices", &[]),
        ("bench gen:diagonal:9 --record r.jsonl --peers= --only op=spmv --quiet", "bench", &[]),
        ("bench quick --dry-run --quiet", "bench --dry-run", &[]),
        ("compare r.jsonl r.jsonl", "compare", &[]),
        ("report r.jsonl", "report", &[]),
    ] {
        let keys = documented(&page, verb, with);
        assert!(!keys.is_empty(), "{verb} is not documented");
        assert_eq!(printed(&folder.json(&format!("{line} --json"))), keys, "{line}");
    }
}

#[test]
fn every_verb_has_help() {
    let folder = Folder::new();
    let help = folder.run("--help");
    assert_eq!(help.status, 0);
    for verb in [
        "info",
        "spmm",
        "spmv",
        "spgemm",
        "sddmm",
        "plan",
        "convert",
        "generate",
        "fetch",
        "devices",
        "bench",
        "compare",
        "report",
        "tune",
        "completions",
    ] {
        assert!(help.stdout.contains(&format!("  {verb} ")), "{verb}: {}", help.stdout);
        let run = folder.run(&format!("{verb} --help"));
        assert_eq!(run.status, 0, "{verb}");
        assert!(run.stdout.contains("Usage: gustav"), "{verb}");
    }
    let help = |verb: &str| folder.run(&format!("{verb} --help")).stdout;
    for (verb, has, lacks) in [
        ("spmm", &["row-block", "--order", "--tf32", "--calls"][..], &["gustavson"][..]),
        ("spmv", &["merge-path", "--calls"], &["gustavson", "row-block", "--order", "--tf32"]),
        ("spgemm", &["gustavson", "--calls"], &["row-split", "--order", "--finite"]),
        ("sddmm", &["nonzero-split", "--factors"], &["row-split", "--order", "--transpose"]),
    ] {
        let text = help(verb).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("auto, which is the CPU"), "{text}");
        has.iter().for_each(|word| assert!(text.contains(word), "{verb}: {word}: {text}"));
        lacks.iter().for_each(|word| assert!(!text.contains(word), "{verb}: {word}: {text}"));
    }
    let kinds = folder.run("generate --help").stdout;
    for kind in ["grid5:", "rmat:", "uniform:", "block:"] {
        assert!(kinds.contains(kind), "{kind}: {kinds}");
    }
}
