//! Yang, Buluç, Owens 2018, §5.4: the mean row length decides between the paper's two kernels.

use crate::{Algorithm, RowStats};

/// Mean row length below which nonzero-split wins (Yang, Buluç, Owens 2018, §5.4, measured on
/// a Tesla K40c).
pub const THRESHOLD: f64 = 9.35;

/// The algorithm and the reason.
pub fn choose(stats: &RowStats) -> (Algorithm, String) {
    of_mean(stats.mean_row_length)
}

/// The same for a known mean row length.
pub fn of_mean(mean: f64) -> (Algorithm, String) {
    if mean < THRESHOLD {
        (Algorithm::NonzeroSplit, format!("mean row length {mean:.2} is below {THRESHOLD}"))
    } else {
        (Algorithm::RowSplit, format!("mean row length {mean:.2} is at least {THRESHOLD}"))
    }
}
