//! Training data of a predictor: features of matrices and the times of every candidate.

use gustav_core::{Error, Result};

use super::{Candidate, Inputs};

/// One matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name.
    pub matrix: String,
    /// Its source: relatives have the same source, and no source is used for both training and
    /// testing.
    pub source: String,
    /// Its features and costs.
    pub inputs: Inputs,
    /// Milliseconds of each candidate.
    pub ms: Vec<f64>,
}

impl Case {
    /// Index of the fastest candidate.
    pub fn oracle(&self) -> usize {
        (0..self.ms.len()).min_by(|a, b| self.ms[*a].total_cmp(&self.ms[*b])).unwrap_or(0)
    }
}

/// Matrices with the times of the same candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    candidates: Vec<Candidate>,
    cases: Vec<Case>,
}

impl Table {
    /// A table, checked.
    ///
    /// # Errors
    /// [`Error::Argument`] for fewer than two candidates, for a case without a positive time for
    /// each of them, without any case, and if only some cases or candidates have costs.
    pub fn new(candidates: Vec<Candidate>, cases: Vec<Case>) -> Result<Self> {
        let wrong = |found: String, expected: &str| {
            Err(Error::Argument { name: "training set", found, expected: expected.into() })
        };
        if candidates.len() < 2 {
            return wrong(format!("{} candidates", candidates.len()), "at least 2 to choose among");
        }
        if cases.is_empty() {
            return wrong("no matrices".into(), "at least 1 that every candidate multiplied");
        }
        let complete = |c: &Case| {
            c.ms.len() == candidates.len() && c.ms.iter().all(|ms| *ms > 0.0 && ms.is_finite())
        };
        if let Some(case) = cases.iter().find(|c| !complete(c)) {
            return wrong(
                format!("{} with times {:?}", case.matrix, case.ms),
                "a time above 0 each",
            );
        }
        let costs = cases[0].inputs.costs.len();
        let same = |c: &&Case| c.inputs.costs.len() != costs;
        if let Some(case) = cases.iter().find(same) {
            let found = format!("{} with {} costs", case.matrix, case.inputs.costs.len());
            return wrong(found, "as many of every matrix");
        }
        if ![0, candidates.len() - 1].contains(&costs) {
            return wrong(
                format!("{costs} costs"),
                "none, or one for each candidate but the first",
            );
        }
        Ok(Table { candidates, cases })
    }

    /// Number of values of each matrix: the features, and costs if there are any.
    pub fn inputs(&self) -> usize {
        self.cases[0].inputs.values().len()
    }

    /// The candidates.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The matrices.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// How often each candidate is the fastest.
    pub fn wins(&self) -> Vec<usize> {
        let mut wins = vec![0; self.candidates.len()];
        self.cases.iter().for_each(|c| wins[c.oracle()] += 1);
        wins
    }

    /// Number of folds of the sources.
    pub const FOLDS: usize = 5;

    /// The first fold.
    ///
    /// # Errors
    /// As [`Table::fold`].
    pub fn split(&self) -> Result<(Table, Table)> {
        self.fold(0)
    }

    /// A table to train on, and one to test on with every fifth source from number `fold` on, in
    /// the order of a hash of their names: every matrix is in the test set of exactly one of the
    /// five folds.
    ///
    /// # Errors
    /// [`Error::Argument`] when one of the two would be empty because there are too few sources.
    pub fn fold(&self, fold: usize) -> Result<(Table, Table)> {
        let mut sources: Vec<&str> = self.cases.iter().map(|c| c.source.as_str()).collect();
        sources.sort_unstable();
        sources.dedup();
        sources.sort_by_key(|s| fnv(s));
        let known = sources.len();
        let tested: Vec<&str> = sources.into_iter().skip(fold).step_by(Self::FOLDS).collect();
        if tested.is_empty() || tested.len() == known {
            return Err(Error::Argument {
                name: "training set",
                found: format!("matrices of {known} sources"),
                expected: format!(
                    "at least {}: every fifth source is tested on, the others are trained on",
                    (fold + 1).max(2)
                ),
            });
        }
        let (test, train): (Vec<_>, Vec<_>) =
            self.cases.iter().cloned().partition(|c| tested.contains(&c.source.as_str()));
        let candidates = || self.candidates.clone();
        Ok((Table::new(candidates(), train)?, Table::new(candidates(), test)?))
    }
}

/// FNV-1a: a hash that is the same on every machine.
fn fnv(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
