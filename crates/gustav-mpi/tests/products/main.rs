//! Products over ranks that are threads, on the battery and on random matrices, against the oracle.

#[path = "../cases/mod.rs"]
mod cases;
mod common;
mod copies;
mod dense;
mod device_memory;
mod differs;
mod early;
mod files;
mod gpu;
mod gpu_copies;
mod last_first;
mod on_gpu;
mod random;
mod sddmm;
mod spgemm;
mod spmm;
mod spmv;
