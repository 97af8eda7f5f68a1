//! NVIDIA's libraries: they run only when a caller or the benchmark names them.

pub mod cublas;
pub mod cusparse;
pub mod sddmm;
pub mod spgemm;
pub mod spmm;
pub mod spmv;
mod spmv_op;
