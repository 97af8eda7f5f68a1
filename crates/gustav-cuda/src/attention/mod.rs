//! Attention on the device: O = softmax(leaky(scale·Q·Kᵀ + bias))·V over the nonzeros of every row of a
//! pattern, and its gradients.

mod catalog;
mod gradients;
mod operands;
mod plan;
pub mod segmented;

pub use catalog::{Config, catalog};
pub use gradients::{AttentionGradients, AttentionGradientsPlan, AttentionInputs};
pub use operands::{AttentionCall, AttentionGradientsCall, Bias};
pub use plan::{AttentionPlan, Options};
