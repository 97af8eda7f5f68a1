//! Every SpMM algorithm against the battery, for all types, semirings, instruction sets of this
//! machine and several numbers of threads; and what a plan promises. One file per algorithm.

mod battery;
mod column_panel;
mod csb;
mod empty_rows;
mod merge_path;
mod misuse;
mod nonzero_split;
mod plan;
mod reduce;
mod row_block;
mod row_split;
