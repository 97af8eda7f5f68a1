//! Bounds of SpMM on a GPU.

use gustav_core::Problem;

use super::lengths::{LengthCounts, Lengths};
use super::parameters::Rates;
use super::{Bound, Bounds, Class};
use crate::{DeviceProfile, RowSimilarity};

/// Lanes of a warp.
const WARP: f64 = 32.0;
/// Instructions at the beginning and the end of a segment.
const SEGMENT: f64 = 20.0;
/// Instructions for a nonzero of A: loads, a broadcast, an address.
const NONZERO: f64 = 4.0;
/// Part of L2 that rows of B may fill before they displace each other.
const L2_FOR_B: f64 = 0.5;
/// Of the lanes that wait for the longest of neighbouring rows, the part that other warps do not fill in for.
const WAITING: f64 = 0.5;

/// How a configuration divides a product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// `segmented`.
    Segmented(Segmented),
    /// `row-block`.
    RowBlock(RowBlock),
    /// `b-stationary`.
    BStationary(BStationary),
    /// `tensor`.
    Tensor(Tensor),
}

/// The part of a row of B that a group of lanes holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Panel {
    /// Values of a vector.
    pub vector: u32,
    /// Lanes of a subgroup.
    pub lanes: u32,
    /// Vectors of a lane.
    pub tiles: u32,
}

/// Segments of rows, one for a group of lanes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segmented {
    /// The class of its kernel.
    pub class: Class,
    /// What a subgroup holds.
    pub panel: Panel,
    /// Subgroups that share a segment, but for short ones: of all its warps together.
    pub subgroups: u32,
    /// Warps of a segment: 1, or all of a CTA.
    pub warps: u32,
    /// Nonzeros of it that one of them loads together.
    pub chunk: u32,
    /// Short segments, if a subgroup takes several of them by itself.
    pub short: Option<Short>,
    /// Nonzeros from which rows are cut.
    pub longest: Option<u32>,
    /// Resident threads of a multiprocessor.
    pub resident: u32,
}

/// Segments of which a subgroup takes several by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Short {
    /// They have fewer nonzeros than this, which is infinity if all are short.
    pub below: f64,
    /// Segments of a subgroup.
    pub number: u32,
    /// Whether it sums them at the same time.
    pub at_once: bool,
    /// Nonzeros of a segment that are loaded together.
    pub chunk: u32,
}

/// Blocks of rows that share loads of B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowBlock {
    /// What a subgroup holds.
    pub panel: Panel,
    /// Rows of a block: 2, 3 or 4.
    pub rows: u32,
    /// Subgroups that share a block.
    pub subgroups: u32,
    /// Columns of a block that are loaded together.
    pub unroll: u32,
    /// Resident threads of a multiprocessor.
    pub resident: u32,
}

/// Tiles of B in shared memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BStationary {
    /// What a group holds.
    pub panel: Panel,
    /// Rows of B in a tile.
    pub rows: u64,
    /// Tiles that shared memory holds: with several, one is copied while another is multiplied.
    pub stages: u32,
    /// Mean nonzeros of a row in a tile, in the rows that have any there.
    pub per_segment: f64,
    /// Most nonzeros of a segment.
    pub longest: u32,
    /// Threads of a CTA.
    pub block: u32,
    /// Nonzeros that a group loads together.
    pub batch: u32,
}

/// Blocks of eight rows on tensor cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tensor {
    /// Columns of C that a warp holds.
    pub panel: u32,
    /// Warps that share a block.
    pub subgroups: u32,
    /// Resident threads of a multiprocessor.
    pub resident: u32,
}

/// A product, and what was counted of its pattern.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The product.
    pub problem: &'a Problem,
    /// The lengths of its rows.
    pub lengths: &'a Lengths<'a>,
    /// What neighbouring rows have in common.
    pub similarity: RowSimilarity,
    /// The device.
    pub profile: &'a DeviceProfile,
    /// Its nominal rates.
    pub rates: Rates,
}

/// A sum of bounds in the making.
struct Terms<'a, 'w> {
    work: &'a Work<'w>,
    terms: Vec<(Bound, f64)>,
}

impl Work<'_> {
    /// The bounds of a configuration.
    pub fn bounds(&self, schedule: &Schedule) -> Bounds {
        let mut terms = Terms { work: self, terms: Vec::with_capacity(14) };
        terms.common(schedule);
        let class = match schedule {
            Schedule::Segmented(s) => terms.segmented(s),
            Schedule::RowBlock(s) => terms.row_block(s),
            Schedule::BStationary(s) => terms.b_stationary(s),
            Schedule::Tensor(s) => terms.tensor(s),
        };
        terms.terms.retain(|term| term.1 > 0.0);
        Bounds { class, terms: terms.terms }
    }

    fn nnz(&self) -> f64 {
        self.problem.nnz as f64
    }

    fn columns(&self) -> f64 {
        self.problem.columns as f64
    }

    /// Bytes of a value.
    fn bytes(&self) -> f64 {
        self.problem.dtype.bytes() as f64
    }

    /// Bytes of a row of B.
    fn row_bytes(&self) -> f64 {
        self.columns() * self.bytes()
    }

    fn units(&self) -> f64 {
        self.profile.units as f64
    }

    /// Distinct columns per nonzero in blocks of 2, 3, 4 or 8 rows.
    fn distinct(&self, rows: u32) -> f64 {
        let heights = [2, 3, 4, 8];
        let index = heights.iter().position(|height| *height == rows);
        index.map_or(1.0, |index| self.similarity.distinct[index])
    }

    /// Nonzeros of the block of `rows` rows with most: that of the longest row, beside rows as long as most nonzeros
    /// have it, since neighbours are often alike.
    fn longest_block(&self, rows: u32) -> f64 {
        let lengths = self.lengths.histogram();
        let most = lengths.max() as f64;
        most + f64::from(rows - 1) * lengths.mean_of_nonzeros().min(most)
    }

    /// Distinct columns of that block.
    fn greatest_block(&self, rows: u32) -> f64 {
        (self.longest_block(rows) * self.distinct(rows)).max(self.lengths.histogram().max() as f64)
    }

    /// Instructions of a vector's multiplications: as many as values, twice as many for 8-byte values.
    fn arithmetic(&self, vector: u32) -> f64 {
        f64::from(vector) * (self.bytes() / 4.0).max(1.0)
    }
}

impl Panel {
    /// Panels of a row of B of `columns` columns.
    fn number(&self, columns: f64) -> f64 {
        (columns / f64::from(self.vector * self.lanes * self.tiles)).ceil()
    }
}

impl Terms<'_, '_> {
    fn add(&mut self, bound: Bound, us: f64) {
        self.terms.push((bound, us));
    }

    /// What every schedule has.
    fn common(&mut self, schedule: &Schedule) {
        let work = self.work;
        let (rows, inner) = (work.lengths.histogram().rows() as f64, work.problem.inner() as f64);
        let row = work.row_bytes();
        let a = work.nnz() * (4.0 + work.bytes()) + rows * 8.0;
        let once = a + (rows + inner.min(work.nnz())) * row;
        let l2 = L2_FOR_B * work.profile.l2_bytes as f64;
        let missing = (1.0 - l2 / (inner * row).max(1.0)).max(0.0);
        self.add(Bound::Execution, 1.0);
        self.add(Bound::Class, 1.0);
        self.add(Bound::Memory, once / work.rates.memory);
        // Tiles of B are loaded once.
        if !matches!(schedule, Schedule::BStationary(_)) {
            let gathered = work.nnz() * row * work.distinct(8).min(1.0);
            self.add(Bound::Misses, gathered * missing / work.rates.memory);
        }
    }

    /// Instructions at the issue rate of the device, in microseconds.
    fn issued(&self, instructions: f64) -> f64 {
        instructions / (self.work.units() * self.work.rates.issue)
    }

    fn segmented(&mut self, s: &Segmented) -> Class {
        let work = self.work;
        let segments = work.lengths.segments(s.longest);
        // Over the work of all groups, what they wait for the longest row of their warp.
        let of_group = if s.short.is_some() { 1 } else { s.subgroups };
        let groups_of_warp = WARP as u32 / (s.panel.lanes * of_group);
        let waiting = match s.longest {
            None if groups_of_warp > 1 => {
                let longest = segments.expected_greatest(groups_of_warp) * segments.number();
                (longest / segments.sum().max(1.0) - 1.0).max(0.0)
            }
            _ => 0.0,
        };
        let mut groups = Groups { waiting, path: s.path(segments), ..Groups::default() };
        for (length, count) in segments.iter() {
            let (subgroups, chunk, at_once) = match s.short {
                Some(short) if length < short.below => (1.0, short.chunk, short.at_once()),
                _ => (f64::from(s.subgroups), s.chunk, 1.0),
            };
            let batches = (length / (subgroups * f64::from(chunk))).ceil() * subgroups;
            groups.subgroups += count * subgroups;
            groups.batches += count * batches / at_once;
            groups.ends += count * 2.0 * subgroups / at_once;
            groups.nonzeros += count * (length / subgroups).ceil() * subgroups;
            groups.stores += count * subgroups * (subgroups / f64::from(s.warps));
        }
        self.groups(s.panel, s.resident, &groups);
        if let Some(longest) = s.longest {
            let parts = work.lengths.parts(longest);
            if parts > 0.0 {
                self.add(Bound::Parts, parts * work.row_bytes() * 2.0 / work.rates.memory);
                self.add(Bound::Cut, 1.0);
                let of_longest =
                    (work.lengths.histogram().max() as f64 / f64::from(longest)).ceil();
                self.add(Bound::FixUp, of_longest * 0.1);
            }
        }
        s.class
    }

    /// Groups of lanes that take rows of B from L2 to registers or shared memory.
    fn groups(&mut self, panel: Panel, resident: u32, g: &Groups) {
        let work = self.work;
        let panels = panel.number(work.columns());
        let lanes = f64::from(panel.lanes);
        let concurrent = work.units() * f64::from(resident.min(2048)) / lanes;
        let tiles = f64::from(panel.tiles);
        let of_warp = lanes / WARP;
        let warps = panels * g.nonzeros * of_warp;
        let arithmetic = work.arithmetic(panel.vector);
        self.add(Bound::Latency, panels * (g.batches + g.ends) / concurrent);
        self.add(Bound::Waiting, g.waiting * panels * g.batches / concurrent);
        self.add(Bound::Idle, self.issued(g.waiting * warps * (tiles * arithmetic + NONZERO)));
        self.add(Bound::Chain, g.path.batches + 2.0);
        let serial = g.path.nonzeros * (tiles * (1.0 + arithmetic) + NONZERO);
        self.add(Bound::Serial, serial / work.rates.serial);
        self.add(Bound::Arithmetic, self.issued(warps * tiles * arithmetic));
        self.add(Bound::Indices, self.issued(warps * NONZERO));
        self.add(Bound::Segments, self.issued(panels * g.subgroups * of_warp * SEGMENT));
        let stores = panels * g.stores * of_warp * tiles * f64::from(panel.vector);
        self.add(Bound::Stores, self.issued(stores));
        self.add(Bound::Gather, work.nnz() * work.row_bytes() / (work.units() * work.rates.l2));
    }

    fn row_block(&mut self, s: &RowBlock) -> Class {
        let work = self.work;
        let (height, subgroups) = (f64::from(s.rows), f64::from(s.subgroups));
        let distinct = work.distinct(s.rows);
        let entries = work.nnz() * distinct;
        let blocks = (work.lengths.histogram().rows() as f64 / height).max(1.0);
        let panels = s.panel.number(work.columns());
        let group = f64::from(s.panel.lanes) * subgroups;
        let of_warp = group / WARP;
        let concurrent = work.units() * f64::from(s.resident) / group;
        let greatest = work.greatest_block(s.rows);
        let lengths = work.lengths.whole();
        let drawn = height * (WARP / group).floor().max(1.0);
        let waiting =
            lengths.expected_greatest(drawn as u32) / work.lengths.histogram().mean().max(1e-9);
        let waiting = 1.0 + WAITING * (waiting.min(4.0) - 1.0).max(-1.0);
        let step = subgroups * f64::from(s.unroll);
        let tiles = f64::from(s.panel.tiles);
        let warps = panels * entries * of_warp / subgroups;
        let arithmetic = height * work.arithmetic(s.panel.vector);
        self.add(Bound::Latency, panels * (entries * waiting / step + 3.0 * blocks) / concurrent);
        self.add(Bound::Chain, greatest / step + 2.0);
        let serial = greatest / subgroups * (tiles * (1.0 + arithmetic) + NONZERO + height);
        self.add(Bound::Serial, serial / work.rates.serial);
        self.add(Bound::Arithmetic, self.issued(warps * tiles * arithmetic));
        self.add(Bound::Indices, self.issued(warps * (NONZERO - 1.0 + height)));
        let stores =
            panels * blocks * height * of_warp * tiles * f64::from(s.panel.vector) * subgroups;
        self.add(Bound::Stores, self.issued(stores));
        self.add(Bound::Gather, entries * work.row_bytes() / (work.units() * work.rates.l2));
        match s.rows {
            2 => Class::RowBlock2,
            3 => Class::RowBlock3,
            _ => Class::RowBlock4,
        }
    }

    fn b_stationary(&mut self, s: &BStationary) -> Class {
        let work = self.work;
        let units = work.units();
        let panels = s.panel.number(work.columns());
        let panel_bytes = f64::from(s.panel.vector * s.panel.lanes * s.panel.tiles) * work.bytes();
        let rows = s.rows.max(1) as f64;
        let of_row = (work.problem.inner() as f64 / rows).ceil().max(1.0);
        let tiles = of_row * panels;
        // Multiprocessors that have nothing to do while others take a last tile.
        let imbalance = match tiles < units {
            true => units / ((units / tiles).floor() * tiles),
            false if tiles < 4.0 * units => (tiles / units).ceil() * units / tiles,
            false => 1.0,
        };
        let longest = f64::from(s.longest);
        // Rows are sampled alike, whatever their lengths: long ones have no more segments than there are tiles.
        let sampled = s.per_segment.max(1.0);
        let lengths = work.lengths.whole();
        let segments =
            lengths.sum_of(|length| (length / sampled).min(of_row).max(length / longest));
        let per_segment = (work.nnz() / segments.max(1.0)).max(1.0);
        let lanes = f64::from(s.panel.lanes);
        let of_warp = lanes / WARP;
        let groups = f64::from(s.block) / lanes;
        let l2 = units * work.rates.l2;
        let of_group = (imbalance * panels * segments / (units * groups)).max(1.0).ceil();
        let most = work.lengths.histogram().max() as f64;
        let vectors = f64::from(s.panel.tiles);
        let arithmetic = vectors * (1.0 + work.arithmetic(s.panel.vector));
        let warps = imbalance * panels * of_warp;
        let copies = tiles.max(units) * rows * panel_bytes / l2;
        let of_unit = (tiles / units).max(1.0);
        self.add(Bound::Copies, copies);
        // With several stages the first tile of a multiprocessor alone.
        self.add(Bound::Exposed, if s.stages > 1 { copies / of_unit } else { copies });
        self.add(Bound::Tiles, of_unit);
        self.add(
            Bound::Shared,
            imbalance * work.nnz() * work.row_bytes() / (units * work.rates.shared),
        );
        self.add(Bound::Arithmetic, self.issued(warps * work.nnz() * (arithmetic + NONZERO - 1.0)));
        self.add(Bound::Segments, self.issued(warps * segments * SEGMENT));
        self.add(Bound::Reductions, segments * work.row_bytes() / l2);
        let batches = 1.0 + per_segment / f64::from(s.batch);
        self.add(Bound::Latency, imbalance * panels * segments * batches / (units * groups));
        self.add(Bound::Chain, of_group * 0.1);
        let of_segment = longest.min(per_segment.max(most.min(longest) / 2.0));
        self.add(Bound::Serial, of_group * of_segment * (arithmetic + 6.0) / work.rates.serial);
        self.add(Bound::Longest, longest.min(most).min(rows) * 0.01);
        Class::BStationary
    }

    fn tensor(&mut self, s: &Tensor) -> Class {
        let work = self.work;
        let subgroups = f64::from(s.subgroups);
        let distinct = work.distinct(8);
        let entries = work.nnz() * distinct;
        let blocks = (work.lengths.histogram().rows() as f64 / 8.0).max(1.0);
        let panel = f64::from(s.panel);
        let panels = (work.columns() / panel).ceil();
        let chunks = entries / 16.0 + blocks * 0.5 * subgroups;
        let concurrent = work.units() * f64::from(s.resident) / WARP;
        let greatest = work.greatest_block(8) / 16.0 / subgroups;
        let longest = work.longest_block(8) / subgroups;
        self.add(Bound::Latency, panels * (chunks + 2.0 * blocks * subgroups) / concurrent);
        self.add(Bound::Chain, greatest + 2.0);
        self.add(Bound::Serial, greatest * (panel / 2.0 + 30.0) / work.rates.serial);
        self.add(Bound::Longest, longest * 0.01);
        self.add(Bound::Indices, self.issued(panels * work.nnz() / WARP * NONZERO));
        self.add(Bound::Arithmetic, self.issued(panels * chunks * (panel / 4.0 + 20.0)));
        self.add(Bound::Gather, entries * work.row_bytes() / (work.units() * work.rates.l2));
        self.add(Bound::Stores, self.issued(panels * blocks * panel * subgroups));
        Class::Tensor
    }
}

/// The work of subgroups of lanes.
#[derive(Default)]
struct Groups {
    /// Of every segment the subgroups that share it.
    subgroups: f64,
    /// Batches of nonzeros whose loads are in flight together.
    batches: f64,
    /// What comes before and after them, in the time of a batch.
    ends: f64,
    /// Nonzeros, idle lanes and subgroups counted in.
    nonzeros: f64,
    /// Sums that are added and stored: for each subgroup as many as share its segment in a warp.
    stores: f64,
    /// Time that groups wait for others of their warp, over that of their own work.
    waiting: f64,
    /// The subgroup with most work.
    path: Path,
}

/// What a subgroup does one after another.
#[derive(Default)]
struct Path {
    batches: f64,
    nonzeros: f64,
}

impl Segmented {
    /// The longest path of these segments.
    fn path(&self, segments: &LengthCounts) -> Path {
        let of = |nonzeros: f64, chunk: u32| Path {
            batches: (nonzeros / f64::from(chunk)).ceil(),
            nonzeros,
        };
        let greatest = segments.greatest();
        let long = of(greatest / f64::from(self.subgroups), self.chunk);
        let Some(short) = self.short else { return long };
        let own = of(segments.greatest_below(short.below), short.chunk);
        if greatest < short.below {
            return own;
        }
        Path { batches: own.batches.max(long.batches), nonzeros: own.nonzeros.max(long.nonzeros) }
    }
}

impl Short {
    /// Segments that a subgroup sums at the same time.
    fn at_once(&self) -> f64 {
        if self.at_once { f64::from(self.number) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::CsrView;

    use super::*;
    use crate::RowLengths;
    use crate::cost::Parameters;
    use crate::facts::row_lengths::COUNTS;

    /// The bounds of a schedule on rows of these lengths.
    fn bounds_of(rows: &[usize], schedule: Schedule) -> Vec<(Bound, f64)> {
        let mut counts = vec![0; COUNTS];
        for length in rows {
            counts[RowLengths::bin(*length as u64)] += 1;
        }
        counts[COUNTS - 1] = rows.iter().copied().max().unwrap_or(0) as u64;
        let nnz = rows.iter().sum();
        let histogram = RowLengths::new(rows.len(), nnz, counts).expect("counts");
        let a = CsrView::<f32, u32, u32>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
        let problem = Problem { rows: rows.len(), cols: 900, nnz, ..Problem::spmm(&a).columns(32) };
        let profile = DeviceProfile {
            name: String::new(),
            units: 132,
            lanes: 32,
            l2_bytes: 50 << 20,
            llc_bytes: 50 << 20,
        };
        let work = Work {
            problem: &problem,
            lengths: &Lengths::new(&histogram),
            similarity: RowSimilarity { distinct: [1.0; 4] },
            profile: &profile,
            rates: Parameters::of_gpus().rates,
        };
        work.bounds(&schedule).terms
    }

    fn bounds(rows: &[usize], schedule: Segmented) -> Vec<(Bound, f64)> {
        bounds_of(rows, Schedule::Segmented(schedule))
    }

    fn schedule(subgroups: u32, longest: Option<u32>, short: Option<Short>) -> Segmented {
        let panel = Panel { vector: 4, lanes: 8, tiles: 1 };
        let class = Class::ManyLoads;
        Segmented { class, panel, subgroups, warps: 1, chunk: 4, short, longest, resident: 1024 }
    }

    #[test]
    fn segments_that_nobody_shares_have_the_same_bounds_whoever_takes_them() {
        let rows: Vec<usize> = (0..500).map(|r| r * 7 % 61).chain([700]).collect();
        for (longest, below) in [(None, f64::INFINITY), (Some(64), 32.0)] {
            let several = Short { below, number: 2, at_once: false, chunk: 4 };
            let alone = bounds(&rows, schedule(1, longest, None));
            assert_eq!(bounds(&rows, schedule(1, longest, Some(several))), alone, "{longest:?}");
        }
    }

    #[test]
    fn sharing_shortens_the_longest_path_and_segments_at_once_the_latency() {
        let rows: Vec<usize> = (0..5000).map(|r| 1 + r % 7).chain([700]).collect();
        let of = |subgroups: u32, at_once: bool, bound: Bound| {
            let short = Short { below: 32.0, number: 2, at_once, chunk: 1 };
            let found = bounds(&rows, schedule(subgroups, Some(64), Some(short)));
            found.into_iter().find(|(b, _)| *b == bound).map_or(0.0, |(_, us)| us)
        };
        assert_eq!(of(1, false, Bound::Chain), 64.0 / 4.0 + 2.0);
        // Short segments of up to seven nonzeros, one at a time, are the longest path then.
        assert_eq!(of(4, false, Bound::Chain), 7.0 + 2.0);
        assert!(of(4, true, Bound::Latency) < 0.6 * of(4, false, Bound::Latency));
        assert!(of(4, false, Bound::Stores) > of(1, false, Bound::Stores));
    }

    #[test]
    fn several_stages_hide_the_copies_of_all_tiles_but_the_first() {
        let of = |rows: u64, stages: u32, bound: Bound| {
            let panel = Panel { vector: 2, lanes: 16, tiles: 1 };
            let (per_segment, longest, block, batch) = (4.0, 64, 1024, 4);
            let tile = BStationary { panel, rows, stages, per_segment, longest, block, batch };
            let found = bounds_of(&[30; 500], Schedule::BStationary(tile));
            found.into_iter().find(|(b, _)| *b == bound).map_or(0.0, |(_, us)| us)
        };
        // B has 900 rows: as many tiles, which the multiprocessors take one after another, or one.
        let rounds = of(1, 2, Bound::Tiles);
        assert!(rounds > 6.0, "{rounds} rounds of tiles");
        assert_eq!(of(1, 1, Bound::Exposed), of(1, 1, Bound::Copies));
        assert_eq!(of(1, 2, Bound::Exposed), of(1, 2, Bound::Copies) / rounds);
        assert_eq!(of(900, 2, Bound::Exposed), of(900, 1, Bound::Exposed));
    }
}
