//! Every rival on five folds of the sources.

use std::collections::BTreeMap;

use gustav_core::Result;
use gustav_plan::Features;
use gustav_plan::predictor::{Candidate, Case, Evaluation, Selector, Table, Training, Tree, train};
use rayon::prelude::*;

use super::Progress;
use super::rivals::{First, Simulation, suffix, ways};
use crate::Folded;

// An order that takes so many times the time of rows as stored is slower.
const SLOWER: f64 = 1.02;

/// Every rival on every fold; networks see so many values each.
pub(super) fn over(
    table: &Table,
    seen: &[usize],
    training: &Training,
    progress: &Progress<'_, '_>,
) -> Result<BTreeMap<String, Folded>> {
    let ways = ways(seen, training);
    let mut all = BTreeMap::<String, Folded>::new();
    for fold in 0..Table::FOLDS {
        let (learn, test) = table.fold(fold)?;
        let network = |(name, training): &(String, Training)| {
            let model = train(&learn, training, "", 0, |_| progress.pass(name))?;
            Ok((name.clone(), Folded::new(&test, &model)))
        };
        let mut found: Vec<_> = ways.par_iter().map(network).collect::<Result<_>>()?;
        for &inputs in seen.iter().filter(|inputs| **inputs >= Features::COUNT) {
            let tree = Tree::train(&learn, inputs);
            found.push((format!("tree{}", suffix(inputs)), Folded::new(&test, &tree)));
        }
        if table.inputs() > Features::COUNT {
            found.push(("simulation".into(), Folded::new(&test, &Simulation)));
        }
        found.push(("first".into(), Folded::new(&test, &First)));
        for (name, folded) in found {
            let so_far = all.entry(name).or_default();
            *so_far = so_far.and(&folded);
        }
    }
    Ok(all)
}

impl Folded {
    /// What `chooser` does on `test`.
    fn new(test: &Table, chooser: &impl Selector) -> Self {
        let found = Evaluation::new(test, chooser);
        let guarded = |case: &Case| {
            let chosen = chooser.choose(&case.inputs).min(case.ms.len() - 1);
            1.0 - case.ms[case.oracle()] / case.ms[chosen].min(case.ms[0])
        };
        let guarded: Vec<f64> = test.cases().iter().map(guarded).collect();
        // Times in the order chosen, and as stored.
        let ordered = |case: &Case| {
            let chosen = chooser.choose(&case.inputs).min(case.ms.len() - 1);
            let candidate = test.candidates()[chosen];
            let stored = Candidate { order: None, ..candidate };
            let stored = test.candidates().iter().position(|c| *c == stored);
            candidate.order.map(|_| (case.ms[chosen], stored.map(|place| case.ms[place])))
        };
        let ordered: Vec<_> = test.cases().iter().filter_map(ordered).collect();
        let slower = |(chosen, stored): &&(f64, Option<f64>)| {
            stored.is_some_and(|stored| *chosen > SLOWER * stored)
        };
        Folded {
            cases: found.cases,
            right: found.right,
            mean_loss: found.mean_loss,
            worst_loss: found.worst_loss,
            guarded_mean_loss: guarded.iter().sum::<f64>() / guarded.len() as f64,
            guarded_worst_loss: guarded.into_iter().fold(0.0, f64::max),
            ordered: ordered.len(),
            ordered_slower: ordered.iter().filter(slower).count(),
        }
    }

    /// These matrices and those of another fold.
    fn and(self, fold: &Folded) -> Self {
        let cases = self.cases + fold.cases;
        let mean = |so_far: f64, new: f64| {
            (so_far * self.cases as f64 + new * fold.cases as f64) / cases as f64
        };
        Folded {
            cases,
            right: mean(self.right, fold.right),
            mean_loss: mean(self.mean_loss, fold.mean_loss),
            worst_loss: self.worst_loss.max(fold.worst_loss),
            guarded_mean_loss: mean(self.guarded_mean_loss, fold.guarded_mean_loss),
            guarded_worst_loss: self.guarded_worst_loss.max(fold.guarded_worst_loss),
            ordered: self.ordered + fold.ordered,
            ordered_slower: self.ordered_slower + fold.ordered_slower,
        }
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;
    use gustav_plan::orders::WarpShape;
    use gustav_plan::predictor::Inputs;

    use super::*;

    struct Always(usize);

    impl Selector for Always {
        fn choose(&self, _: &Inputs) -> usize {
            self.0
        }
    }

    #[test]
    fn orders_are_held_against_rows_as_stored() {
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let inputs = Features::new(&eye.pattern().view(), WarpShape::default()).expect("features");
        let names = ["auto", "segmented", "segmented@lpt", "segmented#4@lpt"];
        let candidates = names.map(|name| name.parse::<Candidate>().expect("a name"));
        let case = |ordered: f64| {
            let (matrix, ms) = (format!("{ordered}"), vec![0.5, 1.0, ordered, 9.0]);
            Case { source: matrix.clone(), matrix, inputs: inputs.into(), ms }
        };
        let cases = [0.9, 1.01, 1.03, 2.0].map(case).to_vec();
        let table = Table::new(candidates.to_vec(), cases).expect("a table");
        let found = [0, 1, 2, 3].map(|place| {
            let folded = Folded::new(&table, &Always(place));
            (folded.ordered, folded.ordered_slower)
        });
        // The last has no fellow with rows as stored.
        assert_eq!(found, [(0, 0), (0, 0), (4, 2), (4, 0)]);
    }
}
