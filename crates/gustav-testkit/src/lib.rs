//! Is it right? The oracle with its error bound, the battery of matrices that every algorithm of
//! every backend must pass, and mutated input for parsers.
//!
//! ```
//! use gustav_core::{Dense, Csr, Semiring};
//! use gustav_testkit::oracle;
//!
//! let a = Csr::<f32>::new(1, 2, vec![0, 2], vec![0, 1], vec![2.0, 3.0])?;
//! let b = Dense::from_row_major(2, 1, vec![10.0, 1.0])?;
//! let c = Dense::from_row_major(1, 1, vec![23.0])?;
//! let product = oracle::Spmm::new(a.view(), b.view());
//! assert!(product.verify(c.view())?.ok);
//! # Ok::<(), gustav_core::Error>(())
//! ```

pub mod battery;
pub mod mutation;
pub mod oracle;
