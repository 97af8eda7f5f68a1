//! The products from the command line: results, checks, files.

use serde_json::Value;

use crate::support::{Folder, Run, SMALL, SYMMETRIC};

const TYPES: [&str; 6] = ["f16", "bf16", "f32", "f64", "i32", "i64"];

#[test]
fn every_type_multiplies_and_verifies() {
    let folder = Folder::new();
    let indices = ["--index u32", "--index u64"];
    let types =
        TYPES.iter().flat_map(|dtype| indices.map(|index| format!("--dtype {dtype} {index}")));
    for types in types {
        for verb in ["spmm --columns 3", "spmv", "spgemm", "sddmm --depth 3"] {
            let line = format!("{verb} gen:grid5:20x20 {types} --repeat 2 --verify --json");
            let report = folder.json(&line);
            assert_eq!(report["verified"], true, "{line}");
            assert_eq!(report["nnz"], 1920, "{line}");
            assert_eq!(report["repeats"], 2, "{line}");
        }
    }
}

#[test]
fn every_semiring_verifies() {
    let folder = Folder::new();
    for semiring in ["min-plus", "max-times", "or-and", "plus-first", "plus-second"] {
        for dtype in TYPES {
            for verb in ["spmm --columns 5", "spmv", "spgemm"] {
                let line = format!(
                    "{verb} gen:uniform:200x200,7 --dtype {dtype} --semiring {semiring} --repeat 1 \
                     --verify --json"
                );
                let report = folder.json(&line);
                assert_eq!(report["verified"], true, "{line}");
                assert_eq!(report["semiring"], semiring);
            }
        }
    }
}

#[test]
fn every_reduction_verifies() {
    let folder = Folder::new();
    for (reduce, options) in ["sum", "mean", "max", "min"].into_iter().flat_map(|reduce| {
        let options =
            ["--dtype f32", "--dtype f16 --transpose", "--alpha -2 --layout column-major"];
        options.map(|options| (reduce, options))
    }) {
        let line = format!(
            "spmm gen:uniform:200x200,7 --columns 5 --reduce {reduce} {options} --repeat 1 --verify --json"
        );
        let report = folder.json(&line);
        assert_eq!(report["verified"], true, "{line}");
        assert_eq!(report["reduce"], reduce);
    }
    let all =
        "spmm gen:uniform:200x200,7 --columns 5 --reduce max --algorithm all --repeat 1 --json";
    assert_eq!(folder.json(all)["algorithm"], "row-split");
    let plan = folder.json("plan gen:uniform:200x200,7 --columns 5 --reduce min --json");
    assert_eq!(plan["algorithm"], "row-split");
    let matrix = "gen:uniform:200x200,7 --columns 5";
    for (line, remedy) in [
        (format!("spmm {matrix} --reduce max --beta 1"), "zero"),
        (format!("spmm {matrix} --reduce max --semiring min-plus"), "plus-times"),
        (format!("spmm {matrix} --reduce mean --dtype i32"), "without it"),
        (format!("spmm {matrix} --reduce min --algorithm merge-path"), "row-split"),
        ("spmv gen:uniform:200x200,7 --reduce max".into(), "SpMM"),
    ] {
        let refused = folder.error(&line);
        assert!(refused.contains(remedy), "{line}: {refused}");
    }
}

#[test]
fn alpha_beta_transpose_and_layout_verify() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    for options in [
        "--alpha 2.5",
        "--alpha -1 --beta 0.5",
        "--transpose",
        "--transpose --beta -2 --layout column-major",
        "--layout column-major",
        "--deterministic",
        "--threads 1",
        "--choose mean-row-length",
        "--choose autotune",
    ] {
        let line = format!("spmm a.mtx --columns 5 {options} --repeat 2 --verify --json");
        assert_eq!(folder.json(&line)["verified"], true, "{line}");
        if !options.contains("layout") {
            let line = format!("spmv a.mtx {options} --repeat 2 --verify --json");
            assert_eq!(folder.json(&line)["verified"], true, "{line}");
        }
        if !options.contains("layout") && !options.contains("beta") {
            let line = format!("spgemm a.mtx {options} --repeat 2 --verify --json");
            assert_eq!(folder.json(&line)["verified"], true, "{line}");
        }
    }
}

#[test]
fn dense_products_at_nonzeros_verify() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    for options in [
        "--depth 0",
        "--depth 5 --alpha 2.5",
        "--depth 40 --alpha -1 --beta 0.5",
        "--depth 7 --factors --layout column-major",
        "--depth 33 --factors --beta 2 --threads 1",
        "--depth 8 --choose autotune",
    ] {
        let line = format!("sddmm a.mtx {options} --repeat 2 --verify --json");
        assert_eq!(folder.json(&line)["verified"], true, "{line}");
    }
    // X and Y from files, C to a file: C at (i, j) is the inner product of row i of X and row j of
    // Y.
    let vector = |values: &str| {
        format!("%%MatrixMarket matrix array real general\n{} 1\n{values}", values.lines().count())
    };
    folder.write("m.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 3 9\n2 1 9\n");
    folder.write("x.mtx", vector("2\n5\n"));
    folder.write("y.mtx", vector("1\n10\n100\n"));
    folder.json("sddmm m.mtx --x x.mtx --y y.mtx -o c.mtx --json");
    let c = std::fs::read_to_string(folder.path("c.mtx")).expect("the product");
    assert!(c.contains("1 3 200") && c.contains("2 1 5"), "{c}");
    let refused = folder.error("sddmm m.mtx --x y.mtx --y x.mtx");
    assert!(refused.contains("X with 2 rows") && refused.contains("3 x 1"), "{refused}");
    let refused = folder.error("sddmm m.mtx --depth 2 --semiring min-plus");
    assert!(refused.contains("plus-times"), "{refused}");
}

#[test]
fn integer_factors_are_exact() {
    let folder = Folder::new();
    let header = "%%MatrixMarket matrix coordinate integer general\n";
    folder.write("one.mtx", format!("{header}1 1 1\n1 1 1\n"));
    folder.write("x.mtx", "%%MatrixMarket matrix array integer general\n1 1\n1\n");
    // The smallest integer that f64 cannot hold.
    let odd = "9007199254740993";
    for line in [
        format!("spmv one.mtx --x x.mtx --alpha {odd}"),
        format!("spmm one.mtx --b x.mtx --alpha 0 --beta {odd} --c x.mtx"),
        format!("spgemm one.mtx --alpha {odd}"),
    ] {
        let run = folder.run(&format!("{line} --dtype i64 --verify -o y.mtx"));
        assert_eq!(run.status, 0, "{line}: {run:?}");
        let y = String::from_utf8(folder.read("y.mtx")).expect("text");
        assert!(y.trim_end().ends_with(odd), "{line}: {y}");
    }
}

#[test]
fn expected_calls_decide_what_is_planned() {
    let folder = Folder::new();
    let algorithm =
        |line: &str| folder.json(&format!("{line} --repeat 1 --json"))["algorithm"].clone();
    assert_eq!(algorithm("spmv gen:grid5:40x40"), "row-split");
    // In the caches, only encodings that need masks pay.
    #[cfg(target_arch = "x86_64")]
    let masks = is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    #[cfg(not(target_arch = "x86_64"))]
    let masks = false;
    let expected = if masks { "compressed-index" } else { "row-split" };
    assert_eq!(algorithm("spmv gen:grid5:40x40 --calls 1000"), expected);
}

#[test]
fn deterministic_products_do_not_depend_on_the_number_of_threads() {
    let folder = Folder::new();
    // Has a row long enough to be cut into parts for several threads.
    let line = "spmm gen:hubs:2000x20000,5,1,1100 --columns 8 --deterministic --repeat 1 -o c.npy";
    let product = |threads: usize| {
        assert_eq!(folder.run(&format!("{line} --threads {threads} --quiet")).status, 0);
        folder.read("c.npy")
    };
    let one = product(1);
    for threads in 2..=8 {
        assert!(product(threads) == one, "{threads} threads");
    }
}

#[test]
fn all_algorithms_agree_with_the_oracle() {
    let folder = Folder::new();
    for verb in ["spmm --columns 8", "spmv", "spgemm"] {
        let line =
            format!("{verb} gen:uniform:300x300,9 --algorithm all --repeat 1 --verify --json");
        let report = folder.json(&line);
        let candidates = report["candidates"].as_array().expect("a list");
        let ran: Vec<_> = candidates.iter().filter(|c| c["refused"].is_null()).collect();
        assert!(ran.len() >= 2, "{line}: {report}");
        assert!(ran.iter().all(|c| c["verified"] == true), "{line}: {report}");
    }
}

#[test]
fn the_product_is_correct() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    folder.write("x.mtx", "%%MatrixMarket matrix array real general\n4 1\n1\n10\n100\n1000\n");
    let run = folder.run("spmv a.mtx --x x.mtx -o y.mtx --quiet");
    assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
    let y = String::from_utf8(folder.read("y.mtx")).expect("text");
    let values: Vec<f64> = y.lines().skip(2).map(|l| l.trim().parse().expect("a number")).collect();
    assert_eq!(values, [2001.0, 0.0, -30.0]);

    folder.run("spmm a.mtx --b x.mtx -o c.npy --quiet");
    let bytes = folder.read("c.npy");
    let c: Vec<f32> = bytes[bytes.len() - 12..]
        .chunks(4)
        .map(|b| f32::from_le_bytes(b.try_into().expect("4 bytes")))
        .collect();
    assert_eq!(c, [2001.0, 0.0, -30.0]);
}

#[test]
fn spgemm_without_b_says_what_it_multiplies() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    folder.write("s.mtx", SYMMETRIC);
    let run = folder.run("spgemm a.mtx --json -o c.mtx");
    assert_eq!(run.status, 0, "{run:?}");
    assert_eq!(run.stderr, "note: A is not square; multiplying A·Aᵀ\n");
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("one object");
    assert_eq!((&report["nnz_c"], &report["products"]), (&2.into(), &3.into()));
    // [1 2]·[1 2]ᵀ = 5, (-3)·(-3) = 9.
    let c = String::from_utf8(folder.read("c.mtx")).expect("text");
    assert!(c.contains("3 3 2\n1 1 5.0\n3 3 9.0"), "{c}");

    let report = folder.json("spgemm s.mtx --json");
    assert_eq!((&report["nnz"], &report["nnz_c"]), (&3.into(), &4.into()));
    let run = folder.run("spgemm a.mtx --transpose --verify");
    assert!(run.stdout.contains("C = Aᵀ·A"), "{run:?}");
}

#[test]
fn spgemm_under_a_mask() {
    let folder = Folder::new();
    folder.write("s.mtx", SYMMETRIC);
    for types in ["--dtype f32", "--dtype i64 --index u64", "--dtype f64 --semiring min-plus"] {
        let mask = "gen:uniform:300x300,20";
        let line = format!("spgemm gen:rmat:8,9 {types} --mask gen:uniform:256x256,9");
        let report = folder.json(&format!("{line} --verify --json --repeat 1"));
        assert_eq!((&report["verified"], &report["algorithm"]), (&true.into(), &"masked".into()));
        let whole = folder.json(&format!("spgemm gen:rmat:8,9 {types} --json --repeat 1"));
        assert_eq!(report["products"], whole["products"]);
        assert_eq!(
            (&report["mask"], &whole["mask"]),
            (&"gen:uniform:256x256,9".into(), &Value::Null)
        );
        assert!(report["gflops"].is_null() && whole["gflops"].is_f64(), "{report} {whole}");
        assert!(report["nnz_c"].as_u64() < whole["nnz_c"].as_u64(), "{report}");
        let run = folder.run(&format!("spgemm gen:rmat:8,9 {types} --mask {mask}"));
        assert_eq!(run.status, 2, "{run:?}");
        assert!(run.stderr.contains("a mask of 256 x 256"), "{run:?}");
    }
    let run = folder.run("spgemm s.mtx --mask s.mtx");
    assert!(run.stdout.contains("C⟨M⟩ = A·A"), "{run:?}");
    assert!(run.stdout.contains("at positions of s.mtx"), "{run:?}");
    assert!(!run.stdout.contains("GFLOP/s"), "{run:?}");
    for (options, word) in
        [("--algorithm all", "leave it out"), ("--algorithm gustavson", "masked")]
    {
        let run = folder.run(&format!("spgemm s.mtx --mask s.mtx {options}"));
        assert_eq!(run.status, 2, "{run:?}");
        assert!(run.stderr.contains(word), "{run:?}");
    }
    let run = folder.run("spgemm s.mtx --memory 1M");
    assert_eq!(run.status, 2, "{run:?}");
    assert!(run.stderr.contains("memory: it has no meaning on the CPU"), "{run:?}");
    for wrong in ["1X", "M", "99999999999G"] {
        let run = folder.run(&format!("spgemm s.mtx --memory {wrong}"));
        assert!(run.stderr.contains("number of bytes"), "{run:?}");
    }
    let run = folder.run("spgemm s.mtx --algorithm masked");
    assert_eq!(run.status, 2, "{run:?}");
    assert!(run.stderr.contains("--mask FILE"), "{run:?}");
}

#[test]
fn sizes_of_nothing_work() {
    let folder = Folder::new();
    let header = "%%MatrixMarket matrix coordinate real general\n";
    for (rows, cols) in [(0, 0), (0, 5), (5, 0), (5, 5)] {
        folder.write("e.mtx", format!("{header}{rows} {cols} 0\n"));
        for verb in ["spmm --columns 3", "spmm --columns 0", "spmv", "spgemm"] {
            let line = format!("{verb} e.mtx --verify --json --quiet");
            let report = folder.json(&line);
            assert_eq!(report["verified"], true, "{rows} x {cols}: {line}");
            assert_eq!((&report["rows"], &report["cols"]), (&rows.into(), &cols.into()));
        }
        assert_eq!(folder.run("info e.mtx").status, 0, "{rows} x {cols}");
    }
}

#[test]
fn not_a_number_is_computed_with_and_printed_as_a_string() {
    let folder = Folder::new();
    let header = "%%MatrixMarket matrix coordinate real general\n";
    folder.write("nan.mtx", format!("{header}1 1 1\n1 1 nan\n"));
    folder.write("inf.mtx", format!("{header}1 1 1\n1 1 inf\n"));
    assert_eq!(folder.json("spgemm nan.mtx --verify --json")["norm"], "NaN");
    let report = folder.json("spgemm inf.mtx --verify --json");
    assert_eq!((&report["norm"], &report["verified"]), (&"inf".into(), &true.into()));
}

#[test]
fn without_verify_nothing_is_claimed() {
    let folder = Folder::new();
    let report = folder.json("spmm gen:grid5:4x4 --columns 1 --json");
    for key in ["verified", "max_error", "error_bound"] {
        assert!(report[key].is_null(), "{key}");
    }
}

#[test]
fn the_summary_says_which_algorithm_and_why() {
    let folder = Folder::new();
    let run = folder.run("spmm gen:grid5:30x30 --columns 4 --verify");
    assert_eq!(run.status, 0, "{run:?}");
    for line in
        ["spmm: ", "A  ", "algorithm  ", "why  ", "plan  ", "execute  ", "C  ", "verified   right"]
    {
        assert!(run.stdout.lines().any(|l| l.starts_with(line)), "{line}: {}", run.stdout);
    }
}

#[test]
fn plan_explains_without_running() {
    let folder = Folder::new();
    for operation in ["spmm --columns 64", "spmv", "spgemm"] {
        let run = folder.run(&format!("plan gen:grid5:30x30 --operation {operation}"));
        assert_eq!(run.status, 0, "{run:?}");
        for line in
            ["problem  ", "device  ", "facts  ", "algorithm  ", "config  ", "why  ", "workspace  "]
        {
            assert!(run.stdout.lines().any(|l| l.starts_with(line)), "{line}: {}", run.stdout);
        }
        // Text for users, without debug output.
        assert!(!run.stdout.contains(['{', '}']), "{}", run.stdout);
    }
}

#[test]
fn plan_measures_every_candidate_on_request() {
    let folder = Folder::new();
    for (operation, one) in
        [("spmm --columns 3", "csb"), ("spmv", "merge-path"), ("spgemm", "hash-rows")]
    {
        let line = format!("plan gen:grid5:9x9 --operation {operation} --json");
        assert_eq!(folder.json(&line)["candidates"].as_array().map(Vec::len), Some(0));
        let output = folder.json(&format!("{line} --measure"));
        let all = output["candidates"].as_array().expect("candidates");
        let ms: Vec<f64> = all.iter().filter_map(|c| c["measured_ms"].as_f64()).collect();
        assert!(ms.len() == all.len() && ms.is_sorted() && ms[0] > 0.0, "{output}");
        assert!(all.iter().any(|c| c["candidate"] == one), "{output}");
    }
}

#[test]
fn a_seed_gives_the_same_product_again() {
    let folder = Folder::new();
    let norm = |seed| {
        folder.json(&format!("spmv gen:uniform:100x100,5 --seed {seed} --json"))["norm"].clone()
    };
    assert_eq!(norm(3), norm(3));
    assert_ne!(norm(3), norm(4));
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::process::Stdio;
    let folder = Folder::new();
    for line in
        ["info gen:grid5:20x20", "completions bash", "spmm gen:grid5:9x9 --columns 2 --json"]
    {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = folder.command(line);
        command.stdout(writer).stderr(Stdio::piped());
        let run = Run::of(command.output().expect("gustav starts"));
        assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{line}");
    }
}
