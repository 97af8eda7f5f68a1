//! Ranks of real MPI jobs, under the `mpiexec` on the path: `pip install mpich`, or any other MPI.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

// A job that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(60);

struct Outcome {
    success: bool,
    /// What the ranks print, line by line.
    lines: Vec<String>,
    errors: String,
}

/// Runs `role` on `size` ranks.
fn job(size: usize, role: &str) -> Outcome {
    let mut command = Command::new("mpiexec");
    let version = Command::new("mpiexec").arg("--version").output().expect("mpiexec on the path");
    if String::from_utf8_lossy(&version.stdout).contains("HYDRA") {
        // It names processes, and not always the one that was the first to end.
        command.arg("-print-all-exitcodes");
    }
    command.args(["-n", &size.to_string(), env!("CARGO_BIN_EXE_gustav-mpi-ranks"), role]);
    // Open MPI refuses more ranks than cores, and root, unless it is told not to.
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    let output = tempfile::NamedTempFile::new().expect("a file");
    let errors = tempfile::NamedTempFile::new().expect("a file");
    command.stdin(Stdio::null());
    command.stdout(output.reopen().expect("a file")).stderr(errors.reopen().expect("a file"));
    let mut child = command.spawn().expect("mpiexec on the path");
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the job") {
            break status;
        }
        if start.elapsed() > LIMIT {
            child.kill().expect("the job ends");
            child.wait().expect("the job ends");
            panic!("{role} on {size} ranks hangs: {}", read(&errors));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let output = read(&output);
    let of_launcher = |line: &&str| line.starts_with("[mpiexec@");
    let (launcher, lines): (Vec<&str>, Vec<&str>) = output.lines().partition(of_launcher);
    Outcome {
        success: status.success(),
        lines: lines.into_iter().map(str::to_owned).collect(),
        errors: format!("{}\n{}", read(&errors), launcher.join("\n")),
    }
}

fn read(file: &tempfile::NamedTempFile) -> String {
    std::fs::read_to_string(file.path()).expect("text")
}

#[test]
#[ignore = "needs mpiexec, as of pip install mpich"]
fn products_are_right() {
    for size in [1, 2, 3, 4, 7, 8] {
        let Outcome { success, lines, errors } = job(size, "products");
        assert!(success, "{size} ranks: {errors}");
        // All MPIs that these tests run under grant what gustav asks for.
        let right = |line: &&String| line.ends_with(" (Multiple): 30 products are right");
        let right = lines.iter().filter(right).count();
        assert_eq!(right, size, "{lines:?} {errors}");
    }
}

#[test]
#[ignore = "needs mpiexec, as of pip install mpich"]
fn messages_are_split() {
    let Outcome { success, lines, errors } = job(4, "short-messages");
    assert!(success && lines.len() == 4, "{lines:?} {errors}");
}

#[test]
#[ignore = "needs mpiexec, as of pip install mpich"]
fn every_rank_hears_what_differs() {
    let Outcome { success, lines, errors } = job(3, "differs");
    assert!(success, "{errors}");
    let named = |line: &&String| {
        line.contains("rank 1 has columns of the dense matrix 5, where rank 0 has 4")
    };
    assert_eq!(lines.iter().filter(named).count(), 3, "{lines:?}");
}

#[test]
#[ignore = "needs mpiexec, as of pip install mpich"]
fn every_rank_hears_of_an_error() {
    let own = [
        ("fails", "spmm: expected B"),
        ("no-memory", "out of memory"),
        ("bad-pattern", "a partition of 9 rows"),
        ("other-call", "spmv by plan"),
    ];
    for (role, reason) in own {
        let Outcome { success, lines, errors } = job(3, role);
        assert!(success && lines.len() == 3, "{role}: {lines:?} {errors}");
        let naming = lines.iter().filter(|line| line.contains("rank 1"));
        // The rank itself may say only what is wrong.
        assert!(naming.count() >= 2, "{role}: {lines:?}");
        assert!(lines.iter().any(|line| line.contains(reason)), "{role}: {lines:?}");
    }
}

#[test]
#[ignore = "needs mpiexec, as of pip install mpich"]
fn calls_after_the_end_of_mpi_are_errors() {
    let Outcome { success, lines, errors } = job(3, "finalised");
    assert!(success, "{errors}");
    for rank in 0..3 {
        let named = format!("rank {rank}");
        let naming = lines.iter().filter(|l| l.contains(&named) && l.contains("was finalised"));
        assert_eq!(naming.count(), 1, "{lines:?} {errors}");
    }
}

/// The job ends, and says which rank has ended it: the launcher, an MPI, or the rank itself.
#[test]
#[ignore = "needs mpiexec, as of pip install mpich"]
fn nobody_waits_for_a_rank_that_ends() {
    for role in ["dies", "killed", "panics", "gives-up"] {
        let Outcome { success, lines, errors } = job(3, role);
        assert!(!success, "{role}: {lines:?} {errors}");
        // One launcher writes to both.
        let errors = format!("{errors}\n{}", lines.join("\n"));
        // In the order of ranks.
        let codes = errors.lines().find_map(|l| l.split_once("Exit codes: ")?.1.split_once("] "));
        let failed = codes.is_some_and(|(_, codes)| {
            let mut codes = codes.split(',').map(str::trim);
            codes.nth(1).is_some_and(|code| code != "0")
        });
        assert!(errors.contains("rank 1") || failed, "{role} names nobody: {errors}");
    }
}
