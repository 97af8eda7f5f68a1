//! A GPU as the place where engines take turns.

mod engine;
mod orders;
mod resident;
mod summary;

pub(crate) use engine::CudaEngine;
pub(crate) use resident::Resident;
pub(crate) use summary::summary;

use gustav_core::{CsrView, Error, Operation, Problem, Result};
use gustav_cuda::catalog::Entry;
use gustav_cuda::{Device, Probe};
use gustav_plan::Algorithm;
use serde::{Deserialize, Serialize};

use crate::Bandwidth;

/// Names of cuSPARSE's algorithms as peers.
pub(crate) const PEERS: [&str; 4] =
    ["cusparse-default", "cusparse-alg1", "cusparse-alg2", "cusparse-alg3"];

/// The GPU, as far as its driver tells, and what its memory was measured to give.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gpu {
    /// Name of the device.
    pub name: String,
    /// Compute capability, for example `9.0`.
    pub compute_capability: String,
    /// Streaming multiprocessors.
    pub multiprocessors: usize,
    /// Level-2 cache in bytes.
    pub l2_bytes: usize,
    /// Memory in bytes.
    pub memory_bytes: usize,
    /// Highest clock of the multiprocessors in MHz.
    pub clock_mhz: usize,
    /// Highest clock of the memory in MHz.
    pub memory_clock_mhz: usize,
    /// The driver's CUDA version, for example 13000.
    pub driver: i32,
    /// Bytes per second that a copy moves, reading and writing counted.
    pub copy_bandwidth: f64,
    /// Bytes per second that L2 gives of what it holds.
    pub l2_bandwidth: f64,
}

/// A GPU that was started for a run.
pub(crate) struct Started {
    pub device: Device,
    pub probe: Probe,
    pub about: Gpu,
    /// Peers that take part.
    peers: Vec<&'static str>,
}

impl Started {
    /// Starts the device that a suite names, `cuda:K`, for the peers that it names.
    ///
    /// # Errors
    /// [`Error::NoDevice`] saying what is missing, [`Error::Argument`] for other names.
    pub fn new(name: &str, peers: &[String]) -> Result<Self> {
        let ordinal = name.strip_prefix("cuda:").and_then(|k| k.parse().ok());
        let ordinal = ordinal.ok_or_else(|| Error::Argument {
            name: "device",
            found: name.into(),
            expected: "cuda:K with K counted from 0".into(),
        })?;
        let device = Device::cuda(ordinal)?;
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
            PEERS.into_iter().find(|known| known == name).ok_or_else(|| Error::Argument {
                name: "peer",
                found: name.clone(),
                expected: PEERS.join(", "),
            })
        });
        let peers = named.collect::<Result<_>>()?;
        Ok(Started { device, probe, about, peers })
    }

    /// Peers that compute `operation`.
    pub fn peers(&self, operation: Operation) -> impl Iterator<Item = &'static str> {
        // There are three algorithms for vectors and four for matrices.
        let all = self.peers.iter().copied();
        all.filter(move |p| operation == Operation::Spmm || *p != PEERS[3])
    }

    /// Its copy bandwidth, for the memory floor.
    pub fn bandwidth(&self) -> Bandwidth {
        Bandwidth::constant(self.about.copy_bandwidth)
    }
}

/// Our algorithms for `operation` that take row-major operands: the catalog without the vendor,
/// who is a peer here.
pub(crate) fn algorithms(operation: Operation) -> Vec<Algorithm> {
    let entries = match operation {
        Operation::Spmm => gustav_cuda::spmm::catalog(),
        Operation::Spmv => gustav_cuda::spmv::catalog(),
        Operation::Spgemm => &[],
    };
    let empty = CsrView::<f32>::new(0, 0, &[0], &[], &[]);
    let problem = empty.map(|a| Problem { operation, ..Problem::spmm(&a) });
    let takes = |e: &&Entry| problem.as_ref().is_ok_and(|p| (e.supports)(p).is_ok());
    let names = entries.iter().filter(takes).map(|e| e.algorithm);
    names.filter(|a| *a != Algorithm::Vendor).collect()
}
