//! Row orders: which warp of a CTA takes which rows, and when (the study of row permutations for
//! SpMM on GPUs, §III). An order is data in a plan; the matrix and the product stay in the
//! caller's order.

mod catalog;
mod chain;
mod cost;
mod cta_aware;
mod dcsr;
mod flipped;
mod graph;
mod graph_growing;
mod hybrid_1;
mod hybrid_2_1;
mod hybrid_2_2;
mod hybrid_2_3;
mod label_propagation;
mod lpt;
mod min_hash;
mod nearest;
mod plain;
mod reverse_cuthill_mckee;
mod row_order;
mod stored;
mod view;
mod warp_aware;

pub use catalog::Order;
pub use row_order::{NO_ROW, RowOrder};
pub use view::{Search, WarpShape};
