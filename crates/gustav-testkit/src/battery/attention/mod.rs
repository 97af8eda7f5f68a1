//! The battery for attention and its gradients.

mod forward;
mod gradients;
mod operands;

pub use forward::{AttentionCase, check_attention};
pub use gradients::{AttentionGradientsCase, check_attention_gradients};
