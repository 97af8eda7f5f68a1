//! Features from a sample of the rows, with estimates of their errors.

use gustav_core::{Error, Index, PatternView, Result};

use super::count::{Counts, Lengths};
use super::{Features, Summary};
use crate::mix::mix;
use crate::orders::WarpShape;

/// Features estimated from some of the rows.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct SampledFeatures {
    /// The estimates. Row lengths and warp loads are exact, because they need the row offsets
    /// alone; minima and maxima of the others are those of the sample.
    pub features: Features,
    /// For each value in the order of [`Features::NAMES`], half of the difference between two
    /// estimates from one half of the sample each: one standard error of a mean. Distinct lines are
    /// not proportional to rows; for them, if larger, the error of extrapolating from a half to the
    /// whole sample, times the number of doublings from the sample to all rows. Errors that a
    /// sample cannot show are not included, such as a single row unlike all others, or lines that
    /// only nearby rows share.
    pub errors: [f64; Features::COUNT],
    /// Rows in the sample.
    pub rows: usize,
}

impl SampledFeatures {
    /// The features of `a` from about `rows` rows: one group of Nw consecutive rows from each of
    /// several equal ranges of rows, the same groups in every call; all rows, exactly, if `rows` is
    /// at least half of them.
    ///
    /// # Errors
    /// [`Error::Argument`] for 0 rows or a shape with a 0, [`Error::Overflow`] as
    /// [`Features::new`], [`Error::OutOfMemory`].
    pub fn new<I: Index, O: Index>(
        a: &PatternView<'_, I, O>,
        shape: WarpShape,
        rows: usize,
    ) -> Result<Self> {
        if rows == 0 {
            return Err(Error::Argument {
                name: "rows of a sample",
                found: "0".into(),
                expected: "at least 1".into(),
            });
        }
        let warps = shape.check()?.warps;
        // Whole groups only; two halves need two of them.
        let groups = a.nrows() / warps;
        let taken = rows.div_ceil(warps).max(2).next_multiple_of(2);
        if taken >= groups / 2 {
            let features = Features::new(a, shape)?;
            return Ok(SampledFeatures {
                features,
                errors: [0.0; Features::COUNT],
                rows: a.nrows(),
            });
        }
        // Group k of the sample; groups belong to the two halves alternately. Groups at
        // pseudorandom positions, because equal distances could hit rows of one kind in a periodic
        // matrix.
        let stretch = |k: usize| (groups as u128 * k as u128 / taken as u128) as usize;
        let start = |k: usize| {
            let (first, end) = (stretch(k), stretch(k + 1));
            (first + (mix(k as u64, 0) % (end - first) as u64) as usize) * warps
        };
        let half = |which: usize| {
            Counts::of_groups(a, shape, taken / 2, |k| {
                let first = start(2 * k + which);
                first..first + warps
            })
        };
        let (mut first, second) = (half(0)?, half(1)?);
        let exact = Lengths::new(a, shape)?;
        let of = |counts: &Counts| estimate(a, counts, &exact);
        let (one, other) = (of(&first).values(), of(&second).values());
        let halves = [Distinct::new(a, &first, &exact), Distinct::new(a, &second, &exact)];
        first.add(&[second]);
        let features = of(&first);
        let seen = Distinct::new(a, &first, &exact).distinct.mean;
        let foreseen = halves.map(|half| half.among(2.0).mean / seen.max(1.0) - 1.0);
        let doublings = (a.nrows() as f64 / first.rows as f64).log2();
        let growth = doublings * (foreseen[0].abs() + foreseen[1].abs()) / 2.0;
        let error = |k: usize| {
            let of_mean = (one[k] - other[k]).abs() / 2.0;
            match Features::NAMES[k].starts_with("distinct") {
                true => of_mean.max(growth * features.values()[k]),
                false => of_mean,
            }
        };
        Ok(SampledFeatures { features, errors: std::array::from_fn(error), rows: first.rows })
    }
}

fn estimate<I: Index, O: Index>(
    a: &PatternView<'_, I, O>,
    counts: &Counts,
    lengths: &Lengths,
) -> Features {
    let scale = a.nrows() as f64 / counts.rows as f64;
    let distinct_cache_lines_per_warp = Distinct::new(a, counts, lengths).among(scale);
    Features { distinct_cache_lines_per_warp, ..counts.features(a, scale, lengths) }
}

/// Distinct cache lines among the requests of a warp.
struct Distinct {
    lines: f64,
    total: Summary,
    distinct: Summary,
}

impl Distinct {
    fn new<I: Index, O: Index>(
        a: &PatternView<'_, I, O>,
        counts: &Counts,
        lengths: &Lengths,
    ) -> Self {
        let found = counts.features(a, 1.0, lengths);
        Distinct {
            lines: counts.cache_lines() as f64,
            total: found.total_cache_lines_per_warp,
            distinct: found.distinct_cache_lines_per_warp,
        }
    }

    /// Distinct lines of `scale` times as many requests, extrapolated by a model of requests to
    /// random lines. The ratio of the counted lines to the model is assumed constant: it is smaller
    /// where neighbouring rows share lines.
    fn among(&self, scale: f64) -> Summary {
        let lines = self.lines;
        let anywhere = |requests: f64| lines * (1.0 - (-requests / lines.max(1.0)).exp());
        let grown = |total: f64, distinct: f64| match anywhere(total) {
            0.0 => 0.0,
            expected => (anywhere(scale * total) * distinct / expected).min(lines),
        };
        Summary {
            min: grown(self.total.min, self.distinct.min),
            mean: grown(self.total.mean, self.distinct.mean),
            max: grown(self.total.max, self.distinct.max),
        }
    }
}
