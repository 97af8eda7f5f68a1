//! When `b-stationary` pays: tiles of B stay in shared memory, and rows are cut into segments by
//! tile.

use gustav_core::Problem;

use super::{Tuning, may_reduce, segmented, vectors};
use crate::{Algorithm, DeviceProfile, RowLengths, TileReuse};

/// Fewest expected calls that repay cutting the rows.
const CALLS: u64 = 100;
/// Vectors of 16 bytes in a panel.
const PANEL: f64 = 32.0;
/// Fewest vectors of a panel: as many as cover all banks of shared memory.
const LEAST: f64 = 8.0;
/// Mean row length from which several panels pay, ...
const SEVERAL_PANELS_MEAN: f64 = 100.0;
/// ... and the microseconds of gathers that each of them needs.
const SEVERAL_PANELS_US: f64 = 100.0;
/// Mean row length from which a few rows read all of B; ...
const FEW_ROWS: f64 = 4096.0;
/// ... segments of this many nonzeros on average are then enough.
const SEGMENT_OF_FEW: f64 = 24.0;
/// Tiles for every multiprocessor from which the next one is prefetched while one is used.
const MANY: f64 = 1.5;
/// Most nonzeros of a segment: short ones, so that groups of lanes end at about the same time.
const LONGEST: u32 = 64;

/// Thresholds for values of one size.
struct Thresholds {
    /// Estimated microseconds of gathers from which one panel of [`PANEL`] vectors pays; ...
    panel_us: f64,
    /// ... for narrower panels multiplied by (vectors ÷ [`PANEL`]) to this power, ...
    panel_us_power: f64,
    /// ... and at least by this factor.
    panel_us_least: f64,
    /// The same threshold for a few rows that read all of B.
    few_rows_us: f64,
    /// Mean nonzeros of a segment from which one panel pays; ...
    segment: f64,
    /// ... for narrower panels multiplied by (vectors ÷ [`PANEL`]) to this power.
    segment_power: f64,
    /// When longer segments pay.
    longer: Option<Longer>,
}

/// Conditions for longer segments, if no tile is prefetched.
struct Longer {
    /// Most nonzeros of a segment.
    longest: u32,
    /// Least vectors of a row of B.
    vectors: f64,
    /// Least microseconds of gathers.
    gather_us: f64,
}

/// Thresholds for values of 2, 4 and 8 bytes.
const THRESHOLDS: [Thresholds; 3] = [
    Thresholds {
        panel_us: 84.0,
        panel_us_power: 0.25,
        panel_us_least: 0.5,
        few_rows_us: 20.0,
        segment: 65.0,
        segment_power: 0.85,
        longer: Some(Longer { longest: 128, vectors: 16.0, gather_us: 0.0 }),
    },
    Thresholds {
        panel_us: 100.0,
        panel_us_power: 0.25,
        panel_us_least: 0.5,
        few_rows_us: 40.0,
        segment: 12.0,
        segment_power: -0.37,
        longer: None,
    },
    Thresholds {
        panel_us: 72.0,
        panel_us_power: 2.0,
        panel_us_least: 0.25,
        few_rows_us: 40.0,
        segment: 12.0,
        segment_power: -0.37,
        longer: Some(Longer { longest: 128, vectors: 32.0, gather_us: 100.0 }),
    },
];

/// The tuning of `b-stationary`, if segments are long enough.
pub(super) fn tuning<E>(
    problem: &Problem,
    rows: &RowLengths,
    profile: &DeviceProfile,
    reuse: impl FnOnce() -> Result<TileReuse, E>,
) -> Result<Option<Tuning>, E> {
    if !lasts(problem, rows, profile) {
        return Ok(None);
    }
    let TileReuse { per_segment, tiles } = reuse()?;
    let of_panel = vectors(problem).min(PANEL) / PANEL;
    let thresholds = thresholds(problem);
    let mut least = thresholds.segment * of_panel.powf(thresholds.segment_power);
    if rows.mean_filled() >= FEW_ROWS {
        least = least.min(SEGMENT_OF_FEW);
    }
    if per_segment < least {
        return Ok(None);
    }
    Ok(Some(Tuning {
        reason: format!(
            "{tiles} tiles of B in shared memory, segments of {per_segment:.1} nonzeros on average: \
             tiles stay, segments of rows stream past"
        ),
        ..b_stationary(problem, tiles, profile)
    }))
}

/// The tuning of `b-stationary` for `tiles` tiles of B; `reason` is empty.
pub fn b_stationary(problem: &Problem, tiles: u64, profile: &DeviceProfile) -> Tuning {
    let stages = if tiles as f64 >= MANY * profile.units as f64 { 2 } else { 1 };
    let gathers = segmented::microseconds(problem, profile);
    let fits = |l: &&Longer| vectors(problem) >= l.vectors && gathers >= l.gather_us && stages == 1;
    let longest = thresholds(problem).longer.as_ref().filter(fits).map_or(LONGEST, |l| l.longest);
    Tuning { longest: Some(longest), stages, ..Tuning::of(Algorithm::BStationary) }
}

/// Whether one panel has all columns of B.
pub(super) fn has_one_panel(problem: &Problem) -> bool {
    vectors(problem) <= PANEL
}

/// Whether partial sums may be added in any order, and the product takes long enough to repay copying tiles first.
fn lasts(problem: &Problem, rows: &RowLengths, profile: &DeviceProfile) -> bool {
    let bytes = problem.dtype.bytes();
    let vectors = vectors(problem);
    let whole = (problem.columns * bytes).is_multiple_of(16) && vectors >= LEAST;
    if !may_reduce(problem) || !whole || problem.calls < CALLS {
        return false;
    }
    let gathers = segmented::microseconds(problem, profile);
    let mean = rows.mean_filled();
    let panels = (vectors / PANEL).ceil();
    let t = thresholds(problem);
    match panels > 1.0 {
        true => mean >= SEVERAL_PANELS_MEAN && gathers >= SEVERAL_PANELS_US * panels,
        false if mean >= FEW_ROWS => gathers >= t.few_rows_us,
        false => {
            let part = (vectors / PANEL).powf(t.panel_us_power).max(t.panel_us_least);
            gathers >= t.panel_us * part
        }
    }
}

fn thresholds(problem: &Problem) -> &'static Thresholds {
    &THRESHOLDS[problem.dtype.bytes().ilog2() as usize - 1]
}
