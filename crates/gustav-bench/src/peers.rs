//! The peers of a run.

use std::path::Path;

use gustav_core::{CsrView, Result, Scalar};

use crate::engine::{Engine, Matrix, PeerEngine, PeerProcess, Program, Task};
use crate::timing::Runner;
use crate::{BenchArgs, PeerProgram};

/// Peers that are Rust crates, compiled in by the feature `peers`.
pub(crate) const CRATE_NAMES: [&str; 3] = ["sprs", "faer", "nalgebra-sparse"];

/// Peers in processes of their own that multiply on a CPU.
const HOST_NAMES: [&str; 4] = ["mkl", "graphblas", "scipy", "torch"];

/// Whether the peer of that name multiplies on a CPU.
pub(crate) fn is_host_peer(name: &str) -> bool {
    CRATE_NAMES.contains(&name) || HOST_NAMES.contains(&name)
}

/// How peer processes are started.
pub(crate) struct Launch<'a> {
    pub python: String,
    pub script: Option<&'a Path>,
    pub programs: Vec<PeerProgram>,
    pub threads: usize,
    pub folder: &'a Path,
}

/// The available peers.
pub(crate) struct Peers<'a> {
    launch: Launch<'a>,
    processes: Vec<PeerProcess>,
    crates: Vec<String>,
}

impl<'a> Peers<'a> {
    /// Starts the named peers; the notes say which are missing and why.
    pub fn start(names: &[String], launch: Launch<'a>) -> (Self, Vec<String>) {
        let (mut processes, mut crates, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            if CRATE_NAMES.contains(&name.as_str()) {
                if cfg!(feature = "peers") {
                    crates.push(name.clone());
                } else {
                    notes.push(format!(
                        "peer {name}: this program was built without `--features gustav-bench/peers`"
                    ));
                }
                continue;
            }
            match launch.start(name) {
                Ok(process) => processes.push(process),
                Err(e) => notes.push(e.to_string()),
            }
        }
        (Peers { launch, processes, crates }, notes)
    }

    /// Names of the available peers.
    pub fn names(&self) -> Vec<String> {
        let processes = self.processes.iter().map(|p| p.name().to_owned());
        processes.chain(self.crates.iter().cloned()).collect()
    }

    /// Names of those in processes of their own.
    pub fn process_names(&self) -> Vec<String> {
        self.processes.iter().map(|p| p.name().to_owned()).collect()
    }

    /// Those in processes of their own; one that has died is restarted first.
    ///
    /// # Errors
    /// When it cannot be restarted.
    pub fn running(&mut self) -> Result<impl Iterator<Item = &mut PeerProcess>> {
        for process in &mut self.processes {
            if process.has_exited() {
                *process = self.launch.start(process.name())?;
            }
        }
        Ok(self.processes.iter_mut())
    }

    /// The number of peer processes, each of which holds its own operands.
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Sends every process the operands of the following cases; a process that has died is
    /// restarted first. Failures are reported when a case is prepared.
    pub fn give<T: Scalar>(
        &mut self,
        a: CsrView<'_, T>,
        b: Option<CsrView<'_, T>>,
        pool: &[T],
    ) -> Result<()> {
        for process in self.running()? {
            // A failure here occurs again, with the same message, when a case is prepared.
            let given = process.forget().and_then(|()| process.matrix(Matrix::A, a));
            let given = given.and_then(|()| b.map_or(Ok(()), |b| process.matrix(Matrix::B, b)));
            given.and_then(|()| process.pool(pool)).ok();
        }
        Ok(())
    }

    /// Every peer of `asked` prepared for `task`, or its error, with its name. With `one_result`,
    /// none of them holds a result; with `copy`, a copy of the operands, each is prepared for that
    /// too.
    pub fn prepare<'b, T: crate::value::Value>(
        &'b mut self,
        asked: &[String],
        task: Task<'b, T>,
        copy: Option<Task<'b, T>>,
        b_is_a: bool,
        one_result: bool,
    ) -> Vec<(String, Result<Box<dyn Engine<T> + 'b>>)> {
        let mut ready: Vec<(String, Result<Box<dyn Engine<T> + 'b>>)> = Vec::new();
        for process in &mut self.processes {
            let name = process.name().to_owned();
            if !asked.contains(&name) {
                continue;
            }
            let mut engine = PeerEngine::prepare(process, task, copy.is_some(), b_is_a);
            if one_result {
                engine = engine.and_then(|mut e| e.yield_memory().map(|()| e));
            }
            ready.push((name, engine.map(|e| Box::new(e) as Box<dyn Engine<T> + 'b>)));
        }
        for name in self.crates.iter().filter(|name| asked.contains(name)) {
            ready.push((name.clone(), T::by_crate(name, task, copy, self.launch.threads)));
        }
        ready
    }
}

impl<'a> Launch<'a> {
    /// From `args`; arrays are exchanged in `folder`.
    pub fn new(args: &BenchArgs, threads: usize, folder: &'a Path) -> Self {
        let python = args.python.clone().or_else(|| std::env::var("GUSTAV_PYTHON").ok());
        let python = python.unwrap_or_else(|| "python3".into());
        Launch { python, script: None, programs: args.programs.clone(), threads, folder }
    }

    fn start(&self, name: &str) -> Result<PeerProcess> {
        let file = self.programs.iter().find(|program| program.name == name).map(|p| &*p.file);
        let by_python =
            |library| Program::Python { interpreter: &self.python, script: self.script, library };
        let program = match file {
            Some(file) if file.extension().is_some_and(|e| e == "so") => by_python(Some(file)),
            Some(file) => Program::Own(file),
            None => by_python(None),
        };
        PeerProcess::start(name, program, self.threads, self.folder)
    }
}
