//! Ranks of real MPI jobs, under the `mpiexec` on the path: `pip install mpich`, or any other MPI.

#[path = "../cases/mod.rs"]
mod cases;
mod over;
mod processes;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

// A job that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(60);
// The program of the ranks of all other tests.
const RANKS: &str = env!("CARGO_BIN_EXE_gustav-mpi-ranks");
// How a rank of `batteries_are_right` is told that it is one, of how many.
const SIZE: &str = "GUSTAV_TEST_RANKS";

struct Outcome {
    success: bool,
    /// What the ranks print, line by line.
    lines: Vec<String>,
    errors: String,
}

/// Runs `role` on `size` ranks.
fn job(size: usize, role: &str) -> Outcome {
    launched(size, Command::new(RANKS).arg(role))
}

/// What the launcher says of itself.
fn about_launcher() -> String {
    let said = Command::new("mpiexec").arg("--version").output().expect("mpiexec on the path");
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// Runs `program` on `size` ranks.
fn launched(size: usize, program: &Command) -> Outcome {
    let mut command = Command::new("mpiexec");
    if about_launcher().contains("HYDRA") {
        // It names processes, and not always the one that was the first to end.
        command.arg("-print-all-exitcodes");
    }
    command.args(["-n", &size.to_string()]).arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
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
            panic!("{program:?} on {size} ranks hangs: {}", read(&errors));
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
    // Of the launcher, which is part of an MPI.
    let about = about_launcher();
    let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let version = about.split_whitespace().find(is_version).expect("a version");
    for size in [1, 3, 8] {
        let Outcome { success, lines, errors } = job(size, "products");
        assert!(success, "{size} ranks: {errors}");
        // All MPIs that these tests run under grant what gustav asks for.
        let right = |line: &&String| {
            line.contains(version) && line.ends_with(" (Multiple): 30 products are right")
        };
        let right = lines.iter().filter(right).count();
        assert_eq!(right, size, "{lines:?} {errors}");
    }
}

/// Cases of all batteries of threads in `tests/products`, on the processes of jobs: of this test, which is started
/// anew as their ranks.
#[test]
#[ignore = "needs mpiexec, as of pip install mpich"]
fn batteries_are_right() {
    if let Ok(size) = std::env::var(SIZE) {
        return processes::run_all(size.parse().expect("a number")).expect("cases");
    }
    for size in [1, 2, 3, 4, 7, 8] {
        let mut this = Command::new(std::env::current_exe().expect("this program"));
        this.args(["batteries_are_right", "--exact", "--ignored", "--nocapture"]);
        this.env(SIZE, size.to_string());
        let Outcome { success, lines, errors } = launched(size, &this);
        let passed = lines.join("\n").matches("1 passed; 0 failed").count();
        assert!(success && passed == size, "{size} ranks: {lines:?} {errors}");
    }
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

/// A library with the name of an MPI and nothing else of one, as `libmpi_abi.so.0`.
fn unusable_mpi(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("unusable.c"), folder.join("libmpi_abi.so.0"));
    std::fs::write(&source, "int MPI_Init_thread(void) { return 1; }\n").expect("a file");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-Wl,-soname,libmpi_abi.so.0", "-o"]);
    let status = command.arg(&library).arg(&source).status().expect("a C compiler");
    assert!(status.success());
    library
}

/// The MPI of the `mpiexec` on the path, else that of the system.
fn usable_mpi() -> PathBuf {
    let names = ["libmpi_abi.so.1", "libmpi.so.12", "libmpi.so.40"];
    let path = std::env::var_os("PATH").expect("a path");
    let launcher = std::env::split_paths(&path).find(|bin| bin.join("mpiexec").is_file());
    let folder = launcher.expect("mpiexec on the path").join("../lib");
    names.map(|name| folder.join(name)).into_iter().find(|file| file.is_file()).unwrap_or_else(
        || {
            let loads = |name: &&str| {
                // SAFETY: loading an MPI runs only its own initialisers.
                unsafe { libloading::Library::new(*name) }.is_ok()
            };
            names.into_iter().find(loads).expect("an MPI").into()
        },
    )
}

#[test]
#[ignore = "needs mpiexec, as of pip install mpich, and a C compiler"]
fn an_unusable_mpi_hides_no_other_that_is_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let (unusable, usable) = (unusable_mpi(folder.path()), usable_mpi());
    let mut program = Command::new(RANKS);
    program.arg("differs").arg(&unusable).arg(usable);
    let Outcome { success, lines, errors } = launched(2, &program);
    assert!(success && lines.len() == 2, "{lines:?} {errors}");
    // Where it is the only one, the program has no other, and none is loaded beside it.
    let alone = Command::new(RANKS).arg("differs").arg(&unusable).output().expect("a process");
    let errors = String::from_utf8_lossy(&alone.stderr);
    assert!(
        !alone.status.success() && errors.contains("libmpi_abi.so.0 cannot be used"),
        "{errors}"
    );
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
