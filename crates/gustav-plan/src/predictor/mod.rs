//! The predictor: which candidate is fastest, from the features of a matrix (the study of row
//! permutations for SpMM on GPUs, §V).

mod candidate;
mod cost;
mod evaluation;
mod inputs;
mod installed;
mod model;
mod network;
mod table;
mod train;
mod tree;

pub use candidate::Candidate;
pub use cost::simulates;
pub use evaluation::Evaluation;
pub use inputs::Inputs;
pub use model::{Kind, Model, Prediction};
pub use network::Layer;
pub use table::{Case, Table};
pub use train::{Chooses, Training, train};
pub use tree::Tree;
