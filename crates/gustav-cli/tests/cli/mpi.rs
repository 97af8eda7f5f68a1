//! Products over the ranks of real MPI jobs, under the `mpiexec` on the path: `pip install mpich`,
//! or any other MPI.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::documents::{documented, page, printed};
use crate::support::{Folder, Run, SMALL};

// A job that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs `mpiexec` with these words, of which `gustav` is the program.
fn launch(folder: &Folder, line: &str) -> Run {
    let mut command = Command::new("mpiexec");
    let program = env!("CARGO_BIN_EXE_gustav");
    command.args(line.split_whitespace().map(|w| if w == "gustav" { program } else { w }));
    // Open MPI refuses more ranks than cores, and root, unless it is told not to.
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    let (output, errors) = (folder.path("stdout"), folder.path("stderr"));
    let file = |path| std::fs::File::create(path).expect("a file");
    command.current_dir(folder.path("")).stdin(Stdio::null());
    command.stdout(file(&output)).stderr(file(&errors));
    let mut child = command.spawn().expect("mpiexec on the path");
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the job") {
            break status;
        }
        if start.elapsed() > LIMIT {
            child.kill().expect("the job ends");
            child.wait().expect("the job ends");
            panic!("{line} hangs: {}", String::from_utf8_lossy(&folder.read("stderr")));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = |name: &str| String::from_utf8_lossy(&folder.read(name)).into_owned();
    let status = status.code().expect("an exit status");
    Run { status, stdout: text("stdout"), stderr: text("stderr") }
}

/// The one JSON object that so many ranks print.
fn job(folder: &Folder, ranks: usize, line: &str) -> Value {
    let run = launch(folder, &format!("-n {ranks} gustav {line} --mpi --json"));
    assert_eq!(run.status, 0, "{line}: {run:?}");
    let report: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{line}: {e}: {run:?}"));
    assert_eq!(report["ranks"], ranks, "{line}");
    report
}

/// The message of a job that must fail, printed once.
fn error(folder: &Folder, line: &str) -> String {
    let run = launch(folder, line);
    assert_ne!(run.status, 0, "{line}: {run:?}");
    assert_eq!(run.stdout.lines().filter(|l| !l.starts_with(['=', ' '])).count(), 0, "{run:?}");
    assert!(!run.stderr.contains("panicked"), "{line}: {}", run.stderr);
    let ours: Vec<&str> = run.stderr.lines().filter(|l| l.starts_with("gustav: ")).collect();
    assert_eq!(ours.len(), 1, "{line}: {run:?}");
    ours[0].to_string()
}

#[test]
#[ignore = "needs mpiexec, as of pip install mpich"]
fn products_are_right_and_printed_once() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    for ranks in [1, 2, 4] {
        for line in [
            "spmm gen:rmat:8,6 --columns 9 --dtype f64 --alpha 2 --beta -1",
            "spmm a.mtx --columns 5 --transpose --dtype f16 --layout column-major",
            "spmm gen:uniform:300x170,5 --columns 8 --communication rows-of-b --deterministic",
            "spmm gen:uniform:300x170,5 --columns 8 --communication partial-rows-of-c --dtype i32",
            "spmv gen:grid5:20x20 --semiring min-plus",
            "spmv a.mtx --index u64 --beta 3",
            "sddmm gen:rmat:8,6 --depth 7 --factors --beta 2",
            "spgemm gen:grid5:20x20 --alpha 2",
            "spgemm a.mtx",
            "spgemm gen:uniform:60x90,4 --dtype f64",
            "spgemm gen:uniform:60x90,4 gen:power-law:90x30,1,2 --unsorted",
            "spgemm a.mtx gen:diagonal:4",
            "spmm gen:rmat:8,6 --columns 5 --partition even --layout column-major",
            "spmm gen:rmat:8,6 --columns 5 --beta 2 --partition reverse-cuthill-mckee",
            "spmm gen:uniform:300x170,5 --columns 8 --transpose --partition label-propagation",
            "spmm gen:rmat:8,6 --columns 5 --transpose --layout column-major --partition lpt",
            "spmv gen:uniform:170x300,5 --beta 3 --partition plain",
            "sddmm gen:rmat:8,6 --depth 7 --factors --beta 2 --partition reverse-cuthill-mckee",
            "sddmm gen:uniform:300x170,5 --depth 7 --partition even",
            "spgemm gen:rmat:8,6 --partition reverse-cuthill-mckee",
            "spgemm gen:uniform:60x90,4 --partition label-propagation",
            // Columns of an A that is not square stay, and so do all in the order `stored`.
            "spgemm gen:uniform:60x90,4 gen:power-law:90x30,1,2 --partition label-propagation",
            "spgemm gen:rmat:6,5 gen:uniform:64x64,3 --partition stored",
            "spmm gen:uniform:300x170,5 --columns 8 --transpose --copies 1",
            "spmv gen:rmat:8,6 --dtype f16 --copies 1",
        ] {
            let report = job(&folder, ranks, &format!("{line} --repeat 2 --verify"));
            assert_eq!(report["verified"], true, "{line}");
            assert_eq!(report["repeats"], 2, "{line}");
            if ranks == 1 {
                assert_eq!(report["sent_bytes"], 0, "{line}");
            }
        }
    }
}

#[test]
#[ignore = "needs mpiexec, as of pip install mpich"]
fn teams_of_ranks_multiply() {
    let folder = Folder::new();
    for (ranks, copies) in [(2, 2), (4, 2), (4, 4)] {
        for line in ["spmm gen:rmat:8,6 --columns 9 --beta 2", "spmv gen:uniform:300x170,5"] {
            let line = format!("{line} --copies {copies} --verify");
            assert_eq!(job(&folder, ranks, &line)["verified"], true, "{line}");
        }
    }
    // Bytes are counted for one copy and for two.
    let run = launch(&folder, "-n 2 gustav plan gen:rmat:8,6 --columns 9 --mpi --copies auto");
    assert!(run.stdout.contains("which sends the fewest bytes"), "{run:?}");
    let refused = error(&folder, "-n 2 gustav spmm gen:rmat:8,6 --columns 9 --mpi --copies 3");
    assert!(refused.contains("copies: 3"), "{refused}");
}

/// A number that no machine has, so that this holds with a driver as well.
#[test]
#[ignore = "needs mpiexec, as of pip install mpich"]
fn a_missing_gpu_is_one_line() {
    let folder = Folder::new();
    for line in [
        "spmm gen:rmat:8,6 --columns 9",
        "spmm gen:rmat:8,6 --columns 9 --copies 2",
        "sddmm gen:rmat:8,6 --depth 9",
        "spgemm gen:rmat:8,6",
        "plan gen:rmat:8,6 --columns 9 --operation sddmm",
    ] {
        let line = format!("-n 2 gustav {line} --mpi --device cuda:1048576");
        let missing = error(&folder, &line);
        assert!(missing.contains("no device"), "{line}: {missing}");
    }
}

#[test]
#[ignore = "needs mpiexec, as of pip install mpich"]
fn files_are_those_of_one_rank() {
    let folder = Folder::new();
    // Integers, whose sums are the same in any order.
    let entry = |k: usize| format!("{} {} {}\n", k * 7 % 50 + 1, k * k % 41 % 40 + 1, k % 9 + 1);
    let entries: String = (0..200).map(entry).collect();
    let head = "%%MatrixMarket matrix coordinate integer general\n50 40 200\n";
    folder.write("a.mtx", format!("{head}{entries}"));
    for (line, ending) in [
        ("spmm a.mtx --columns 4 --dtype i64", "npy"),
        ("spmv a.mtx --transpose --dtype i64 --beta 2", "npy"),
        ("spgemm a.mtx a.mtx --transpose", ""),
        ("sddmm a.mtx --depth 3 --dtype i64", "mtx"),
        ("spgemm a.mtx --dtype i64", "mtx"),
        ("spmm a.mtx --columns 4 --dtype i64 --layout column-major", "npy"),
        ("spmm a.mtx --columns 4 --dtype i64 --layout column-major", "mtx"),
        ("spmm a.mtx --columns 4 --dtype i64", "mtx"),
    ] {
        if ending.is_empty() {
            let refused = error(&folder, &format!("-n 2 gustav {line} --mpi"));
            assert!(refused.contains("transpose: a product over ranks has none"), "{refused}");
            continue;
        }
        folder.json(&format!("{line} --repeat 1 -o one.{ending} --json"));
        let read = |name: &str| folder.read(&format!("{name}.{ending}"));
        for spread in ["even", "balanced", "lpt", "reverse-cuthill-mckee"] {
            let line = format!("{line} --partition {spread} --repeat 1 -o three.{ending}");
            assert_eq!(job(&folder, 3, &line)["partition"], spread);
            assert_eq!(read("one"), read("three"), "{line}");
        }
    }
    // An operand of a file is that of one rank as well.
    folder.json("spmm a.mtx --columns 4 --dtype i64 --transpose -o b.npy --json");
    folder.json("spmm a.mtx --b b.npy --dtype i64 -o one.npy --json");
    job(&folder, 2, "spmm a.mtx --b b.npy --dtype i64 -o two.npy --verify");
    assert_eq!(folder.read("one.npy"), folder.read("two.npy"));
    // Also where its rows are in another order on the ranks, as those of a square A.
    folder.json("spmm gen:rmat:6,5 --columns 3 --dtype i64 -o b.npy --json");
    for options in ["", "--transpose --layout column-major"] {
        let line = format!("spmm gen:rmat:6,5 --b b.npy {options}");
        folder.json(&format!("{line} --dtype i64 --alpha 2 -o one.npy --json"));
        let line = format!("{line} --dtype i64 --alpha 2 --partition lpt -o two.npy");
        job(&folder, 3, &line);
        assert_eq!(folder.read("one.npy"), folder.read("two.npy"), "{line}");
    }
}

#[test]
#[ignore = "needs mpiexec, as of pip install mpich"]
fn errors_are_printed_once_and_nobody_waits() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    for (line, words) in [
        ("-n 3 gustav spmm missing.mtx --columns 4 --mpi", "missing.mtx"),
        ("-n 2 gustav spmm a.mtx --columns 4 --mpi --device cuda:9", "cuda:9"),
        ("-n 2 gustav spmm a.mtx --columns 4 --mpi --algorithm all", "all is not valid"),
        ("-n 2 gustav spmm a.mtx --columns 4 --mpi --reduce max", "nearest that works"),
        ("-n 2 gustav spmm a.mtx --b a.mtx --mpi", "a.mtx"),
        ("-n 2 gustav spgemm a.mtx --mask a.mtx --mpi", "mask"),
        ("-n 2 gustav sddmm a.mtx --depth 4 --mpi --copies 2", "copies: only spmm and spmv"),
        ("-n 2 gustav spgemm a.mtx --mpi --device cuda:0 --threads 2", "threads: ranks with GPUs"),
        ("-n 2 gustav spmv a.mtx --mpi -o nowhere/y.npy", "nowhere"),
        ("-n 2 gustav spgemm a.mtx missing.mtx --mpi", "missing.mtx"),
        ("-n 2 gustav spgemm a.mtx gen:diagonal:9 --mpi", "as many as A has columns"),
        (
            "-n 2 gustav spgemm gen:rmat:6,5 gen:rmat:6,5 --mpi --partition lpt",
            "--partition balanced",
        ),
        (
            "-n 2 gustav spgemm gen:rmat:6,5 --mpi --communication cheapest",
            "communication: only spmm",
        ),
        ("-n 2 gustav sddmm gen:rmat:6,5 --depth 3 --mpi --copies 1", "copies: only spmm"),
        ("-n 2 gustav spmm a.mtx --columns 4 --mpi --order lpt", "--partition"),
        (
            "-n 1 gustav spmm a.mtx --columns 4 --mpi : -n 1 gustav spmm a.mtx --columns 5 --mpi",
            "rank 1 has arguments",
        ),
    ] {
        let message = error(&folder, line);
        assert!(message.contains(words), "{line}: {message}");
    }
    let usage = launch(&folder, "-n 3 gustav spmm a.mtx --mpi --collumns 4");
    assert_ne!(usage.status, 0);
    assert_eq!(usage.stderr.matches("unexpected argument").count(), 1, "{usage:?}");
}

#[test]
#[ignore = "needs mpiexec, as of pip install mpich"]
fn printed_keys_over_ranks_and_documented_keys_agree() {
    let (page, folder) = (page(), Folder::new());
    for (line, verb) in [
        ("spmm gen:grid5:9x9 --columns 4", "spmm --mpi"),
        ("spmv gen:grid5:9x9", "spmm --mpi"),
        ("spgemm gen:grid5:9x9", "spmm --mpi"),
        ("sddmm gen:grid5:9x9 --depth 4", "spmm --mpi"),
        ("plan gen:grid5:9x9 --columns 4", "plan --mpi"),
        ("plan gen:grid5:9x9 --operation spgemm", "plan --mpi"),
    ] {
        let keys = documented(&page, verb, &[]);
        assert!(!keys.is_empty(), "{verb} is not documented");
        assert_eq!(printed(&job(&folder, 2, line)), keys, "{line}");
    }
}

#[test]
fn ranks_that_are_not_run_are_counted() {
    let folder = Folder::new();
    let line = "plan gen:uniform:600x300,5 --columns 8 --dtype f64 --mpi-ranks 1,4,16";
    let report = folder.json(&format!("{line} --rate 1e9 --latency 0 --bandwidth 1e9 --json"));
    let (page, with) = (page(), &[][..]);
    assert_eq!(printed(&report), documented(&page, "plan --mpi-ranks", with));
    let forecasts = report["forecasts"].as_array().expect("lines");
    let of = |ranks: u64, sent: &str| {
        let found = forecasts.iter().find(|f| f["ranks"] == ranks && f["communication"] == sent);
        found.unwrap_or_else(|| panic!("{sent} on {ranks} ranks: {report}"))
    };
    assert_eq!(of(1, "cheapest")["bytes"], 0);
    // Rows of B of 64 bytes, all but its own to every rank.
    for ranks in [4, 16] {
        assert_eq!(of(ranks, "all of B to all")["bytes"], 300 * 64 * (ranks - 1));
        let cheapest = of(ranks, "cheapest")["bytes"].as_u64();
        assert!(cheapest <= of(ranks, "rows-of-b")["bytes"].as_u64());
        assert!(cheapest <= of(ranks, "partial-rows-of-c")["bytes"].as_u64());
    }
    // Two copies: half as much of B, and two copies of C to sum.
    assert_eq!(of(4, "1.5D, 2 copies")["bytes"], 300 * 64 + 2 * 600 * 64);
    // One rank computes, and nothing else.
    let one = of(1, "rows-of-b");
    let nonzeros = report["nnz"].as_f64().expect("a number");
    assert_eq!(one["execute_ms"].as_f64(), Some(nonzeros * 8.0 / 1e9 * 1e3));
    assert_eq!((&one["efficiency"], &one["limit"]), (&1.0.into(), &"nothing".into()));
    // With a host for two ranks or four, less goes between hosts, for which a message is free here.
    for (per_host, ranks, sent, network) in [
        (1, 16, "all of B to all", 300 * 64 * 15),
        (4, 16, "all of B to all", 300 * 64 * 12),
        (4, 4, "all of B to all", 0),
        (2, 4, "1.5D, 2 copies", 300 * 64),
        (4, 4, "cheapest", 0),
    ] {
        let hosts = "--rate 1e9 --latency 0 --host-latency 0 --host-bandwidth 1e9 --bandwidth 1e8";
        let report = folder.json(&format!("{line} {hosts} --ranks-per-host {per_host} --json"));
        let forecasts = report["forecasts"].as_array().expect("lines");
        let is = |f: &&Value| f["ranks"] == ranks && f["communication"] == sent;
        let found = forecasts.iter().find(is).expect("a forecast");
        assert_eq!(found["network_bytes"], network, "{per_host} {ranks} {sent}");
        assert_eq!(found["bytes"], of(ranks, sent)["bytes"], "{per_host} {ranks} {sent}");
        // The busiest rank's bytes of both levels, each at its rate.
        if (ranks, sent) == (4, "all of B to all") {
            let most = found["most_sent_bytes"].as_f64().expect("a number");
            let communicate = found["communicate_ms"].as_f64().expect("a number");
            assert!((communicate - most.max(225.0 * 64.0) / 1e9 * 1e3).abs() < 1e-9, "{found}");
        }
    }
    for (line, words) in [
        ("plan gen:grid5:9x9 --columns 4 --mpi-ranks 4,0", "at least 1"),
        ("plan gen:grid5:9x9 --columns 4 --mpi-ranks 4 --ranks-per-host 0", "at least 1"),
        ("plan gen:grid5:9x9 --columns 4 --mpi-ranks 4 --host-bandwidth 0", "more than 0"),
        ("plan gen:grid5:9x9 --columns 4 --mpi-ranks 4 --host-latency=-1", "at least 0"),
        ("plan gen:grid5:9x9 --columns 4 --mpi-ranks 1000000000000", "at most 65536"),
        ("plan gen:grid5:9x9 --operation spgemm --transpose --mpi-ranks 4", "transpose: "),
        ("plan gen:grid5:9x9 gen:diagonal:9 --operation spgemm --mpi-ranks 4", "81 rows"),
        ("plan gen:grid5:9x9 gen:diagonal:81 --columns 4 --mpi-ranks 4", "B: spmm takes none"),
        ("plan gen:grid5:9x9 --columns 4 --mpi-ranks 4 --partition even", "partition: "),
        ("plan gen:grid5:9x9 --columns 4 --mpi-ranks 4 --copies 2", "copies: "),
        (
            "plan gen:grid5:9x9 --operation sddmm --columns 4 --mpi-ranks 4 --communication cheapest",
            "communication: only spmm and spmv",
        ),
        ("spmm gen:grid5:9x9 --columns 4 --partition even", "--mpi"),
        ("plan gen:grid5:9x9 --columns 4 --mpi-ranks 4 --bandwidth 0", "more than 0"),
        ("plan gen:grid5:9x9 --columns 4 --mpi-ranks 4 --mpi", "cannot be used with"),
        ("spmm gen:grid5:9x9 --columns 4 --communication cheapest", "--mpi"),
    ] {
        let message = folder.error(line);
        assert!(message.contains(words), "{line}: {message}");
    }
}

#[test]
fn sparse_products_on_ranks_that_are_not_run_are_counted() {
    let folder = Folder::new();
    let model = "--operation spgemm --mpi-ranks 1,4 --rate 1e6 --latency 0 --bandwidth 1e9 --json";
    for (matrices, columns, of_b, products) in [
        // B, and the intermediate products: every row of A has four nonzeros, and every row of B five.
        ("gen:uniform:60x90,4 gen:uniform:90x30,5", 30, 90 * 5, 60 * 4 * 5),
        ("gen:uniform:90x90,4", 90, 90 * 4, 90 * 4 * 4),
        ("gen:block:64,8", 64, 64 * 8, 64 * 8 * 8),
        // Blocks that ranks cut.
        ("gen:block:54,6", 54, 54 * 6, 54 * 6 * 6),
    ] {
        let report = folder.json(&format!("plan {matrices} {model}"));
        assert_eq!(printed(&report), documented(&page(), "plan --mpi-ranks", &[]));
        assert_eq!(report["columns"], columns, "{matrices}");
        let forecasts = report["forecasts"].as_array().expect("lines");
        let of = |ranks: u64, sent: &str| {
            let is = |f: &&Value| f["ranks"] == ranks && f["communication"] == sent;
            forecasts.iter().find(is).unwrap_or_else(|| panic!("{sent} on {ranks}: {report}"))
        };
        assert_eq!(forecasts.len(), 4, "{report}");
        assert_eq!(of(1, "rows-of-b")["bytes"], 0);
        assert_eq!(
            of(1, "rows-of-b")["execute_ms"].as_f64(),
            Some(f64::from(products) / 1e6 * 1e3)
        );
        assert_eq!(of(4, "all of B to all")["bytes"], of_b * 4 * 3, "{matrices}");
        let sent = of(4, "rows-of-b")["bytes"].as_u64().expect("a number");
        assert!(sent <= of_b * 4 * 3, "{matrices}");
        // Rows of a block need those of the same block alone.
        assert_eq!(sent == 0, matrices == "gen:block:64,8", "{matrices}");
    }
    // Where A is not square, B is its transpose, whose rows are as long as columns of A.
    let report = folder.json(&format!("plan gen:uniform:60x90,4 {model} --quiet"));
    assert_eq!(report["columns"], 60);
    // Of every product it is said from where on most of the time is lost.
    for product in ["spgemm", "sddmm --columns 4", "spmm --columns 4 --communication rows-of-b"] {
        let line = format!("plan gen:rmat:7,5 --operation {product} --mpi-ranks 4,64 --rate 1e9");
        let text = folder.run(&line).stdout;
        assert!(text.contains("ranks on, more than half of the time is lost"), "{text}");
        // SDDMM has no sums of a dense C, nor have sparse products.
        assert_eq!(text.contains("1.5D"), product.starts_with("spmm"), "{text}");
    }
    // The rate is measured unless given.
    let line = "plan gen:uniform:60x90,4 --operation spgemm --mpi-ranks 4 --quiet --json";
    let report = folder.json(line);
    assert!(report["model"]["rate"].as_f64() > Some(0.0), "{report}");
}

#[test]
#[ignore = "needs mpiexec, as of pip install mpich"]
fn ranks_send_what_was_counted() {
    let folder = Folder::new();
    for (matrix, options) in [
        ("gen:rmat:8,6", "--columns 9"),
        ("gen:rmat:8,6", "--columns 9 --transpose --dtype f16"),
        ("gen:uniform:300x170,5", "--columns 9 --communication partial-rows-of-c"),
        ("gen:rmat:8,6", "--operation spgemm"),
        ("gen:uniform:300x170,5", "--operation spgemm --dtype f64"),
        ("gen:uniform:300x170,5 gen:power-law:170x90,1,2", "--operation spgemm"),
    ] {
        let line = format!("plan {matrix} {options} --quiet");
        let counted = folder.json(&format!("{line} --mpi-ranks 4 --json"));
        let lines = counted["forecasts"].as_array().expect("lines");
        let sent = job(&folder, 4, &line);
        let same = |f: &&Value| f["communication"] == sent["communication"];
        let counted = lines.iter().find(same).expect("the same communication");
        assert_eq!(counted["bytes"], sent["sent_bytes"], "{line}");
        assert_eq!(counted["messages"], sent["messages"], "{line}");
        assert_eq!(counted["imbalance"], sent["imbalance"], "{line}");
    }
}
