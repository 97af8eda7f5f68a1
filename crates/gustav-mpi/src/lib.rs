//! Products on sparse patterns whose rows are spread over the ranks of an MPI program.

mod any_pattern;
mod block_description;
mod blocks;
mod communicator;
mod cover;
mod device;
mod exchange;
mod explain;
mod fetch;
mod ghosts;
mod gpu;
mod hosts;
mod in_process;
pub mod io;
mod local;
mod matrix;
mod message;
#[cfg(unix)]
mod mpi;
mod order;
mod partition;
mod positions;
mod ranks;
mod routes;
mod row_parts;
mod sddmm;
mod spgemm;
mod spmm;
mod spmv;
#[cfg(test)]
mod testing;
mod transpose;
mod volume;
mod waiting;

pub use communicator::{Communicator, Request, Tag};
pub use device::Device;
pub use explain::{CommunicationTime, Explanation, MessageMemory, Rates};
pub use gpu::Gpu;
pub use gustav_cpu::{Options, SddmmCall};
pub use hosts::Hosts;
pub use in_process::InProcess;
pub use local::DistScalar;
pub use matrix::{DistCsr, DistDense, DistPattern};
#[cfg(unix)]
pub use mpi::{Mpi, MpiCommunicator, ThreadLevel};
pub use order::Ordered;
pub use partition::Partition;
pub use ranks::Ranks;
pub use sddmm::{GpuSddmmCall, GpuSddmmPlan, SddmmPlan};
pub use spgemm::{DistDeviceCsr, GpuSpgemmPlan, SpgemmPlan};
pub use spmm::{
    Copies, CopiesCandidate, GpuReplicatedSpmmPlan, GpuSpmmPlan, Replicated, ReplicatedSpmmPlan,
    SpmmPlan,
};
pub use spmv::SpmvPlan;
pub use volume::{Communication, ProductShape, RankVolume, Traffic, Volume};
