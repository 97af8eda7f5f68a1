//! The inputs of a predictor.

use gustav_core::{Index, PatternView, Result};

use super::{Candidate, CtaCosts, Simulation};
use crate::Features;
use crate::orders::WarpShape;

/// The features of table II of the row orders study and, optionally, simulated costs of the
/// candidates, which the study does not have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// The 24 features.
    pub features: Features,
    /// For every candidate but the first: ln(its simulated time ÷ that of the first); empty without
    /// simulation.
    pub costs: Vec<f64>,
}

impl From<Features> for Inputs {
    fn from(features: Features) -> Self {
        Inputs { features, costs: Vec::new() }
    }
}

impl Inputs {
    /// The features of `a`, and the costs of `candidates` if all of them can be simulated
    /// ([`simulates`](super::simulates)); this builds their row orders.
    ///
    /// # Errors
    /// As [`Features::new`] and [`Order::of`](crate::Order::of).
    pub fn with_costs<I: Index, O: Index>(
        a: &PatternView<'_, I, O>,
        candidates: &[Candidate],
    ) -> Result<Self> {
        let features = Features::new(a, WarpShape::default())?;
        let Some(simulation) = Simulation::new(*a, candidates)? else { return Ok(features.into()) };
        let times = simulation.cycles(&CtaCosts::H200)?;
        let costs = times.iter().skip(1).map(|cycles| (cycles / times[0]).ln()).collect();
        Ok(Inputs { features, costs })
    }

    /// Number of values if `candidates` are simulated.
    pub fn count(candidates: &[Candidate]) -> usize {
        Features::COUNT + candidates.len().saturating_sub(1)
    }

    /// Names of all values if `candidates` are simulated: those of the features, then
    /// `cost-of-CANDIDATE`.
    pub fn names(candidates: &[Candidate]) -> Vec<String> {
        let features = Features::NAMES.iter().map(|name| (*name).to_owned());
        features.chain(candidates.iter().skip(1).map(|c| format!("cost-of-{c}"))).collect()
    }

    /// The values in the order of [`Inputs::names`].
    pub fn values(&self) -> Vec<f64> {
        self.features.values().into_iter().chain(self.costs.iter().copied()).collect()
    }

    /// The values as networks read them: ln(1 + feature) for a feature, a cost unchanged.
    pub(super) fn logs(&self) -> Vec<f64> {
        let features = self.features.values().into_iter().map(f64::ln_1p);
        features.chain(self.costs.iter().copied()).collect()
    }
}
