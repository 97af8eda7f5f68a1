//! The predictor: predicts the fastest candidate from the features of a matrix (the study of row
//! permutations for SpMM on GPUs, §V). Training needs the cargo feature `train`; prediction and
//! everything else here is in the default build.

mod candidate;
mod cost;
mod evaluation;
mod inputs;
mod installed;
mod model;
mod network;
mod selector;
mod table;
#[cfg(feature = "train")]
mod train;
mod training;
mod tree;

pub use candidate::Candidate;
pub use cost::simulates;
pub use evaluation::Evaluation;
pub use inputs::Inputs;
pub use model::{Kind, Model, Prediction};
pub use network::Layer;
pub use selector::Selector;
pub use table::{Case, Table};
#[cfg(feature = "train")]
pub use train::train;
pub use training::Training;
pub use tree::Tree;
