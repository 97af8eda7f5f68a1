//! How `segmented` cuts rows, and how many lanes a segment has.

mod copies;
mod facts;

use gustav_core::Problem;

use self::facts::{Cut, Facts, RUN_WIDTH};
use super::{Way, vectors};
use crate::{Algorithm, DeviceProfile, RowLengths};

/// Bytes per second that one multiprocessor gathers from L2, roughly.
const GATHERED: f64 = 53e9;
/// Products of fewer microseconds are over before many threads help, at 64 columns in f32; the
/// bound goes with this power of the width.
const BRIEF: f64 = 49.4;
const BRIEF_WIDTH: f64 = -0.25;
/// Warps of whole rows in parts of a full chip from which a lane reads a whole line, and the mean from which
/// that pays, but for a few columns of B.
const LINES: (f64, f64) = (1.4, 200.0);
/// Rows of fewer nonzeros on average pass through shared memory, in order and by a list; the third by a list
/// where rows of B come from memory, unless runs do for them: the fourth.
const STAGED: (f64, f64, f64, f64) = (5.8, 13.0, 24.0, 9.5);
/// So many times L2 is a B whose rows come from memory.
const FAR: f64 = 3.0;
/// Listed rows of a few values of 8 bytes pass through shared memory as well where B is this part of L2 at
/// least.
const STAGED_WIDE: f64 = 0.4;
/// Rows in an order of as many nonzeros on average, by which runs gain more than by copies; shorter rows of a
/// list have whole flights on their way.
const ORDERED: (f64, f64) = (4.5, 3.0);
/// Lanes of a group with runs: it has so many nonzeros of A at hand.
const RUN_LANES: u32 = 16;
/// Threads of a CTA with runs.
const RUN_BLOCK: u32 = 128;
/// Nonzeros of a run whose rows of B are on their way, and threads whose registers leave room for them: as a rule,
/// and of 16-bit values where the product lasts.
const RUN_LOADS: [(u32, u32); 2] = [(4, 768), (2, 1024)];

/// The way of `segmented`.
pub fn segmented(problem: &Problem, rows: &RowLengths, profile: &DeviceProfile) -> Way {
    let facts = Facts::new(problem, rows, profile);
    let Facts { vectors, wide, cut, .. } = facts;
    let share = facts.share();
    let flights = facts.flights(share);
    let in_order = cut == Cut::InOrder;
    // A whole line at once: what L1 has, it gives by the line.
    let lines = facts.narrow()
        && share > 1
        && facts.filled(share)
        && facts.warps >= LINES.0 * facts.full
        && (facts.mean >= LINES.1 || facts.slender());
    let far = size_of_b(problem) > FAR * profile.l2_bytes as f64;
    let staged = match in_order {
        true => STAGED.0,
        false if far && facts.runs(share) && facts.crowded_runs() => 0.0,
        false if far && facts.runs(share) && !facts.slow_sums => STAGED.3,
        false if far => STAGED.2,
        false => STAGED.1,
    };
    let large = size_of_b(problem) >= STAGED_WIDE * profile.l2_bytes as f64;
    let short = facts.mean < staged || large && facts.wide_list(share);
    let stages = !flights && !facts.uneven() && facts.may_copy() && short;
    // What comes from memory is better asked for by copies, of which more are on their way.
    let runs = facts.runs(share) && !(stages && far);
    let (loads, run_threads) = RUN_LOADS[usize::from(facts.crowded_runs())];
    let copies = stages && !runs;
    let longest = facts.longest(share, flights, runs);
    let crowded = cut != Cut::Starved && f64::from(share) * vectors > 64.0;
    let way = Way {
        share: if lines { 4 } else { share },
        chunk: match (flights, lines) {
            _ if runs => loads,
            (true, _) => facts.in_flight(share),
            (false, true) => 4,
            _ => 2,
        },
        run: if runs { 2 } else { 1 },
        early: match flights || facts.one_wave(share) {
            true => share > 2 && vectors <= 16.0 && (in_order || facts.slow_sums),
            false => wide && share > 1,
        },
        longest: (!in_order).then_some(longest),
        first: facts.first(longest, runs, copies),
        lanes: if runs { RUN_LANES } else { facts.most_lanes(share, flights) },
        tiles: if lines { 1 } else { 2 },
        block: if runs { RUN_BLOCK } else { 64 },
        threads: match (flights, wide) {
            _ if runs => run_threads,
            // Sub-groups of few lanes hold many tiles, and wide values fill registers.
            (true, _) if facts.shared_by_warps(share) || facts.short_flights(share) => 1024,
            (true, _) if (wide || crowded) && !facts.wide_room(share) => 384,
            (true, _) => 640,
            (false, false) if facts.ragged() => 1536,
            (false, _) => 1024,
        },
        ..Way::of(Algorithm::Segmented)
    };
    let way = if copies { facts.copied(way, far) } else { way };
    told(
        &facts,
        if facts.paired(share) { Way { share: 2, chunk: 2, threads: 1024, ..way } } else { way },
    )
}

/// The way of `segmented` for rows as stored, none of which comes first but parts of those that are cut.
pub fn segmented_as_stored(problem: &Problem, rows: &RowLengths, profile: &DeviceProfile) -> Way {
    let way = segmented(problem, rows, profile);
    told(&Facts::new(problem, rows, profile), Way { window: 1, ..way })
}

/// The way of `segmented` for rows that are taken in an order; `grown` says that the order has blocks
/// of rows that read the same rows of B, which a CTA with runs meets in L1.
pub fn segmented_in_order(
    problem: &Problem,
    rows: &RowLengths,
    profile: &DeviceProfile,
    grown: bool,
) -> Way {
    let way = segmented(problem, rows, profile);
    let facts = Facts::new(problem, rows, profile);
    if let Some((lanes, tiles)) = facts.tall()
        && !facts.slow_sums
        && !facts.wide
    {
        let copied = Way { lanes, tiles, run: 1, block: 64, ..way.clone() };
        if way.longest.is_none() && way.ahead > 0 && facts.mean < ORDERED.0 {
            return told(&facts, Way { ahead: 2, chunk: 1, threads: 1280, ..copied });
        }
        if let Some(longest) = way.longest
            && grown
            && facts.mean < ORDERED.1
        {
            let first = facts.first(longest, false, true);
            return told(&facts, Way { ahead: 1, chunk: 4, threads: 768, first, ..copied });
        }
    }
    let way = match (way.run, way.longest) {
        (1, None) if way.share == 1 && facts.may_run() && facts.vectors >= RUN_WIDTH.0 => Way {
            chunk: if facts.slow_sums { 2 } else { 3 },
            run: 4,
            fetch: true,
            ahead: 0,
            early: false,
            lanes: RUN_LANES,
            tiles: 2,
            threads: 1024,
            block: RUN_BLOCK,
            ..way
        },
        (2.., Some(_)) if grown => {
            let (chunk, threads) = RUN_LOADS[0];
            Way { run: 4, window: 32, chunk, threads, ..way }
        }
        _ => way,
    };
    told(&facts, way)
}

/// `way` with its reason.
fn told(facts: &Facts<'_>, way: Way) -> Way {
    let (mean, most, share) = (facts.rows.mean(), facts.rows.max(), way.share);
    let few = if share > 1 { format!(", shared by {share} sub-groups") } else { String::new() };
    let cut = match (facts.cut, way.longest) {
        (Cut::InOrder, _) | (_, None) => "taken whole and in order".to_owned(),
        (Cut::Whole, _) => "taken whole".into(),
        (_, Some(longest)) => format!("cut at {longest}"),
    };
    let list = match (way.longest, way.window, way.run) {
        (None, ..) => "",
        (_, 1, 2..) => ", parts first, the others as stored and in runs",
        (_, 1, _) => ", parts first, the others as stored",
        (_, _, 2..) => ", long ones first, the others in runs",
        _ => ", long ones first",
    };
    let reason = format!("rows of {mean:.1} nonzeros on average, {most} at most: {cut}{list}{few}");
    Way { reason, ..way }
}

/// Whether a product of 16-bit values is over before even shares are worth their searches.
pub(super) fn is_quick(problem: &Problem, profile: &DeviceProfile) -> bool {
    problem.dtype.bytes() == 2 && microseconds(problem, profile) < longest_brief(vectors(problem))
}

/// The time that gathering takes, roughly.
pub(super) fn microseconds(problem: &Problem, profile: &DeviceProfile) -> f64 {
    let bytes = problem.nnz as f64 * (problem.columns * problem.dtype.bytes()) as f64;
    bytes / (profile.units as f64 * GATHERED) * 1e6
}

/// Microseconds up to which a product is brief.
fn longest_brief(vectors: f64) -> f64 {
    BRIEF * (vectors / 16.0).powf(BRIEF_WIDTH)
}

/// Whether B is so much larger than L2 that panels of its columns pay for reading A again.
fn panels_pay(problem: &Problem, profile: &DeviceProfile) -> bool {
    problem.columns > 128 && size_of_b(problem) > 2.0 * profile.l2_bytes as f64
}

/// Whether B stays in L2 beside the rest.
fn near(problem: &Problem, profile: &DeviceProfile) -> bool {
    size_of_b(problem) <= 0.5 * profile.l2_bytes as f64
}

/// Bytes of B.
fn size_of_b(problem: &Problem) -> f64 {
    problem.inner() as f64 * (problem.columns * problem.dtype.bytes()) as f64
}
