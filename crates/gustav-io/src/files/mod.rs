//! Matrices in files: Matrix Market, SciPy npz, NumPy npy and smtx, plain or compressed with
//! gzip or zstd, recognised by content when reading and by name when writing.
//!
//! Reading runs on the current rayon pool. Entries of a row keep the order of the file, unsorted
//! and repeated ones included, followed by the mirror images that symmetry adds in the order of the
//! entries they mirror, for any number of threads.
//!
//! ```no_run
//! let a = gustav_io::read_matrix_market::<f32>("cant.mtx.gz")?;
//! println!("{} x {}, {} nonzeros", a.nrows(), a.ncols(), a.nnz());
//! # Ok::<(), gustav_core::Error>(())
//! ```

pub(crate) mod atomic;
mod format;
mod header;
mod matrix_market;
mod npy;
mod npy_header;
mod npz;
mod options;
pub mod parts;
mod pattern;
mod read;
mod smtx;
mod source;
mod text;
mod value;
mod write;

pub use format::{Compression, Format, of_name as format_of_name};
pub use header::{Field, Header, Symmetry};
pub use options::{Progress, ReadOptions, Storage, Values, WriteOptions};
pub use read::{
    parse_csr, parse_dense, parse_header, read_bytes, read_csr, read_dense, read_header,
    read_matrix_market,
};
pub use write::{write_bytes, write_csr, write_dense};
