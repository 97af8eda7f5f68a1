//! Sparse products on the CPU: SpMM, SpMV, SpGEMM, SDDMM, softmax and attention from CSR, with
//! plans, semirings and run-time dispatch to AVX-512, AVX2, NEON or portable code.

pub mod arch;
pub mod attention;
pub mod catalog;
pub mod config;
pub mod csb;
pub mod dense;
mod offsets;
mod papers;
pub mod profile;
pub mod schedule;
pub mod sddmm;
pub mod softmax;
pub mod spgemm;
pub mod spmm;
pub mod spmv;
mod static_partition;
mod thread_pool;
pub mod threads;
mod transposed;
mod types;

pub use attention::{
    AttentionCall, AttentionGradients, AttentionGradientsCall, AttentionGradientsPlan,
    AttentionInputs, AttentionPlan,
};
pub use catalog::Entry;
pub use config::{Config, Options};
pub use sddmm::{SddmmCall, SddmmPlan};
pub use softmax::SoftmaxPlan;
pub use spgemm::SpgemmPlan;
pub use spmm::{SpmmCall, SpmmPlan, WinnerGradients};
pub use spmv::SpmvPlan;
pub use threads::Threads;
pub use types::CpuScalar;
