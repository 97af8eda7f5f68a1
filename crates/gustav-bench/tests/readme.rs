//! The table and the picture of the README are those that the records give. With
//! `GUSTAV_WRITE_README` set the tests write them instead of comparing.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use gustav_bench::{Ratios, Record, VENDORS, compare, pictures, read_records};

const BEGIN: &str = "<!-- from bench/records: begin -->\n";
const END: &str = "<!-- from bench/records: end -->";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Records of the CPU suite, file after file.
fn records() -> Vec<Record> {
    let mut files: Vec<PathBuf> = fs::read_dir(root().join("bench/records"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("cpu-")))
        .collect();
    files.sort();
    files.iter().flat_map(|file| read_records(file).unwrap()).collect()
}

fn table(records: &[Record]) -> String {
    let mut out = String::new();
    writeln!(out, "| product | type | matrices | geomean | worst | best | lost |").unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|").unwrap();
    let compared = compare(records, "auto");
    let mut kinds: Vec<_> = compared
        .iter()
        .map(|c| &c.ours.case)
        .map(|c| (c.operation.as_str(), c.columns, c.sorted, c.dtype.as_str()))
        .collect();
    kinds.sort_by_key(|(operation, columns, sorted, dtype)| {
        (["spmm", "spmv", "spgemm"].iter().position(|o| o == operation), *columns, *sorted, *dtype)
    });
    kinds.dedup();
    for (operation, columns, sorted, dtype) in kinds {
        let ratios: Vec<f64> = compared
            .iter()
            .filter(|c| {
                let case = &c.ours.case;
                (case.operation.as_str(), case.columns, case.sorted, case.dtype.as_str())
                    == (operation, columns, sorted, dtype)
            })
            .filter_map(|c| c.against(&VENDORS))
            .collect();
        let Some(r) = Ratios::of(&ratios) else { continue };
        let product = match (operation, sorted) {
            ("spmm", _) if columns == 1 => "SpMM, 1 column".into(),
            ("spmm", _) => format!("SpMM, {columns} columns"),
            ("spmv", _) => "SpMV".into(),
            (_, true) => "SpGEMM, sorted".into(),
            (_, false) => "SpGEMM, unsorted".into(),
        };
        writeln!(
            out,
            "| {product} | {dtype} | {} | {:.2} | {:.2} | {:.2} | {:.0}% |",
            r.count,
            r.geomean,
            r.worst,
            r.best,
            100.0 * r.lost
        )
        .unwrap();
    }
    out
}

#[test]
fn the_table_is_that_of_the_records() {
    let path = root().join("README.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the README marks where the table begins");
    let (found, after) = rest.split_once(END).expect("the README marks where the table ends");
    let table = table(&records());
    if std::env::var_os("GUSTAV_WRITE_README").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(found, table, "run this test with GUSTAV_WRITE_README=1");
}

#[test]
fn the_picture_is_that_of_the_records() {
    let path = root().join("docs/speed.svg");
    let mut drawn = pictures(&records()).unwrap();
    assert_eq!(drawn.len(), 1, "records of the CPU are of one place");
    let drawn = drawn.remove(0);
    if std::env::var_os("GUSTAV_WRITE_README").is_some() {
        fs::write(&path, drawn).unwrap();
        return;
    }
    let found = fs::read_to_string(&path).expect("docs/speed.svg");
    assert!(found == drawn, "docs/speed.svg is old: run this test with GUSTAV_WRITE_README=1");
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains("](docs/speed.svg)"), "the README shows the picture");
}
