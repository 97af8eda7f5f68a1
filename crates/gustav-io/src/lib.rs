//! Input and output of matrices: files, generators, and with the feature `fetch` the SuiteSparse
//! Matrix Collection.

#[cfg(feature = "fetch")]
pub mod fetch;
pub mod files;
pub mod generate;

pub use files::parts;
pub use files::{
    Compression, Field, Format, Header, Progress, ReadOptions, Storage, Symmetry, Values,
    WriteOptions, format_of_name, parse_csr, parse_dense, parse_header, read_bytes, read_csr,
    read_dense, read_header, read_matrix_market, write_bytes, write_csr, write_dense,
};
pub use generate::Generator;
