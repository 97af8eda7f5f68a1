//! NVIDIA's libraries, which a caller or the benchmark names and nothing else chooses.

pub mod cublas;
pub mod cusparse;
pub mod sddmm;
pub mod spgemm;
pub mod spmm;
pub mod spmv;
