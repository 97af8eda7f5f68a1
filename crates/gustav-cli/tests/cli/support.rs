//! Running the program in a folder of its own.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// A temporary folder to run `gustav` in.
pub struct Folder(tempfile::TempDir);

/// What a run printed, and its exit status.
#[derive(Debug)]
pub struct Run {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).expect("a file in a temporary folder");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("a file that the program wrote")
    }

    /// Names of the files, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("the temporary folder");
        let mut names: Vec<_> = entries
            .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gustav"));
        command.args(line.split_whitespace()).current_dir(self.0.path());
        command
    }

    /// Runs `gustav` with the words of `line`.
    pub fn run(&self, line: &str) -> Run {
        Run::of(self.command(line).output().expect("gustav starts"))
    }

    /// Runs `gustav`, which must succeed, and returns the one JSON object it prints.
    pub fn json(&self, line: &str) -> Value {
        let run = self.run(line);
        assert_eq!(run.status, 0, "{line}: {run:?}");
        serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{line}: {e}: {run:?}"))
    }

    /// Runs `gustav`, which must fail with status 2, print nothing on standard output and no
    /// panic, and returns its message.
    pub fn error(&self, line: &str) -> String {
        let run = self.run(line);
        assert_eq!(run.status, 2, "{line}: {run:?}");
        assert_eq!(run.stdout, "", "{line}");
        assert!(!run.stderr.contains("panicked"), "{line}: {}", run.stderr);
        run.stderr
    }
}

impl Run {
    pub fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Run {
            status: output.status.code().expect("an exit status"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// A 3 × 4 matrix with an empty row: (0,0)=1 (0,3)=2 (2,1)=-3.
pub const SMALL: &str =
    "%%MatrixMarket matrix coordinate real general\n3 4 3\n1 1 1\n1 4 2\n3 2 -3\n";

/// A symmetric 2 × 2 matrix stored as its lower half: [[1, 5], [5, 0]].
pub const SYMMETRIC: &str =
    "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1\n2 1 5\n";
