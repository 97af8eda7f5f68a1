//! The softmax of values over every row of a pattern on the device, and its gradient.

mod catalog;
mod plan;
pub mod segmented;

pub use catalog::{Config, catalog};
pub use plan::{Options, SoftmaxCall, SoftmaxPlan};
