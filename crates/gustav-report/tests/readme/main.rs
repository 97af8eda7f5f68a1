//! The tables and the pictures of the README, and the tables of docs/mpi.md, are those that the records give. With
//! `GUSTAV_WRITE_README` set the tests write them first.

mod published;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use gustav_report::{
    Beside, BesidePetsc, Case, Comparison, RankRecords, Ratios, Record, Report, VENDORS, caches,
    compare, picture_of_ranks, pictures, read_counters, read_ranks, read_records, read_regrets,
    read_tuning,
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
const GPU: Place = Place {
    name: "gpu",
    unseen: false,
    suites: &["gpu", "gpu-narrow", "gpu-partial", "gpu-spgemm"],
    peers: &["cusparse-default", "cusparse-alg1", "cusparse-alg2", "cusparse-alg3"],
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

const UNSEEN_PRODUCTS: [Unseen; 5] = [
    Unseen { operation: "sddmm", product: "SDDMM", peer: "cusparse-default", name: "cuSPARSE" },
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
    let mut records = records_of(|name| name.starts_with(GPU.name) && name.contains(UNSEEN));
    records.retain(|r| r.suite != published::SUITE);
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

/// A product's words for readers.
fn product_of(case: &Case) -> String {
    let Case { operation, columns, sorted, layout, .. } = case;
    match (operation.as_str(), sorted) {
        ("spmm", _) if *columns == 1 => "SpMM, 1 column".into(),
        ("spmm", _) if layout != "row-major" => format!("SpMM, {columns} columns, {layout}"),
        ("spmm", _) => format!("SpMM, {columns} columns"),
        ("spmv", _) => "SpMV".into(),
        (_, true) => "SpGEMM, sorted".into(),
        (_, false) => "SpGEMM, unsorted".into(),
    }
}

/// The peers of `place` that took part in a product, as readers know them: all, or MKL alone.
fn taking_part(own: &[&Comparison<'_>], place: &Place) -> String {
    let takes_part = |peer: &str| own.iter().any(|c| c.peers.contains_key(peer));
    match place.peers == VENDORS && takes_part("mkl") && !takes_part("graphblas") {
        true => "MKL".into(),
        false => place.beside.into(),
    }
}

/// What the ratios of a product are to: the peers of `place`, and where some of them were wrong, how
/// often one alone was right.
fn beside(own: &[&Comparison<'_>], place: &Place) -> String {
    let right =
        |c: &&&Comparison<'_>| place.peers.iter().filter(|p| c.peers.contains_key(*p)).count();
    let most = own.iter().map(|c| right(&c)).max().unwrap_or(0);
    let alone: Vec<_> = own.iter().filter(|c| right(c) == 1 && most > 1).collect();
    let Some(first) = alone.first() else { return taking_part(own, place) };
    let only = place.peers.iter().find(|p| first.peers.contains_key(*p)).expect("one is right");
    if !alone.iter().all(|c| c.peers.contains_key(only)) || alone.len() * 2 < own.len() {
        return taking_part(own, place);
    }
    format!("{}; right on {} of {} by {only} alone", place.beside, alone.len(), own.len())
}

/// The matrix of the least ratio, or one on which ours failed.
fn worst_of<'a>(own: &[&Comparison<'a>], place: &Place) -> &'a str {
    let ratio = |c: &Comparison<'_>| match c.failed_beside(place.peers) {
        true => Some(0.0),
        false => c.against(place.peers),
    };
    let found = own.iter().filter_map(|c| Some((ratio(c)?, c.ours.case.matrix.as_str())));
    found.min_by(|a, b| a.0.total_cmp(&b.0)).map_or("", |found| found.1)
}

/// A line of a table; `worst_of` is the matrix of the worst ratio.
fn line([product, dtype, beside, worst_of, caches]: [&str; 5], r: &Ratios) -> String {
    let Ratios { count, geomean, worst, best, lost } = r;
    let lost = 100.0 * lost;
    format!(
        "| {product} | {dtype} | {beside} | {count} | {geomean:.2} | {worst:.2}{worst_of} | {best:.2} | {lost:.0}% | {caches} |\n"
    )
}

/// The faster of a vendor's f32 product and its right product in `own`, over ours, where the f32
/// product was measured: in another run.
fn beside_f32(own: &[&Comparison<'_>], records: &[Record], place: &Place) -> Option<Ratios> {
    let f32_ms = |case: &Case| {
        let same = |r: &&Record| {
            place.peers.contains(&r.engine.as_str())
                && r.case == Case { dtype: "f32".into(), ..case.clone() }
        };
        records.iter().filter(same).filter_map(|r| r.execute_ms).reduce(f64::min)
    };
    let ratio = |c: &Comparison<'_>| {
        let wide = f32_ms(&c.ours.case)? / c.ours.execute_ms?;
        Some(c.against(place.peers).map_or(wide, |narrow| narrow.min(wide)))
    };
    Ratios::of_patterns(own.iter().filter_map(|c| Some((c.ours.case.pattern(), ratio(c)?))))
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

fn table(place: &Place) -> String {
    let records = records(place);
    let compared = compare(&records, "auto");
    let mut out = machines(&shown(&compared));
    writeln!(
        out,
        "| product | type | beside | patterns | geomean | worst | best | lost | caches |"
    )
    .unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|---|---|").unwrap();
    let mut kinds: Vec<_> = compared
        .iter()
        .map(|c| &c.ours.case)
        .map(|c| (c.operation.as_str(), c.columns, c.sorted, c.dtype.as_str(), c.layout.as_str()))
        .collect();
    let rank = |operation: &str| ["spmm", "spmv", "spgemm"].iter().position(|o| *o == operation);
    kinds.sort_by_key(|(operation, columns, sorted, dtype, layout)| {
        (rank(operation), std::cmp::Reverse(*layout), *columns, *sorted, *dtype)
    });
    kinds.dedup();
    for kind in kinds {
        let of_kind = |c: &&Comparison<'_>| {
            let case = &c.ours.case;
            let dtype = case.dtype.as_str();
            (case.operation.as_str(), case.columns, case.sorted, dtype, case.layout.as_str())
                == kind
        };
        let own: Vec<_> = compared.iter().filter(of_kind).collect();
        let ratios =
            own.iter().filter_map(|c| Some((c.ours.case.pattern(), c.against(place.peers)?)));
        let ratios = Ratios::of_patterns(ratios);
        let failed = own.iter().filter(|c| c.failed_beside(place.peers)).count();
        let Some(r) = ratios.map(|r| r.with_failed(failed)) else { continue };
        let (product, dtype) = (product_of(&own[0].ours.case), kind.3);
        let caches = caches(&own, place.peers);
        let worst = format!(" ({})", worst_of(&own, place));
        out += &line([&product, dtype, &beside(&own, place), &worst, &caches], &r);
        if ["f16", "bf16"].contains(&dtype)
            && let Some(r) = beside_f32(&own, &records, place)
        {
            let name = format!("the faster of {} in {dtype} and in f32", place.beside);
            out += &line([&product, dtype, &name, "", "cold"], &r);
        }
    }
    out
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

/// A file of comma-separated values: rows by the names of their columns.
fn rows_of_csv(name: &str) -> Vec<HashMap<String, String>> {
    let text = fs::read_to_string(root().join("bench/records").join(name)).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let names: Vec<String> = lines.next().unwrap().collect();
    lines.map(|line| names.iter().cloned().zip(line).collect()).collect()
}

// Records of products over ranks that the report shows.
const RANKS: [&str; 2] = ["mpi-speed.csv", "mpi-volumes.csv"];

/// Records of products over ranks, of these files.
fn rank_records(names: &[&str]) -> RankRecords {
    let mut records = RankRecords::default();
    for name in names {
        records.extend(read_ranks(&root().join("bench/records").join(name)).unwrap());
    }
    records
}

/// Products over two ranks beside PETSc's, as `bench/mpi_speed.py` recorded them.
fn ranks_beside_petsc(records: &RankRecords) -> String {
    let mut out = String::new();
    writeln!(
        out,
        "| matrices | product | cases | geomean | worst | best | lost | bytes, geomean | most |"
    )
    .unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|---|---|").unwrap();
    for BesidePetsc { matrices, operation, times, bytes, .. } in records.beside_petsc() {
        writeln!(
            out,
            "| {matrices} | {operation} | {} | {:.2} | {:.2} | {:.2} | {:.0} % | {:.2} | {:.2} |",
            times.count,
            times.geomean,
            times.worst,
            times.best,
            100.0 * times.lost,
            bytes.geomean,
            bytes.best
        )
        .unwrap();
    }
    out
}

/// Bytes of ranks that were counted, as `gustav plan --mpi-ranks` did, relative to sending all of B to all.
fn ranks_counted(records: &RankRecords) -> String {
    let mut out = String::new();
    writeln!(out, "| matrices | ranks | cases | 1.5D | rows of B | partial rows of C | cheapest | to rows of B | balance | of bytes |").unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|---|---|---|").unwrap();
    for counted in records.counted() {
        let relative = counted.relative[1..].iter().map(|share| format!(" {share:.3} |"));
        writeln!(
            out,
            "| {} | {} | {} |{} {:.2} | {:.2} | {:.2} |",
            counted.matrices,
            counted.ranks,
            counted.cases,
            relative.collect::<String>(),
            counted.to_rows_of_b,
            counted.imbalance,
            counted.communication_imbalance,
        )
        .unwrap();
    }
    out
}

#[test]
fn the_tables_are_those_of_the_records() {
    check_tables(
        "README.md",
        &[
            ("published", published::table()),
            ("gpu-unseen", table(&GPU_UNSEEN)),
            ("cpu-unseen", table(&CPU_UNSEEN)),
            ("unseen", unseen()),
            (CPU.name, table(&CPU)),
            (GPU.name, table(&GPU)),
            ("read", reading()),
        ],
    );
}

/// Table 1 of Yang, Buluc and Owens, as `bench/paper_a_table1.py` recorded it.
fn table_1() -> String {
    let mut out = String::new();
    writeln!(out, "| product | kernel | loads in flight | paper | registers | paper | further accesses of A, B, C | paper |")
        .unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|---|").unwrap();
    for row in rows_of_csv("gpu-paper-a-table1.csv") {
        let product = if row["operation"] == "spmv" { "SpMV" } else { "SpMM" };
        let ahead =
            row["parameters"].split("AHEAD=").nth(1).and_then(|rest| rest.split(' ').next());
        let ahead = ahead.map_or(String::new(), |ahead| format!(", rounds of {ahead}"));
        let further = ["a", "b", "c"].map(|of| row[&format!("further_accesses_{of}")].as_str());
        writeln!(
            out,
            "| {product} | {}{ahead} | {} | {} | {} | {} | {} | {} |",
            row["algorithm"],
            row["independent_loads"],
            row["paper_independent_reads_of_b"],
            row["registers"],
            row["paper_registers"],
            further.join(", "),
            row["paper_further_accesses"],
        )
        .unwrap();
    }
    out
}

#[test]
fn table_1_of_the_paper_is_that_of_the_record() {
    check_tables("docs/algorithms/row-split.md", &[("table-1", table_1())]);
}

#[test]
fn the_tables_of_ranks_are_those_of_the_records() {
    let of = |file| rank_records(&[file]);
    let tables = [
        ("mpi-speed-zen4", ranks_beside_petsc(&of("mpi-speed-zen4.csv"))),
        ("mpi-speed", ranks_beside_petsc(&of("mpi-speed.csv"))),
        ("mpi-speed-avx2", ranks_beside_petsc(&of("mpi-speed-avx2.csv"))),
        ("mpi-volumes", ranks_counted(&of("mpi-volumes.csv"))),
    ];
    check_tables("docs/mpi.md", &tables);
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
fn the_picture_of_ranks_is_that_of_the_records() {
    check_picture(
        "docs/ranks.svg",
        "docs/mpi.md",
        &picture_of_ranks(&rank_records(&RANKS)).unwrap(),
    );
}

#[test]
fn the_pictures_are_those_of_the_records() {
    for (place, picture) in [(CPU, "docs/speed.svg"), (GPU, "docs/speed-gpu.svg")] {
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
    let mut beside = Beside { ranks: rank_records(&RANKS), regrets, ..Beside::default() };
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
