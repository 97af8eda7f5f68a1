//! Statistics of ratios and times; an average is always shown with its spread.

use std::cmp::Ordering;

/// Ratios of times, peer over Gustav: Gustav is faster if above 1.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Ratios {
    /// Cases with a ratio.
    pub count: usize,
    /// Geometric mean.
    pub geomean: f64,
    /// Smallest.
    pub worst: f64,
    /// Largest.
    pub best: f64,
    /// Fraction of the cases below 1.
    pub lost: f64,
}

impl Ratios {
    /// The statistics of `ratios`; `None` when there are none.
    pub fn of(ratios: &[f64]) -> Option<Self> {
        let count = ratios.len();
        if count == 0 {
            return None;
        }
        let lost = ratios.iter().filter(|r| **r < 1.0).count();
        Some(Ratios {
            count,
            geomean: (ratios.iter().map(|r| r.ln()).sum::<f64>() / count as f64).exp(),
            worst: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            best: ratios.iter().copied().fold(0.0, f64::max),
            lost: lost as f64 / count as f64,
        })
    }

    /// The statistics over patterns, of ratios with the names of their patterns. A matrix and copies
    /// of it count once: in the geomean by the mean of their logarithms, in the worst, in the best
    /// and among the lost by either.
    pub fn of_patterns<'a>(ratios: impl IntoIterator<Item = (&'a str, f64)>) -> Option<Self> {
        let all: Vec<_> =
            grouped(ratios).iter().filter_map(|(_, ratios)| Ratios::of(ratios)).collect();
        let geomeans: Vec<_> = all.iter().map(|r| r.geomean).collect();
        let over = Ratios::of(&geomeans)?;
        let worst: Vec<_> = all.iter().map(|r| r.worst).collect();
        let Ratios { worst, lost, .. } = Ratios::of(&worst)?;
        let best = all.iter().map(|r| r.best).fold(0.0, f64::max);
        Some(Ratios { worst, best, lost, ..over })
    }

    /// The same with `failed` cases on which Gustav failed and a peer did not. They count as lost,
    /// and the worst is 0. The geometric mean leaves them out.
    #[must_use]
    pub fn with_failed(self, failed: usize) -> Self {
        let count = self.count + failed;
        let lost = (self.lost * self.count as f64 + failed as f64) / count as f64;
        let worst = if failed > 0 { 0.0 } else { self.worst };
        Ratios { count, lost, worst, ..self }
    }
}

/// The `q`-quantile of `values`, interpolated linearly between neighbours.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    Some(sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64))
}

/// The points of the cumulative distribution of `values`, in percent.
pub(crate) fn distribution(mut values: Vec<f64>) -> Vec<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    values.into_iter().enumerate().map(|(k, v)| (v, 100.0 * (k + 1) as f64 / count)).collect()
}

/// The 5th, 25th, 50th, 75th and 95th percentile.
pub(crate) fn percentiles(values: &[f64]) -> Option<[f64; 5]> {
    let of = |q| quantile(values, q);
    Some([of(0.05)?, of(0.25)?, of(0.5)?, of(0.75)?, of(0.95)?])
}

/// How many of `values` lie in each of the bins with these upper ends.
pub(crate) fn histogram(bins: &[(f64, &str)], values: impl Iterator<Item = f64>) -> Vec<usize> {
    let mut counts = vec![0; bins.len()];
    for value in values {
        counts[bins.iter().position(|(end, _)| value <= *end).unwrap_or(bins.len() - 1)] += 1;
    }
    counts
}

/// Groups of values by key, in the order of the keys.
pub(crate) type Groups<K, V> = Vec<(K, Vec<V>)>;

/// Values by key. A `BTreeMap` would be compiled again for each type of key and value, several
/// thousand lines each.
pub(crate) fn grouped<K: Ord, V>(values: impl IntoIterator<Item = (K, V)>) -> Groups<K, V> {
    let (keys, mut values): (Vec<K>, Vec<Option<V>>) =
        values.into_iter().map(|(key, value)| (key, Some(value))).unzip();
    let order = order(keys.len(), &|a, b| keys[a].cmp(&keys[b]));
    let mut keys: Vec<Option<K>> = keys.into_iter().map(Some).collect();
    let mut groups = Groups::new();
    for k in order {
        let (Some(key), Some(value)) = (keys[k].take(), values[k].take()) else { continue };
        match groups.last_mut() {
            Some((last, own)) if *last == key => own.push(value),
            _ => groups.push((key, vec![value])),
        }
    }
    groups
}

/// A stable sort of the numbers below `count`.
fn order(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

/// Values by two keys, in the order of both.
pub(crate) fn grouped_twice<K: Ord, L: Ord, V>(
    values: impl IntoIterator<Item = (K, L, V)>,
) -> Vec<(K, Groups<L, V>)> {
    let pairs = values.into_iter().map(|(key, second, value)| (key, (second, value)));
    grouped(pairs).into_iter().map(|(key, own)| (key, grouped(own))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_count_with_their_matrix() {
        let ratios = [("a", 4.0), ("b", 2.0), ("b", 0.5), ("c", 0.25)];
        let all = Ratios::of_patterns(ratios).unwrap();
        assert_eq!((all.count, all.geomean), (3, 1.0));
        assert_eq!((all.worst, all.best, all.lost), (0.25, 4.0, 2.0 / 3.0));
        assert_eq!(Ratios::of_patterns([]), None);
    }

    #[test]
    fn ratios_of_two_and_a_half_have_mean_one() {
        let r = Ratios::of(&[2.0, 0.5]).unwrap();
        assert!((r.geomean - 1.0).abs() < 1e-12);
        assert_eq!((r.count, r.worst, r.best, r.lost), (2, 0.5, 2.0, 0.5));
        let r = r.with_failed(2);
        assert_eq!((r.count, r.worst, r.lost, r.geomean), (4, 0.0, 0.75, 1.0));
        assert_eq!(Ratios::of(&[]), None);
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(quantile(&[4.0, 1.0], 0.5), Some(2.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25), Some(2.0));
    }

    #[test]
    fn a_distribution_ends_at_all() {
        assert_eq!(distribution(vec![3.0, 1.0]), [(1.0, 50.0), (3.0, 100.0)]);
        assert_eq!(percentiles(&[1.0, 2.0, 3.0]).unwrap()[2], 2.0);
        assert_eq!(percentiles(&[]), None);
        let bins = [(1.0, "up to 1"), (f64::INFINITY, "over 1")];
        assert_eq!(histogram(&bins, [0.5, 1.0, 2.0].into_iter()), [2, 1]);
    }
}
