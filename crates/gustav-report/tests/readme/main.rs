//! The tables and the pictures of the README and of pages under docs/ are those that the records give. With
//! `GUSTAV_WRITE_README` set the tests write them first.

mod compared;
mod documents;
mod published;
mod vendor;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use compared::table;
use documents::{FEATURES, RANKS, rank_records};
use gustav_report::{
    Beside, CUSPARSE, Case, Comparison, Ratios, Record, Report, VENDORS, compare, pictures,
    read_counters, read_feature_times, read_records, read_regrets, read_tuning,
};

/// Files of records whose names begin so, with the suites and the peers that count.
struct Place {
    name: &'static str,
    /// Whether of matrices that no rule was fitted to, or of others.
    unseen: bool,
    suites: &'static [&'static str],
    peers: &'static [&'static str],
    /// The peers as readers know them.
    beside: &'static str,
}

const CPU: Place = Place {
    name: "cpu",
    unseen: false,
    suites: &["cpu"],
    peers: &VENDORS,
    beside: "MKL, GraphBLAS",
};
/// Products that follow one another.
const GPU: Place = Place {
    name: "gpu-series",
    unseen: false,
    suites: &["gpu"],
    peers: &CUSPARSE,
    beside: "cuSPARSE",
};

const GPU_UNSEEN: Place = Place { unseen: true, ..GPU };
const CPU_UNSEEN: Place = Place { unseen: true, ..CPU };

/// Of matrices that no rule was fitted to, files of records whose names hold this.
const UNSEEN: &str = "-unseen";

/// A product of the table of unseen matrices, and a peer of it with the name that readers know.
struct Unseen {
    operation: &'static str,
    product: &'static str,
    peer: &'static str,
    name: &'static str,
}

const UNSEEN_PRODUCTS: [Unseen; 4] = [
    Unseen {
        operation: "spmm-gradients",
        product: "both gradients of an SpMM",
        peer: "torch-cuda",
        name: "PyTorch",
    },
    Unseen { operation: "attention", product: "attention", peer: "torch-cuda", name: "PyTorch" },
    Unseen { operation: "attention", product: "attention", peer: "pyg", name: "PyTorch Geometric" },
    Unseen {
        operation: "attention",
        product: "attention",
        peer: "gustav:unfused",
        name: "its three products by gustav",
    },
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Records in files whose names are `wanted`, file after file.
fn records_of(wanted: impl Fn(&str) -> bool) -> Vec<Record> {
    let mut files: Vec<PathBuf> = fs::read_dir(root().join("bench/records"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.contains(".jsonl") && wanted(&name)
        })
        .collect();
    files.sort();
    files.iter().flat_map(|file| read_records(file).unwrap()).collect()
}

/// Records of a place.
fn records(place: &Place) -> Vec<Record> {
    let of_place =
        |name: &str| name.starts_with(place.name) && name.contains(UNSEEN) == place.unseen;
    let all = records_of(of_place).into_iter();
    all.filter(|r| place.suites.contains(&r.suite.as_str())).collect()
}

/// Products on a GPU of matrices that no rule was fitted to, each beside one peer.
fn unseen() -> String {
    let mut records = records_of(|name| name.starts_with("gpu") && name.contains(UNSEEN));
    let is_shown = |r: &Record| UNSEEN_PRODUCTS.iter().any(|p| p.operation == r.case.operation);
    records.retain(|r| r.suite != published::SUITE && is_shown(r));
    let mut out = machines(&records);
    writeln!(out, "| product | type | beside | matrices | geomean | worst | best | lost |")
        .unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|---|").unwrap();
    for Unseen { operation, product, peer, name } in &UNSEEN_PRODUCTS {
        let mut rounds = BTreeMap::new();
        for r in records.iter().filter(|r| r.case.operation == *operation) {
            let engine = match (r.is_ours(), r.algorithm.as_str()) {
                (true, "auto") => "gustav".to_owned(),
                (true, other) => format!("gustav:{other}"),
                (false, _) => r.engine.clone(),
            };
            let case = (r.case.columns, r.case.dtype.clone(), r.case.matrix.clone());
            let round = rounds.entry((case, r.group)).or_insert_with(BTreeMap::new);
            round.insert(engine, r.execute_ms);
        }
        // What was measured again beside the peer counts once.
        let with_peer = rounds.into_iter().filter(|(_, engines)| engines.contains_key(*peer));
        let times: BTreeMap<_, _> = with_peer.map(|((case, _), engines)| (case, engines)).collect();
        let mut kinds: Vec<_> = times.keys().map(|(n, dtype, ..)| (*n, dtype.clone())).collect();
        kinds.dedup();
        for (columns, dtype) in kinds {
            let of_kind = times.iter().filter(|(case, _)| (case.0, &case.1) == (columns, &dtype));
            let (mut ratios, mut failed) = (Vec::new(), 0);
            for engines in of_kind.map(|(_, engines)| engines) {
                let time = |engine: &str| engines.get(engine).copied().flatten();
                match (time("gustav"), time(peer)) {
                    (Some(ours), Some(theirs)) => ratios.push(theirs / ours),
                    (None, Some(_)) => failed += 1,
                    _ => {}
                }
            }
            let Some(r) = Ratios::of(&ratios).map(|r| r.with_failed(failed)) else { continue };
            writeln!(
                out,
                "| {product}, {columns} columns | {dtype} | {name} | {} | {:.2} | {:.2} | {:.2} | {:.0}% |",
                r.count,
                r.geomean,
                r.worst,
                r.best,
                100.0 * r.lost
            )
            .unwrap();
        }
    }
    out
}

/// Operations in the order of tables.
const OPERATIONS: [&str; 4] = ["spmm", "spmv", "sddmm", "spgemm"];

/// A product's words for readers.
fn product_of(case: &Case) -> String {
    let Case { operation, columns, sorted, layout, .. } = case;
    match (operation.as_str(), sorted) {
        ("spmm", _) if *columns == 1 => "SpMM, 1 column".into(),
        ("spmm", _) if layout != "row-major" => format!("SpMM, {columns} columns, {layout}"),
        ("spmm", _) => format!("SpMM, {columns} columns"),
        ("spmv", _) => "SpMV".into(),
        ("sddmm", _) => format!("SDDMM, {columns} columns"),
        (_, true) => "SpGEMM, sorted".into(),
        (_, false) => "SpGEMM, unsorted".into(),
    }
}

/// Comparisons by product, in words for readers, and type.
fn kinds<'a, 'b>(compared: &'b [Comparison<'a>]) -> Vec<(String, String, Vec<&'b Comparison<'a>>)> {
    let mut found = BTreeMap::<_, Vec<_>>::new();
    for c in compared {
        let Case { operation, columns, sorted, dtype, layout, .. } = &c.ours.case;
        let rank = OPERATIONS.iter().position(|o| o == operation);
        let kind = (rank, Reverse(layout), *columns, *sorted, dtype);
        found.entry(kind).or_default().push(c);
    }
    let named = |own: Vec<&'b Comparison<'a>>| {
        let case = &own[0].ours.case;
        (product_of(case), case.dtype.clone(), own)
    };
    found.into_values().map(named).collect()
}

/// The processor of records, or the GPU, and the versions of peers, as they name them.
fn machines(records: &[Record]) -> String {
    let name = |r: &Record| match &r.gpu {
        Some(gpu) => gpu.name.clone(),
        None => format!("{}, {} threads", r.machine.cpu, r.threads),
    };
    let names: BTreeSet<_> = records.iter().map(name).collect();
    // Not of what only drives the peers; of a long name the number alone.
    let drives = |name: &str| ["python", "numpy", "threads"].contains(&name);
    // Of a commit the first digits.
    let number = |text: &str| {
        let number = text.rsplit("Version ").next().unwrap_or(text);
        let number = number.split('-').next().unwrap_or(number);
        let (commit, rest) = number.split_once(' ').unwrap_or((number, ""));
        match commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit()) {
            true => format!("{} {rest}", &commit[..10]).trim_end().to_owned(),
            false => number.to_owned(),
        }
    };
    let versions = records.iter().filter(|r| !r.is_ours()).flat_map(|r| &r.versions);
    let versions = versions.filter(|(name, _)| !drives(name));
    let versions = versions.map(|(name, version)| format!("{name} {}", number(version)));
    let versions: BTreeSet<_> = versions.collect();
    let join = |words: BTreeSet<String>| words.into_iter().collect::<Vec<_>>().join(", ");
    format!("{}; {}:\n\n", join(names), join(versions))
}

/// The records in comparisons: others of a place are of other algorithms, or of earlier runs.
fn shown(compared: &[Comparison<'_>]) -> Vec<Record> {
    compared.iter().flat_map(|c| c.peers.values().chain([&c.ours]).copied().cloned()).collect()
}

/// Reading files beside fast_matrix_market, as `bench/read_speed.py` recorded it.
fn reading() -> String {
    let text = fs::read_to_string(root().join("bench/records/read-speed.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let column = |name: &str| names.iter().position(|n| *n == name).unwrap();
    let own = |row: &[&str], name: &str| row[column(name)].parse::<f64>().unwrap();
    let rows: Vec<_> = lines.collect();
    let mut threads: Vec<_> = rows.iter().map(|row| row[column("threads")]).collect();
    threads.sort_unstable();
    threads.dedup();
    let mut out = String::new();
    writeln!(out, "| threads | files | geomean | worst | best | with their step to CSR |").unwrap();
    writeln!(out, "|---|---|---|---|---|---|").unwrap();
    for count in threads {
        let here = || rows.iter().filter(|row| row[column("threads")] == count);
        let against = |theirs: &str| {
            let ratios: Vec<_> = here().map(|r| own(r, theirs) / own(r, "gustav_ms")).collect();
            Ratios::of(&ratios).unwrap()
        };
        let (r, csr) = (against("fast_matrix_market_ms"), against("fast_matrix_market_to_csr_ms"));
        writeln!(
            out,
            "| {count} | {} | {:.2} | {:.2} | {:.2} | {:.2} |",
            r.count, r.geomean, r.worst, r.best, csr.geomean
        )
        .unwrap();
    }
    out
}

fn writes() -> bool {
    std::env::var_os("GUSTAV_WRITE_README").is_some()
}

#[test]
fn the_tables_are_those_of_the_records() {
    check_tables(
        "README.md",
        &[
            ("gpu-single-unseen", vendor::table(true)),
            ("published", published::table()),
            ("gpu-unseen", table(&GPU_UNSEEN)),
            ("cpu-unseen", table(&CPU_UNSEEN)),
            ("unseen", unseen()),
            (CPU.name, table(&CPU)),
            ("gpu-single", vendor::table(false)),
            (GPU.name, table(&GPU)),
            ("read", reading()),
        ],
    );
}

fn check_tables(document: &str, tables: &[(&str, String)]) {
    let path = root().join(document);
    let mut text = fs::read_to_string(&path).unwrap();
    for (name, table) in tables {
        let marks = ["begin", "end"].map(|at| format!("<!-- from bench/records: {name} {at} -->"));
        let (before, rest) = text.split_once(&marks[0]).expect("where the table begins");
        let (found, after) = rest.split_once(&marks[1]).expect("where the table ends");
        let table = format!("\n{table}");
        if writes() {
            text = format!("{before}{}{table}{}{after}", marks[0], marks[1]);
            fs::write(&path, &text).unwrap();
        } else {
            assert_eq!(found, table, "run this test with GUSTAV_WRITE_README=1");
        }
    }
}

#[test]
fn the_pictures_are_those_of_the_records() {
    // Beside the newest cuSPARSE alone.
    let gpu = Place { name: "gpu-series-newest", ..GPU };
    for (place, picture) in [(CPU, "docs/speed.svg"), (gpu, "docs/speed-gpu.svg")] {
        let records = shown(&compare(&records(&place), "auto"));
        let drawn = pictures(&records).unwrap();
        assert_eq!(drawn.len(), 1, "records of {} are of one machine", place.name);
        let first = &records[0];
        let machine = first.gpu.as_ref().map_or(&first.machine.cpu, |gpu| &gpu.name);
        assert!(drawn[0].contains(machine), "{picture} names {machine}");
        check_picture(picture, "README.md", &drawn[0]);
    }
}

fn check_picture(picture: &str, document: &str, drawn: &str) {
    let path = root().join(picture);
    if writes() {
        fs::write(&path, drawn).unwrap();
    }
    let found = fs::read_to_string(&path).expect("a picture");
    assert!(found == drawn, "{picture} is old: run this test with GUSTAV_WRITE_README=1");
    let text = fs::read_to_string(root().join(document)).unwrap();
    // As seen from the document.
    let name = picture.strip_prefix("docs/").filter(|_| document.starts_with("docs/"));
    let link = format!("]({})", name.unwrap_or(picture));
    assert!(text.contains(&link), "{document} shows the picture");
}

#[test]
fn the_records_fill_every_figure_of_a_report() {
    let folder = root().join("bench/records");
    let mut all = Vec::new();
    let mut regrets = Vec::new();
    for name in ["choice/regrets.csv", "choice/regrets-cpu.csv"] {
        regrets.extend(read_regrets(&folder.join(name)).unwrap());
    }
    let features = read_feature_times(&folder.join(FEATURES)).unwrap();
    let ranks = rank_records(&RANKS);
    let mut beside = Beside { ranks, regrets, features, ..Beside::default() };
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.contains(".jsonl") {
            all.extend(read_records(&path).unwrap());
        } else if name.ends_with(".tuning.json") {
            beside.tunings.push(read_tuning(&path).unwrap());
        } else if name.ends_with("-ncu.csv") {
            beside.counters.extend(read_counters(&path).unwrap());
        }
    }
    assert_eq!(Report::of(&all, &beside).unwrap().absent(), []);
}
