//! A peer in a child process: the parent's side of bench/PROTOCOL.md.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use gustav_core::{CsrView, Error, Result, Scalar};
use gustav_report::Layouts;
use serde_json::{Value, json};

use super::{Versions, dtype_name};

/// The default scripts of the child's side; the first is started.
const SCRIPTS: [(&str, &str); 3] = [
    ("peer.py", include_str!("../../../../bench/peers/peer.py")),
    ("gpu_peers.py", include_str!("../../../../bench/peers/gpu_peers.py")),
    ("library.py", include_str!("../../../../bench/peers/library.py")),
];
// A peer without an answer for this long is considered hung.
const PATIENCE: Duration = Duration::from_secs(300);

/// Settings of the peers' runtimes; bench/METHODOLOGY.md explains them.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("KMP_BLOCKTIME", "1"),
    ("KMP_AFFINITY", "granularity=fine,compact,1,0"),
    ("GOMP_SPINCOUNT", "20000"),
    ("OMP_DYNAMIC", "false"),
    ("MKL_DYNAMIC", "false"),
    ("OPENBLAS_NUM_THREADS", "1"),
    (
        "GLIBC_TUNABLES",
        "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=17179869184:\
         glibc.malloc.trim_threshold=17179869184",
    ),
];

/// The operand that a matrix is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Matrix {
    A,
    B,
}

impl Matrix {
    fn name(self) -> &'static str {
        match self {
            Matrix::A => "a",
            Matrix::B => "b",
        }
    }
}

/// A running peer and the folder by which arrays are exchanged.
pub(crate) struct PeerProcess {
    name: String,
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    folder: PathBuf,
    errors: PathBuf,
    versions: Versions,
    layouts: Vec<Layouts>,
}

/// What is started as a peer.
#[derive(Clone, Copy)]
pub(crate) enum Program<'a> {
    /// The built-in script, or another one, in an interpreter of Python; given a shared library, that library is
    /// the peer.
    Python { interpreter: &'a str, script: Option<&'a Path>, library: Option<&'a Path> },
    /// A program that speaks the protocol.
    Own(&'a Path),
}

impl std::fmt::Display for Program<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Program::Python { interpreter, .. } => f.write_str(interpreter),
            Program::Own(file) => file.display().fmt(f),
        }
    }
}

/// The error for an absent peer.
fn absent(name: &str, reason: String) -> Error {
    let nearest = "a Python that has it (--python, GUSTAV_PYTHON), or the other peers";
    unsupported(name, "this run", reason, nearest)
}

/// The error for a product that a peer lacks.
pub(crate) fn lacks(name: &str, reason: String) -> Error {
    unsupported(name, "this product", reason, "the other peers")
}

fn unsupported(name: &str, problem: &str, reason: String, nearest: &str) -> Error {
    let (problem, backend) = (problem.into(), format!("peer {name}"));
    Error::Unsupported { problem, backend, reason, nearest: nearest.into() }
}

/// The error for a peer that fails.
pub(crate) fn failed(name: &str, reason: impl std::fmt::Display) -> Error {
    Error::Device { action: "multiplying with a peer", reason: format!("{name}: {reason}") }
}

impl PeerProcess {
    /// Starts `program` as the peer `name` with `threads` threads. Arrays are exchanged as files in
    /// `folder`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the peer's message when it cannot be started.
    pub fn start(name: &str, program: Program<'_>, threads: usize, folder: &Path) -> Result<Self> {
        let missing = |reason: String| absent(name, reason);
        let folder = folder.join(name);
        let io = |path: &Path| {
            let path = path.to_path_buf();
            move |source| Error::Io { path, action: "write", source }
        };
        std::fs::create_dir_all(&folder).map_err(io(&folder))?;
        let mut command = match program {
            Program::Own(file) => {
                let mut command = Command::new(file);
                command.arg(name);
                command
            }
            Program::Python { interpreter, script, library } => {
                let mut command = Command::new(interpreter);
                match script {
                    Some(script) => command.arg(script),
                    None => {
                        for (name, text) in SCRIPTS {
                            let file = folder.join(name);
                            std::fs::write(&file, text).map_err(io(&file))?;
                        }
                        command.arg(folder.join(SCRIPTS[0].0))
                    }
                };
                command.arg(name);
                if let Some(library) = library {
                    command.arg(std::path::absolute(library).map_err(io(library))?);
                }
                command
            }
        };
        let errors = folder.join("stderr");
        let log = std::fs::File::create(&errors).map_err(io(&errors))?;
        let threads = threads.to_string();
        command.envs(ENVIRONMENT.iter().copied());
        for variable in ["OMP_NUM_THREADS", "MKL_NUM_THREADS"] {
            command.env(variable, &threads);
        }
        if name != "mkl" {
            // The Intel runtime uses KMP_AFFINITY, the GNU one this.
            command.env("OMP_PROC_BIND", "true");
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(|e| missing(format!("cannot start {program}: {e}")))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(missing("no pipes".into()));
        };
        let (send, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(|l| l.ok()) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let name = name.to_owned();
        let (versions, layouts) = (Versions::new(), vec![Layouts::RowMajor]);
        let mut peer =
            PeerProcess { name, child, input, answers, folder, errors, versions, layouts };
        peer.receive().map_err(|e| match e {
            Error::Device { reason, .. } => absent(&peer.name, reason),
            e => e,
        })?;
        let hello = peer.ask(&json!({ "do": "hello" }))?;
        let versions = hello.get("versions").cloned().unwrap_or_default();
        peer.versions = serde_json::from_value(versions).unwrap_or_default();
        if let Some(found) = hello.get("threads") {
            peer.versions.insert("threads".into(), found.to_string());
        }
        if let Some(found) = hello.get("layouts") {
            peer.layouts = serde_json::from_value(found.clone())
                .map_err(|e| absent(&peer.name, format!("it says it has layouts {found}: {e}")))?;
        }
        Ok(peer)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Whether it multiplies dense matrices of these layouts.
    pub fn takes(&self, layouts: Layouts) -> bool {
        self.layouts.contains(&layouts)
    }

    /// Whether the process has ended.
    pub fn has_exited(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sends one request and waits for its answer.
    pub fn ask(&mut self, request: &Value) -> Result<Value> {
        if writeln!(self.input, "{request}").and_then(|()| self.input.flush()).is_err() {
            return Err(self.died());
        }
        self.receive()
    }

    fn receive(&mut self) -> Result<Value> {
        let line = match self.answers.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return Err(self.died()),
            Err(RecvTimeoutError::Timeout) => {
                // It will not answer any more; killing it closes the pipes.
                self.child.kill().ok();
                return Err(self.failure(format!("no answer for {} s", PATIENCE.as_secs())));
            }
        };
        let value: Value = serde_json::from_str(&line)
            .map_err(|e| self.failure(format!("an answer that is not JSON: {line:?} ({e})")))?;
        let lacking = value.get("unsupported").and_then(Value::as_bool).unwrap_or(false);
        match value.get("error").and_then(Value::as_str) {
            Some(words) if lacking => Err(lacks(&self.name, words.to_owned())),
            Some(words) => Err(self.failure(words.to_owned())),
            None => Ok(value),
        }
    }

    fn failure(&self, reason: String) -> Error {
        failed(&self.name, reason)
    }

    /// The error for a peer that has ended, with its last output.
    fn died(&mut self) -> Error {
        let status = self.child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
        let text = std::fs::read_to_string(&self.errors).unwrap_or_default();
        let last = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("no words");
        self.failure(format!("ended with {status}: {last}"))
    }

    /// Sends the peer a matrix.
    pub fn matrix<T: Scalar>(&mut self, which: Matrix, m: CsrView<'_, T>) -> Result<()> {
        let file = |part: &str, bytes: &[u8]| -> Result<PathBuf> {
            let path = self.folder.join(format!("{}.{part}", which.name()));
            write(&path, bytes)?;
            Ok(path)
        };
        let offsets = file("offsets", bytemuck::cast_slice(m.offsets()))?;
        let indices = file("indices", bytemuck::cast_slice(m.indices()))?;
        let values = file("values", bytemuck::cast_slice(m.values().as_slice()))?;
        let request = json!({
            "do": "matrix", "name": which.name(), "rows": m.nrows(), "cols": m.ncols(),
            "dtype": dtype_name::<T>(), "offsets": offsets, "indices": indices, "values": values,
        });
        self.ask(&request)?;
        for path in [offsets, indices, values] {
            std::fs::remove_file(path).ok();
        }
        Ok(())
    }

    /// Sends the peer the values of B.
    pub fn pool<T: Scalar>(&mut self, pool: &[T]) -> Result<()> {
        let path = self.folder.join("pool");
        write(&path, bytemuck::cast_slice(pool))?;
        self.ask(&json!({ "do": "dense", "dtype": dtype_name::<T>(), "values": path }))?;
        std::fs::remove_file(path).ok();
        Ok(())
    }

    /// Lets the peer drop its matrices.
    pub fn forget(&mut self) -> Result<()> {
        self.ask(&json!({ "do": "forget" })).map(|_| ())
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        let asked = writeln!(self.input, "{}", json!({ "do": "quit" }));
        if asked.and_then(|()| self.input.flush()).is_err() {
            self.child.kill().ok();
        }
        self.child.wait().ok();
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(|source| Error::Io {
        path: path.into(),
        action: "write",
        source,
    })
}
