//! Products over ranks that are threads, on the battery and on random matrices, against the oracle.

mod common;
mod copies;
mod dense;
mod files;
mod gpu;
mod random;
mod sddmm;
mod spgemm;
mod spmm;
mod spmv;
