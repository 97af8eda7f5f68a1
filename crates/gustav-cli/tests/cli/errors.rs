//! Bad input: each message names the problem, its position, and a remedy; exit status 2.

use crate::support::{Folder, SMALL};

/// Runs `line` with `name` holding `content`; the message must hold every one of `parts`.
#[track_caller]
fn refused(name: &str, content: impl AsRef<[u8]>, line: &str, parts: &[&str]) {
    let folder = Folder::new();
    folder.write(name, content);
    let message = folder.error(line);
    assert!(message.starts_with("gustav: "), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

const HEADER: &str = "%%MatrixMarket matrix coordinate real general\n";

#[test]
fn a_missing_file_is_named() {
    for verb in ["info", "spmm --columns 2", "spmv", "spgemm", "plan --operation spmv"] {
        refused("other", "", &format!("{verb} nofile.mtx"), &["nofile.mtx", "No such file"]);
    }
}

#[test]
fn garbage_and_empty_files_are_not_recognised() {
    refused("a.mtx", "hello", "info a.mtx", &["a.mtx", "not recognised", "expected Matrix Market"]);
    refused("a.mtx", "", "info a.mtx", &["a.mtx", "the file is empty"]);
}

#[test]
fn damaged_matrix_market_files_name_line_and_column() {
    for (body, parts) in [
        ("3 3 2\n1 1 1\n", &["a.mtx: line 4", "expected 2 entries", "found 1"][..]),
        ("3 3 1\n1 1 1\n2 2 2\n", &["a.mtx: line 4"]),
        ("3 3 1\n4 1 1\n", &["a.mtx: line 3"]),
        ("3 3 1\n0 1 1\n", &["a.mtx: line 3"]),
        ("3 3 1\n1 1 abc\n", &["a.mtx: line 3", "abc"]),
    ] {
        refused("a.mtx", format!("{HEADER}{body}"), "info a.mtx", parts);
    }
    let complex = "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n";
    refused("a.mtx", complex, "info a.mtx", &["complex"]);
}

#[test]
fn sizes_beyond_u32_name_the_option() {
    let huge = format!("{HEADER}2 5000000000 1\n1 5000000000 1\n");
    let words = "a.mtx: line 2, column 1: columns: 5000000000 does not fit in u32; use u64 (pass \
                 --index u64)";
    refused("a.mtx", &huge, "spmv a.mtx", &[words]);
    let folder = Folder::new();
    folder.write("a.mtx", &huge);
    assert_eq!(folder.json("info a.mtx --index u64 --json --quiet")["cols"], 5_000_000_000u64);
}

#[test]
fn integers_that_do_not_fit_are_not_rounded() {
    let text = "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 9007199254740993\n";
    refused("a.mtx", text, "spmv a.mtx --dtype i32", &["9007199254740993", "i32"]);
    let fraction = format!("{HEADER}1 1 1\n1 1 0.5\n");
    refused("a.mtx", fraction, "spmv a.mtx --dtype i64", &["0.5", "i64"]);
}

#[test]
fn shapes_that_do_not_fit_name_the_expected_one() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    folder.write("b.mtx", "%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n");
    assert_eq!(
        folder.error("spmm a.mtx --b b.mtx"),
        "gustav: spmm: expected B with 4 rows and any number of columns, found 3 x 1 in b.mtx\n",
    );
    assert_eq!(
        folder.error("spmv a.mtx --x b.mtx"),
        "gustav: spmv: expected x of 4 elements, found 3 x 1 in b.mtx\n",
    );
    assert_eq!(
        folder.error("spgemm a.mtx a.mtx"),
        "gustav: spgemm: expected B with 4 rows, as many as A has columns, found 3 x 4\n",
    );
    assert_eq!(
        folder.error("spmm a.mtx --columns 2 --beta 1 --c b.mtx"),
        "gustav: spmm: expected C with 3 rows and 2 columns, found 3 x 1 in b.mtx\n",
    );
    let message = folder.error("spmm a.mtx --b a.mtx");
    assert!(message.contains("sparse matrix where a dense one is needed"), "{message}");
}

#[test]
fn numbers_out_of_range_are_refused() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    for (line, message) in [
        ("spmv a.mtx --threads 0", "threads: 0 is not valid, expected at least 1"),
        ("spmv a.mtx --repeat 0", "repeat: 0 is not valid, expected at least 1"),
        ("spgemm a.mtx --calls 0", "calls: 0 is not valid, expected at least 1"),
        ("plan a.mtx --columns 3 --calls 0", "calls: 0 is not valid, expected at least 1"),
        (
            "generate grid5:4294967296x4294967296 -o b.mtx --index u64",
            "grid points: 18446744073709551616 does not fit in u64; no index type holds it",
        ),
        (
            "spmv a.mtx --dtype i32 --alpha 0.5",
            "alpha: 0.5 cannot be held in i32 without loss; use f64",
        ),
        (
            "spmv a.mtx --dtype i32 --alpha 2147483648",
            "alpha: 2147483648 cannot be held in i32 without loss; use i64",
        ),
        (
            "spmm a.mtx --columns 2 --beta 1e39",
            "beta: 1e39 cannot be held in f32 without loss; use f64",
        ),
        (
            "spgemm a.mtx --quiet --dtype bf16 --alpha -1e300",
            "alpha: -1e300 cannot be held in f32 without loss; use f64",
        ),
        (
            "spmv a.mtx --deterministic --choose autotune",
            "autotuning does not support spmv of A, A 3 x 4 with 3 nonzeros, 1 columns, f32, \
             u32/u32 indices, deterministic: which algorithm is fastest differs from run to run, \
             and so do its sums; nearest that works: the chooser auto or a named algorithm, or \
             results that need not be the same to the bit",
        ),
        (
            "spmv a.mtx --finite",
            "finite: nothing on the CPU depends on it; leave it out, or name a GPU by --device \
             cuda:K",
        ),
        (
            "plan a.mtx --columns 3 --tf32",
            "tf32: nothing on the CPU depends on it; leave it out, or name a GPU by --device \
             cuda:K",
        ),
        (
            "plan a.mtx --operation spmv --columns 3",
            "columns: spmv takes none, they are those of spmm and sddmm",
        ),
        (
            "plan a.mtx --operation spgemm --layout row-major",
            "layout: spgemm has no dense matrix, it is that of spmm and sddmm",
        ),
        (
            "plan a.mtx --columns 3 --algorithm all",
            "algorithm: a plan is of one, name it or leave it to auto; gustav spmm --algorithm all \
             runs them all",
        ),
    ] {
        assert_eq!(folder.error(line), format!("gustav: {message}\n"), "{line}");
    }
}

#[test]
fn a_missing_gpu_is_one_line() {
    refused("a.mtx", SMALL, "spmv a.mtx --device cuda:4096", &["no device", "cuda:4096"]);
    let nearest = ["segmented on the device cuda:0", "row-split"];
    refused("a.mtx", SMALL, "spmm a.mtx --columns 2 --device cpu --algorithm segmented", &nearest);
    refused("a.mtx", SMALL, "spmv a.mtx --device gpu", &["device: gpu is not valid", "cuda:K"]);
}

#[test]
fn unknown_generators_list_the_known_ones() {
    let folder = Folder::new();
    let error = folder.run("info grid5:3x3").stderr;
    assert!(error.contains("an existing file, or gen:grid5:3x3"), "{error}");
    let run = folder.run("info gen:lattice:3");
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("lattice") && run.stderr.contains("grid5"), "{}", run.stderr);
}

#[test]
fn usage_errors_have_status_two_and_name_the_option() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    for (line, part) in [
        ("", "Usage: gustav"),
        ("multiply a.mtx", "multiply"),
        ("spmm a.mtx", "--columns <N>|--b <FILE>"),
        ("spmm a.mtx --columns 2 --b b.npy", "cannot be used with"),
        ("spmm a.mtx --columns x", "invalid value 'x' for '--columns <N>'"),
        ("spmm a.mtx --columns -1", "invalid value '-1' for '--columns <N>'"),
        ("spmv a.mtx --repeat -2", "invalid value '-2' for '--repeat <K>'"),
        ("spgemm a.mtx --threads -2", "invalid value '-2' for '--threads <N>'"),
        ("plan a.mtx --columns 2 --calls -3", "invalid value '-3' for '--calls <K>'"),
        ("spmv a.mtx --alpha x", "invalid value 'x' for '--alpha <NUMBER>': not a number"),
        ("spmv a.mtx --dtype f8", "[possible values: f32, f64, f16, bf16, i32, i64]"),
        ("spmv a.mtx --algorithm fastest", "nonzero-split"),
        ("spmv a.mtx --choose autotune --algorithm csb", "cannot be used with"),
        ("plan a.mtx", "columns: --columns N is needed to plan spmm"),
        ("spmm a.mtx --columns 2 --c c.npy", "--beta"),
    ] {
        let message = folder.error(line);
        assert!(message.contains(part), "{line}: {message}");
    }
}

#[test]
fn an_output_that_cannot_hold_the_product_is_refused_before_any_work() {
    let folder = Folder::new();
    let huge = "gen:grid5:100000x100000 --index u64";
    for (line, part) in [
        (format!("spmm {huge} --columns 1 -o c.npz"), "use .npy or .mtx"),
        (format!("spgemm {huge} -o c.npy"), "use .mtx or .npz"),
        (format!("spgemm {huge} -o c.smtx"), "use .mtx or .npz (gustav convert --pattern"),
        (format!("spmv {huge} -o c.txt"), "a name ending in .mtx"),
        (format!("spmm {huge} --columns 1 -o c.npy --dtype bf16"), "cannot hold bf16"),
        (format!("convert {huge} c.txt"), "a name ending in .mtx"),
        (format!("convert {huge} c.npz --dtype bf16"), "cannot hold bf16"),
        (format!("info {huge} --png c.jpg"), "end it in .png"),
        (format!("info {huge} --svg c.png --png c.png"), "end it in .svg"),
        ("generate grid5:100000x100000 --index u64 -o c.xyz".into(), "a name ending in .mtx"),
        ("generate grid5:100000x100000 --index u64 -o c.smtx".into(), "gustav convert --pattern"),
    ] {
        let message = folder.error(&line);
        assert!(message.contains(part), "{line}: {message}");
    }
}

#[test]
fn too_little_memory_is_an_error() {
    let folder = Folder::new();
    let message = folder.error("spmm gen:grid5:300x300 --columns 1000000000000 --quiet");
    assert!(message.starts_with("gustav: out of memory: "), "{message}");
    let message = folder.error("plan gen:grid5:300x300 --columns 18446744073709551615");
    assert!(message.contains("bytes needed for B and C"), "{message}");
}

#[test]
fn an_algorithm_of_another_product_is_refused() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    let message = folder.error("spmm a.mtx --columns 2 --algorithm gustavson");
    assert!(message.contains("gustavson") && message.contains("nearest that works"), "{message}");
}
