//! SpMM on the device against the oracle, one file per algorithm.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/graph.rs"]
mod graph;
mod papers;

mod auto;
mod column_panel;
mod dcsr;
mod dense;
mod ell_r;
mod epilogue;
mod even_shares;
mod heavy_light;
mod merge_path;
mod nonzero_split;
mod older_devices;
mod operands;
mod orders;
mod output_stationary;
mod row_block;
mod row_split;
mod segmented;
mod sell_p;
mod tensor;
mod thread_row;
mod vendor;
