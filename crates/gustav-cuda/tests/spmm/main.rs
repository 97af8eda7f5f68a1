//! SpMM on the device against the oracle, one file per algorithm.

#[path = "../common/mod.rs"]
mod common;
mod papers;

mod auto;
mod dcsr;
mod merge_path;
mod nonzero_split;
mod orders;
mod output_stationary;
mod row_block;
mod row_split;
mod segmented;
mod thread_row;
mod vendor;
