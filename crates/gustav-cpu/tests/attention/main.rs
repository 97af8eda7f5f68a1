//! Attention and its gradients on the CPU.

mod differences;
mod misuse;
mod plan;
mod segmented;
mod support;
