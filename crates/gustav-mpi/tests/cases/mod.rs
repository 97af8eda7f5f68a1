//! Products over ranks on the battery and on random matrices, against the oracle: by threads in `tests/products`, by
//! processes in `tests/mpi`.

pub mod copies;
pub mod job;
pub mod random;
pub mod rows;
pub mod sddmm;
pub mod spgemm;
pub mod spmm;
pub mod spmv;
pub mod spread;
