//! Products on a GPU from the command line.

use crate::support::{Folder, Run};

#[test]
#[ignore = "needs a CUDA device"]
fn products_on_a_gpu_verify_and_say_how() {
    let folder = Folder::new();
    for verb in ["spmm --columns 128", "spmm --columns 33 --layout column-major", "spmv"] {
        for more in ["", "--transpose", "--dtype f16 --calls 100", "--alpha 2 --beta -1"] {
            let line = format!("{verb} gen:grid5:90x90 --device cuda:0 {more} --repeat 3 --verify");
            let report = folder.json(&format!("{line} --json"));
            assert_eq!((&report["verified"], &report["device"]), (&true.into(), &"cuda:0".into()));
            for key in ["floor_ms", "gather_ms", "transfer_ms"] {
                assert!(report[key].is_f64(), "{key}: {report}");
            }
        }
    }
    let run = folder.run("spmm gen:grid5:90x90 --columns 128 --device cuda:0 --verify");
    let limits = ["of what copying A", "of what reading a row of B from L2 for every nonzero"];
    for part in ["cuda:0", "algorithm", "why", "GFLOP/s", "verified   right"].iter().chain(&limits)
    {
        assert!(run.stdout.contains(part), "{part}: {run:?}");
    }
    let run = folder.run("spmv gen:grid5:90x90 --device cuda:0");
    assert!(run.stdout.contains("of what reading a value of x from L2"), "{run:?}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_algorithm_of_a_gpu_is_in_one_table() {
    let folder = Folder::new();
    for verb in ["spmm --columns 32 --finite", "spmv"] {
        let line = format!("{verb} gen:rmat:9,8 --device cuda:0 --algorithm all --verify");
        let report = folder.json(&format!("{line} --repeat 3 --json"));
        let candidates = report["candidates"].as_array().expect("a list");
        let (ran, refused): (Vec<_>, Vec<_>) =
            candidates.iter().partition(|c| c["refused"].is_null());
        assert!(ran.len() >= 6, "{report}");
        for c in ran {
            assert_eq!(c["verified"], true, "{c}");
            let fractions = ["floor_fraction", "gather_fraction", "vendor_ratio"];
            for key in ["execute_ms", "gflops", "max_error"].iter().chain(&fractions) {
                assert!(c[key].is_f64(), "{key}: {c}");
            }
        }
        for c in refused {
            let words = c["refused"].as_str().expect("words");
            assert!(words.contains("nearest that works"), "{words}");
        }
        let table = folder.run(&format!("{line} --repeat 3")).stdout;
        let fractions = ["of floor", "of gather", "to vendor"];
        for head in ["execute ms", "GFLOP/s", "error", "vendor"].iter().chain(&fractions) {
            assert!(table.contains(head), "{head}: {table}");
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn plans_and_devices_are_printed() {
    let folder = Folder::new();
    let plan = |calls| {
        let line = format!("plan gen:rmat:9,8 --columns 64 --device cuda:0 --calls {calls}");
        folder.run(&line).stdout
    };
    for (calls, why) in [(1, "a single call"), (5, "for 5 calls"), (1000, "rows of")] {
        let text = plan(calls);
        for part in ["algorithm", "config", "workspace", why] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    assert!(!plan(1000).contains("not inspected"));
    let devices = folder.json("devices --json");
    let gpu = &devices["devices"][1];
    assert_eq!((&gpu["name"], &gpu["available"]), (&"cuda:0".into(), &true.into()));
    assert!(gpu["gpu"]["shared_bytes_per_cta"].as_u64() > Some(48 << 10), "{gpu}");
    assert!(folder.run("devices").stdout.contains("multiprocessors"));
    let uncached = folder.command("devices").env("GUSTAV_CACHE_BYTES", "0").output();
    let text = Run::of(uncached.expect("gustav starts")).stdout;
    assert!(text.contains("compiled kernels are not cached: "), "{text}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn measured_candidates_hold_row_orders() {
    let folder = Folder::new();
    let line = "plan gen:rmat:9,8 --columns 64 --device cuda:0 --measure --json";
    let report = folder.json(line);
    let candidates = report["candidates"].as_array().expect("a list");
    let ordered = |c: &&serde_json::Value| c["candidate"].as_str().is_some_and(|n| n.contains('@'));
    let measured: Vec<_> = candidates.iter().filter(|c| c["measured_ms"].is_f64()).collect();
    assert!(measured.iter().filter(|c| ordered(c)).count() >= 3, "{report}");
    assert!(measured.iter().filter(|c| !ordered(c)).count() >= 6, "{report}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn predicted_times_are_printed() {
    let folder = Folder::new();
    let planned = |line: &str| {
        let report = folder.json(line);
        let candidates = report["candidates"].as_array().expect("a list").clone();
        (candidates.iter().filter(|c| c["predicted_ms"].is_f64()).count(), candidates.len(), report)
    };
    let gpu = &folder.json("devices --json")["devices"][1]["gpu"];
    let line = "plan gen:rmat:9,8 --columns 64 --device cuda:0 --json";
    let (times, all, report) = planned(line);
    // There are built-in models for some devices only.
    if gpu["name"].as_str().is_some_and(|name| name.contains("H200")) {
        assert!(all >= 20 && times == all, "{report}");
        let (_, all, report) = planned(&format!("{line} --choose predictor"));
        let reason = report["reason"].as_str().expect("a reason");
        assert!(all >= 20 && reason.contains("a share of 0."), "{report}");
    }
    // The model was trained on f32 at 64 columns.
    for other in ["--columns 65", "--columns 64 --dtype f64"] {
        let (times, ..) = planned(&line.replace("--columns 64", other));
        assert_eq!(times, 0, "{other}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_predicted_order_is_tried_before_it_is_used() {
    use serde_json::{Value, json};
    let folder = Folder::new();
    let gpu = folder.json("devices --json")["devices"][1]["gpu"]["name"].clone();
    let gpu = gpu.as_str().expect("a name");
    // A network without weights whose bias favours an order.
    let shipped = include_str!("../../../gustav-plan/models/nvidia-h200-64.json");
    let mut model: Value = serde_json::from_str(shipped).expect("a model");
    let inputs = model["inputs"].as_array().expect("names").len();
    let zeros = vec![0.0; inputs];
    let bias = [("weights", json!([zeros, zeros])), ("bias", json!([3.0, 1.0]))];
    model["layers"] = json!([bias.into_iter().collect::<std::collections::BTreeMap<_, _>>()]);
    model["candidates"] = json!(["segmented@lpt", "segmented"]);
    model["device"] = json!(gpu);
    model.as_object_mut().expect("an object").remove("times");
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = gpu.chars().map(plain).collect();
    std::fs::create_dir_all(folder.path("gustav/predictor")).expect("a folder");
    folder.write(&format!("gustav/predictor/{name}-64.json"), model.to_string());
    let planned = |line: &str| {
        let mut command = folder.command(&format!("{line} --choose predictor --device cuda:0"));
        let output = command.env("XDG_CONFIG_HOME", folder.path("")).output().expect("gustav");
        let run = Run::of(output);
        assert_eq!(run.status, 0, "{run:?}");
        let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
        let reason = report["reason"].as_str().expect("a reason").to_owned();
        (report["order"].is_null(), reason, report)
    };
    let line = "plan gen:rmat:12,8 --columns 64 --json";
    let (_, reason, report) = planned(&format!("{line} --calls 1000000000"));
    assert!(reason.contains("; tried, "), "{report}");
    // The plan is the candidate that the reason names: the prediction, or the fastest alternative.
    let instead = reason.rsplit_once(", ").and_then(|(_, words)| words.strip_suffix(" is taken"));
    let taken = instead.unwrap_or("segmented@lpt");
    assert_eq!(report["order"].as_str(), taken.split_once('@').map(|(_, order)| order), "{report}");
    let candidates = report["candidates"].as_array().expect("a list");
    let measured = candidates.iter().filter(|c| c["measured_ms"].is_f64());
    let mut measured: Vec<_> = measured.filter_map(|c| c["candidate"].as_str()).collect();
    measured.sort_unstable();
    assert_eq!(measured, ["auto", "segmented", "segmented@lpt", "segmented@stored"], "{report}");
    assert!(measured.contains(&taken), "{report}");
    let (stored, reason, report) = planned(&format!("{line} --calls 1000000000 --deterministic"));
    assert!(stored && reason.contains("not tried"), "{report}");
    let (stored, reason, report) = planned(&format!("{line} --calls 10"));
    assert!(stored && reason.contains("calls would repay"), "{report}");
    let (stored, reason, report) = planned(&format!("{line} --calls 1000000000 --transpose"));
    assert!(stored && reason.contains("segmented, a share"), "{report}");
}

#[cfg(unix)]
#[test]
#[ignore = "needs a CUDA device"]
fn ctrl_c_stops_a_product_between_tiles() {
    use std::process::Stdio;
    let folder = Folder::new();
    let line = "spgemm gen:uniform:200000x200000,16 --device cuda:0 --memory 20M";
    // Repeated, so that the signal arrives while tiles are multiplied.
    let mut child = folder.command(&format!("{line} --repeat 1000 -o c.mtx"));
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("gustav starts");
    std::thread::sleep(std::time::Duration::from_secs(12));
    // SAFETY: the process is ours, and has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    let run = Run::of(child.wait_with_output().expect("an end"));
    assert_eq!((run.status, run.stdout.as_str()), (130, ""), "{run:?}");
    assert!(run.stderr.contains("tile") || run.stderr.contains("interrupted"), "{run:?}");
    assert!(folder.names().is_empty(), "{:?}", folder.names());
    let report = folder.json("spgemm gen:rmat:9,8 --device cuda:0 --memory 64K --verify --json");
    assert_eq!((&report["verified"], &report["algorithm"]), (&true.into(), &"tiled".into()));
}
