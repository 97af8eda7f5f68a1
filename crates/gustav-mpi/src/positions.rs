//! Where values are that a product gathers at every execution.

use gustav_core::{Scalar, parallel};

// Values that one task moves.
const TASK: usize = 1 << 14;
// Mean length from which runs are copied faster than single values.
const LEAST_RUN: usize = 8;

/// Positions of values in the order in which they are gathered.
pub enum Positions {
    /// Neighbours that stay neighbours: rows without columns of another rank follow one another.
    Runs { runs: Vec<Run>, len: usize },
    /// Any others.
    Each(Vec<usize>),
}

/// Values that are neighbours before and after, up to the next run.
pub struct Run {
    from: usize,
    to: usize,
}

impl Positions {
    pub fn new(each: Vec<usize>) -> Self {
        let begins = |k: &usize| *k == 0 || each[*k] != each[k - 1] + 1;
        if (0..each.len()).filter(begins).count() * LEAST_RUN > each.len() {
            return Positions::Each(each);
        }
        let runs = (0..each.len()).filter(begins);
        let runs = runs.map(|k| Run { from: each[k], to: k }).collect();
        Positions::Runs { runs, len: each.len() }
    }

    /// Number of positions.
    pub fn len(&self) -> usize {
        match self {
            Positions::Runs { len, .. } => *len,
            Positions::Each(each) => each.len(),
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Positions::Runs { runs, .. } => size_of_val(&runs[..]),
            Positions::Each(each) => size_of_val(&each[..]),
        }
    }

    /// Gathers to `to`, which has as many elements as there are positions, from `values`.
    pub fn gather<T: Scalar>(&self, values: &[T], to: &mut [T::Accum]) {
        match self {
            Positions::Each(each) => {
                parallel::each_mut(to, TASK, |k, to| *to = values[each[k]].to_accum());
            }
            Positions::Runs { runs, .. } => parallel::chunks_mut(to, TASK, |task, mut to| {
                let mut at = task * TASK;
                // The run that holds the first value of the task, and those after it.
                let first = runs.partition_point(|run| run.to <= at) - 1;
                for (k, run) in runs.iter().enumerate().skip(first) {
                    let end = runs.get(k + 1).map_or(usize::MAX, |next| next.to);
                    let (own, rest) = to.split_at_mut(to.len().min(end - at));
                    let from = &values[run.from + (at - run.to)..][..own.len()];
                    own.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_accum());
                    if rest.is_empty() {
                        return;
                    }
                    (at, to) = (end, rest);
                }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(each: Vec<usize>, runs: bool) {
        let values: Vec<f32> = (0..4 * TASK).map(|k| k as f32).collect();
        let expected: Vec<f32> = each.iter().map(|p| values[*p]).collect();
        let positions = Positions::new(each);
        assert_eq!(matches!(positions, Positions::Runs { .. }), runs);
        let mut found = vec![-1.0; expected.len()];
        positions.gather(&values, &mut found);
        assert!(found == expected);
    }

    #[test]
    fn runs_and_single_positions_gather_the_same() {
        check(Vec::new(), true);
        check((5..3 * TASK).collect(), true);
        // Runs that end at tasks, before and after them, backwards and with repeats.
        let lengths = [TASK, 1, TASK - 2, 2, 40, 17, TASK];
        let run = |(k, len): (usize, &usize)| (7 * k..7 * k + len).collect::<Vec<_>>();
        check(lengths.iter().enumerate().flat_map(run).collect(), true);
        check((0..TASK + 3).rev().collect(), false);
        check(vec![3, 3, 4], false);
    }
}
