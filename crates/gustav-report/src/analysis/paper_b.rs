//! The study of Chen, Chen, Shih, Lee, "Accelerating Sparse Matrix Multiplication", 2025, from
//! records of the suite `paper-b`.

use std::collections::{BTreeMap, BTreeSet};

use super::platform::Platform;
use crate::{Record, Status};

/// An algorithm that is in every round of the study and in no other.
const MARK: &str = "shared-row+csr";

/// The study's implementation on the CPU, timed on every number of threads.
pub(crate) const BASELINE: &str = "hash-rows";

/// The dense product on the CPU, on one thread.
const DENSE: &str = "dense-naive+cpu";

/// The pipeline and its baseline, without and with copying C back.
const PIPELINES: [(&str, &str); 2] = [
    ("pipeline", "convert-then-multiply"),
    ("pipeline+download", "convert-then-multiply+download"),
];

/// Where section 6.1 of the paper claims a visible gain of its pipeline: the fewest threads and
/// rows, and the sparsity in thousandths; and the gain that counts as visible here.
const REGIME_THREADS: usize = 8;
const REGIME_ROWS: usize = 8192;
const REGIME_SPARSITY: i64 = 850;
const VISIBLE: f64 = 1.1;

/// Range of conversion time over multiplication time in which the two count as similar.
const ALIKE: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// How messages end of times that were measured on some of the rows.
const SCALED: [&str; 2] = ["scaled up", "in proportion"];

/// Sparsity in thousandths, algorithm, N, and threads: 0 for algorithms that use none.
type Key<'a> = (i64, &'a str, usize, usize);

/// The study on one GPU.
pub(crate) struct PaperB<'a> {
    pub gpu: &'a str,
    /// Times in milliseconds.
    times: BTreeMap<Key<'a>, f64>,
    /// Quartiles of the times that were scaled up from some of the rows.
    quartiles: BTreeMap<Key<'a>, [f64; 2]>,
    /// Conversion over multiplication, of `convert-then-multiply`, with C copied back or not.
    conversions: BTreeMap<Key<'a>, f64>,
}

impl<'a> PaperB<'a> {
    /// The study on every GPU in the records.
    pub fn all(platforms: &'a [Platform]) -> Vec<Self> {
        let records: Vec<&Record> = platforms.iter().flat_map(|p| &p.records).collect();
        // Rounds of the study with their GPUs, as records of the CPU name none.
        let round = |r: &'a Record| (r.group, r.case.matrix.as_str());
        let marked = records.iter().filter(|r| r.algorithm == MARK);
        let gpus: BTreeMap<_, _> =
            marked.filter_map(|r| Some((round(r), r.gpu.as_ref()?.name.as_str()))).collect();
        let names: BTreeSet<&str> = gpus.values().copied().collect();
        let of = |gpu| {
            let own = records.iter().filter(|r| r.status == Status::Ok && r.case.dtype == "f32");
            PaperB::new(gpu, own.copied().filter(|r| gpus.get(&round(r)) == Some(&gpu)))
        };
        names.into_iter().map(of).collect()
    }

    fn new(gpu: &'a str, records: impl Iterator<Item = &'a Record>) -> Self {
        let mut latest = BTreeMap::<Key<'a>, &Record>::new();
        for r in records {
            let sparsity = (1000.0 * (1.0 - r.density())).round() as i64;
            let key = (sparsity, r.algorithm.as_str(), r.rows, r.threads);
            let found = latest.entry(key).or_insert(r);
            if r.group >= found.group {
                *found = r;
            }
        }
        let conversion = |r: &Record| {
            let sum = |name: &str| {
                let stages = r.timeline.iter().filter(|s| s.name.starts_with(name));
                stages.map(|s| s.end_ms - s.start_ms).sum::<f64>()
            };
            Some(sum("convert") / sum("multiply")).filter(|ratio| ratio.is_finite())
        };
        let sequential = latest.iter().filter(|(key, _)| PIPELINES.iter().any(|p| p.1 == key.1));
        let quartiles = |r: &Record| {
            let is_scaled =
                r.message.as_deref().is_some_and(|m| SCALED.iter().any(|s| m.ends_with(s)));
            is_scaled.then(|| Some([r.lower_ms?, r.upper_ms?])).flatten()
        };
        PaperB {
            gpu,
            quartiles: latest.iter().filter_map(|(k, r)| Some((*k, quartiles(r)?))).collect(),
            conversions: sequential.filter_map(|(k, r)| Some((*k, conversion(r)?))).collect(),
            times: latest.iter().filter_map(|(k, r)| Some((*k, r.execute_ms?))).collect(),
        }
    }

    /// Sparsities in thousandths.
    pub fn sparsities(&self) -> BTreeSet<i64> {
        self.times.keys().map(|key| key.0).collect()
    }

    pub fn sizes(&self) -> BTreeSet<usize> {
        self.times.keys().map(|key| key.2).collect()
    }

    /// Numbers of threads that the baseline was timed on.
    pub fn threads(&self) -> BTreeSet<usize> {
        self.times.keys().filter(|key| key.1 == BASELINE).map(|key| key.3).collect()
    }

    pub fn most_threads(&self) -> usize {
        self.times.keys().map(|key| key.3).max().unwrap_or(0)
    }

    /// The time of an algorithm: without threads, with `threads`, or with the one that it always has.
    pub fn time(&self, sparsity: i64, algorithm: &str, n: usize, threads: usize) -> Option<f64> {
        self.times.get(&self.key(sparsity, algorithm, n, threads)).copied()
    }

    /// The key of that time.
    fn key<'k>(&self, sparsity: i64, algorithm: &'k str, n: usize, threads: usize) -> Key<'k> {
        let without = (sparsity, algorithm, n, 0);
        match algorithm {
            DENSE => (sparsity, algorithm, n, 1),
            _ if self.times.contains_key(&without) => without,
            _ => (sparsity, algorithm, n, threads),
        }
    }

    /// The time of `base` over that of `ours`.
    pub fn gain(
        &self,
        [ours, base]: [&str; 2],
        sparsity: i64,
        n: usize,
        threads: usize,
    ) -> Option<f64> {
        Some(self.time(sparsity, base, n, threads)? / self.time(sparsity, ours, n, threads)?)
    }

    /// What that is at the quartiles of times that were scaled up; `None` where both were measured whole.
    pub fn gain_quartiles(
        &self,
        [ours, base]: [&str; 2],
        sparsity: i64,
        n: usize,
        threads: usize,
    ) -> Option<[f64; 2]> {
        let keys = [ours, base].map(|algorithm| self.key(sparsity, algorithm, n, threads));
        let [ours, base] = keys.map(|key| {
            let ms = self.times.get(&key)?;
            Some(self.quartiles.get(&key).copied().unwrap_or([*ms; 2]))
        });
        let is_scaled = keys.iter().any(|key| self.quartiles.contains_key(key));
        let ([fast, slow], [least, most]) = (ours?, base?);
        is_scaled.then_some([least / slow, most / fast])
    }

    /// Gains by N.
    pub fn gains(&self, pair: [&str; 2], sparsity: i64, threads: usize) -> Vec<(f64, f64)> {
        let gain = |n: usize| Some((n as f64, self.gain(pair, sparsity, n, threads)?));
        self.sizes().into_iter().filter_map(gain).collect()
    }

    /// What the paper claims of its pipeline, with the result of these records.
    pub fn claims(&self) -> Vec<(String, String)> {
        [self.regime(), self.alike()].into_iter().flatten().collect()
    }

    /// In how many cases the pipeline is visibly faster, within the paper's claimed range and
    /// outside it.
    fn regime(&self) -> Option<(String, String)> {
        // Cases with a visible gain and all cases, inside and outside the range.
        let mut counts = [[0; 2]; 2];
        let own = self.times.keys().filter(|key| key.1 == PIPELINES[0].0);
        for &(sparsity, ours, n, threads) in own {
            let Some(gain) = self.gain([ours, PIPELINES[0].1], sparsity, n, threads) else {
                continue;
            };
            let inside =
                threads >= REGIME_THREADS && n >= REGIME_ROWS && sparsity == REGIME_SPARSITY;
            let counts = &mut counts[usize::from(!inside)];
            counts[0] += usize::from(gain >= VISIBLE);
            counts[1] += 1;
        }
        let [[inside, of_inside], [outside, of_outside]] = counts;
        let claim = format!(
            "pipeline at least {VISIBLE} times as fast as convert-then-multiply with {REGIME_THREADS} \
             threads or more, N of {REGIME_ROWS} or more and 85% zeros or fewer"
        );
        let found = format!("{inside} of {of_inside} cases; {outside} of {of_outside} elsewhere");
        (of_inside + of_outside > 0).then_some((claim, found))
    }

    /// The gain of the pipeline where conversion and multiplication take similar time, and
    /// elsewhere.
    fn alike(&self) -> Option<(String, String)> {
        let mut gains = [Vec::new(), Vec::new()];
        for (&(sparsity, base, n, threads), ratio) in &self.conversions {
            let pair = PIPELINES.iter().find(|pair| pair.1 == base);
            let gain = pair.and_then(|p| self.gain([p.0, p.1], sparsity, n, threads));
            gains[usize::from(!ALIKE.contains(ratio))].extend(gain);
        }
        let said = gains.map(|gains| {
            let all = super::Ratios::of(&gains)?;
            let super::Ratios { count, geomean, worst, .. } = all;
            Some(format!("{geomean:.2} (geomean of {count}), {worst:.2} at least"))
        });
        let [Some(alike), Some(elsewhere)] = said else { return None };
        let claim = "pipeline over convert-then-multiply, with C copied back or not, where conversion \
                     takes half to twice as long as multiplication";
        Some((claim.into(), format!("{alike}; elsewhere {elsewhere}")))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::record::tests::record;
    use crate::{Gpu, Stage};

    /// Records of one round of the study on matrices of 8 threads.
    pub(crate) fn round(n: usize, zeros: f64, times: &[(&str, usize, f64)]) -> Vec<Record> {
        let gpu = Gpu { name: "a GPU".into(), ..Gpu::default() };
        let of = |&(algorithm, threads, ms): &(&str, usize, f64)| Record {
            rows: n,
            cols: n,
            nnz: (n as f64 * n as f64 * (1.0 - zeros)).round() as usize,
            group: n as u64,
            threads,
            execute_ms: Some(ms),
            gpu: (algorithm != BASELINE).then_some(gpu.clone()),
            ..record(&format!("sparse:{n}x{n},{zeros}"), "gustav", algorithm)
        };
        [(MARK, 0, 3.0)].iter().chain(times).map(of).collect()
    }

    #[test]
    fn the_regime_of_the_paper_is_counted_apart() {
        let stage = |name: &str, end_ms| Stage {
            lane: "CPU".into(),
            name: name.into(),
            start_ms: 1.0,
            end_ms,
        };
        let mut records = Vec::new();
        for (n, zeros, ms) in [(8192, 0.85, 12.0), (4096, 0.9, 12.0), (1024, 0.85, 10.5)] {
            let times = [("convert-then-multiply", 8, ms), ("pipeline", 8, 10.0)];
            let mut round = round(n, zeros, &times);
            round[1].timeline =
                vec![stage("convert B", 2.0), stage("convert A", ms - 8.0), stage("multiply", 2.5)];
            records.extend(round);
        }
        let platforms = Platform::all(&records);
        let claims = PaperB::all(&platforms)[0].claims();
        assert_eq!(claims[0].1, "1 of 1 cases; 1 of 2 elsewhere");
        // Conversion takes 4 and 2.5 ms, multiplication 1.5 ms.
        assert_eq!(
            claims[1].1,
            "1.05 (geomean of 1), 1.05 at least; elsewhere 1.20 (geomean of 2), 1.20 at least"
        );
    }
}
