//! What chooses among candidates.

use super::{Inputs, Model, Prediction};

/// What chooses a candidate.
pub trait Chooses {
    /// Place of the candidate that it takes for a matrix of which this is known.
    fn choose(&self, inputs: &Inputs) -> usize;
}

impl Chooses for Model {
    fn choose(&self, inputs: &Inputs) -> usize {
        let Prediction { best, .. } = self.predict(inputs);
        best
    }
}
