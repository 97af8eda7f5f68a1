//! Where records were measured.

use serde::{Deserialize, Serialize};

/// The processor, as far as the system reports it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the processor.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Level-2 cache of one core in bytes, 0 when unknown.
    pub l2_bytes: usize,
    /// Last-level cache in bytes, 0 when unknown.
    pub llc_bytes: usize,
    /// Operating system and architecture.
    pub system: String,
}

/// The GPU, as reported by its driver, and the measured bandwidths of its memory.
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
    /// Bytes per second of a copy, counting reads and writes.
    pub copy_bandwidth: f64,
    /// Bytes per second that are read from L2.
    pub l2_bandwidth: f64,
}
