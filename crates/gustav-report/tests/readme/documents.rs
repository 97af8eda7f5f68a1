//! The tables and the picture of pages under docs/.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::fs;

use gustav_report::{
    BesidePetsc, RankRecords, Ratios, picture_of_ranks, read_feature_times, read_ranks,
};

use super::{check_picture, check_tables, root};

/// A file of comma-separated values: rows by the names of their columns.
fn rows_of_csv(name: &str) -> Vec<HashMap<String, String>> {
    let text = fs::read_to_string(root().join("bench/records").join(name)).unwrap();
    let mut lines = text.lines().map(cells);
    let names = lines.next().unwrap();
    lines.map(|line| names.iter().cloned().zip(line).collect()).collect()
}

/// Cells of a line; commas between quotes are part of one.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            _ => cells.last_mut().expect("a cell").push(c),
        }
    }
    cells
}

/// Records of products over ranks that the report shows.
pub const RANKS: [&str; 2] = ["mpi-speed.csv", "mpi-volumes.csv"];

/// Records of products over ranks, of these files.
pub fn rank_records(names: &[&str]) -> RankRecords {
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
        let relative = counted.relative[1..].iter().map(|ratio| format!(" {ratio:.3} |"));
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

/// Counters of the kernels of the study of row permutations over those of cuSPARSE, as `bench/paper_c_ncu.py` recorded
/// them.
fn strip_counters() -> String {
    let rows = rows_of_csv("gpu-paper-c-counters.csv");
    let mut out = String::new();
    writeln!(
        out,
        "| | kernel | time | instructions | bytes loaded | bytes of L2 | lanes with work, of 32 | warps, of all |"
    )
    .unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|---|").unwrap();
    let of = |row: &HashMap<String, String>, name: &str| row[name].parse::<f64>().unwrap();
    for row in rows.iter().filter(|row| row["algorithm"] != "cusparse-default") {
        let vendor = rows.iter().find(|other| {
            other["matrix"] == row["matrix"] && other["algorithm"] == "cusparse-default"
        });
        let vendor = vendor.expect("cuSPARSE on every matrix");
        let [time, instructions, loaded, l2] =
            ["time_us", "instructions", "loaded_bytes", "l2_bytes"]
                .map(|name| of(row, name) / of(vendor, name));
        writeln!(
            out,
            "| `{}` | {} | {time:.2} | {instructions:.2} | {loaded:.2} | {l2:.2} | {:.0} | {:.0} % |",
            row["matrix"],
            row["algorithm"],
            of(row, "lanes"),
            100.0 * of(row, "occupancy"),
        )
        .unwrap();
    }
    out
}

#[test]
fn the_table_of_counters_is_that_of_the_record() {
    check_tables("docs/algorithms/output-stationary.md", &[("counters", strip_counters())]);
}

/// Times of features, as example `orders` of `gustav-bench` recorded them.
pub const FEATURES: &str = "cpu-features.csv";

/// Times of features over those of passes that do less.
fn features() -> String {
    let times = read_feature_times(&root().join("bench/records").join(FEATURES)).unwrap();
    let mut out = String::new();
    let passes =
        times.passes.iter().map(|pass| format!(" features ÷ {pass} |")).collect::<String>();
    writeln!(out, "| | nonzeros a row | threads |{passes}").unwrap();
    writeln!(out, "|---|---|---|{}", "---|".repeat(times.passes.len())).unwrap();
    let cells = |ratios: &[f64]| ratios.iter().map(|r| format!(" {r:.1} |")).collect::<String>();
    for line in &times.lines {
        let (length, ratios) = (line.mean_row_length, cells(&line.ratios));
        writeln!(out, "| `{}` | {length:.1} | {} |{ratios}", line.matrix, line.threads).unwrap();
    }
    for (threads, ratios) in times.means() {
        writeln!(out, "| geomean | | {threads} |{}", cells(&ratios)).unwrap();
    }
    out
}

#[test]
fn the_table_of_features_is_that_of_the_record() {
    check_tables("docs/decisions/0034-counting-features.md", &[("features", features())]);
}

/// What the best of the configurations with half vectors, or `auto` without them, gains over that `auto`.
fn half_vectors() -> String {
    let records = root().join("bench/records/choice");
    let file = gustav_io::read_bytes(records.join("gpu-h200-half-vectors.jsonl.zst")).unwrap();
    let unseen = fs::read_to_string(records.join("unseen.txt")).unwrap();
    let unseen: HashSet<&str> = unseen.lines().collect();
    // By product: the time of `auto`, and the least of the others.
    let mut times = BTreeMap::<_, [f64; 2]>::new();
    for line in std::str::from_utf8(&file).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let matrix = line["matrix"].as_str().unwrap().to_owned();
        let kind = (
            line["dtype"].as_str().unwrap().to_owned(),
            line["columns"].as_u64().unwrap(),
            !unseen.contains(matrix.as_str()),
        );
        let of_product = times.entry((kind, matrix)).or_insert([f64::INFINITY; 2]);
        let least = &mut of_product[usize::from(line["algorithm"] != "auto")];
        *least = least.min(line["execute_ms"].as_f64().unwrap());
    }
    let mut gains = BTreeMap::<_, Vec<f64>>::new();
    for ((kind, _), [auto, half]) in times {
        gains.entry(kind).or_default().push(auto / half.min(auto));
    }
    let mut out = String::new();
    writeln!(out, "| type | columns | matrices | number | geomean | most | by more than 3 % |")
        .unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|").unwrap();
    for ((dtype, columns, seen), gains) in gains {
        let matrices = if seen { "may be fitted to" } else { "unseen" };
        let more = gains.iter().filter(|gain| **gain > 1.03).count();
        let r = Ratios::of(&gains).unwrap();
        writeln!(
            out,
            "| {dtype} | {columns} | {matrices} | {} | {:.2} | {:.2} | {more} |",
            r.count, r.geomean, r.best
        )
        .unwrap();
    }
    out
}

#[test]
fn the_gains_of_half_vectors_are_those_of_the_record() {
    check_tables("docs/decisions/0056-half-vectors.md", &[("half vectors", half_vectors())]);
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

#[test]
fn the_picture_of_ranks_is_that_of_the_records() {
    check_picture(
        "docs/ranks.svg",
        "docs/mpi.md",
        &picture_of_ranks(&rank_records(&RANKS)).unwrap(),
    );
}
