//! The choice among this backend's own algorithms.

use gustav_core::{Problem, Result};
use gustav_plan::Algorithm;
use gustav_plan::heuristics::cuda_spmm::{self, Tuning};

use super::catalog::Config;
use super::{b_stationary, even_shares, row_block, segmented, tensor};
use crate::schedule::pattern::Pattern;

/// The choice of the rules of `gustav-plan` for a pattern, and the reason.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    if problem.extremum.is_some() {
        let (config, reason) = segmented::choose(pattern, problem)?;
        let reason = format!("{}, which segmented supports; {reason}", problem.reduction());
        return Ok((Config::Segmented(config), reason));
    }
    if problem.batch > 1 {
        let (config, reason) = segmented::choose(pattern, problem)?;
        return Ok((
            Config::Segmented(config),
            format!("batches, which segmented supports; {reason}"),
        ));
    }
    let profile = pattern.device().planner_profile();
    let similarity = || pattern.similarity();
    let tensor = tensor::is_exact(pattern.device(), problem);
    let reuse = || b_stationary::reuse(pattern, problem);
    let lengths = || pattern.lengths();
    let tuning = cuda_spmm::choose(problem, &profile, tensor, lengths, similarity, reuse)?;
    Ok((config(problem, &tuning), tuning.reason))
}

/// The configuration of an algorithm with this tuning.
fn config(problem: &Problem, tuning: &Tuning) -> Config {
    match tuning.algorithm {
        Algorithm::RowBlock => Config::RowBlock(row_block::Config::new(
            problem,
            tuning.height,
            tuning.subgroups,
            tuning.threads,
        )),
        Algorithm::Tensor => {
            Config::Tensor(tensor::Config::new(problem, tuning.subgroups, tuning.threads))
        }
        Algorithm::BStationary => Config::BStationary(b_stationary::Config::new(problem, tuning)),
        Algorithm::EvenShares => Config::EvenShares(even_shares::Config::new(problem, tuning)),
        _ => Config::Segmented(segmented::Config::new(problem, tuning)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gustav_core::{CsrView, DType};
    use gustav_plan::facts::row_lengths::{BINS, COUNTS, CUTS, FIRST_CUT_BITS};
    use gustav_plan::{DeviceProfile, RowLengths, RowSimilarity, TileReuse};

    use super::*;

    const DTYPES: [DType; 6] =
        [DType::F16, DType::Bf16, DType::F32, DType::F64, DType::I32, DType::I64];

    /// A generator of pseudorandom numbers below a bound.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as usize % bound
        }

        /// A number of random magnitude below 2^`bits`.
        fn scaled(&mut self, bits: usize) -> usize {
            let bits = self.below(bits + 1);
            self.below(1 << bits)
        }
    }

    /// Random row lengths, up to eight different ones, and their nonzeros.
    fn rows(dice: &mut Dice) -> (RowLengths, usize) {
        let mut counts = vec![0; COUNTS];
        let (mut rows, mut nnz, mut max) = (0, 0, 0);
        let alike = dice.below(2) * dice.scaled(12);
        for _ in 0..dice.below(9) {
            let length = if alike > 0 { alike + dice.below(2) } else { dice.scaled(17) };
            let times = dice.scaled(20);
            counts[RowLengths::bin(length as u64)] += times as u64;
            for cut in 0..CUTS {
                let parts = length >> (FIRST_CUT_BITS as usize + cut);
                counts[BINS + cut] += (parts * times) as u64;
                counts[BINS + CUTS + cut] += if parts > 0 { times as u64 } else { 0 };
            }
            (rows, nnz) = (rows + times, nnz + length * times);
            max = if times > 0 { max.max(length) } else { max };
        }
        counts[COUNTS - 1] = max as u64;
        (RowLengths::new(rows, nnz, counts).expect("the right number of counts"), nnz)
    }

    #[test]
    fn rules_choose_configurations_that_kernels_support() {
        let one = CsrView::<f32, u32, u32>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
        let plain = Problem::spmm(&one);
        let mut dice = Dice(1);
        let mut taken = BTreeMap::<_, usize>::new();
        for call in 0..50_000 {
            let (rows, nnz) = rows(&mut dice);
            let dtype = DTYPES[dice.below(DTYPES.len())];
            let columns = if call % 2 == 0 { dice.below(4001) } else { 1 << dice.below(13) };
            let problem = Problem {
                rows: rows.rows(),
                cols: dice.scaled(24),
                nnz,
                columns,
                dtype,
                calls: dice.scaled(12) as u64,
                ..plain.clone()
            };
            let profile = DeviceProfile {
                name: "a GPU".into(),
                units: 1 + dice.below(200),
                lanes: 32,
                l2_bytes: 1 << (18 + dice.below(10)),
                llc_bytes: 60 << 20,
            };
            let distinct = [0; 4].map(|_| (1 + dice.below(100)) as f64 / 100.0);
            let similarity = || Ok(RowSimilarity { distinct });
            let exact = matches!(dtype, DType::F16 | DType::Bf16);
            let reuse = || Ok(TileReuse { per_segment: dice.below(64) as f64, tiles: 200 });
            let lengths = || Ok(&rows);
            let chosen = cuda_spmm::choose(&problem, &profile, exact, lengths, similarity, reuse);
            let grown = dice.below(2) == 0;
            let ordered = cuda_spmm::segmented_in_order(&problem, &rows, &profile, grown);
            for tuning in [chosen.expect("a tuning"), ordered] {
                let found = match config(&problem, &tuning) {
                    Config::RowBlock(c) => c.check(&problem),
                    Config::Tensor(c) => c.check(&problem),
                    Config::EvenShares(c) => c.check(&problem),
                    Config::BStationary(c) => c.check(&problem),
                    Config::Segmented(c) => c.check(&problem),
                    other => panic!("{other:?}"),
                };
                assert!(found.is_ok(), "{problem} {rows:?}: {tuning:?}: {found:?}");
                *taken.entry(tuning.algorithm.name()).or_default() += 1;
            }
        }
        assert!(taken.len() == 5 && taken.values().all(|times| *times > 100), "{taken:?}");
    }
}
