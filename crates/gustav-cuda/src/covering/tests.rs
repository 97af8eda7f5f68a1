//! What is compiled of the set, and what is compared.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::requests;
use crate::jit::{Compiler, Nvrtc, Request};

const TARGETS: [&str; 5] = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"];

/// The results of `work` for all requests, on all cores.
fn each<R: Send>(
    requests: &[(usize, Request)],
    work: impl Fn(usize, &Request) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((number, request)) =
                    requests.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let result = work(*number, request);
                    results.lock().expect("no thread has failed").push(result);
                }
            });
        }
    });
    results.into_inner().expect("no thread has failed")
}

#[test]
fn the_set_has_every_kernel_file() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let requests = requests();
    let (mut folders, mut seen) = (vec![root.clone()], 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of kernels") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "cu") {
                let name = path.strip_prefix(&root).expect("a kernel file").to_string_lossy();
                assert!(requests.iter().any(|(_, r)| r.name == name), "{name} is not in the set");
                seen += 1;
            }
        }
    }
    assert!(seen > 30, "{seen} kernel files");
}

#[test]
#[ignore = "needs NVRTC, and minutes"]
fn covering_set_compiles_for_every_target() {
    let requests = requests();
    let results = each(&requests, |number, request| {
        let cubin = Nvrtc.compile(request, TARGETS[number % TARGETS.len()]);
        cubin.map(|c| assert!(c.starts_with(b"\x7fELF"), "{} is no cubin", request.name))
    });
    let failures: Vec<_> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(failures.is_empty(), "{} of {}: {failures:#?}", failures.len(), requests.len());
}

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/registers-sm_90.txt");

/// Compares registers and spills of every kernel of the set on sm_90 with the snapshot. With
/// `GUSTAV_UPDATE_SNAPSHOT` set, the snapshot is written first.
#[test]
#[ignore = "needs the snapshot's NVRTC, and minutes"]
fn registers_on_sm_90_are_those_of_the_snapshot() {
    let mut lines: Vec<String> = each(&requests(), |_, request| {
        let log = Nvrtc.resources(request, "sm_90").expect("a log");
        resources(&log, &request.to_string())
    })
    .concat();
    lines.sort();
    lines.dedup();
    let found = format!("{}\n{}\n", Nvrtc.version().expect("a version"), lines.join("\n"));
    if std::env::var_os("GUSTAV_UPDATE_SNAPSHOT").is_some() {
        std::fs::write(SNAPSHOT, &found).expect("the snapshot is written");
    }
    let expected = std::fs::read_to_string(SNAPSHOT).expect("the snapshot");
    let (expected, found): (Vec<_>, Vec<_>) = (expected.lines().collect(), found.lines().collect());
    assert_eq!(found.first(), expected.first(), "the snapshot is of another compiler");
    let changed: Vec<_> = found.iter().filter(|l| !expected.contains(l)).collect();
    assert!(expected == found, "{} lines differ: {changed:#?}", changed.len());
}

/// One line for each kernel in the log of ptxas.
fn resources(log: &str, request: &str) -> Vec<String> {
    let number = |line: &str, before: &str| -> u32 {
        let words = line.split(before).next().unwrap_or_default();
        words.rsplit([' ', ',']).next().and_then(|n| n.parse().ok()).expect("a number in the log")
    };
    let (mut kernel, mut spills, mut lines) = (String::new(), 0, Vec::new());
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            kernel = rest.split('\'').next().unwrap_or_default().into();
        } else if line.contains("bytes spill stores") {
            spills = number(line, " bytes spill stores") + number(line, " bytes spill loads");
        } else if line.contains(" registers") && line.contains("Used ") {
            let registers = number(line, " registers");
            lines
                .push(format!("{request} {kernel}: {registers} registers, {spills} bytes spilled"));
        }
    }
    assert!(!lines.is_empty(), "no kernel in the log of {request}: {log}");
    lines
}
