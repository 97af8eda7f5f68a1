//! The rivals of a predictor, by name.

use std::cmp::Ordering;

use gustav_plan::Features;
use gustav_plan::predictor::{Inputs, Kind, Selector, Training};

// Training goals: times, the fastest candidate, the loss of each candidate.
pub(super) const GOALS: [&str; 3] = ["regression", "softmax", "softmax of losses"];
// Numbers of features of networks, without simulated costs.
pub(super) const INPUTS: [usize; 2] = [Features::COUNT, Features::MATRIX_ONLY];
// Hidden layers that the study of row permutations compares (its figure 15).
pub(super) const TOPOLOGIES: [&[usize]; 8] =
    [&[16], &[32], &[64], &[128], &[32, 16], &[64, 32], &[128, 64], &[64, 32, 16]];

/// Name and training of every network: each goal with each number of features in `seen`.
pub(super) fn networks(seen: &[usize], training: &Training) -> Vec<(String, Training)> {
    let network = |goal: &str, inputs: usize| {
        (format!("{goal}{}", suffix(inputs)), Training { inputs, ..towards(goal, training) })
    };
    GOALS.iter().flat_map(|goal| seen.iter().map(|inputs| network(goal, *inputs))).collect()
}

/// `training` of a network with this goal.
fn towards(goal: &str, training: &Training) -> Training {
    match goal {
        "regression" => Training { kind: Kind::Regression, ..training.clone() },
        "softmax" => Training { kind: Kind::Softmax, ..training.clone() },
        _ => training.clone().by_losses(),
    }
}

/// The suffix of a rival's name for its number of features.
pub(super) fn suffix(inputs: usize) -> &'static str {
    match inputs.cmp(&Features::COUNT) {
        Ordering::Less => ", matrix-only",
        Ordering::Equal => "",
        Ordering::Greater => ", with costs",
    }
}

/// Always the first candidate.
pub(super) struct First;

impl Selector for First {
    fn choose(&self, _: &Inputs) -> usize {
        0
    }
}

/// The candidate of the least simulated cost; costs are relative to the first candidate's.
pub(super) struct Simulation;

impl Selector for Simulation {
    fn choose(&self, inputs: &Inputs) -> usize {
        let costs: Vec<f64> = std::iter::once(0.0).chain(inputs.costs.iter().copied()).collect();
        (0..costs.len()).min_by(|a, b| costs[*a].total_cmp(&costs[*b])).unwrap_or(0)
    }
}
