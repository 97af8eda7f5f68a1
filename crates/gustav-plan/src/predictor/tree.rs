//! A decision tree that minimises the cost of wrong choices: the baseline for the network.

use super::{Case, Inputs, Selector, Table};

// Largest depth, and fewest matrices of a leaf.
const DEPTH: usize = 6;
const LEAST: usize = 4;

/// A decision tree over single features.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// The candidate with the least cost over the matrices that reach this leaf.
    Leaf {
        /// Index of the candidate.
        candidate: usize,
    },
    /// A comparison of one feature with a threshold.
    Split {
        /// Index of the feature in [`Inputs::names`].
        feature: usize,
        /// The threshold: the first branch has values up to it, the second those above.
        at_most: f64,
        /// The branches.
        branches: Box<[Tree; 2]>,
    },
}

impl Tree {
    /// Grown by greedy splits over the first `inputs` values of [`Inputs::names`]. Each split
    /// minimises the sum, over the matrices, of the time of their branch's best single candidate ÷
    /// the time of their own best.
    pub fn train(table: &Table, inputs: usize) -> Self {
        let weighed = |case| WeighedCase { case, values: case.inputs.values() };
        let mut cases: Vec<WeighedCase<'_>> = table.cases().iter().map(weighed).collect();
        let inputs = inputs.min(table.inputs());
        Self::grow(&mut cases, table.candidates().len(), inputs, DEPTH)
    }

    fn grow(cases: &mut [WeighedCase<'_>], candidates: usize, inputs: usize, depth: usize) -> Self {
        let (cost, candidate) = cheapest(cases, candidates);
        let Some((split_cost, feature, at_most)) = best_split(cases, candidates, inputs) else {
            return Tree::Leaf { candidate };
        };
        // A split must save at least a thousandth of the time of its matrices.
        if depth == 0 || split_cost > cost - 1e-3 * cases.len() as f64 {
            return Tree::Leaf { candidate };
        }
        cases.sort_by(|a, b| a.values[feature].total_cmp(&b.values[feature]));
        let cut = cases.partition_point(|c| c.values[feature] <= at_most);
        let (first, second) = cases.split_at_mut(cut);
        let grow = |cases| Self::grow(cases, candidates, inputs, depth - 1);
        Tree::Split { feature, at_most, branches: Box::new([grow(first), grow(second)]) }
    }

    /// Number of splits.
    pub fn questions(&self) -> usize {
        match self {
            Tree::Leaf { .. } => 0,
            Tree::Split { branches, .. } => 1 + branches.iter().map(Tree::questions).sum::<usize>(),
        }
    }
}

impl Selector for Tree {
    fn choose(&self, inputs: &Inputs) -> usize {
        match self {
            Tree::Leaf { candidate } => *candidate,
            Tree::Split { feature, at_most, branches } => {
                let value = inputs.values().get(*feature).copied().unwrap_or(0.0);
                branches[usize::from(value > *at_most)].choose(inputs)
            }
        }
    }
}

/// A case with the values that splits compare.
struct WeighedCase<'t> {
    case: &'t Case,
    values: Vec<f64>,
}

/// Time of each candidate ÷ time of the fastest.
fn costs(case: &Case) -> impl Iterator<Item = f64> {
    let least = case.ms[case.oracle()];
    case.ms.iter().map(move |ms| ms / least)
}

fn add(sums: &mut [f64], case: &Case, sign: f64) {
    sums.iter_mut().zip(costs(case)).for_each(|(sum, cost)| *sum += sign * cost);
}

fn least(sums: &[f64]) -> f64 {
    sums.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The least cost of a single candidate, and its index.
fn cheapest(cases: &[WeighedCase<'_>], candidates: usize) -> (f64, usize) {
    let mut sums = vec![0.0; candidates];
    cases.iter().for_each(|c| add(&mut sums, c.case, 1.0));
    let best = (0..candidates).min_by(|a, b| sums[*a].total_cmp(&sums[*b])).unwrap_or(0);
    (least(&sums), best)
}

/// Cost, feature and threshold of the best split.
fn best_split(
    cases: &mut [WeighedCase<'_>],
    candidates: usize,
    inputs: usize,
) -> Option<(f64, usize, f64)> {
    let mut best: Option<(f64, usize, f64)> = None;
    for feature in 0..inputs {
        cases.sort_by(|a, b| a.values[feature].total_cmp(&b.values[feature]));
        let (mut first, mut second) = (vec![0.0; candidates], vec![0.0; candidates]);
        cases.iter().for_each(|c| add(&mut second, c.case, 1.0));
        for k in 1..cases.len() {
            add(&mut first, cases[k - 1].case, 1.0);
            add(&mut second, cases[k - 1].case, -1.0);
            let (low, high) = (cases[k - 1].values[feature], cases[k].values[feature]);
            let cost = least(&first) + least(&second);
            let enough = k >= LEAST && cases.len() - k >= LEAST && low < high;
            if enough && best.is_none_or(|(least, ..)| cost < least) {
                best = Some((cost, feature, low + (high - low) / 2.0));
            }
        }
    }
    best
}
