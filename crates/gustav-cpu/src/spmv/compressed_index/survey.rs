//! Chooses an encoding for the columns of each segment of rows.

use std::ops::Range;

use gustav_core::Index;

use super::encode::{Code, Pattern, Segment, Walk};

/// Capabilities of the kernels of an instruction set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Columns of a window: the lanes of a vector.
    pub(super) width: usize,
    /// Whether masks are available, to expand values over windows and to sum vectors that hold many
    /// rows.
    pub(super) masks: bool,
    /// Whether rows may be multiplied without the gathers of their lanes, which are slow.
    pub(super) loads: bool,
}

/// Most rows of a segment other than a shift: bounds the array of sums of [`Walk::Flat`].
pub(super) const ROWS: usize = 512;
const NARROW: usize = 1 << 16;

/// Cost of parts of the kernels in cycles, measured on one AVX-512 machine; only the ratios matter.
struct Cost;

impl Cost {
    const ROW: usize = 10;
    /// A row of windows: the end of its loop is hard to predict for the processor.
    const WINDOWS: usize = 15;
    const RUN: usize = 7;
    const WINDOW: usize = 7;
    /// A slice, however short its rows.
    const SLICE: usize = 20;
    /// Counting how many rows are alike.
    const ALIKE: usize = 12;
    /// A vector of entries: a gather takes about a cycle per lane.
    const fn gather(width: usize) -> usize {
        width + 2
    }
    /// A row of single loads, and each of its entries; measured on one machine with slow gathers.
    const LOADS: usize = 3;
    const LOAD: usize = 1;
    /// A row of another length than the one before: the processor does not predict its end.
    const LENGTH: usize = 15;
    /// Transposing a vector of values: a register holds fewer columns when it has fewer lanes.
    const fn transpose(width: usize) -> usize {
        48 / width
    }
    const fn flat(width: usize) -> usize {
        Self::gather(width) + 18
    }
}

/// The segments of `rows`, with the distances of shifts: shifts where there are any, the cheapest
/// encoding for other rows.
pub(super) fn survey<O: Index>(
    a: &Pattern<'_, O>,
    rows: Range<usize>,
    limits: Limits,
) -> Vec<(Segment, Vec<isize>)> {
    let mut found = Vec::new();
    let mut open = rows.start;
    let mut row = rows.start;
    while row < rows.end {
        let mut end = row + 1;
        while end < rows.end && shifted(a.row(end - 1), a.row(end)) {
            end += 1;
        }
        // Only whole vectors of rows; the remainder belongs to the next segment.
        end = row + (end - row) / limits.width * limits.width;
        if end > row && a.row_len(row) > 0 {
            others(a, open..row, limits, &mut found);
            let columns = a.row(row);
            let distances = columns.iter().map(|c| c.to_usize() as isize - row as isize).collect();
            let code = Code::Shift { first: 0, len: columns.len() };
            found.push((Segment { rows: row..end, code }, distances));
            open = end;
        }
        row = end.max(row + 1);
    }
    others(a, open..rows.end, limits, &mut found);
    found
}

fn shifted(row: &[u32], next: &[u32]) -> bool {
    row.len() == next.len() && row.iter().zip(next).all(|(a, b)| a.to_usize() + 1 == b.to_usize())
}

fn others<O: Index>(
    a: &Pattern<'_, O>,
    rows: Range<usize>,
    limits: Limits,
    found: &mut Vec<(Segment, Vec<isize>)>,
) {
    for start in rows.clone().step_by(ROWS) {
        let rows = start..rows.end.min(start + ROWS);
        let code = code(a, rows.clone(), limits);
        found.push((Segment { rows, code }, Vec::new()));
    }
}

/// The cheapest encoding of rows that are not a shift.
fn code<O: Index>(a: &Pattern<'_, O>, rows: Range<usize>, limits: Limits) -> Code {
    let Limits { width, masks, .. } = limits;
    let entries = a.entries(&rows);
    let columns = &a.indices[entries.clone()];
    let base = columns.iter().min().map_or(0, |c| c.to_usize());
    let last = columns.iter().max().map_or(0, |c| c.to_usize());
    let narrow = last - base < NARROW;

    let (walk, by_walk) = walk(a, rows.clone(), limits);
    let slices = slices(a, rows.clone(), limits);
    let cost = slices.map_or(by_walk, |slices| slices.cost.min(by_walk));
    if masks && narrow && rows.clone().all(|r| a.row(r).is_sorted_by(|a, b| a < b)) {
        let (mut runs, mut spread) = (0, 0);
        for row in rows.clone() {
            windows(a.row(row), width, true, |_, _| runs += 1);
            windows(a.row(row), width, false, |_, _| spread += 1);
        }
        let options = [(runs * Cost::RUN, runs, true), (spread * Cost::WINDOW, spread, false)];
        let [run, window] = options;
        let (best, count, runs) = if run.0 <= window.0 { run } else { window };
        // A window's two codes replace the codes of its entries, so it needs two entries.
        if best + rows.len() * Cost::WINDOWS < cost && 2 * count <= entries.len() {
            return Code::Windows { first: entries.start, base, runs };
        }
    }
    match slices {
        Some(Slices { codes, cost }) if cost < by_walk => {
            let base = if narrow { base } else { 0 };
            Code::Slices { first: 0, len: codes, base, narrow }
        }
        _ if narrow => Code::Narrow { base, walk },
        _ => Code::Plain { walk },
    }
}

/// The cheapest order of processing entries that have a code each, and its cost.
fn walk<O: Index>(a: &Pattern<'_, O>, rows: Range<usize>, limits: Limits) -> (Walk, usize) {
    let vectors = |r: usize| a.row_len(r).div_ceil(limits.width);
    let (mut by_row, mut by_loads, mut together, mut alike) = (0, 0, 0, 0);
    for row in rows.clone() {
        let own = Cost::ROW + vectors(row) * 2;
        let gathers = vectors(row) * Cost::gather(limits.width);
        by_row += own + gathers;
        let follows = row > rows.start && a.row_len(row - 1) == a.row_len(row);
        by_loads += Cost::LOADS + a.row_len(row) * Cost::LOAD;
        by_loads += if follows { 0 } else { Cost::LENGTH };
        let same = follows && a.row(row - 1) == a.row(row);
        // Groups of rows alike have at most four.
        alike = if same { (alike + 1) % 4 } else { 0 };
        together += own + if alike == 0 { gathers + Cost::ALIKE } else { 0 };
    }
    let nnz = a.entries(&rows).len();
    let flat = nnz.div_ceil(limits.width) * Cost::flat(limits.width) + rows.len();
    let options = [
        (true, by_row, Walk::Rows),
        (limits.loads, by_loads, Walk::Loads),
        (limits.masks, together, Walk::Alike),
        (limits.masks, flat, Walk::Flat),
    ];
    let possible = options.into_iter().filter_map(|(is, cost, walk)| is.then_some((cost, walk)));
    let best = possible.min_by_key(|option| option.0);
    best.map_or((Walk::Rows, by_row), |(cost, walk)| (walk, cost))
}

/// The size and the cost of rows in slices; needs masks to leave out padding.
#[derive(Clone, Copy)]
struct Slices {
    codes: usize,
    cost: usize,
}

fn slices<O: Index>(a: &Pattern<'_, O>, rows: Range<usize>, limits: Limits) -> Option<Slices> {
    let Limits { width, masks, .. } = limits;
    let lengths = slice_lengths(a, &rows, width);
    let vectors: usize = lengths.clone().sum();
    let cost =
        vectors * (Cost::gather(width) + Cost::transpose(width)) + lengths.len() * Cost::SLICE;
    (masks && !a.entries(&rows).is_empty()).then_some(Slices { codes: vectors * width, cost })
}

/// The longest row of each slice of `width` rows.
pub(super) fn slice_lengths<O: Index>(
    a: &Pattern<'_, O>,
    rows: &Range<usize>,
    width: usize,
) -> impl ExactSizeIterator<Item = usize> + Clone {
    let end = rows.end;
    let longest = move |first: usize| (first..end.min(first + width)).map(|r| a.row_len(r)).max();
    rows.clone().step_by(width).map(move |first| longest(first).unwrap_or(0))
}

/// Covers the increasing `columns` with windows of `width`, greedily; with `runs`, a window
/// ends where a column is missing.
pub(super) fn windows(
    columns: &[u32],
    width: usize,
    runs: bool,
    mut window: impl FnMut(usize, u16),
) {
    let mut k = 0;
    while k < columns.len() {
        let (start, first) = (k, columns[k].to_usize());
        let mut mask = 0;
        while k < columns.len() {
            let at = columns[k].to_usize() - first;
            if at >= width || (runs && at != k - start) {
                break;
            }
            mask |= 1 << at;
            k += 1;
        }
        window(first, mask);
    }
}
