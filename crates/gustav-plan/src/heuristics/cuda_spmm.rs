//! The configurations of SpMM on a GPU among which the [cost model](crate::cost) chooses, and when counting row
//! lengths pays.

use gustav_core::{Problem, Semiring};

use super::uninspected;
use crate::cost::VECTOR_BYTES;
use crate::{Algorithm, DeviceProfile};

/// Threads of a multiprocessor with which a device counts as full.
const THREADS: f64 = 1024.0;
/// Partitions of `even-shares` for every lane group of a full device.
const PARTITIONS_PER_GROUP: f64 = 2.2;
/// Cost of inspecting the rows, in vectors of 16 bytes that each thread of a full device gathers; ...
const INSPECTION_COST: f64 = 1300.0;
/// ... and what the inspection saves of every execution, even of an empty product.
const INSPECTION_GAIN: f64 = 80.0;
/// Fewest expected calls that repay merging rows into blocks, ...
const CALLS_FOR_BLOCKS: u64 = 32;
/// ... and cutting rows at tiles of B.
const CALLS_FOR_TILES: u64 = 100;
/// Vectors of a row of B, times subgroups, for which a lane that has four rows of B in flight has registers.
const MANY_LOADS: f64 = 64.0;

/// Most subgroups that share a long segment beside groups that take several.
const SHARING: u32 = 8;

/// Vectors of a row of B for which one a lane can be faster than two.
const SPREAD_FROM: f64 = 4.0;
const SPREAD_TO: f64 = 16.0;
/// Most vectors of a row of B of which the lanes of a warp have one each.
const ONE_VECTOR_TO: f64 = 32.0;

/// Most vectors of 16 bytes in a row of B for half vectors: with more, a warp has few subgroups whose sums are added.
const HALVED_TO: usize = 4;

/// A tuning configuration of one algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// `segmented`, `row-block`, `tensor`, `even-shares` or `b-stationary`.
    pub algorithm: Algorithm,
    /// Rows of a block, for `row-block` and `tensor`.
    pub height: u32,
    /// Most subgroups of lanes in a warp that share a segment or block.
    pub subgroups: u32,
    /// Warps of a segment: 1, or all of a CTA, with as many subgroups as fill them.
    pub warps: u32,
    /// Nonzeros of A loaded together; with several segments per group, nonzeros whose rows of B are in flight.
    pub chunk: u32,
    /// Segments that a subgroup processes by itself; if more than one, subgroups share long ones alone.
    pub segments_per_group: u32,
    /// Whether it processes them at the same time; otherwise one after another, and A of the next one is loaded ahead.
    pub at_once: bool,
    /// With several segments per group, whether the row of B of the next segment's last nonzero is prefetched to L2.
    pub prefetch_b: bool,
    /// Pipeline stages in shared memory: chunks of rows of B, or tiles of B for `b-stationary`.
    pub stages: u32,
    /// Whether a segment's nonzeros of A are prefetched to L2.
    pub prefetch_a: bool,
    /// Longest segment in nonzeros: longer rows are cut; `None` takes whole rows in their order.
    /// For `even-shares`, row starts and nonzeros of a partition.
    pub longest: Option<u32>,
    /// Rows of a window, inside which the list is sorted by length; 1 lists whole rows in their
    /// order.
    pub window: u32,
    /// Most bytes of a load of B: 16, or 8 for half vectors.
    pub load_bytes: u32,
    /// Most lanes for a row of B; fewer lanes make narrower panels.
    pub lanes: u32,
    /// Preferred number of vectors of a row of B that a lane holds; with copies of B to shared memory it is exact, if
    /// no lane is idle.
    pub tiles: u32,
    /// Resident threads of a multiprocessor that a kernel's registers must allow.
    pub threads: u32,
    /// Threads of a CTA of `segmented`.
    pub block: u32,
}

impl Tuning {
    /// Whole rows in their order, one group of lanes each.
    pub fn of(algorithm: Algorithm) -> Self {
        Tuning {
            algorithm,
            height: 1,
            subgroups: 1,
            warps: 1,
            chunk: 4,
            segments_per_group: 1,
            at_once: false,
            prefetch_b: false,
            stages: 0,
            prefetch_a: false,
            longest: None,
            window: 1024,
            load_bytes: VECTOR_BYTES as u32,
            lanes: 32,
            tiles: 2,
            threads: 1024,
            block: 64,
        }
    }
}

/// What a device and a problem allow beside `segmented`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Available {
    /// Tensor cores that compute as exactly as other kernels do.
    pub tensor: bool,
    /// Copies of tiles of B to shared memory in bulk.
    pub tiles: bool,
}

/// The configurations worth having for `problem`, whatever its pattern: each is the fastest of all that were measured
/// for some matrices of suite `choice`, by more than others can make up for.
pub fn candidates(problem: &Problem, available: Available) -> Vec<Tuning> {
    let mut found = segmented(problem);
    if problem.calls >= CALLS_FOR_BLOCKS {
        found.extend(row_blocks(problem));
        if available.tensor {
            found.extend(tensor(problem));
        }
    }
    if available.tiles
        && is_whole(problem)
        && may_reduce(problem)
        && problem.calls >= CALLS_FOR_TILES
    {
        found.extend(b_stationary());
    }
    found
}

/// The configurations of `segmented`.
pub fn segmented(problem: &Problem) -> Vec<Tuning> {
    let wide = problem.dtype.bytes() == 8;
    let base = Tuning::of(Algorithm::Segmented);
    let many = |subgroups: u32, longest: Option<u32>| Tuning {
        subgroups,
        longest,
        prefetch_a: subgroups > 1,
        threads: if wide { 512 } else { 640 },
        ..base
    };
    let few = |subgroups: u32, longest: Option<u32>| Tuning {
        subgroups,
        longest,
        chunk: 2,
        prefetch_a: wide && subgroups > 1,
        ..base
    };
    let staged = Tuning { stages: 2, ..few(1, None) };
    let several = |subgroups: u32, longest| Tuning {
        subgroups,
        longest,
        segments_per_group: 2,
        lanes: 16,
        threads: if wide { 640 } else { 768 },
        block: 128,
        ..base
    };
    // Half as many registers a lane, for more lanes.
    let spread = |subgroups: u32, longest| Tuning {
        tiles: 1,
        threads: if wide { 896 } else { 1024 },
        ..several(subgroups, longest)
    };
    let at_once = |chunk: u32, threads: u32, longest| Tuning {
        at_once: true,
        chunk,
        threads,
        ..several(SHARING, longest)
    };
    let copied = Tuning { stages: 1, threads: 1280, lanes: 8, tiles: 4, ..few(1, None) };
    let (whole, short, long) = (None, Some(64), Some(256));
    let mut found = vec![many(1, whole), many(1, Some(32))];
    let shared = [(2, short), (4, short), (4, long), (8, whole), (8, Some(128))];
    let fits = |(subgroups, _): &(u32, _)| f64::from(*subgroups) * vectors(problem) <= MANY_LOADS;
    found.extend(shared.into_iter().filter(fits).map(|(subgroups, cut)| many(subgroups, cut)));
    let shared = [(1, whole), (4, whole), (4, long)];
    found.extend(shared.map(|(subgroups, cut)| few(subgroups, cut)));
    found.push(staged);
    let shared = [(1, whole), (1, short), (1, long), (SHARING, short)];
    found.extend(shared.map(|(subgroups, cut)| several(subgroups, cut)));
    if (SPREAD_FROM..=SPREAD_TO).contains(&vectors(problem)) {
        found.extend([short, long].map(|cut| spread(1, cut)));
        found.extend([short, Some(128), long].map(|cut| spread(SHARING, cut)));
        // One nonzero of each segment in flight leaves registers for more threads, the fewer the more sums a lane has.
        let threads = match problem.dtype.bytes() {
            2 => 1152,
            8 => 1280,
            _ => 1536,
        };
        let loads = [(1, threads, whole), (1, threads, short), (2, 1024, whole), (2, 1024, short)];
        found.extend(
            loads.map(|(chunk, threads, cut)| Tuning { tiles: 1, ..at_once(chunk, threads, cut) }),
        );
    } else {
        let threads = if problem.dtype.bytes() == 2 { 768 } else { 1024 };
        found.extend([whole, short].map(|cut| at_once(1, threads, cut)));
    }
    found.push(copied);
    // Where two vectors a lane leave lanes idle, three may leave fewer.
    let of_row = problem.columns * problem.dtype.bytes() / VECTOR_BYTES;
    if is_whole(problem) && !of_row.is_power_of_two() {
        let compact = [few(1, whole), few(1, short), many(4, long)];
        found.extend(compact.map(|tuning| Tuning { tiles: 3, ..tuning }));
    }
    // Last, since trained models name the others by their number.
    found.extend(cta_per_segment(problem));
    found.extend(half_vectors(problem));
    found
}

/// The configurations of `segmented` with half vectors: a lane has half as many sums, and half as many subgroups add
/// theirs. For rows of B of 16-bit values that few lanes hold.
fn half_vectors(problem: &Problem) -> Vec<Tuning> {
    let vectors = problem.columns * problem.dtype.bytes() / VECTOR_BYTES;
    let few = vectors <= HALVED_TO && vectors.is_power_of_two() && is_whole(problem);
    if !few || problem.dtype.bytes() != 2 {
        return Vec::new();
    }
    let half = Tuning { load_bytes: 8, tiles: 1, ..Tuning::of(Algorithm::Segmented) };
    let one = |subgroups, longest| Tuning { subgroups, longest, prefetch_a: true, ..half };
    let several = |chunk, at_once, longest| Tuning {
        subgroups: SHARING,
        segments_per_group: 2,
        chunk,
        at_once,
        longest: Some(longest),
        block: 128,
        ..half
    };
    vec![
        one(4, None),
        one(SHARING, Some(128)),
        several(4, false, 64),
        several(4, false, 256),
        several(2, true, 64),
    ]
}

/// The configurations of `segmented` with a CTA per segment: for few long rows.
fn cta_per_segment(problem: &Problem) -> Vec<Tuning> {
    let wide = problem.dtype.bytes() == 8;
    let tuning = |(warps, longest)| {
        // Of 8-byte values many warps have enough loads in flight with two rows of B each.
        let chunk = if wide && warps > 4 { 2 } else { 4 };
        // With one vector a lane, registers suffice for more threads.
        let threads = match (wide, chunk) {
            (true, 4) if vectors(problem) > ONE_VECTOR_TO => 512,
            (false, _) if vectors(problem) > ONE_VECTOR_TO => 768,
            _ => 1024,
        };
        let (prefetch_a, block) = (warps > 4, 32 * warps);
        let base = Tuning::of(Algorithm::Segmented);
        Tuning { warps, longest, chunk, tiles: 1, threads, block, prefetch_a, ..base }
    };
    [(2, None), (4, None), (8, None), (8, Some(1024))].map(tuning).into()
}

/// The configurations of `row-block`.
pub fn row_blocks(problem: &Problem) -> Vec<Tuning> {
    let bytes = problem.dtype.bytes();
    // The sums of wide rows take many registers.
    let threads = match problem.columns * bytes < 512 {
        true => 768,
        false if bytes == 8 => 512,
        false => 384,
    };
    let block = |(height, subgroups)| Tuning {
        height,
        subgroups,
        threads,
        ..Tuning::of(Algorithm::RowBlock)
    };
    [(2, 1), (2, 2), (3, 1), (3, 2), (4, 1)].map(block).into()
}

/// The configurations of `tensor`.
pub fn tensor(problem: &Problem) -> Vec<Tuning> {
    let threads = if problem.columns > 64 { 512 } else { 768 };
    let block = |subgroups| Tuning { subgroups, threads, ..Tuning::of(Algorithm::Tensor) };
    [1, 2, 4, 8].map(block).into()
}

/// The configurations of `b-stationary`.
pub fn b_stationary() -> Vec<Tuning> {
    let tiles = |(stages, longest)| Tuning {
        stages,
        longest: Some(longest),
        ..Tuning::of(Algorithm::BStationary)
    };
    [(1, 64), (1, 128), (2, 32), (2, 64)].map(tiles).into()
}

/// A tuning of `segmented` for rows in a row order. `grown` means that the order consists of blocks of rows that read
/// the same rows of B, which a CTA with several segments per group reuses in L1. `None` for segments at once, since
/// neighbours in an order may have any lengths.
pub fn in_order(tuning: Tuning, grown: bool) -> Option<Tuning> {
    let several = Tuning { segments_per_group: 4, ..tuning };
    match (tuning.segments_per_group, tuning.longest) {
        _ if tuning.at_once => None,
        (2.., Some(_)) if grown => Some(Tuning { window: 32, ..several }),
        (2.., None) => Some(Tuning { chunk: 3, prefetch_b: true, threads: 1024, ..several }),
        _ => Some(tuning),
    }
}

/// Whether the expected calls repay inspecting the rows. The inspection takes about the same time
/// for every matrix and saves about the same fraction of every execution, more of a short one.
pub fn inspects(problem: &Problem, profile: &DeviceProfile) -> bool {
    let items = (problem.nnz + problem.output_rows()) as f64;
    let gathered = items * vectors(problem) / (profile.units as f64 * THREADS);
    problem.calls > 1 && problem.calls as f64 * (gathered + INSPECTION_GAIN) >= INSPECTION_COST
}

/// Whether partial sums of a row may be added in any order.
pub fn may_reduce(problem: &Problem) -> bool {
    !problem.deterministic && problem.semiring == Semiring::PlusTimes && !problem.dtype.is_integer()
}

/// The tuning of `even-shares`, from the numbers of rows and nonzeros alone, and why, in one sentence.
pub fn even_shares(problem: &Problem, profile: &DeviceProfile) -> (Tuning, String) {
    let items = (problem.nnz + problem.output_rows()) as f64;
    let vectors = vectors(problem);
    // For a short row of B, more lanes keep the loads of a partition together.
    let tiles = if vectors > 8.0 { 2 } else { 1 };
    let lanes = (vectors / f64::from(tiles)).clamp(1.0, 32.0);
    let groups = profile.units as f64 * THREADS / lanes;
    let work = nearest_power(items / groups * PARTITIONS_PER_GROUP).clamp(32, 128);
    let mean = problem.nnz as f64 / problem.output_rows().max(1) as f64;
    let uninspected =
        if inspects(problem, profile) { String::new() } else { uninspected(problem.calls) };
    let reason = format!(
        "rows of {mean:.1} nonzeros on average{uninspected}: partitions of {work} row starts and nonzeros"
    );
    let threads = if problem.dtype.bytes() == 8 { 384 } else { 640 };
    let base = Tuning::of(Algorithm::EvenShares);
    (Tuning { longest: Some(work), tiles, threads, ..base }, reason)
}

/// Vectors of 16 bytes in a row of B.
fn vectors(problem: &Problem) -> f64 {
    (problem.columns * problem.dtype.bytes()) as f64 / VECTOR_BYTES as f64
}

/// Whether a row of B is whole vectors of 16 bytes.
fn is_whole(problem: &Problem) -> bool {
    (problem.columns * problem.dtype.bytes()).is_multiple_of(VECTOR_BYTES)
}

fn nearest_power(number: f64) -> u32 {
    1 << number.clamp(1.0, 1e6).log2().round() as u32
}

#[cfg(test)]
mod tests {
    use gustav_core::{CsrView, DType};

    use super::*;

    #[test]
    fn one_vector_a_lane_is_tried_for_short_rows_of_b() {
        let a = CsrView::<f32, u32, u32>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
        for dtype in [DType::F32, DType::F64, DType::F16] {
            for vectors in [1, 3, 4, 8, 16, 17, 64] {
                let columns = vectors * VECTOR_BYTES / dtype.bytes();
                let problem = Problem { dtype, ..Problem::spmm(&a).columns(columns) };
                let tunings = segmented(&problem).into_iter();
                let is_spread = |t: &Tuning| t.tiles == 1 && !t.at_once && t.warps == 1;
                let spread = tunings.filter(|t| is_spread(t) && t.load_bytes == 16).count();
                let expected = if (4..=16).contains(&vectors) { 5 } else { 0 };
                assert_eq!(spread, expected, "{dtype}, {vectors} vectors");
                let tunings = segmented(&problem).into_iter();
                let at_once = tunings.filter(|t| t.at_once && t.load_bytes == 16).count();
                let expected = if expected > 0 { 4 } else { 2 };
                assert_eq!(at_once, expected, "at once, {dtype}, {vectors} vectors");
            }
        }
    }

    #[test]
    fn half_vectors_are_for_short_rows_of_16_bit_values() {
        let a = CsrView::<f32, u32, u32>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
        for (dtype, columns, expected) in [
            (DType::F16, 8, 5),
            (DType::Bf16, 16, 5),
            (DType::F16, 32, 5),
            (DType::F16, 0, 0),
            (DType::F16, 4, 0),
            (DType::F16, 24, 0),
            (DType::Bf16, 64, 0),
            (DType::F32, 8, 0),
            (DType::I64, 8, 0),
        ] {
            let problem = Problem { dtype, ..Problem::spmm(&a).columns(columns) };
            let half = segmented(&problem).into_iter().filter(|t| t.load_bytes == 8).count();
            assert_eq!(half, expected, "{dtype}, {columns} columns");
        }
    }
}
