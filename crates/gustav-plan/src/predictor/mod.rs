//! The predictor: predicts the fastest candidate from the features of a matrix (the study of row
//! permutations for SpMM on GPUs, §V). The crate `gustav-train` trains networks.

mod candidate;
mod cost;
mod evaluation;
mod inputs;
mod installed;
mod model;
mod network;
mod selector;
mod standardisation;
mod table;
mod training;
mod tree;

pub use candidate::Candidate;
pub use cost::{CtaCosts, Simulation, simulates};
pub use evaluation::Evaluation;
pub use inputs::Inputs;
pub use model::{Kind, Model, Prediction};
pub use network::Layer;
pub use selector::Selector;
pub use standardisation::Standardisation;
pub use table::{Case, Table};
pub use training::Training;
pub use tree::Tree;
