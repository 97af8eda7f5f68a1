//! `gustav info`, `devices`, `generate`, `convert`, `completions`.

use serde_json::Value;

use crate::support::{Folder, SMALL, SYMMETRIC};

#[test]
fn info_counts() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    let report = folder.json("info a.mtx --json");
    for (key, value) in [
        ("rows", 3.into()),
        ("cols", 4.into()),
        ("nnz", 3.into()),
        ("mean_row_length", 1.0.into()),
        ("max_row_length", 2.into()),
        ("empty_rows", 1.into()),
        ("symmetric", false.into()),
        ("sorted", true.into()),
    ] as [(&str, serde_json::Value); 8]
    {
        assert_eq!(report[key], value, "{key}");
    }
}

#[test]
fn info_prints_features() {
    let folder = Folder::new();
    let report = folder.json("info gen:grid5:40x40 --features --json");
    assert_eq!(report["features"]["nrow"], 1600.0);
    assert_eq!(report["features"]["nnz-per-row-max"], 5.0);
    assert_eq!(report["features"]["warp-load-mean"], 50.0);
    assert_eq!((&report["feature_errors"], &report["feature_rows"]), (&Value::Null, &1600.into()));
    let sampled = folder.json("info gen:grid5:40x40 --features --sample 320 --json");
    assert_eq!(sampled["feature_rows"], 320);
    assert!(sampled["feature_errors"]["same-cache-lines-mean"].is_number(), "{sampled}");
    let text = folder.run("info gen:grid5:40x40 --features").stdout;
    assert!(text.contains("adjacent-vector-distance-max"), "{text}");
    assert_eq!(folder.run("info gen:grid5:9x9 --sample 3").status, 2);
}

#[test]
fn symmetric_means_equal_to_its_transpose() {
    let folder = Folder::new();
    folder.write("s.mtx", SYMMETRIC);
    let report = folder.json("info s.mtx --json");
    assert_eq!((&report["symmetric"], &report["nnz"]), (&true.into(), &3.into()));
    // The same pattern with other values on the two sides; repeated entries count as their sum.
    let header = "%%MatrixMarket matrix coordinate real general\n2 2 3\n";
    folder.write("p.mtx", format!("{header}1 2 1\n2 1 2\n2 2 1\n"));
    assert_eq!(folder.json("info p.mtx --json")["symmetric"], false);
    folder.write("d.mtx", format!("{header}1 2 2\n2 1 1\n2 1 1\n"));
    assert_eq!(folder.json("info d.mtx --json")["symmetric"], true);
}

#[test]
fn info_draws_in_the_terminal() {
    let folder = Folder::new();
    let run = folder.run("info gen:diagonal:3");
    assert_eq!(run.status, 0, "{run:?}");
    assert!(run.stdout.contains("shape      3 x 3\nnonzeros   3 "), "{}", run.stdout);
    assert!(run.stdout.contains("┌───┐\n│█  │\n│ █ │\n│  █│\n└───┘\n"), "{}", run.stdout);
}

#[test]
fn info_draws_files_without_any_font() {
    let folder = Folder::new();
    let mut command = folder.command("info gen:grid5:40x40 --svg a.svg --png a.png --quiet");
    command.env_clear();
    assert_eq!(command.output().expect("gustav starts").status.code(), Some(0));
    let svg = String::from_utf8(folder.read("a.svg")).expect("text");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("gen:grid5:40x40: 1600 x 1600, 7840 nonzeros"));
    let png = folder.read("a.png");
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.ends_with(b"IEND\xaeB`\x82"));
    assert_eq!(folder.names(), ["a.png", "a.svg"]);
}

#[test]
fn info_draws_rows_in_an_order_beside_the_stored_ones() {
    let folder = Folder::new();
    let header = "%%MatrixMarket matrix coordinate pattern general";
    folder.write("a.mtx", format!("{header}\n3 3 2\n1 1\n3 3\n"));
    let text = folder.run("info a.mtx --order dcsr --svg a.svg --png a.png").stdout;
    // The empty row comes last.
    let (stored, ordered) = text.split_once("rows in the order dcsr, made in ").expect("both");
    assert!(stored.contains("│█  │\n│   │\n│  █│\n"), "{text}");
    assert!(ordered.contains("│█  │\n│  █│\n│   │\n"), "{text}");
    let svg = String::from_utf8(folder.read("a.svg")).expect("text");
    assert!(svg.contains("rows as stored") && svg.contains("rows in the order dcsr"), "{svg}");
    let report = folder.json("info a.mtx --order dcsr --json");
    assert!(report["order"] == "dcsr" && report["order_ms"].is_f64(), "{report}");
    assert_eq!(folder.run("info a.mtx --order none").status, 2);
}

#[test]
fn devices_say_what_is_missing() {
    let folder = Folder::new();
    let run = folder.run("devices");
    assert!(run.stdout.starts_with("cpu "), "{}", run.stdout);
    for gpu in run.stdout.lines().skip(1) {
        assert!(gpu.contains("not available: ") || gpu.contains("multiprocessors"), "{gpu}");
    }
    let devices = folder.json("devices --json")["devices"].clone();
    assert_eq!((&devices[0]["available"], &devices[0]["gpu"]), (&true.into(), &Value::Null));
    assert_eq!(devices[1]["available"], devices[1]["gpu"].is_object());
}

#[test]
fn generated_files_read_back() {
    let folder = Folder::new();
    for name in ["g.mtx", "g.mtx.gz", "g.mtx.zst", "g.npz"] {
        let written = folder.json(&format!("generate uniform:50x50,4 --seed 5 -o {name} --json"));
        let read = folder.json(&format!("info {name} --json"));
        for key in ["rows", "cols", "nnz"] {
            assert_eq!(written[key], read[key], "{name}");
        }
    }
    let norm = |file: &str| folder.json(&format!("spmv {file} --json"))["norm"].clone();
    assert_eq!(norm("g.mtx"), norm("g.mtx.gz"));
    assert_eq!(norm("g.mtx"), norm("g.npz"));
}

#[test]
fn convert_keeps_values() {
    let folder = Folder::new();
    // Neither an f32 nor, for the integers, an f64 could hold these.
    let header = "%%MatrixMarket matrix coordinate";
    folder.write("r.mtx", format!("{header} real general\n1 1 1\n1 1 0.1234567890123456\n"));
    folder.write("i.mtx", format!("{header} integer general\n1 1 1\n1 1 9007199254740993\n"));
    for (name, value) in [("r", "0.1234567890123456"), ("i", "9007199254740993")] {
        folder.run(&format!("convert {name}.mtx {name}.npz"));
        folder.run(&format!("convert {name}.npz {name}2.mtx"));
        let text = String::from_utf8(folder.read(&format!("{name}2.mtx"))).expect("text");
        assert!(text.trim_end().ends_with(value), "{text}");
    }
}

#[test]
fn info_reads_integers_that_f64_lacks() {
    let folder = Folder::new();
    let header = "%%MatrixMarket matrix coordinate integer symmetric\n";
    folder.write("i.mtx", format!("{header}2 2 1\n2 1 9007199254740993\n"));
    let report = folder.json("info i.mtx --json");
    assert_eq!((&report["nnz"], &report["symmetric"]), (&2.into(), &true.into()));
    let message = folder.error("info i.mtx --dtype f64");
    assert!(message.contains("i.mtx: line 3, column 5: 9007199254740993"), "{message}");
    assert!(message.contains("use i64"), "{message}");
    // 2^63 exceeds i64 and is exact in f64.
    folder.write("w.mtx", format!("{header}2 2 1\n2 1 9223372036854775808\n"));
    assert!(folder.error("info w.mtx").contains("use f64"));
    assert_eq!(folder.json("info w.mtx --dtype f64 --json")["nnz"], 2);
}

#[test]
fn convert_to_dense_says_what_is_lost() {
    let folder = Folder::new();
    let header = "%%MatrixMarket matrix coordinate integer general\n";
    folder.write("a.mtx", format!("{header}2 2 4\n1 1 2\n1 1 3\n2 1 0\n2 2 7\n"));
    let values = |name: &str| -> Vec<i64> {
        let bytes = folder.read(name);
        let values = bytes[bytes.len() - 32..].chunks(8);
        values.map(|b| i64::from_le_bytes(b.try_into().expect("8 bytes"))).collect()
    };
    let run = folder.run("convert a.mtx a.npy");
    let note = "note: 4 entries become 2 nonzero elements: repeated ones are summed, stored zeros \
                are as all others\n";
    assert_eq!((run.status, run.stderr.as_str()), (0, note));
    assert_eq!(values("a.npy"), [5, 0, 0, 7]);
    let run = folder.run("convert a.mtx p.npy --pattern --quiet");
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    assert_eq!(values("p.npy"), [1, 0, 1, 1]);
    let run = folder.run("convert a.mtx p.npz --pattern");
    assert!(run.stdout.contains("4 nonzeros, ones of i64, written to p.npz"), "{run:?}");
    let run = folder.run("convert a.mtx p.mtx --pattern");
    assert!(run.stdout.contains("4 nonzeros, positions only, "), "{run:?}");
    let help = folder.run("convert --help").stdout;
    let words: Vec<_> = help.split_whitespace().collect();
    assert!(words.join(" ").contains("what is written is general"), "{help}");
}

#[test]
fn the_name_of_the_output_selects_the_format_not_its_folder() {
    let folder = Folder::new();
    folder.write("a.mtx", crate::support::SMALL);
    std::fs::create_dir(folder.path("x.npy")).expect("a folder");
    folder.json("convert a.mtx x.npy/b.npy.mtx --json");
    assert!(folder.read("x.npy/b.npy.mtx").starts_with(b"%%MatrixMarket matrix coordinate"));
}

#[test]
fn convert_canonicalises_and_transposes_on_request() {
    let folder = Folder::new();
    let header = "%%MatrixMarket matrix coordinate integer general\n";
    folder.write("a.mtx", format!("{header}2 3 3\n1 3 1\n1 1 2\n1 3 4\n"));
    assert_eq!(folder.json("convert a.mtx same.mtx --json")["nnz"], 3);
    assert_eq!(folder.json("convert a.mtx b.mtx --canonical --transpose --json")["nnz"], 2);
    let text = String::from_utf8(folder.read("b.mtx")).expect("text");
    assert!(text.ends_with("3 2 2\n1 1 2\n3 1 5\n"), "{text}");
}

#[test]
fn convert_keeps_patterns() {
    let folder = Folder::new();
    folder.write("p.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1\n");
    folder.run("convert p.mtx q.mtx.gz");
    folder.run("convert q.mtx.gz r.mtx");
    assert!(folder.read("r.mtx").starts_with(b"%%MatrixMarket matrix coordinate pattern"));
}

#[test]
fn completions_know_verbs_and_values() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = folder.run(&format!("completions {shell}"));
        assert_eq!(run.status, 0, "{shell}");
        assert!(run.stdout.contains("spgemm"), "{shell}");
        assert!(run.stdout.contains("nonzero-split") || shell == "elvish" || shell == "powershell");
    }
}
