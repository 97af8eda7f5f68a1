//! How networks are trained.

use super::Kind;
use crate::Features;

/// How a network is trained. The defaults are those of the row orders study where it names them:
/// two hidden layers of 64 and 32 neurons, L2 regularisation, classes weighted inversely to how
/// often they are the fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// The meaning of the outputs; the loss is the mean absolute percentage error for times, or the
    /// cross entropy.
    pub kind: Kind,
    /// Neurons of the hidden layers.
    pub hidden: Vec<usize>,
    /// Number of input values, from the first of [`Inputs::names`](super::Inputs::names) on:
    /// [`Features::COUNT`], [`Features::MATRIX_ONLY`], or all that the table has, costs included.
    pub inputs: usize,
    /// Passes over the table.
    pub passes: usize,
    /// Learning rate of Adam.
    pub rate: f64,
    /// Factor of the squared weights in the loss.
    pub l2: f64,
    /// Whether classes are weighted inversely to how often they are the fastest.
    pub weighted: bool,
    /// Target probabilities of a softmax network: proportional to exp(−loss ÷ tolerance), where
    /// loss is relative to the fastest candidate; 0 for the fastest alone, as in the study.
    pub tolerance: f64,
    /// Seed of the initial weights and of the order of the matrices.
    pub seed: u64,
}

impl Default for Training {
    fn default() -> Self {
        Training {
            kind: Kind::Regression,
            hidden: vec![64, 32],
            inputs: Features::COUNT,
            passes: 400,
            rate: 1e-3,
            l2: 1e-4,
            weighted: true,
            tolerance: 0.0,
            seed: 1,
        }
    }
}

impl Training {
    /// A softmax network that learns the loss of each candidate, not the fastest one alone: if many
    /// candidates are close, which of them is the fastest is chance.
    #[must_use]
    pub fn by_losses(self) -> Self {
        Training { kind: Kind::Softmax, l2: 1e-3, weighted: false, tolerance: 0.1, ..self }
    }
}
