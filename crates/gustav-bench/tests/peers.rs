//! The whole way of a run with peers that are made up for the test.

use std::path::Path;

use gustav_bench::{BenchArgs, run};
use gustav_report::{Filter, Status, read_records};

/// A peer by the protocol alone: SpMM and SDDMM with a diagonal matrix, which is all that the tests have.
const FAKE: &str = r#"
import json, os, struct, sys
name = sys.argv[2]
def say(**v): print(json.dumps(v), flush=True)
if name == "torch":
    say(error="ImportError: no such library", missing=True)
    sys.exit()
say(ready=True)
floats = lambda p: list(struct.unpack("<%df" % (os.path.getsize(p) // 4), open(p, "rb").read()))
for line in sys.stdin:
    m = json.loads(line)
    do = m["do"]
    if do == "quit": break
    if do == "hello":
        others = {"layouts": ["diagonal"]} if name == "odd" else {}
        say(peer=name, versions={name: " ".join(["1", *sys.argv[3:]])}, threads=1, **others)
    elif do == "matrix": a = floats(m["values"]); say()
    elif do == "dense": b = floats(m["values"]); say()
    elif do == "prepare" and name == "scipy": sys.exit("fell over")
    elif do == "prepare" and name == "young": say(error="not yet", unsupported=True)
    elif do == "prepare" and m["gradients"]: say(error="no gradients", unsupported=True)
    elif do == "prepare" and name == "mkl":
        n, sampled = m["columns"], m["operation"] == "sddmm"
        say(prepare_ms=2.0, copy=m["copy"])
    elif do == "prepare": n = m["columns"]; say(prepare_ms=2.0, chosen="row by row")
    elif do == "run": say(ms=[9.0 if m.get("copy") else 4.0] * m["repeats"])
    elif do == "result":
        c = [a[i // n] * b[i] for i in range(len(a) * n)]
        if name == "mkl" and sampled:
            y, x = ([b[i * n : i * n + n] for i in range(k, k + len(a))] for k in (0, len(a)))
            c = [sum(map(lambda p, q: p * q, *rows)) for rows in zip(x, y)]
        if name == "graphblas": c[3] += 1
        open(os.path.join(m["folder"], "values"), "wb").write(struct.pack("<%df" % len(c), *c))
        say()
    else: say()
"#;

/// An interpreter that runs the script above in place of the one it is told to run.
#[cfg(unix)]
fn interpreter(folder: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let (script, shell) = (folder.join("fake.py"), folder.join("python"));
    std::fs::write(&script, FAKE).unwrap();
    let text = format!("#!/bin/sh\nexec python3 {} \"$@\"\n", script.display());
    std::fs::write(&shell, text).unwrap();
    std::fs::set_permissions(&shell, std::fs::Permissions::from_mode(0o755)).unwrap();
    shell.display().to_string()
}

fn args(folder: &Path, python: String, peers: &[&str]) -> BenchArgs {
    BenchArgs {
        python: Some(python),
        peers: Some(peers.iter().map(|p| (*p).to_owned()).collect()),
        only: "op=spmm,n=8".parse::<Filter>().unwrap(),
        threads: Some(1),
        quiet: true,
        ..BenchArgs::new("diagonal:50", folder.join("out.jsonl"))
    }
}

/// A program that is started by itself, with its name alone.
#[test]
#[ignore = "needs python3, which stands in for a peer"]
#[cfg(unix)]
fn a_program_of_a_name_is_a_peer() {
    let folder = tempfile::tempdir().unwrap();
    // The script above takes its name from behind that of a script.
    let file = interpreter(folder.path());
    let program = std::fs::read_to_string(&file).unwrap().replace("\"$@\"", "- \"$@\"");
    std::fs::write(&file, program).unwrap();
    let none = folder.path().join("none").display().to_string();
    let args = BenchArgs {
        programs: vec![format!("mine={file}").parse().unwrap()],
        ..args(folder.path(), none, &["mine", "scipy"])
    };
    let outcome = run(&args).unwrap();
    assert_eq!((outcome.measured, outcome.wrong), (1, 0));
    assert!(outcome.notes.len() == 1 && outcome.notes[0].contains("scipy"), "{:?}", outcome.notes);
    let records = read_records(&args.record).unwrap();
    assert!(records.iter().any(|r| r.engine == "mine" && r.execute_ms.is_some()), "{records:?}");
    for wrong in ["mine", "=file", "mine="] {
        let refused = wrong.parse::<gustav_bench::PeerProgram>().unwrap_err().to_string();
        assert!(refused.contains("NAME=FILE"), "{refused}");
    }
}

/// The script gets the path of a shared library behind the peer's name.
#[test]
#[ignore = "needs python3, which stands in for a peer"]
#[cfg(unix)]
fn a_shared_library_of_a_name_is_a_peer() {
    let folder = tempfile::tempdir().unwrap();
    let args = BenchArgs {
        programs: vec!["mine=/some/kernel.so".parse().unwrap()],
        ..args(folder.path(), interpreter(folder.path()), &["mine", "old"])
    };
    assert_eq!(run(&args).unwrap().measured, 1);
    let records = read_records(&args.record).unwrap();
    let of = |engine: &str| records.iter().find(|r| r.engine == engine).unwrap();
    assert_eq!(of("mine").versions["mine"], "1 /some/kernel.so");
    assert_eq!(of("old").versions["old"], "1");
    assert_eq!(of("mine").chosen.as_deref(), Some("row by row"));
}

#[test]
#[ignore = "needs python3, which stands in for a peer"]
#[cfg(unix)]
fn a_peer_of_unknown_layouts_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let args = BenchArgs {
        programs: vec!["odd=/some/kernel.so".parse().unwrap()],
        ..args(folder.path(), interpreter(folder.path()), &["odd"])
    };
    let outcome = run(&args).unwrap();
    assert_eq!(outcome.notes.len(), 1);
    assert!(outcome.notes[0].contains("diagonal"), "{:?}", outcome.notes);
}

#[test]
#[ignore = "needs python3, which stands in for a peer"]
#[cfg(unix)]
fn right_wrong_failing_and_missing_peers_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let python = interpreter(folder.path());
    let args = args(folder.path(), python, &["mkl", "graphblas", "scipy", "torch", "young"]);
    let outcome = run(&args).unwrap();
    assert_eq!((outcome.measured, outcome.wrong, outcome.failed), (1, 1, 1));
    assert_eq!(outcome.notes.len(), 1);
    assert!(outcome.notes[0].contains("torch") && outcome.notes[0].contains("no such library"));

    let records = read_records(&args.record).unwrap();
    let of = |engine: &str| records.iter().find(|r| r.engine == engine).unwrap();
    let ours = of("gustav");
    assert_eq!((ours.status, ours.rows_checked), (Status::Ok, 50));
    assert_eq!(ours.best_peer.as_deref(), Some("mkl"));
    // The peers that are right have copies of the operands, so there are cold figures, which count.
    assert_eq!((of("mkl").execute_ms, of("mkl").hot_ms), (Some(9.0), Some(4.0)));
    assert!(ours.hot_ms.is_some() && ours.is_cold());
    let expected = 9.0 / ours.execute_ms.unwrap();
    assert!((ours.ratio.unwrap() - expected).abs() < 1e-9 * expected);
    assert_eq!(of("mkl").plan_ms, Some(2.0));
    let wrong = of("graphblas");
    assert_eq!((wrong.status, wrong.execute_ms), (Status::Wrong, None));
    assert!(wrong.message.as_ref().unwrap().contains("row 0, column 3"), "{wrong:?}");
    let failed = of("scipy");
    assert_eq!(failed.status, Status::Failed);
    assert!(failed.message.as_ref().unwrap().contains("fell over"), "{failed:?}");
    let skipped = of("young");
    assert_eq!(skipped.status, Status::Skipped);
    assert!(skipped.message.as_ref().unwrap().contains("not yet"), "{skipped:?}");

    let again = run(&args).unwrap();
    assert_eq!((again.measured, again.resumed), (0, 1));
    assert_eq!(read_records(&args.record).unwrap(), records);
}

#[test]
#[ignore = "needs python3, which stands in for a peer"]
#[cfg(unix)]
fn beside_a_peer_without_copies_there_are_hot_figures_alone() {
    let folder = tempfile::tempdir().unwrap();
    let python = interpreter(folder.path());
    let args = args(folder.path(), python, &["mkl", "old"]);
    assert_eq!(run(&args).unwrap().failed, 0);
    for r in read_records(&args.record).unwrap() {
        assert!(r.execute_ms.is_some() && r.hot_ms.is_none() && !r.is_cold(), "{r:?}");
    }
}

/// SDDMM, and SpMM with its gradients.
const STEP: &str = r#"
name = "step"
description = "the products of a training step"
[[matrices]]
generate = "diagonal:50"
[products]
operations = ["sddmm", "spmm"]
gradients = ["spmm"]
columns = [8, 32]
dtypes = ["f32"]
[engines]
ours = ["auto"]
"#;

#[test]
#[ignore = "needs python3, which stands in for a peer"]
#[cfg(unix)]
fn the_products_of_a_training_step_are_right_and_beside_a_peer() {
    let folder = tempfile::tempdir().unwrap();
    let suite = folder.path().join("step.toml");
    std::fs::write(&suite, STEP).unwrap();
    let args = BenchArgs {
        only: Filter::default(),
        targets: vec![suite.display().to_string()],
        ..args(folder.path(), interpreter(folder.path()), &["mkl"])
    };
    let outcome = run(&args).unwrap();
    assert_eq!((outcome.measured, outcome.wrong, outcome.failed), (6, 0, 0));
    let records = read_records(&args.record).unwrap();
    let ours = |operation: &str| {
        let own = records.iter().filter(|r| r.engine == "gustav");
        own.filter(|r| r.case.operation == operation).collect::<Vec<_>>()
    };
    for operation in ["sddmm", "spmm", "spmm-gradients"] {
        let found = ours(operation);
        assert!(found.len() == 2 && found.iter().all(|r| r.status == Status::Ok), "{found:?}");
        assert!(found.iter().all(|r| r.rows_checked == 50), "{found:?}");
    }
    assert!(ours("sddmm").iter().all(|r| r.ratio.is_some() && r.is_cold()), "{records:?}");
}

#[test]
fn without_an_interpreter_ours_is_measured_alone() {
    let folder = tempfile::tempdir().unwrap();
    let args = args(folder.path(), "/no/such/python".into(), &["mkl"]);
    let outcome = run(&args).unwrap();
    assert_eq!(outcome.measured, 1);
    assert!(outcome.notes[0].contains("mkl") && outcome.notes[0].contains("/no/such/python"));
    let records = read_records(&args.record).unwrap();
    assert_eq!((records.len(), records[0].ratio), (1, None));
}

#[test]
fn crates_of_the_field_are_measured_where_built_in_and_named_where_not() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["sprs", "faer", "nalgebra-sparse"];
    let args = BenchArgs {
        only: "op=spmm|spmv|spgemm".parse::<Filter>().unwrap(),
        ..args(folder.path(), "python3".into(), &names)
    };
    let outcome = run(&args).unwrap();
    let records = read_records(&args.record).unwrap();
    for name in names {
        let own: Vec<_> = records.iter().filter(|r| r.engine == name).collect();
        if cfg!(feature = "peers") {
            let timed = own.iter().all(|r| r.status == Status::Ok && r.is_cold());
            assert!(own.len() >= 3 && timed, "{own:?}");
        } else {
            let said = outcome.notes.iter().any(|note| note.contains(name));
            assert!(own.is_empty() && said, "{name}: {:?}", outcome.notes);
        }
    }
    assert_eq!((outcome.wrong, outcome.failed), (0, 0));
    assert!(outcome.notes.iter().all(|note| note.contains("--features gustav-bench/peers")));
}

#[test]
fn a_peer_that_multiplies_on_a_gpu_is_named_on_the_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let args = args(folder.path(), "/no/such/python".into(), &["cublas", "cusparse-alg2"]);
    let outcome = run(&args).unwrap();
    assert_eq!(outcome.measured, 1);
    let said = |name: &str| outcome.notes.iter().any(|n| n.contains(name) && n.contains("cuda:0"));
    assert!(said("cublas") && said("cusparse-alg2"), "{:?}", outcome.notes);
}
