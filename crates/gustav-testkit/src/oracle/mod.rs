//! The reference: every product again, row by row, in f64 or exact integers, each element
//! with a bound on the error that a correct kernel can make.
//!
//! The bound holds for any order of summation. Sums: (terms + 4)·u·(Σ|α a b| + |β c|) in the type
//! of sums, plus one rounding of the stored type, plus what underflow can lose (Higham, *Accuracy
//! and Stability of Numerical Algorithms*, §3; without the usual restriction on the number of
//! terms: Jeannerod and Rump 2013). Minima and maxima: the roundings of one term. or-and and
//! integers: exact; the extrema of [`SpmmExtremum`] in the type of sums, exact as well. NaN must
//! stand exactly where the reference has it. Infinities must agree; where an intermediate sum of
//! mixed signs may overflow in one order of summation and not in another, either outcome is right.
//! Exponentials: see `exponentials.rs`.

mod attention;
mod best;
mod expected;
mod exponentials;
mod extrema;
mod integer;
mod limits;
mod model;
mod operand;
mod sddmm;
mod softmax;
mod spgemm;
mod spmm;
mod sum;
mod truth;
mod verdict;

pub use attention::{Attention, AttentionGradients, AttentionReference, FoundGradients};
pub use extrema::SpmmExtremum;
pub use sddmm::Sddmm;
pub use softmax::Softmax;
pub use spgemm::Spgemm;
pub use spmm::{Spmm, spmv};
pub use verdict::{Verdict, Worst};
