//! Five-fold cross-validation of every rival over the sources.

use std::collections::BTreeMap;

use gustav_core::Result;
use gustav_plan::Features;
use gustav_plan::predictor::{Table, Training, Tree};
use gustav_report::Folded;
use gustav_train::train;
use rayon::prelude::*;

use super::Progress;
use super::rivals::{First, Simulation, networks, suffix};

/// Every rival on every fold; `seen` are the numbers of features of the networks.
pub(super) fn over(
    table: &Table,
    seen: &[usize],
    training: &Training,
    progress: &Progress<'_, '_>,
) -> Result<BTreeMap<String, Folded>> {
    let networks = networks(seen, training);
    let mut all = BTreeMap::<String, Folded>::new();
    for fold in 0..Table::FOLDS {
        let (learn, test) = table.fold(fold)?;
        let network = |(name, training): &(String, Training)| {
            let model = train(&learn, training, "", 0, |_| progress.pass(name))?;
            Ok((name.clone(), Folded::new(&test, &model)))
        };
        let mut found: Vec<_> = networks.par_iter().map(network).collect::<Result<_>>()?;
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
