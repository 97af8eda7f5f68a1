//! Engines on a GPU.

mod attention;
mod engine;
mod gradients;
mod misses;
mod planning;
mod resident;
mod rotating;
mod sddmm;
mod spgemm;
mod succession;

use attention::{Attended, AttentionEngine};
use engine::CudaEngine;
use gradients::{SpmmGradientsEngine, Stepped};
pub(crate) use misses::miss_ms;
use resident::Resident;
use sddmm::{Sampled, SddmmEngine};
use spgemm::{Pair, SpgemmEngine};

use gustav_core::{CsrView, DType, Error, Operation, Problem, Result, Scalar};
use gustav_cuda::catalog::Entry;
use gustav_cuda::{Device, Probe};
use gustav_plan::Algorithm;
use gustav_report::{CUBLAS, CUSPARSE, CUSPARSE_BEST, Gpu, Layouts};

use crate::Bandwidth;
use crate::engine::{Engine, Task, lacks};
use crate::value::Value;

/// Names of libraries that multiply on a GPU in a process of their own.
pub(crate) const PROCESSES: [&str; 4] = ["cupy", "torch-cuda", "pyg", "pyg-csr"];

/// The first of SpMVOp's algorithms in [`CUSPARSE`].
const FIRST_SPMV_OP: usize = 4;

/// Choosers that time several plans on the operands: they might choose differently for each set.
pub(crate) const TRYING: [&str; 2] = ["autotune", "predictor"];

/// Configuration `number` of the `known` ones of `name`.
///
/// # Errors
/// [`Error::Argument`] where there are fewer.
fn configuration<C>(
    known: impl IntoIterator<Item = C>,
    number: usize,
    name: impl ToString,
) -> Result<C> {
    known.into_iter().nth(number).ok_or_else(|| Error::Argument {
        name: "configuration",
        found: name.to_string(),
        expected: "a number of those that autotuning tries".into(),
    })
}

/// The number of configurations of `algorithm` that autotuning tries for a product with these operands.
pub(crate) fn configurations(
    algorithm: Algorithm,
    operation: Operation,
    columns: usize,
    dtype: DType,
    layouts: Layouts,
) -> usize {
    let empty = CsrView::<f32>::new(0, 0, &[0], &[], &[]);
    let problem = empty.map(|a| Problem { operation, columns, dtype, ..Problem::spmm(&a) });
    let problem = problem.map(|p| p.layouts(layouts.b(), layouts.c()));
    problem.map_or(0, |p| match operation {
        Operation::Spmm => gustav_cuda::spmm::Config::candidates(algorithm, &p).len(),
        Operation::Spmv => gustav_cuda::spmv::Config::candidates(algorithm, &p).len(),
        Operation::Sddmm => gustav_cuda::sddmm::Config::candidates(algorithm, &p).len(),
        Operation::Spgemm => gustav_cuda::spgemm::Config::candidates(algorithm, &p).len(),
        Operation::Softmax | Operation::Attention => 0,
    })
}

/// Whether the peer of that name multiplies on a GPU.
pub(crate) fn is_peer(name: &str) -> bool {
    in_process().any(|own| own == name) || name == CUSPARSE_BEST || PROCESSES.contains(&name)
}

/// Peers whose libraries are called directly.
fn in_process() -> impl Iterator<Item = &'static str> {
    CUSPARSE.into_iter().chain([CUBLAS])
}

/// The gather limit: milliseconds to read a row of B, of `row` bytes, for each of `nnz` nonzeros at
/// `l2_bandwidth` bytes per second. Products that hit in L1 can be faster.
pub fn gather_ms(nnz: usize, row: usize, l2_bandwidth: f64) -> f64 {
    nnz as f64 * row as f64 / l2_bandwidth * 1e3
}

/// A GPU that was started for a run.
pub(crate) struct Started {
    pub device: Device,
    /// The device in the API of `gustav`.
    pub whole: gustav::Device,
    pub probe: Probe,
    pub about: Gpu,
    /// Whether plans are timed; otherwise each is made once.
    pub time_plans: bool,
    /// The peers of the run.
    peers: Vec<&'static str>,
}

impl Started {
    /// Starts the device `cuda:K` of a suite, for its peers.
    ///
    /// # Errors
    /// [`Error::NoDevice`] with what is missing, [`Error::Argument`] for other names.
    pub fn new(name: &str, peers: &[String]) -> Result<Self> {
        let ordinal = name.strip_prefix("cuda:").and_then(|k| k.parse().ok());
        let ordinal = ordinal.ok_or_else(|| Error::Argument {
            name: "device",
            found: name.into(),
            expected: "cpu, or cuda:K with K counted from 0".into(),
        })?;
        let whole = gustav::Device::cuda(ordinal)?;
        let device = whole.cuda_device()?.clone();
        let probe = Probe::new(&device)?;
        let p = device.profile();
        let (major, minor) = p.compute_capability;
        let about = Gpu {
            name: p.name.clone(),
            compute_capability: format!("{major}.{minor}"),
            multiprocessors: p.multiprocessors,
            l2_bytes: p.l2_bytes,
            memory_bytes: p.memory_bytes,
            clock_mhz: p.clock_mhz,
            memory_clock_mhz: p.memory_clock_mhz,
            driver: p.driver,
            copy_bandwidth: probe.copy_bandwidth()?,
            l2_bandwidth: probe.l2_bandwidth()?,
        };
        let named = peers.iter().map(|name| {
            in_process().find(|known| known == name).ok_or_else(|| Error::Argument {
                name: "peer",
                found: name.clone(),
                expected: in_process().chain(PROCESSES).collect::<Vec<_>>().join(", "),
            })
        });
        let peers = named.collect::<Result<_>>()?;
        Ok(Started { device, whole, probe, about, time_plans: true, peers })
    }

    /// Peers that compute `operation`.
    pub fn peers(&self, operation: Operation) -> impl Iterator<Item = &'static str> {
        self.peers.iter().copied().filter(move |peer| takes(peer, operation))
    }

    /// Notes on peers that compute none of `operations`.
    pub fn idle(&self, operations: &[Operation]) -> Vec<String> {
        let names = operations.iter().map(|o| o.name()).collect::<Vec<_>>().join(", ");
        let idle = self.peers.iter().filter(|p| !operations.iter().any(|o| takes(p, *o)));
        idle.map(|peer| format!("peer {peer} does not take part: it has no {names}")).collect()
    }

    /// Its copy bandwidth, for the memory floor.
    pub fn bandwidth(&self) -> Bandwidth {
        Bandwidth::constant(self.about.copy_bandwidth)
    }
}

/// Whether the peer computes `operation`. Of cuSPARSE, CSR_ALG3 is of SpMM, SpMVOp of SpMV; its default for SpGEMM is
/// ALG1, and SDDMM has only a default. cuBLAS computes SpMM.
fn takes(peer: &str, operation: Operation) -> bool {
    if CUSPARSE[FIRST_SPMV_OP..].contains(&peer) {
        return operation == Operation::Spmv;
    }
    match operation {
        Operation::Spmm => true,
        Operation::Spmv => ![CUSPARSE[3], CUBLAS].contains(&peer),
        Operation::Spgemm => ![CUSPARSE[0], CUBLAS].contains(&peer),
        Operation::Sddmm => sddmm::is_peer(peer),
        Operation::Softmax | Operation::Attention => false,
    }
}

/// The operands of a case in a GPU's memory, which all engines share.
pub(crate) enum Operands<T: Scalar> {
    /// B and C dense.
    Dense(Resident<T>),
    /// All sparse.
    Sparse(Box<Pair<T>>),
    /// A pattern and dense factors.
    Sampled(Box<Sampled<T>>),
    /// Those of an attention, or of its gradients.
    Attended(Box<Attended<T>>),
    /// Those of the gradients of an SpMM.
    Stepped(Box<Stepped<T>>),
}

impl<T: Value> Operands<T> {
    /// Copies the operands of `task` to the GPU; with `rotate`, the number of engines, several sets
    /// of dense ones.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn new(gpu: &Started, task: &Task<'_, T>, rotate: Option<usize>) -> Result<Self> {
        Ok(match task.operation {
            Operation::Attention => Operands::Attended(Box::new(Attended::new(gpu, task)?)),
            _ if task.gradients => Operands::Stepped(Box::new(Stepped::new(gpu, task)?)),
            Operation::Spgemm => Operands::Sparse(Box::new(Pair::new(gpu, task)?)),
            Operation::Sddmm => Operands::Sampled(Box::new(Sampled::new(gpu, task, rotate)?)),
            _ => Operands::Dense(Resident::new(gpu, task, rotate)?),
        })
    }

    /// Milliseconds of the copy.
    pub fn transfer_ms(&self) -> f64 {
        match self {
            Operands::Dense(on) => on.transfer_ms,
            Operands::Sparse(on) => on.transfer_ms,
            Operands::Sampled(on) => on.transfer_ms,
            Operands::Attended(on) => on.transfer_ms,
            Operands::Stepped(on) => on.transfer_ms,
        }
    }

    /// The number of alternating sets, if there are several.
    pub fn sets(&self) -> Option<usize> {
        match self {
            Operands::Dense(on) => Some(on.sets.len()),
            Operands::Sampled(on) => Some(on.sets()),
            _ => None,
        }
        .filter(|sets| *sets > 1)
    }

    /// Gustav, by the name of an algorithm, a chooser or a configuration.
    ///
    /// # Errors
    /// The library's own.
    pub fn ours<'a>(
        &'a self,
        gpu: &'a Started,
        task: Task<'a, T>,
        name: &str,
    ) -> Result<Box<dyn Engine<T> + 'a>> {
        Ok(match self {
            Operands::Dense(on) => Box::new(CudaEngine::ours(gpu, on, task, name)?),
            Operands::Sparse(on) => Box::new(SpgemmEngine::ours(gpu, on, task, name)?),
            Operands::Sampled(on) => Box::new(SddmmEngine::ours(gpu, on, task, name)?),
            Operands::Attended(on) => Box::new(AttentionEngine::ours(gpu, on, task, name)?),
            Operands::Stepped(on) => Box::new(SpmmGradientsEngine::ours(gpu, on, task)?),
        })
    }

    /// The vendor's algorithm of that name, or cuBLAS's.
    ///
    /// # Errors
    /// When the library is missing or refuses.
    pub fn vendor<'a>(
        &'a self,
        gpu: &'a Started,
        task: Task<'a, T>,
        name: &str,
    ) -> Result<Box<dyn Engine<T> + 'a>> {
        Ok(match self {
            Operands::Dense(on) if name == CUBLAS => Box::new(CudaEngine::cublas(gpu, on, task)?),
            Operands::Dense(on) => Box::new(CudaEngine::vendor(gpu, on, task, name)?),
            Operands::Sparse(on) => Box::new(SpgemmEngine::vendor(gpu, on, task, name)?),
            Operands::Sampled(on) => Box::new(SddmmEngine::vendor(gpu, on, task)?),
            Operands::Attended(_) | Operands::Stepped(_) => {
                return Err(lacks(name, "it has no gradients and no attention".into()));
            }
        })
    }
}

/// Gustav's algorithms for `operation` with row-major operands, without the vendor's, which are
/// peers here.
pub(crate) fn algorithms(operation: Operation) -> Vec<Algorithm> {
    let entries = match operation {
        Operation::Spmm => gustav_cuda::spmm::catalog(),
        Operation::Spmv => gustav_cuda::spmv::catalog(),
        Operation::Spgemm => gustav_cuda::spgemm::catalog(),
        Operation::Sddmm => gustav_cuda::sddmm::catalog(),
        Operation::Softmax | Operation::Attention => return Vec::new(),
    };
    let empty = CsrView::<f32>::new(0, 0, &[0], &[], &[]);
    let problem = empty.map(|a| Problem { operation, ..Problem::spmm(&a) });
    let takes = |e: &&Entry| problem.as_ref().is_ok_and(|p| (e.supports)(p).is_ok());
    let names = entries.iter().filter(takes).map(|e| e.algorithm);
    names.filter(|a| *a != Algorithm::Vendor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_compute_what_their_library_has() {
        let of = |operation| in_process().filter(|peer| takes(peer, operation)).collect::<Vec<_>>();
        assert_eq!(of(Operation::Spmm).len(), 5);
        assert_eq!(of(Operation::Spmv), [&CUSPARSE[..3], &CUSPARSE[FIRST_SPMV_OP..]].concat());
        assert_eq!(of(Operation::Spgemm), CUSPARSE[1..FIRST_SPMV_OP]);
        assert_eq!(of(Operation::Sddmm), CUSPARSE[..1]);
        assert!(is_peer("cublas") && is_peer("cupy") && !is_peer("mkl"));
    }
}
