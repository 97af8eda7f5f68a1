//! When tiles of B in shared memory pay for cutting rows at them.

use gustav_core::{Problem, SemiringKind};

use super::{Way, segmented, vectors};
use crate::{Algorithm, DeviceProfile, RowLengths, TileReuse};

/// Calls that pay for cutting rows at tiles.
const CALLS: u64 = 100;
/// Vectors of 16 bytes in a panel.
const PANEL: f64 = 32.0;
/// The least of them that fill the banks of shared memory.
const LEAST: f64 = 8.0;
/// Microseconds of gathering from which on one panel of so many vectors pays, and how that grows with them.
const LASTING: (f64, f64) = (100.0, 0.25);
/// Nonzeros of a piece, on average, from which on it pays, and how that falls with the vectors of a panel.
const PIECE: (f64, f64) = (12.0, 0.37);
/// The mean row length from which on several panels pay.
const LONG: f64 = 100.0;
/// Where the mean row is as long, a few rows share all of B: one panel pays from as many microseconds of
/// gathering on, of 4 or 8 bytes and of 2, which gain nothing elsewhere.
const FEW_ROWS: f64 = 4096.0;
const LASTING_OF_FEW: (f64, f64) = (40.0, 100.0);
/// Tiles for every multiprocessor from which on the next one is on its way while one is used.
const MANY: f64 = 1.5;
/// Nonzeros of a piece at most: groups of lanes end at about the same time.
const LONGEST: u32 = 64;

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
    let narrow = vectors(problem).min(PANEL);
    if per_piece < PIECE.0 * (PANEL / narrow).powf(PIECE.1) {
        return Ok(None);
    }
    let ahead = if tiles as f64 >= MANY * profile.units as f64 { 2 } else { 1 };
    Ok(Some(Way {
        longest: Some(LONGEST),
        ahead,
        reason: format!(
            "{tiles} tiles of B in shared memory, of which a row meets each by {per_piece:.1} nonzeros: \
             tiles stay, pieces of rows stream past"
        ),
        ..Way::of(Algorithm::BStationary)
    }))
}

/// Whether parts of rows may be added as they come, and enough is gathered for tiles to be brought first.
fn lasts(problem: &Problem, rows: &RowLengths, profile: &DeviceProfile) -> bool {
    let bytes = problem.dtype.bytes();
    let reduces = problem.semiring == SemiringKind::PlusTimes
        && !problem.deterministic
        && !problem.dtype.is_integer();
    let vectors = vectors(problem);
    let whole = (problem.columns * bytes).is_multiple_of(16) && vectors >= LEAST;
    if !reduces || !whole || problem.calls < CALLS {
        return false;
    }
    let gathers = segmented::microseconds(problem, profile);
    let mean = rows.mean_filled();
    let panels = (vectors / PANEL).ceil();
    match panels > 1.0 {
        true => bytes > 2 && mean >= LONG && gathers >= LASTING.0 * panels,
        false if mean >= FEW_ROWS => {
            gathers >= if bytes == 2 { LASTING_OF_FEW.1 } else { LASTING_OF_FEW.0 }
        }
        false => bytes > 2 && gathers >= LASTING.0 * (vectors / PANEL).powf(LASTING.1),
    }
}
