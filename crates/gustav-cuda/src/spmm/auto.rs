//! The choice among this backend's own algorithms, by the cost model of `gustav-plan`.

use gustav_core::{Error, Problem, Result};
use gustav_plan::cost::{Facts, Parameters, Predicted};
use gustav_plan::heuristics::cuda_spmm::{self, Available, Tuning};
use gustav_plan::{Algorithm, RowLengths, RowSimilarity, TileReuse};

use super::catalog::Config;
use super::cost::Model;
use super::{b_stationary, even_shares, row_block, segmented, tensor};
use crate::schedule::pattern::Pattern;

/// The fastest configuration for a pattern by the cost model, and the reason.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let only_segmented = match problem.batch {
        _ if problem.extremum.is_some() => Some(problem.reduction().to_string()),
        0 | 1 => None,
        _ => Some("batches".into()),
    };
    if let Some(needed) = only_segmented {
        let (config, reason) = segmented::choose(pattern, problem)?;
        let reason = format!("{needed}, which segmented supports; as one sum: {reason}");
        return Ok((Config::Segmented(config), reason));
    }
    if !cuda_spmm::inspects(problem, &pattern.device().planner_profile()) {
        let (config, reason) = even_shares::choose(pattern, problem)?;
        return Ok((Config::EvenShares(config), reason));
    }
    let available = Available {
        tensor: tensor::is_exact(pattern.device(), problem),
        tiles: b_stationary::copies_tiles(pattern.device()),
    };
    fastest(pattern, problem, cuda_spmm::candidates(problem, available))
}

/// The fastest of some tunings of one algorithm, whose configuration is `of_algorithm`, and the reason.
///
/// # Errors
/// As [`fastest`].
pub(super) fn fastest_of<C>(
    pattern: &Pattern<'_>,
    problem: &Problem,
    tunings: Vec<Tuning>,
    of_algorithm: impl FnOnce(Config) -> Option<C>,
) -> Result<(C, String)> {
    let (config, reason) = fastest(pattern, problem, tunings)?;
    let algorithm = config.algorithm();
    match of_algorithm(config) {
        Some(config) => Ok((config, reason)),
        None => Err(crate::product::catalog::no_kernel(super::catalog(), problem, algorithm)),
    }
}

/// The fastest of some tunings by the cost model, and the reason.
///
/// # Errors
/// Those of counting; [`Error::Unsupported`] if none is possible.
fn fastest(
    pattern: &Pattern<'_>,
    problem: &Problem,
    tunings: Vec<Tuning>,
) -> Result<(Config, String)> {
    let device = pattern.device();
    let (profile, shared) = (device.planner_profile(), device.profile().shared_bytes_per_cta);
    let mut configs = Vec::with_capacity(tunings.len());
    for tuning in &tunings {
        let config = config(problem, tuning);
        // With some numbers of columns, tunings are the same.
        if !configs.contains(&config) {
            configs.push(config);
        }
    }
    let tiles = configs.iter().filter_map(|config| match config {
        Config::BStationary(c) => c.rows(problem, shared).ok(),
        _ => None,
    });
    pattern.count(&tiles.collect::<Vec<_>>())?;
    let model = Model::new(problem, pattern, &profile, shared)?;
    let (config, predicted, next) = model.fastest(configs)?;
    let (mean, most) = (pattern.lengths()?.mean(), pattern.lengths()?.max());
    let rows = format!("rows of {mean:.1} nonzeros on average, {most} at most");
    let next = next.as_ref().map(|(other, time)| (*other, time));
    Ok((config, format!("{rows}: {}", predicted.beside(next))))
}

/// The fastest of the configurations, its predicted time, and the best of another algorithm with its time.
type Fastest = (Config, Predicted, Option<(Algorithm, Predicted)>);

impl Model<'_> {
    /// # Errors
    /// As [`fastest`].
    fn fastest(&self, configs: Vec<Config>) -> Result<Fastest> {
        let bytes = self.problem.dtype.bytes();
        let parameters =
            Parameters::of_gpu(&self.profile.name)?.of_spmm(self.problem.columns, bytes);
        let (mut predicted, mut refused) = (Vec::new(), None);
        for config in configs {
            match self.bounds(&config) {
                Ok(Some(bounds)) => predicted.push((config, bounds.predict(parameters, bytes))),
                Ok(None) => {}
                // A row of B may be too long for shared memory.
                Err(e @ Error::Unsupported { .. }) => refused = Some(e),
                Err(e) => return Err(e),
            }
        }
        if predicted.iter().any(|p| p.1.measured) {
            predicted.retain(|p| p.1.measured);
        }
        predicted.sort_by(|a, b| a.1.us.total_cmp(&b.1.us));
        let mut ranked = predicted.into_iter();
        let Some((config, time)) = ranked.next() else {
            let none = || {
                let reason = "none of its configurations fits";
                crate::product::unsupported(self.problem, "the cost model", reason, "segmented")
            };
            return Err(refused.unwrap_or_else(none));
        };
        let other = ranked.find(|(other, _)| other.algorithm() != config.algorithm());
        Ok((config, time, other.map(|(other, time)| (other.algorithm(), time))))
    }
}

impl Facts for Pattern<'_> {
    fn lengths(&self) -> Result<&RowLengths> {
        Pattern::lengths(self)
    }

    fn similarity(&self) -> Result<RowSimilarity> {
        Pattern::similarity(self)
    }

    fn tile_reuse(&self, inner: usize, tile: u64) -> Result<TileReuse> {
        Pattern::tile_reuse(self, inner, tile)
    }
}

/// The configuration of an algorithm with this tuning.
fn config(problem: &Problem, tuning: &Tuning) -> Config {
    match tuning.algorithm {
        Algorithm::RowBlock => Config::RowBlock(row_block::Config::new(problem, tuning)),
        Algorithm::Tensor => Config::Tensor(tensor::Config::new(problem, tuning)),
        Algorithm::BStationary => Config::BStationary(b_stationary::Config::new(problem, tuning)),
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

    /// Facts of a pattern that does not exist.
    struct Counted {
        rows: RowLengths,
        similarity: RowSimilarity,
        per_segment: f64,
    }

    impl Facts for Counted {
        fn lengths(&self) -> Result<&RowLengths> {
            Ok(&self.rows)
        }

        fn similarity(&self) -> Result<RowSimilarity> {
            Ok(self.similarity)
        }

        fn tile_reuse(&self, _: usize, _: u64) -> Result<TileReuse> {
            Ok(TileReuse { per_segment: self.per_segment, tiles: 200 })
        }
    }

    #[test]
    fn configurations_that_kernels_support_are_chosen() {
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
            let per_segment = dice.below(64) as f64;
            let facts = Counted { rows, similarity: RowSimilarity { distinct }, per_segment };
            let tensor = matches!(dtype, DType::F16 | DType::Bf16);
            let candidates = cuda_spmm::candidates(&problem, Available { tensor, tiles: true });
            let grown = dice.below(2) == 0;
            let ordered = cuda_spmm::segmented(&problem).into_iter();
            let ordered: Vec<_> = ordered.filter_map(|t| cuda_spmm::in_order(t, grown)).collect();
            let shared = 48 << (10 + dice.below(3));
            let model = Model::new(&problem, &facts, &profile, shared).expect("facts");
            for tunings in [candidates, ordered] {
                let configs = tunings.iter().map(|tuning| config(&problem, tuning)).collect();
                let (config, time, _) = model.fastest(configs).expect("a configuration");
                assert!(time.us.is_finite() && time.us >= 0.0, "{problem}: {time:?}");
                let found = match config {
                    Config::RowBlock(c) => c.check(&problem),
                    Config::Tensor(c) => c.check(&problem),
                    Config::BStationary(c) => c.check(&problem),
                    Config::Segmented(c) => c.check(&problem),
                    other => panic!("{other:?}"),
                };
                assert!(found.is_ok(), "{problem} {:?}: {config:?}: {found:?}", facts.rows);
                *taken.entry(config.algorithm().name()).or_default() += 1;
            }
        }
        assert!(taken.len() == 4 && taken.values().all(|times| *times > 100), "{taken:?}");
    }
}
