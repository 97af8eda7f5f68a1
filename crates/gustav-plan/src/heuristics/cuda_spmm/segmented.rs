//! The tuning of `segmented`: how rows are cut, and how many lanes a segment has.

mod copies;
mod facts;

use gustav_core::Problem;

use self::facts::{Cut, Facts, SEVERAL_WIDTH};
use super::{Tuning, vectors};
use crate::{Algorithm, DeviceProfile, RowLengths};

/// Approximate gather bandwidth of one multiprocessor from L2, in bytes per second.
const GATHERED: f64 = 53e9;
/// Microseconds below which a product is short, too short to gain from many threads, with 64 columns in f32; ...
const SHORT_PRODUCT: f64 = 49.4;
/// ... proportional to the width of B to this power.
const SHORT_PRODUCT_WIDTH: f64 = -0.25;
/// If a warp for every whole row fills more than this fraction of a full device, a lane reads a whole cache line, ...
const LINES_FILL: f64 = 1.4;
/// ... provided that the mean row length is at least this, or B has few columns.
const LINES_MEAN: f64 = 200.0;
/// Mean row length below which rows of B are copied to shared memory: for rows in their order ...
const STAGED: f64 = 5.8;
/// ... and for a list; ...
const STAGED_LISTED: f64 = 13.0;
/// ... for a list if rows of B come from memory, not L2; ...
const STAGED_FAR: f64 = 24.0;
/// ... and in that case if several segments per group are possible.
const STAGED_FAR_SEVERAL: f64 = 9.5;
/// Size of B ÷ size of L2 above which rows of B come from memory.
const FAR: f64 = 3.0;
/// Size of B ÷ size of L2 from which rows of 8-byte values in a list are copied to shared memory as well.
const STAGED_WIDE: f64 = 0.4;
/// For rows in a row order: mean row length from which several segments per group gain more than copies; ...
const ORDERED: f64 = 4.5;
/// ... below this, rows in a list have whole batches in flight.
const ORDERED_LISTED: f64 = 3.0;
/// Lanes of a group with several segments; it holds one nonzero of A per lane.
const SEVERAL_LANES: u32 = 16;
/// Threads of a CTA with several segments per group.
const SEVERAL_BLOCK: u32 = 128;
/// Loads of a lane with several segments per group.
#[derive(Clone, Copy)]
struct SeveralLoads {
    /// Nonzeros whose rows of B are in flight.
    in_flight: u32,
    /// Threads of a multiprocessor that registers allow.
    threads: u32,
}
const SEVERAL_LOADS: SeveralLoads = SeveralLoads { in_flight: 4, threads: 768 };
/// The same for 16-bit values where the product takes long.
const SEVERAL_LOADS_CROWDED: SeveralLoads = SeveralLoads { in_flight: 2, threads: 1024 };

/// The tuning of `segmented`.
pub fn segmented(problem: &Problem, rows: &RowLengths, profile: &DeviceProfile) -> Tuning {
    let facts = Facts::new(problem, rows, profile);
    let Facts { vectors, wide, cut, .. } = facts;
    let subgroups = facts.subgroups();
    let many_loads = facts.many_loads(subgroups);
    let in_order = cut == Cut::InOrder;
    // Whether lanes read whole cache lines.
    let lines = facts.narrow()
        && subgroups > 1
        && facts.filled(subgroups)
        && facts.warps >= LINES_FILL * facts.full
        && (facts.mean >= LINES_MEAN || facts.slender());
    let far = size_of_b(problem) > FAR * profile.l2_bytes as f64;
    let staged = match in_order {
        true => STAGED,
        false if far && facts.several_segments(subgroups) && facts.several_by_many_threads() => 0.0,
        false if far && facts.several_segments(subgroups) && !facts.slow_sums => STAGED_FAR_SEVERAL,
        false if far => STAGED_FAR,
        false => STAGED_LISTED,
    };
    let large = size_of_b(problem) >= STAGED_WIDE * profile.l2_bytes as f64;
    let short = facts.mean < staged || large && facts.wide_list(subgroups);
    let stages = !many_loads && !facts.uneven() && facts.may_copy() && short;
    // Rows of B that come from memory are copied instead: more copies than loads can be in flight.
    let several_segments = facts.several_segments(subgroups) && !(stages && far);
    let crowded_loads = facts.several_by_many_threads();
    let loads = if crowded_loads { SEVERAL_LOADS_CROWDED } else { SEVERAL_LOADS };
    let copies = stages && !several_segments;
    let longest = facts.longest(subgroups, many_loads, several_segments);
    let crowded = cut != Cut::Starved && f64::from(subgroups) * vectors > 64.0;
    let tuning = Tuning {
        subgroups: if lines { 4 } else { subgroups },
        chunk: match (many_loads, lines) {
            _ if several_segments => loads.in_flight,
            (true, _) => facts.in_flight(subgroups),
            (false, true) => 4,
            _ => 2,
        },
        segments_per_group: if several_segments { 2 } else { 1 },
        prefetch_a: match many_loads || facts.one_wave(subgroups) {
            true => subgroups > 2 && vectors <= 16.0 && (in_order || facts.slow_sums),
            false => wide && subgroups > 1,
        },
        longest: (!in_order).then_some(longest),
        first: facts.first(longest, several_segments, copies),
        lanes: if several_segments {
            SEVERAL_LANES
        } else {
            facts.most_lanes(subgroups, many_loads)
        },
        tiles: if lines { 1 } else { 2 },
        block: if several_segments { SEVERAL_BLOCK } else { 64 },
        threads: match (many_loads, wide) {
            _ if several_segments => loads.threads,
            // Subgroups of few lanes hold many tiles, and wide values take many registers.
            (true, _) if facts.shared_by_warps(subgroups) || facts.few_loads(subgroups) => 1024,
            (true, _) if (wide || crowded) && !facts.wide_fits(subgroups) => 384,
            (true, _) => 640,
            (false, false) if facts.ragged() => 1536,
            (false, _) => 1024,
        },
        ..Tuning::of(Algorithm::Segmented)
    };
    let tuning = if copies { facts.copied(tuning, far) } else { tuning };
    with_reason(
        &facts,
        if facts.paired(subgroups) {
            Tuning { subgroups: 2, chunk: 2, threads: 1024, ..tuning }
        } else {
            tuning
        },
    )
}

/// The tuning of `segmented` for rows as stored: only parts of cut rows are moved to the front.
pub fn segmented_as_stored(
    problem: &Problem,
    rows: &RowLengths,
    profile: &DeviceProfile,
) -> Tuning {
    let tuning = segmented(problem, rows, profile);
    with_reason(&Facts::new(problem, rows, profile), Tuning { window: 1, ..tuning })
}

/// The tuning of `segmented` for rows in a row order. `grown` means that the order consists of
/// blocks of rows that read the same rows of B, which a CTA with several segments per group reuses
/// in L1.
pub fn segmented_in_order(
    problem: &Problem,
    rows: &RowLengths,
    profile: &DeviceProfile,
    grown: bool,
) -> Tuning {
    let tuning = segmented(problem, rows, profile);
    let facts = Facts::new(problem, rows, profile);
    if let Some((lanes, tiles)) = facts.tall()
        && !facts.slow_sums
        && !facts.wide
    {
        let copied = Tuning { lanes, tiles, segments_per_group: 1, block: 64, ..tuning.clone() };
        if tuning.longest.is_none() && tuning.stages > 0 && facts.mean < ORDERED {
            return with_reason(&facts, Tuning { stages: 2, chunk: 1, threads: 1280, ..copied });
        }
        if let Some(longest) = tuning.longest
            && grown
            && facts.mean < ORDERED_LISTED
        {
            let first = facts.first(longest, false, true);
            return with_reason(
                &facts,
                Tuning { stages: 1, chunk: 4, threads: 768, first, ..copied },
            );
        }
    }
    let tuning = match (tuning.segments_per_group, tuning.longest) {
        (1, None)
            if tuning.subgroups == 1
                && facts.may_take_several()
                && facts.vectors >= SEVERAL_WIDTH =>
        {
            Tuning {
                chunk: if facts.slow_sums { 2 } else { 3 },
                segments_per_group: 4,
                prefetch_b: true,
                stages: 0,
                prefetch_a: false,
                lanes: SEVERAL_LANES,
                tiles: 2,
                threads: 1024,
                block: SEVERAL_BLOCK,
                ..tuning
            }
        }
        (2.., Some(_)) if grown => {
            let SeveralLoads { in_flight: chunk, threads } = SEVERAL_LOADS;
            Tuning { segments_per_group: 4, window: 32, chunk, threads, ..tuning }
        }
        _ => tuning,
    };
    with_reason(&facts, tuning)
}

/// `tuning` with its reason.
fn with_reason(facts: &Facts<'_>, tuning: Tuning) -> Tuning {
    let (mean, most, subgroups) = (facts.rows.mean(), facts.rows.max(), tuning.subgroups);
    let few =
        if subgroups > 1 { format!(", shared by {subgroups} subgroups") } else { String::new() };
    let cut = match (facts.cut, tuning.longest) {
        (Cut::InOrder, _) | (_, None) => "taken whole and in order".to_owned(),
        (Cut::Whole, _) => "taken whole".into(),
        (_, Some(longest)) => format!("cut at {longest}"),
    };
    let list = match (tuning.longest, tuning.window, tuning.segments_per_group) {
        (None, ..) => "",
        (_, 1, 2..) => ", parts first, the others as stored and several per group",
        (_, 1, _) => ", parts first, the others as stored",
        (_, _, 2..) => ", long ones first, the others several per group",
        _ => ", long ones first",
    };
    let reason = format!("rows of {mean:.1} nonzeros on average, {most} at most: {cut}{list}{few}");
    Tuning { reason, ..tuning }
}

/// Whether a product of 16-bit values is too short for the searches of `even-shares`.
pub(super) fn is_quick(problem: &Problem, profile: &DeviceProfile) -> bool {
    problem.dtype.bytes() == 2
        && microseconds(problem, profile) < longest_short_product(vectors(problem))
}

/// Estimated microseconds of the gathers.
pub(super) fn microseconds(problem: &Problem, profile: &DeviceProfile) -> f64 {
    let bytes = problem.nnz as f64 * (problem.columns * problem.dtype.bytes()) as f64;
    bytes / (profile.units as f64 * GATHERED) * 1e6
}

/// Longest short product in microseconds.
fn longest_short_product(vectors: f64) -> f64 {
    SHORT_PRODUCT * (vectors / 16.0).powf(SHORT_PRODUCT_WIDTH)
}

/// Whether B is so much larger than L2 that panels of its columns repay reading A several times.
fn panels_pay(problem: &Problem, profile: &DeviceProfile) -> bool {
    problem.columns > 128 && size_of_b(problem) > 2.0 * profile.l2_bytes as f64
}

/// Whether B stays in L2 beside the other operands.
fn near(problem: &Problem, profile: &DeviceProfile) -> bool {
    size_of_b(problem) <= 0.5 * profile.l2_bytes as f64
}

/// Bytes of B.
fn size_of_b(problem: &Problem) -> f64 {
    problem.inner() as f64 * (problem.columns * problem.dtype.bytes()) as f64
}
