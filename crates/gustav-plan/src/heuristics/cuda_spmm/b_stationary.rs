//! When tiles of B in shared memory pay for cutting rows at them.

use gustav_core::Problem;

use super::{Way, may_reduce, segmented, vectors};
use crate::{Algorithm, DeviceProfile, RowLengths, TileReuse};

/// Calls that pay for cutting rows at tiles.
const CALLS: u64 = 100;
/// Vectors of 16 bytes in a panel.
const PANEL: f64 = 32.0;
/// The least of them that fill the banks of shared memory.
const LEAST: f64 = 8.0;
/// Microseconds of gathering from which on one whole panel pays, and how that grows with its vectors, from
/// the last part of it on: of values of 2, 4 and 8 bytes.
const LASTING: [(f64, f64, f64); 3] = [(84.0, 0.25, 0.5), (100.0, 0.25, 0.5), (72.0, 2.0, 0.25)];
/// Nonzeros of a piece, on average, from which on a whole panel pays, and how that changes with its vectors.
const PIECE: [(f64, f64); 3] = [(65.0, 0.85), (12.0, -0.37), (12.0, -0.37)];
/// The mean row length from which on several panels pay, of which every one has to last as long as one of
/// so many microseconds does.
const LONG: (f64, f64) = (100.0, 100.0);
/// Where the mean row is as long, a few rows share all of B: one panel pays from as many microseconds of
/// gathering on, of values of 2 bytes and of more, and pieces of so many nonzeros are enough.
const FEW_ROWS: f64 = 4096.0;
const LASTING_OF_FEW: (f64, f64) = (20.0, 40.0);
const PIECE_OF_FEW: f64 = 24.0;
/// Tiles for every multiprocessor from which on the next one is on its way while one is used.
const MANY: f64 = 1.5;
/// Nonzeros of a piece at most, so that groups of lanes end at about the same time: by types, in rows of B of
/// so many vectors on and where gathering takes so many microseconds, while no tile is on its way.
const LONGEST: (u32, u32) = (128, 64);
const LONGER: [Option<(f64, f64)>; 3] = [Some((16.0, 0.0)), None, Some((32.0, 100.0))];

/// The way of `b-stationary`, where pieces of rows are long enough.
pub(super) fn way<E>(
    problem: &Problem,
    rows: &RowLengths,
    profile: &DeviceProfile,
    reuse: impl FnOnce() -> Result<TileReuse, E>,
) -> Result<Option<Way>, E> {
    if !lasts(problem, rows, profile) {
        return Ok(None);
    }
    let TileReuse { per_piece, tiles } = reuse()?;
    let of_panel = vectors(problem).min(PANEL) / PANEL;
    let (whole, power) = PIECE[kind(problem)];
    let mut least = whole * of_panel.powf(power);
    if rows.mean_filled() >= FEW_ROWS {
        least = least.min(PIECE_OF_FEW);
    }
    if per_piece < least {
        return Ok(None);
    }
    Ok(Some(Way {
        reason: format!(
            "{tiles} tiles of B in shared memory, of which a row meets each by {per_piece:.1} nonzeros: \
             tiles stay, pieces of rows stream past"
        ),
        ..b_stationary(problem, tiles, profile)
    }))
}

/// The way of `b-stationary` over so many tiles of B, with nothing said for it.
pub fn b_stationary(problem: &Problem, tiles: u64, profile: &DeviceProfile) -> Way {
    let ahead = if tiles as f64 >= MANY * profile.units as f64 { 2 } else { 1 };
    let gathers = segmented::microseconds(problem, profile);
    let longer = LONGER[kind(problem)]
        .is_some_and(|(wide, lasting)| vectors(problem) >= wide && gathers >= lasting);
    let longest = if longer && ahead == 1 { LONGEST.0 } else { LONGEST.1 };
    Way { longest: Some(longest), ahead, ..Way::of(Algorithm::BStationary) }
}

/// Whether a panel of B has all its columns.
pub(super) fn has_one_panel(problem: &Problem) -> bool {
    vectors(problem) <= PANEL
}

/// Whether parts of rows may be added as they come, and enough is gathered for tiles to be brought first.
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
    let (lasting, power, part) = LASTING[kind(problem)];
    match panels > 1.0 {
        true => mean >= LONG.0 && gathers >= LONG.1 * panels,
        false if mean >= FEW_ROWS => {
            gathers >= if bytes == 2 { LASTING_OF_FEW.0 } else { LASTING_OF_FEW.1 }
        }
        false => gathers >= lasting * (vectors / PANEL).powf(power).max(part),
    }
}

/// Place of a type in tables: of 2, 4 and 8 bytes.
fn kind(problem: &Problem) -> usize {
    problem.dtype.bytes().ilog2() as usize - 1
}
