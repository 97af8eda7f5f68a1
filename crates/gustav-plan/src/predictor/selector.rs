//! A selector chooses among candidates.

use super::{Inputs, Model, Prediction};

/// Chooses a candidate from the features of a matrix.
pub trait Selector {
    /// Index of the chosen candidate for a matrix with these `inputs`.
    fn choose(&self, inputs: &Inputs) -> usize;
}

impl Selector for Model {
    fn choose(&self, inputs: &Inputs) -> usize {
        let Prediction { best, .. } = self.predict(inputs);
        best
    }
}
