//! Every SpMV algorithm against the battery, for all types, semirings, instruction sets of this
//! machine and several numbers of threads; and what a plan promises. One file per algorithm.

mod battery;
mod compressed_index;
mod csb;
mod merge_path;
mod nonzero_split;
mod plan;
mod row_split;
mod structures;
