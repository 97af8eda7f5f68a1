//! Every SpGEMM algorithm against the battery, for all types, semirings, instruction sets of this
//! machine and several numbers of threads; and what a plan promises. One file per algorithm.

mod dense_naive;
mod gustavson;
mod hash_rows;
mod masked;
mod plan;
mod support;
