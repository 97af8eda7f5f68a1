//! Programs in C: the example, and the tests of misuse.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A program that was compiled with the header and linked with the library that cargo built beside this one.
struct Program {
    folder: TempDir,
}

impl Program {
    fn compiled(source: &str) -> Self {
        let crate_ = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = tempfile::tempdir().expect("a folder");
        let libraries = libraries();
        let run_time = format!("-Wl,-rpath,{}", libraries.display());
        let output = Command::new("cc")
            .args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-pthread"])
            .arg(concat!("-DVERSION=\"", env!("CARGO_PKG_VERSION"), "\""))
            .arg("-I")
            .arg(crate_.join("include"))
            .arg(crate_.join(source))
            .arg("-o")
            .arg(folder.path().join("program"))
            .arg("-L")
            .arg(&libraries)
            .args(["-lgustav_capi", &run_time])
            .output()
            .expect("a C compiler of the name cc");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        Program { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("program")
    }
}

/// Where cargo puts the library: beside the programs of tests.
fn libraries() -> PathBuf {
    let this = std::env::current_exe().expect("the path of this program");
    let library = this.with_file_name(format!("{DLL_PREFIX}gustav_capi{DLL_SUFFIX}"));
    assert!(library.exists(), "{}", library.display());
    this.parent().expect("its folder").to_path_buf()
}

fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|t| String::from_utf8_lossy(t));
    format!("{}\n{out}{err}", output.status)
}

#[test]
fn the_example_runs() {
    let output = Command::new(Program::compiled("examples/spmm.c").path()).output().expect("a run");
    let found = text(&output);
    assert!(output.status.success(), "{found}");
    for line in [
        "A·B = [[11, 14], [9, 12]]",
        "A·B + A'·B/2 = [[66, 84], [54, 72]]",
        "status 1: row 0, entry 1: index 7 is out of range (must be below 3)",
    ] {
        assert!(found.lines().any(|l| l == line), "{line}: {found}");
    }
    assert!(found.contains("\nalgorithm  "), "{found}");
}

#[test]
fn what_a_program_gets_wrong_is_an_error() {
    let output = Command::new(Program::compiled("tests/misuse.c").path()).output().expect("a run");
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(output.stdout, b"0 failures\n", "{}", text(&output));
}

#[test]
#[ignore = "needs valgrind"]
fn what_a_program_gets_wrong_touches_no_foreign_memory() {
    let program = Program::compiled("tests/misuse.c");
    let output = Command::new("valgrind")
        .args([
            "--quiet",
            "--error-exitcode=9",
            "--leak-check=full",
            "--errors-for-leak-kinds=definite",
        ])
        .arg(program.path())
        .env("RAYON_NUM_THREADS", "2")
        .output()
        .expect("valgrind");
    assert!(output.status.success(), "{}", text(&output));
}
