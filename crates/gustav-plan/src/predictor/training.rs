//! How networks are trained.

use super::Kind;
use crate::Features;

/// How a network is trained. The default has the source's numbers where it names them: two hidden
/// layers of 64 and 32, L2, weights of classes inverse to how often they are the fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// What the outputs are; the loss is the mean absolute percentage error of times, or the
    /// cross entropy.
    pub kind: Kind,
    /// Neurons of the hidden layers.
    pub hidden: Vec<usize>,
    /// Values that it sees, from the first of [`Inputs::names`](super::Inputs::names) on: [`Features::COUNT`],
    /// [`Features::MATRIX_ONLY`], or all that the table has, costs included.
    pub inputs: usize,
    /// Passes over the table.
    pub passes: usize,
    /// Step of Adam.
    pub rate: f64,
    /// Factor of the squared weights in the loss.
    pub l2: f64,
    /// Whether classes weigh inverse to how often they are the fastest.
    pub weighted: bool,
    /// How a softmax network takes candidates that are nearly as fast as the fastest: each should have a
    /// share in proportion to e to the power of −(what it loses of the fastest's speed ÷ this); 0 for the
    /// fastest alone, as in the source.
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
    /// A softmax network that learns what each candidate loses, not the fastest one alone: where many
    /// candidates are near to each other, which of them is the fastest is chance.
    #[must_use]
    pub fn by_losses(self) -> Self {
        Training { kind: Kind::Softmax, l2: 1e-3, weighted: false, tolerance: 0.1, ..self }
    }
}
