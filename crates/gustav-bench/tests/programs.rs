//! Programs with a peer in a process of its own, made up for the test.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;

use gustav_bench::{BenchArgs, run};
use gustav_report::{Record, Status, read_records};

/// A peer by the protocol alone, which multiplies row by row over + and ×.
const FAKE: &str = r#"
import json, os, struct, sys
def say(**v): print(json.dumps(v), flush=True)
def read(p, kind): return struct.unpack("<%d%s" % (os.path.getsize(p) // 4, kind), open(p, "rb").read())
say(ready=True)
for line in sys.stdin:
    m = json.loads(line)
    do = m["do"]
    if do == "quit": break
    if do == "hello": say(peer=sys.argv[2], versions={sys.argv[2]: "1"}, threads=1)
    elif do == "matrix":
        a = read(m["offsets"], "i"), read(m["indices"], "i"), read(m["values"], "f")
        say()
    elif do == "prepare" and m["semiring"] != "plus-times": say(error="no such semiring")
    elif do == "prepare": n = m["columns"]; say(prepare_ms=2.0)
    elif do == "multiply":
        b, c = read(m["b"], "f"), []
        for r in range(len(a[0]) - 1):
            own = range(a[0][r], a[0][r + 1])
            c += [sum(a[2][e] * b[a[1][e] * n + j] for e in own) for j in range(n)]
        open(m["c"], "wb").write(struct.pack("<%df" % len(c), *c))
        say(ms=0.5)
    elif do == "network" and m["program"] != "gcn-training": say(error="no such network", unsupported=True)
    elif do == "network":
        rows, parameters = len(a[0]) - 1, m["parameters"]
        sizes = [len(read(p["values"], "f")) == p["rows"] * p["columns"] for p in parameters]
        right = all(sizes) and len(sizes) == 4 and len(read(m["labels"], "I")) == rows
        right = right and len(read(m["features"], "f")) == rows * m["columns"]
        say() if right else say(error="not the data of a network")
    elif do == "train": say(ms=40.0, losses=[2.0] * 20)
    else: say()
"#;

const SUITE: &str = r#"
name = "small"
description = "Small programs"
programs = [
    { program = "cg", matrices = [{ generate = "grid5:6x6" }], columns = 4 },
    { program = "gcn-training", matrices = [{ generate = "grid5:6x6" }], columns = 4 },
    { program = "gat-training", matrices = [{ generate = "grid5:6x6" }], columns = 4 },
    { program = "paths", matrices = [{ generate = "grid5:6x6" }], columns = 4 },
]
[engines]
ours = ["auto"]
[timing]
rounds = 3
budget_s = 0.01
"#;

#[test]
#[ignore = "needs python3, which stands in for a peer"]
fn a_peer_multiplies_for_a_program_or_trains_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (script, suite) = (file("fake.py", FAKE), file("small.toml", SUITE));
    let shell = format!("#!/bin/sh\nexec python3 {} \"$@\"\n", script.display());
    let shell = file("python", &shell);
    std::fs::set_permissions(&shell, std::fs::Permissions::from_mode(0o755)).unwrap();
    let args = BenchArgs {
        python: Some(shell.display().to_string()),
        // Named, as suites for a CPU leave out peers of a GPU.
        peers: Some(["loop", "mkl", "pyg"].map(str::to_owned).to_vec()),
        threads: Some(1),
        quiet: true,
        ..BenchArgs::new(&suite.display().to_string(), folder.path().join("p.jsonl"))
    };
    let outcome = run(&args).unwrap();
    // Its losses are not those of the network.
    assert_eq!((outcome.measured, outcome.wrong, outcome.failed), (4, 1, 0), "{outcome:?}");
    let records = read_records(&args.record).unwrap();
    let rest = |r: &Record| r.execute_ms.unwrap() - r.product_ms.unwrap();
    let mut seen = 0;
    for r in records.iter().filter(|r| ["mkl", "pyg"].contains(&r.engine.as_str())) {
        let words = r.message.as_deref().unwrap_or_default();
        match (r.engine.as_str(), r.case.operation.as_str()) {
            ("mkl", "cg") => {
                // What it says of a product counts; passing operands to it is no part of the program.
                let products = r.products.unwrap() as f64;
                assert_eq!((r.status, r.product_ms), (Status::Ok, Some(0.5 * products)), "{r:?}");
                let ours = records.iter().find(|o| o.engine == "gustav" && o.group == r.group);
                assert!((rest(r) - rest(ours.unwrap())).abs() < 1e-6 && products >= 2.0, "{r:?}");
            }
            ("pyg", "gcn-training") => {
                assert!(r.status == Status::Wrong && r.execute_ms.is_none(), "{r:?}");
                assert!(r.max_error > r.error_bound && words.contains("off by"), "{r:?}");
            }
            ("pyg", "gat-training") => assert!(words.contains("no such network"), "{r:?}"),
            ("mkl", "paths") => assert!(words.contains("no such semiring"), "{r:?}"),
            _ => panic!("{r:?}"),
        }
        seen += 1;
        let skipped = ["gat-training", "paths"].contains(&r.case.operation.as_str());
        assert_eq!(r.status == Status::Skipped, skipped, "{r:?}");
    }
    assert_eq!(seen, 4);
    assert_eq!(run(&args).unwrap().resumed, 4);
}
