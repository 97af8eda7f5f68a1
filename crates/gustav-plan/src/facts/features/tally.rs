//! Statistics of integers that do not depend on the order in which they are added.

use super::Summary;

/// Count, sum, smallest and largest.
#[derive(Clone, Copy)]
pub(super) struct Tally {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl Tally {
    pub const NONE: Tally = Tally { count: 0, sum: 0, min: u64::MAX, max: 0 };

    #[inline(always)]
    pub fn add(&mut self, value: u64) {
        *self = self.with(Tally { count: 1, sum: value, min: value, max: value });
    }

    #[inline(always)]
    pub fn with(self, other: Tally) -> Tally {
        Tally {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// Adds values below 2³¹, fewer than 2³² of them.
    #[inline(always)]
    pub fn add_all(&mut self, values: impl ExactSizeIterator<Item = u32>) {
        let count = values.len() as u64;
        if count == 0 {
            return;
        }
        let (mut sum, mut min, mut max) = (0u64, i32::MAX, 0i32);
        for value in values {
            sum += u64::from(value);
            min = min.min(value as i32);
            max = max.max(value as i32);
        }
        *self = self.with(Tally { count, sum, min: min as u64, max: max as u64 });
    }

    pub fn of(values: impl Iterator<Item = u64>) -> Tally {
        values.fold(Tally::NONE, |mut all, value| {
            all.add(value);
            all
        })
    }

    pub fn summary(self, scale: f64) -> Summary {
        if self.count == 0 {
            return Summary::default();
        }
        let mean = self.sum as f64 / self.count as f64;
        Summary { min: self.min as f64 * scale, mean: mean * scale, max: self.max as f64 * scale }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_counts_add_up() {
        let most = i32::MAX as u32;
        let mut tally = Tally::NONE;
        tally.add_all([most; 9].into_iter());
        tally.add_all([1].into_iter());
        let Summary { min, mean, max } = tally.summary(1.0);
        assert_eq!((min, max), (1.0, f64::from(most)));
        assert_eq!(mean, (9.0 * f64::from(most) + 1.0) / 10.0);
    }
}
