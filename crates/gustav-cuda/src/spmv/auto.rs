//! The choice among this backend's own algorithms, by the cost model of `gustav-plan`.

use gustav_core::{Error, Problem, Result};
use gustav_plan::cost::{Fitted, Lengths, Parameters, Predicted};
use gustav_plan::heuristics::{cuda_spmv, uninspected};
use gustav_plan::{Algorithm, DeviceProfile, RowLengths};

use super::catalog::Config;
use super::cost;
use super::{even_shares, segmented};
use crate::schedule::pattern::Pattern;

/// The fastest configuration for a pattern by the cost model, and the reason.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let segmented = segmented::configs(problem).into_iter().map(Config::Segmented);
    let even_shares = even_shares::configs(problem).into_iter().map(Config::EvenShares);
    fastest(pattern, problem, segmented.chain(even_shares))
}

/// The fastest of some configurations by the cost model, and the reason. If the calls do not repay counting the
/// lengths of rows, rows count as equally long, and what would cut or list them is left out where there is a choice.
///
/// # Errors
/// Those of counting.
pub(super) fn fastest(
    pattern: &Pattern<'_>,
    problem: &Problem,
    configs: impl Iterator<Item = Config>,
) -> Result<(Config, String)> {
    let device = pattern.device();
    let profile = device.planner_profile();
    let resident = profile.units * device.profile().threads_per_multiprocessor;
    let parameters = Parameters::of_gpu(&profile.name)?.spmv.fitted();
    if cuda_spmv::inspects(problem, resident) {
        let rows = pattern.lengths()?;
        let ranked = rank(problem, rows, &profile, parameters, configs);
        let (config, predicted, next) = first(problem, ranked)?;
        let next = next.as_ref().map(|(other, time)| (*other, time));
        let (mean, most) = (rows.mean(), rows.max());
        let rows = format!("rows of {mean:.1} nonzeros on average, {most} at most");
        return Ok((config, format!("{rows}: {}", predicted.beside(next))));
    }
    let rows = RowLengths::alike(problem.output_rows(), problem.nnz);
    let mut ranked = rank(problem, &rows, &profile, parameters, configs);
    let plain =
        |config: &Config| matches!(config, Config::Segmented(segmented::Config::InOrder(_)));
    if ranked.iter().any(|(config, _)| plain(config)) {
        ranked.retain(|(config, _)| plain(config));
    }
    let (config, predicted, _) = first(problem, ranked)?;
    let (mean, why) = (rows.mean(), uninspected(problem.calls));
    Ok((
        config,
        format!(
            "rows of {mean:.1} nonzeros on average{why}: predicted at {predicted} if all are so long"
        ),
    ))
}

/// Configurations with their predicted times, the fastest first.
fn rank(
    problem: &Problem,
    rows: &RowLengths,
    profile: &DeviceProfile,
    parameters: Fitted<'_>,
    configs: impl Iterator<Item = Config>,
) -> Vec<(Config, Predicted)> {
    let bytes = problem.dtype.bytes();
    let lengths = Lengths::new(rows);
    let predicted = |config: Config| {
        let bounds = cost::of_lengths(problem, &lengths, profile, &config)?;
        Some((config, bounds.predict(parameters, bytes)))
    };
    let mut ranked: Vec<_> = configs.filter_map(predicted).collect();
    ranked.sort_by(|a, b| a.1.us.total_cmp(&b.1.us));
    ranked
}

/// The fastest configuration, its predicted time, and the best of another algorithm with its time.
type Fastest = (Config, Predicted, Option<(Algorithm, Predicted)>);

/// The first of a ranking, and the next of another algorithm.
///
/// # Errors
/// [`Error::Unsupported`] if there are none.
fn first(problem: &Problem, ranked: Vec<(Config, Predicted)>) -> Result<Fastest> {
    let mut ranked = ranked.into_iter();
    let Some((config, time)) = ranked.next() else {
        let reason = "none of its configurations fits";
        let none: Error =
            crate::product::unsupported(problem, "the cost model", reason, "segmented");
        return Err(none);
    };
    let other = ranked.find(|(other, _)| other.algorithm() != config.algorithm());
    Ok((config, time, other.map(|(other, time)| (other.algorithm(), time))))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gustav_core::{CsrView, DType};

    use super::*;

    /// What is chosen for rows of these lengths, each so many times.
    fn chosen(rows: &[(usize, usize)], dtype: DType) -> Config {
        let one = CsrView::<f32, u32, u32>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
        let number = rows.iter().map(|r| r.1).sum();
        let nnz = rows.iter().map(|(length, times)| length * times).sum();
        let plain = Problem::spmv(&one);
        let problem = Problem { rows: number, cols: 100_000, nnz, dtype, calls: 1000, ..plain };
        let profile = DeviceProfile {
            name: "a GPU".into(),
            units: 132,
            lanes: 32,
            l2_bytes: 50 << 20,
            llc_bytes: 50 << 20,
        };
        let lengths = rows.iter().flat_map(|&(length, times)| vec![length as u64; times]);
        let lengths = RowLengths::of(nnz, lengths);
        let segmented = segmented::configs(&problem).into_iter().map(Config::Segmented);
        let even_shares = even_shares::configs(&problem).into_iter().map(Config::EvenShares);
        let configs = segmented.chain(even_shares);
        let parameters = Parameters::of_gpus().spmv.fitted();
        let ranked = rank(&problem, &lengths, &profile, parameters, configs);
        assert!(ranked.iter().all(|(_, time)| time.us.is_finite() && time.us >= 0.0));
        first(&problem, ranked).expect("a configuration").0
    }

    #[test]
    fn lanes_follow_the_rows_and_skewed_rows_are_shared() {
        let lanes = |length, times| match chosen(&[(length, times)], DType::F32) {
            Config::Segmented(segmented::Config::InOrder(c)) => c.lanes,
            Config::Segmented(segmented::Config::Listed(c)) => c.subgroups,
            other => panic!("{other:?}"),
        };
        assert!(lanes(4, 1_000_000) <= 2);
        assert!(lanes(500, 20_000) >= 16);
        let skewed = [(2, 200_000), (9, 40_000), (90, 20_000)];
        assert_eq!(chosen(&skewed, DType::F32).algorithm(), Algorithm::EvenShares);
    }

    #[test]
    fn every_algorithm_is_chosen_for_some_rows() {
        let mut taken = BTreeMap::<_, usize>::new();
        for dtype in [DType::F16, DType::F32, DType::F64, DType::I32] {
            for bits in 0..14 {
                for times in [1, 100, 10_000, 500_000] {
                    for hubs in [0, 1, 50] {
                        let rows = [((1 << bits) - 1, times), (20_000, hubs)];
                        *taken.entry(chosen(&rows, dtype).algorithm().name()).or_default() += 1;
                    }
                }
            }
        }
        assert!(taken.len() == 2 && taken.values().all(|times| *times > 20), "{taken:?}");
    }
}
