//! Facts about a problem from which `segmented` is tuned.

use gustav_core::Problem;

use super::super::{THREADS, nearest_power, vectors};
use super::{longest_short_product, microseconds, near, panels_pay};
use crate::{DeviceProfile, RowLengths};

/// Mean row length from which rows are long: the loads of one row hide each other's latency.
const LONG: f64 = 28.0;
/// Largest coefficient of variation of the row lengths with which rows are taken in order.
const EVEN: f64 = 0.106;
/// Short rows are taken in order: below this mean row length, ...
const SHORT_MEAN: f64 = 8.06;
/// ... if none is longer than this, in nonzeros, ...
const SHORT_LONGEST: usize = 54;
/// ... and for any variation if none is longer than this.
const SHORTEST_LONGEST: usize = 8;
/// Lane groups of all rows ÷ lane groups of a full device from which few loads in flight are
/// enough; ...
pub(super) const PLENTY: f64 = 4.0;
/// ... the same for short rows, none of which is longer than [`MANY_LOADS_ROW`].
const PLENTY_SHORT: f64 = 0.7;
const MANY_LOADS_ROW: usize = 16;
/// Longest row, in nonzeros per subgroup, with which rows that are all resident at once stay whole
/// and in order: a list would only add a dependent load.
const RESIDENT_ROW: usize = 44;
/// Largest fraction of a full device that such rows may fill, with one subgroup per row, ...
const RESIDENT_FILL_ONE: f64 = 0.6;
/// ... with several, ...
const RESIDENT_FILL_SEVERAL: f64 = 0.8;
/// ... and with several if a row of B has 32 vectors.
const RESIDENT_FILL_WIDE: f64 = 0.4;
/// If no row is longer than this, rows have one subgroup each.
const SHORTEST_SHARED: usize = 5;
/// Largest ratio of the longest row to the mean with which long rows stay whole; ...
const WHOLE: f64 = 1.85;
/// ... the same if every row has a warp and all are resident at once.
const WHOLE_AT_ONCE: f64 = 3.5;
/// Most vectors of a row of B with which B is small compared to A.
const SLENDER: f64 = 1.0;
/// Largest fraction of a full device that a warp for every row may fill for all to be resident at once.
const AT_ONCE: f64 = 1.2;
/// Ratio of the longest row to the mean up to which the load imbalance is mild.
const MILD: f64 = 8.0;
/// Nonzeros of a segment if it is mild.
const MILD_CUT: u32 = 512;
/// Nonzeros of a segment for every microsecond of the product.
const CUT: f64 = 1.68;
/// The same with several segments per group, ...
const CUT_SEVERAL: f64 = 1.5;
/// ... whose segments have at least this many nonzeros.
const CUT_SEVERAL_LEAST: f64 = 256.0;
/// Length, in nonzeros per microsecond of the product, from which a row is in the head of the list,
/// with several segments per group or copies of B.
const HEAD: f64 = 0.5;
/// Upper bound of that length, in nonzeros; ...
const HEAD_MOST: u32 = 256;
/// ... the same with copies of B.
const HEAD_MOST_COPIES: u32 = 64;
/// Speedup of a group with many loads in flight.
const SPEED: f64 = 2.0;
/// Nonzeros of the shortest segment.
const SHORTEST: u32 = 32;
/// A cut length up to this is reduced to [`SHORTEST`], with many loads in flight and at most two
/// subgroups: the fastest products wait for their longest segment. ...
const SHORT: f64 = 38.0;
/// ... The same for 16-bit values.
const SHORT_16_BIT: f64 = 42.0;
/// Ratio to the mean up to which rows stay whole if there are many.
const ORDINARY: f64 = 0.81;
/// Mean row length above which rows are cut at [`HUGE_ROWS`].
const HUGE_MEAN: f64 = 1024.0;
const HUGE_ROWS: u32 = 128;
/// Fraction of a full device below which several subgroups share a segment, with 64 columns in f32; ...
const FILL: f64 = 1.42;
/// ... the same for whole long rows; ...
const FILL_LONG: f64 = 1.45;
/// ... both grow by this factor for rows of B of 64 vectors, ...
const FILL_WIDE: f64 = 1.2;
/// ... and in proportion to the width of B to this power.
const FILL_WIDTH: f64 = -0.5;
/// If the subgroups of whole long rows fill this fraction of a full device, few loads in flight are enough; ...
const FILLED: f64 = 1.8;
/// ... the same for 16-bit values, which are bound by instructions rather than loads.
const FILLED_16_BIT: f64 = 1.4;
/// Lower bound of the fraction of a full device for which all subgroups are resident with the
/// registers of few loads in flight, but not with those of many.
const ONE_WAVE_ABOVE: f64 = 0.85;
const ONE_WAVE_UP_TO: f64 = 1.0;
/// Largest fraction of a full device that eight subgroups per whole row may fill.
const EIGHT: f64 = 0.625;
/// Few long rows, which cannot fill the device.
struct Starved {
    /// Largest fraction of a full device that a warp for every row fills.
    fill: f64,
    /// Least mean nonzeros of a row.
    mean: f64,
}
/// Rows that meet either condition are cut to fill the device.
const STARVED: [Starved; 2] =
    [Starved { fill: 0.25, mean: 1024.0 }, Starved { fill: 0.05, mean: 256.0 }];
/// Nonzeros of the shortest segment of such rows; ...
const STARVED_CUT: f64 = 512.0;
/// ... the same for 16-bit values; ...
const STARVED_CUT_16_BIT: f64 = 256.0;
/// ... segments are shorter if that gives every multiprocessor this many.
const STARVED_SEGMENTS: f64 = 4.0;
/// Most segments of a row that is cut to fill the device; one group adds up their sums.
const PARTS: f64 = 512.0;
/// Least nonzeros of a segment per subgroup; ...
const LENGTH: f64 = 17.7;
/// ... the same if all segments are resident at once.
const LENGTH_AT_ONCE: f64 = 8.8;
/// Microseconds of a product of 16-bit values below which two subgroups share a segment.
const QUICK: f64 = 16.0;
/// Mean row length from which one subgroup takes chunks of two.
const PLAIN: f64 = 15.0;
/// Rows of 8-byte values in a list take few loads in flight below this mean row length, ...
const WIDE_MANY_LOADS_MEAN: f64 = 5.0;
/// ... or from so many microseconds of the product on.
const WIDE_MANY_LOADS_US: f64 = 16.0;
/// Such rows are cut at this fraction of the usual length, ...
const WIDE_CUT: f64 = 0.5;
/// ... for every panel of so many vectors.
const WIDE_CUT_PANEL: f64 = 64.0;
/// Most vectors of a row of B, for 8-byte values, with which two subgroups share a long row.
const WIDE_SHARED: f64 = 32.0;
/// Largest fraction of a full device with which all subgroups of whole long rows of 8-byte values
/// are resident with the registers of many loads in flight, ...
const WIDE_FITS: f64 = 0.625;
/// ... for rows of B of up to this many vectors.
const WIDE_FITS_VECTORS: f64 = 16.0;
/// Rows of 16-bit values are uneven if the mean over the nonzeros of their row's length exceeds
/// this many times the mean row length, ...
const UNEVEN: f64 = 15.0;
/// ... and the latter is below this: many threads then gain more than many loads in flight.
const UNEVEN_MEAN: f64 = 4.0;
/// The same ratio of means, above which a few rows of 16-bit values are hubs.
const HUBS: f64 = 100.0;
/// Nonzeros of a segment of a hub.
const HUB_CUT: u32 = 64;
/// Most columns of 4-byte values, read one at a time, with which lanes hold so few sums that
/// registers allow more threads; ...
const RAGGED: usize = 80;
/// ... the same for columns that are read in pairs.
const RAGGED_PAIRS: usize = 48;
/// Nonzeros at which long rows of 16-bit values are cut if warps share them.
const SHARED_CUT: u32 = 256;
/// Least vectors of a row of B for several segments per group, half as many if the product takes long; ...
pub(super) const SEVERAL_WIDTH: f64 = 16.0;
/// ... the same for long rows.
const SEVERAL_WIDTH_LONG: f64 = 64.0;
/// Microseconds of a product of 4-byte values, including moving B and C once, from which half as
/// many vectors are enough for short rows; ...
const LASTING_US: f64 = 65.0;
/// ... the same for long rows ...
const LASTING_LONG_US: f64 = 85.0;
/// ... of up to this mean, in nonzeros, ...
const LASTING_LONG_MEAN: f64 = 72.0;
/// ... and up to so many vectors of a row of B.
const LASTING_LONG_VECTORS: f64 = 32.0;
/// With 16-bit values, several segments per group run with more threads and fewer loads in flight from so many
/// microseconds on, ...
const CROWDED_US: f64 = 100.0;
/// ... for rows of B of up to this many vectors; ...
const CROWDED_VECTORS: f64 = 16.0;
/// ... this replaces [`HEAD`] then.
const CROWDED_HEAD: f64 = 0.25;
/// Two subgroups share long rows that are cut, with few loads in flight, where a row of B has more vectors than this,
/// ...
const PAIRED_ABOVE: f64 = 16.0;
/// ... up to this many, ...
const PAIRED_UP_TO: f64 = 32.0;
/// ... and from so many microseconds of the product on.
const PAIRED_US: f64 = 45.0;
/// Approximate memory bandwidth in bytes per second.
const MOVED: f64 = 4.2e12;
/// Vectors of the widest panel with several segments per group, two per lane.
const SEVERAL_PANEL: u64 = 32;

/// How rows become segments.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Cut {
    /// Whole, in their order: of similar length, or few enough to be resident at once.
    InOrder,
    /// Whole, long ones first.
    Whole,
    /// Cut at a fixed length that few rows reach.
    Mild,
    /// Cut to fill the device, which a few rows of thousands of nonzeros would not.
    Starved,
    /// Cut at a length proportional to the estimated time of the product.
    Timed,
}

/// Facts about a problem that the rules use.
pub(super) struct Facts<'a> {
    problem: &'a Problem,
    pub(super) rows: &'a RowLengths,
    profile: &'a DeviceProfile,
    /// Mean nonzeros of the rows that have any.
    pub(super) mean: f64,
    /// Threads of a full device, and those of a warp for every row.
    pub(super) full: f64,
    pub(super) warps: f64,
    /// Rows, including empty ones, which are in the list as well.
    pub(super) listed: f64,
    /// Estimated time of the gathers.
    microseconds: f64,
    /// Vectors of 16 bytes in a row of B, and lanes if each holds two.
    pub(super) vectors: f64,
    pub(super) lanes: f64,
    /// Whether values have 8 bytes, which take more registers; whether they have 2 bytes, which
    /// take more instructions.
    pub(super) wide: bool,
    pub(super) slow_sums: bool,
    long: bool,
    short_product: bool,
    pub(super) cut: Cut,
}

impl<'a> Facts<'a> {
    pub(super) fn new(
        problem: &'a Problem,
        rows: &'a RowLengths,
        profile: &'a DeviceProfile,
    ) -> Self {
        let mean = rows.mean_filled();
        let full = profile.units as f64 * THREADS;
        let microseconds = microseconds(problem, profile);
        let vectors = vectors(problem);
        let mut facts = Facts {
            problem,
            rows,
            profile,
            mean,
            full,
            warps: rows.filled() as f64 * 32.0,
            listed: rows.rows() as f64,
            microseconds,
            vectors,
            lanes: (vectors / 2.0).clamp(1.0, 32.0),
            wide: problem.dtype.bytes() == 8,
            slow_sums: problem.dtype.bytes() == 2,
            long: mean >= LONG,
            short_product: microseconds < longest_short_product(vectors),
            cut: Cut::Timed,
        };
        facts.cut = facts.choose_cut();
        facts
    }

    fn choose_cut(&self) -> Cut {
        let (rows, mean) = (self.rows, self.mean);
        let longest = rows.max() as f64 / mean.max(1.0);
        let short = mean < SHORT_MEAN && rows.variation() < 1.0 && rows.max() <= SHORT_LONGEST
            || rows.max() <= SHORTEST_LONGEST;
        let starved = |s: &Starved| mean >= s.mean && self.warps < s.fill * self.full;
        if STARVED.iter().any(starved) {
            Cut::Starved
        } else if self.alike() || short || self.at_once() || self.resident_rows().is_some() {
            Cut::InOrder
        } else if self.long && longest <= WHOLE {
            if self.slender() { Cut::InOrder } else { Cut::Whole }
        } else if self.long
            && !self.short_product
            && longest <= MILD
            && (self.narrow() || self.slow_sums)
        {
            Cut::Mild
        } else {
            Cut::Timed
        }
    }

    /// Whether long rows of similar length can have a warp each, all resident at once.
    fn at_once(&self) -> bool {
        let alike = self.rows.max() as f64 <= WHOLE_AT_ONCE * self.mean.max(1.0);
        self.long && self.vectors <= 16.0 && alike && self.warps <= AT_ONCE * self.full
    }

    /// Whether rows have similar lengths.
    fn alike(&self) -> bool {
        self.rows.variation() < EVEN
    }

    /// Subgroups of a row if all of them are resident at once and no row is long.
    fn resident_rows(&self) -> Option<u32> {
        let most = if self.rows.max() > SHORTEST_SHARED { 4 } else { 1 };
        [4, 2, 1].into_iter().find(|&subgroups| {
            let fill = match subgroups {
                1 => RESIDENT_FILL_ONE,
                _ if self.vectors < 32.0 => RESIDENT_FILL_SEVERAL,
                _ => RESIDENT_FILL_WIDE,
            };
            let group = self.lanes * f64::from(subgroups);
            subgroups <= most
                && group <= 32.0
                && self.listed * group <= fill * self.full
                && self.rows.max() <= RESIDENT_ROW * subgroups as usize
        })
    }

    /// Whether a row of B fits a cache line.
    pub(super) fn narrow(&self) -> bool {
        self.vectors <= 8.0
    }

    /// Whether B has so few columns that most of the bytes read are A's.
    pub(super) fn slender(&self) -> bool {
        self.vectors <= SLENDER
    }

    fn whole(&self) -> bool {
        matches!(self.cut, Cut::InOrder | Cut::Whole)
    }

    /// The length at which rows are cut, before it is adapted to subgroups and loads in flight.
    fn first_cut(&self) -> f64 {
        let cut = match self.cut {
            Cut::Starved => {
                let least = if self.slow_sums { STARVED_CUT_16_BIT } else { STARVED_CUT };
                let even = self.problem.nnz as f64 / (STARVED_SEGMENTS * self.profile.units as f64);
                nearest_power((self.mean / PARTS).max(least.min(even))).clamp(64, 4096)
            }
            _ => nearest_power(self.microseconds * CUT).clamp(64, 1024),
        };
        f64::from(cut)
    }

    /// Number of segments, and the length of those that hold most of the matrix.
    fn segments(&self) -> (f64, f64) {
        if self.whole() {
            return (self.listed, self.mean);
        }
        let first = self.first_cut();
        (self.listed + self.problem.nnz as f64 / first, self.rows.mean_of_nonzeros().min(first))
    }

    /// Subgroups of a segment: several if there are too few segments to fill the device.
    pub(super) fn subgroups(&self) -> u32 {
        let most = match self.vectors {
            v if v <= 8.0 => 8,
            v if v <= 32.0 => 4,
            _ => 2,
        };
        match self.cut {
            Cut::Starved => return most.max(4),
            Cut::Mild => return if self.narrow() { 2 } else { 1 },
            _ => {}
        }
        if let (Cut::InOrder, Some(subgroups)) = (self.cut, self.resident_rows())
            && !(self.long && (self.alike() || self.at_once()))
        {
            return subgroups;
        }
        let (segments, length) = self.segments();
        let part = if self.long && self.whole() { FILL_LONG } else { FILL };
        let fill = part * self.full * (self.vectors / 16.0).powf(FILL_WIDTH);
        let fill = if self.vectors >= 64.0 { FILL_WIDE * fill } else { fill };
        let least = if self.at_once() { LENGTH_AT_ONCE } else { LENGTH };
        let mut subgroups = 1;
        // Eight subgroups per row pay only if all of them are resident at once.
        let fits = |subgroups: u32| {
            subgroups < 8 || segments * self.lanes * f64::from(subgroups) <= EIGHT * self.full
        };
        while subgroups < most
            && segments * self.lanes * f64::from(subgroups) < fill
            && length >= least * f64::from(subgroups)
            && (!self.whole() || fits(2 * subgroups))
        {
            subgroups *= 2;
        }
        if self.cut == Cut::Timed && self.wide && self.long && self.vectors <= WIDE_SHARED {
            return subgroups.max(2);
        }
        if self.cut != Cut::Timed || !self.slow_sums || self.vectors < 16.0 {
            return subgroups;
        }
        let quick = self.microseconds < QUICK;
        match subgroups {
            1 if quick || self.long && self.short_product && self.vectors <= 16.0 => 2,
            2 if self.long && self.vectors <= 16.0 => 4,
            subgroups => subgroups,
        }
    }

    /// Whether all but a few rows of 16-bit values are short.
    pub(super) fn uneven(&self) -> bool {
        let skewed = self.rows.mean_of_nonzeros() > UNEVEN * self.mean;
        self.slow_sums && self.mean < UNEVEN_MEAN && skewed
    }

    /// Whether this is a short product of 16-bit values with rows that are neither short nor long and have one
    /// subgroup each.
    fn is_plain(&self, subgroups: u32) -> bool {
        let ordinary = subgroups == 1 && self.mean >= PLAIN && !self.long;
        self.slow_sums
            && self.short_product
            && self.cut == Cut::Timed
            && self.vectors <= 16.0
            && ordinary
    }

    /// Whether a few rows hold so much of a 16-bit matrix that cutting them finely pays.
    fn has_hubs(&self) -> bool {
        let hubs = self.rows.mean_of_nonzeros() > HUBS * self.mean;
        self.slow_sums && self.short_product && self.vectors <= 16.0 && hubs
    }

    /// Whether lanes read short rows in order one value or one pair at a time and hold few of them:
    /// more threads then hide the latency of the loads.
    pub(super) fn ragged(&self) -> bool {
        let columns = self.problem.columns;
        let few = match columns % 4 {
            0 => false,
            2 => columns <= RAGGED_PAIRS,
            _ => columns <= RAGGED,
        };
        let single = self.problem.dtype.bytes() == 4 && few && self.vectors > 1.0;
        single && self.cut == Cut::InOrder && self.mean < SHORT_MEAN
    }

    /// Whether listed short rows of 8-byte values take few loads in flight: more threads have as many together.
    pub(super) fn wide_list(&self, subgroups: u32) -> bool {
        let lasts = self.mean < WIDE_MANY_LOADS_MEAN || self.microseconds >= WIDE_MANY_LOADS_US;
        self.wide && self.cut == Cut::Timed && subgroups == 1 && !self.long && lasts
    }

    /// Whether rows of 8-byte values are shared, in order, or listed with few loads in flight.
    fn wide_light(&self, subgroups: u32) -> bool {
        let light = self.wide_list(subgroups) || subgroups > 1 || self.cut == Cut::InOrder;
        self.wide && light && !self.wide_fits(subgroups)
    }

    /// Whether the subgroups of long rows of 8-byte values leave so much of the device idle that registers allow many
    /// loads in flight.
    pub(super) fn wide_fits(&self, subgroups: u32) -> bool {
        let threads = self.listed * self.lanes * f64::from(subgroups);
        let idle = self.whole() && threads <= WIDE_FITS * self.full;
        self.wide && self.long && subgroups > 1 && idle && self.vectors <= WIDE_FITS_VECTORS
    }

    /// Whether many subgroups, together a warp, share each long row of 16-bit values.
    pub(super) fn shared_by_warps(&self, subgroups: u32) -> bool {
        let long = self.slow_sums && self.long && self.cut == Cut::Timed;
        long && subgroups > 2 && self.vectors == 16.0
    }

    /// Nonzeros of A loaded together with many loads in flight: fewer for 16-bit values, which take
    /// more registers when they are widened, unless a few long rows dominate.
    pub(super) fn in_flight(&self, subgroups: u32) -> u32 {
        let light = match subgroups {
            1 => self.mean >= PLAIN && !self.long,
            2 => !self.long || self.vectors <= 16.0,
            _ => self.cut != Cut::Starved,
        };
        if self.slow_sums && self.vectors >= 16.0 && light { 2 } else { 4 }
    }

    /// Whether subgroups share cut rows of 16-bit values with few loads in flight, which leaves registers for more
    /// threads.
    pub(super) fn few_loads(&self, subgroups: u32) -> bool {
        self.slow_sums && self.cut == Cut::Timed && subgroups > 1 && self.in_flight(subgroups) == 2
    }

    /// Whether whole long rows fill the device, so that loads of different warps hide each other.
    pub(super) fn filled(&self, subgroups: u32) -> bool {
        let part = if self.slow_sums { FILLED_16_BIT } else { FILLED };
        let group = (self.lanes * f64::from(subgroups)).min(32.0);
        let filled = self.rows.filled() as f64 * group / self.full;
        let together = (subgroups > 1 || self.vectors >= 64.0) && filled >= part;
        let wide = self.wide && !self.wide_fits(subgroups);
        self.whole() && self.long && (wide || together || self.one_wave(subgroups))
    }

    /// Whether whole long rows are resident at once only with registers for few loads in flight.
    pub(super) fn one_wave(&self, subgroups: u32) -> bool {
        let filled = self.rows.filled() as f64 * self.lanes * f64::from(subgroups) / self.full;
        let waits = self.whole() && self.long && subgroups > 1 && self.vectors <= 16.0;
        !self.slow_sums && waits && filled > ONE_WAVE_ABOVE && filled <= ONE_WAVE_UP_TO
    }

    /// Whether a lane has many loads in flight.
    pub(super) fn many_loads(&self, subgroups: u32) -> bool {
        // Rows that fill the device need few loads in flight.
        let short = self.mean < SHORT_MEAN && self.rows.max() <= MANY_LOADS_ROW;
        let part = if short { PLENTY_SHORT } else { PLENTY };
        let plenty = self.cut == Cut::InOrder && self.listed * self.lanes >= part * self.full;
        match self.cut {
            Cut::Starved => true,
            Cut::Mild => false,
            _ if self.filled(subgroups) || self.uneven() || self.is_plain(subgroups) => false,
            _ if self.wide_light(subgroups) => false,
            _ => {
                subgroups > 1
                    || !plenty && (self.short_product || self.long && !self.wide && !self.slow_sums)
            }
        }
    }

    /// Whether a group takes two listed segments one after another: loads of A for the second overlap the first.
    pub(super) fn several_segments(&self, subgroups: u32) -> bool {
        let listed = matches!(self.cut, Cut::Mild | Cut::Timed);
        let least = match self.long {
            true if self.several_long_segments() => SEVERAL_WIDTH / 2.0,
            true if self.several_by_many_threads() => SEVERAL_WIDTH,
            true => SEVERAL_WIDTH_LONG,
            false if self.lasts(LASTING_US) => SEVERAL_WIDTH / 2.0,
            false => SEVERAL_WIDTH,
        };
        listed && subgroups == 1 && self.may_take_several() && self.vectors >= least
    }

    /// Whether a product of values other than 16-bit ones takes at least `least` microseconds,
    /// including moving B and C once.
    fn lasts(&self, least: f64) -> bool {
        let row = (self.problem.columns * self.problem.dtype.bytes()) as f64;
        let moved = (self.problem.inner() as f64 + self.listed) * row / MOVED * 1e6;
        !self.slow_sums && self.microseconds + moved >= least
    }

    /// Whether long rows take several segments per group although rows of B have few vectors.
    fn several_long_segments(&self) -> bool {
        let rows = self.long && self.mean <= LASTING_LONG_MEAN;
        let few = (SEVERAL_WIDTH / 2.0..=LASTING_LONG_VECTORS).contains(&self.vectors);
        rows && few && self.lasts(LASTING_LONG_US)
    }

    /// Whether two subgroups share cut long rows of 4-byte values although one would suffice: the
    /// rows in flight then reuse each other's rows of B in L1.
    pub(super) fn paired(&self, subgroups: u32) -> bool {
        let whole = self.vectors.fract() == 0.0 && self.mean <= HUGE_MEAN;
        let width = self.vectors > PAIRED_ABOVE && self.vectors <= PAIRED_UP_TO && whole;
        let lasts = !self.wide && !self.slow_sums && self.microseconds >= PAIRED_US;
        lasts
            && width
            && self.cut == Cut::Timed
            && self.long
            && subgroups == 1
            && !self.several_segments(subgroups)
    }

    /// Whether several segments per group of 16-bit values run with many threads and few loads in
    /// flight each, because widened values take more registers.
    pub(super) fn several_by_many_threads(&self) -> bool {
        let lasts = self.microseconds >= CROWDED_US && self.vectors <= CROWDED_VECTORS;
        self.slow_sums && self.cut == Cut::Timed && lasts
    }

    /// Whether several segments per group are possible: rows of B are whole vectors, less than a quarter of a panel's
    /// lanes are idle, and values leave registers for the loads in flight.
    pub(super) fn may_take_several(&self) -> bool {
        // A third vector per lane would not fit in registers, and idle lanes cost more than several
        // segments gain.
        let panel = (self.vectors as u64).next_power_of_two().min(SEVERAL_PANEL);
        let idle = (self.vectors as u64).next_multiple_of(panel) as f64 - self.vectors;
        !self.wide && self.vectors.fract() == 0.0 && 3.0 * idle < self.vectors
    }

    /// Most nonzeros of a segment: a small part of the product's time, while ordinary rows stay whole.
    pub(super) fn longest(&self, subgroups: u32, many_loads: bool, several_segments: bool) -> u32 {
        match self.cut {
            Cut::InOrder | Cut::Whole => {
                (self.rows.max() + 1).next_power_of_two().clamp(64, 4096) as u32
            }
            Cut::Starved => self.first_cut() as u32,
            Cut::Mild => MILD_CUT,
            Cut::Timed if self.mean > HUGE_MEAN => HUGE_ROWS,
            Cut::Timed if self.shared_by_warps(subgroups) => SHARED_CUT,
            Cut::Timed if self.has_hubs() => HUB_CUT,
            Cut::Timed => {
                let speed = match many_loads {
                    true if self.long && self.few_loads(subgroups) => 1.0,
                    true => SPEED,
                    false if self.wide_list(subgroups) => {
                        WIDE_CUT / (self.vectors / WIDE_CUT_PANEL).ceil()
                    }
                    false => 1.0,
                } * f64::from(subgroups);
                let many = self.segments().0 * self.lanes > 0.2 * self.full;
                let ordinary = if many { ORDINARY * self.mean } else { 0.0 };
                let most = if self.wide || many_loads || several_segments { 1024 } else { 256 };
                let cut = self.microseconds * CUT * speed;
                let lasting = (self.microseconds * CUT_SEVERAL).max(CUT_SEVERAL_LEAST);
                let cut = if several_segments { cut.min(lasting) } else { cut }.max(ordinary);
                let short = if self.slow_sums { SHORT_16_BIT } else { SHORT };
                let least = if many_loads && subgroups <= 2 && cut < short { SHORTEST } else { 64 };
                nearest_power(cut).clamp(least, most)
            }
        }
    }

    /// Nonzeros from which a row is in the head of a list that is cut by time, with several segments per group or with
    /// copies of B.
    pub(super) fn first(&self, longest: u32, several_segments: bool, copies: bool) -> Option<u32> {
        let most = if several_segments { HEAD_MOST } else { HEAD_MOST_COPIES };
        let part =
            if several_segments && self.several_by_many_threads() { CROWDED_HEAD } else { HEAD };
        let first = nearest_power(self.microseconds * part).clamp(32, most);
        (self.cut == Cut::Timed && (several_segments || copies)).then(|| first.min(longest))
    }

    /// Most lanes of a row of B: fewer make narrower panels where that pays.
    pub(super) fn most_lanes(&self, subgroups: u32, many_loads: bool) -> u32 {
        let wide_rows = self.vectors >= 32.0;
        if self.cut == Cut::Starved {
            32 / subgroups
        } else if self.mean > HUGE_MEAN && wide_rows && subgroups == 1 {
            // With few rows, narrower panels make more work items.
            (self.vectors / 8.0).clamp(2.0, 16.0) as u32
        } else if self.cut == Cut::InOrder
            && !many_loads
            && wide_rows
            && !near(self.problem, self.profile)
        {
            if self.wide { 16 } else { 8 }
        } else if !self.wide && panels_pay(self.problem, self.profile) {
            16
        } else {
            32
        }
    }
}
