//! Sparse products on the CPU: SpMM, SpMV and SpGEMM from CSR, with plans, semirings and
//! run-time dispatch to AVX-512, AVX2, NEON or portable code.

pub mod arch;
pub mod config;
pub mod schedule;
pub mod threads;

pub use config::{Config, Options};
pub use threads::Threads;
