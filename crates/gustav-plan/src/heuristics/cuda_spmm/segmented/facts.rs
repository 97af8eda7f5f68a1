//! What the rules of `segmented` know of a problem.

use gustav_core::Problem;

use super::super::{THREADS, nearest_power, vectors};
use super::{longest_brief, microseconds, near, panels_pay};
use crate::{DeviceProfile, RowLengths};

/// Rows with as many nonzeros are long: their loads hide each other.
const LONG: f64 = 28.0;
/// Rows may vary this much around their mean and still be taken in order.
const EVEN: f64 = 0.106;
/// Short rows are taken in order when none is longer than the second, however they vary when none is
/// longer than the third.
const EVEN_SHORT: (f64, usize, usize) = (8.06, 54, 8);
/// Lane groups of a full chip, that many times, have no need of long flights; the second of short rows, none
/// of which is longer than `FLIGHT`.
pub(super) const PLENTY: (f64, f64) = (4.0, 0.7);
const FLIGHT: usize = 16;
/// Rows none of which takes a sub-group longer than this many nonzeros stay whole and in order where all of
/// them are on the chip at once: a list of them would be one more thing to wait for.
const BRIEF_ROW: usize = 44;
/// Parts of a full chip that such rows take at most: one sub-group a row, several, and several where a row of B
/// has 32 vectors.
const BRIEF_FILL: (f64, f64, f64) = (0.6, 0.8, 0.4);
/// Rows none of which is longer than this have no need of several.
const SHORTEST_SHARED: usize = 5;
/// Long rows need no cutting when none is longer than this many times the mean: the second where
/// each can have a warp, all at once.
const WHOLE: (f64, f64) = (1.85, 3.5);
/// Rows of B of fewer vectors are little beside A.
const SLENDER: f64 = 1.0;
/// Parts of a full chip that such warps take at most.
const AT_ONCE: f64 = 1.2;
/// Longer rows than this many times the mean make others wait.
const MILD: f64 = 8.0;
/// Where none is, long rows are cut at this.
const MILD_CUT: u32 = 512;
/// Nonzeros of a segment for every microsecond of the product.
const CUT: f64 = 1.68;
/// The same of runs, whose segments may be longer than the second.
const CUT_RUNS: (f64, f64) = (1.5, 256.0);
/// So many come first of runs and of copies; the rest stay among their neighbours. At most the second, and the
/// third where rows of B are copied.
const FIRST: (f64, u32, u32) = (0.5, 256, 64);
/// More of them where loads are in long flights.
const SPEED: f64 = 2.0;
/// The quickest products wait for their longest segment: what this length would do for, and up to which,
/// where one or two sub-groups take it in long flights; the second for 16-bit values.
const SHORTEST: u32 = 32;
const SHORT: (f64, f64) = (38.0, 42.0);
/// Rows up to this many times the mean stay whole where there are many.
const ORDINARY: f64 = 0.81;
/// Rows of more nonzeros on average are cut at the second.
const HUGE_MEAN: f64 = 1024.0;
const HUGE_ROWS: u32 = 128;
/// Threads in parts of a full chip below which sub-groups share segments, and long whole rows; at 64
/// columns in f32, going with this power of the width; so many times as many for rows of B of 64 vectors.
const FILL: (f64, f64, f64) = (1.42, 1.45, 1.2);
const FILL_WIDTH: f64 = -0.5;
/// Whole long rows whose sub-groups take this part of a chip have no need of long flights: the second
/// for 16-bit values, whose products are instructions more than loads; the third and fourth where registers for
/// fewer loads let all of them be there at once, which those for long flights do not.
const FILLED: (f64, f64, f64, f64) = (1.8, 1.4, 0.85, 1.0);
/// Parts of a full chip that eight sub-groups of each whole row take at most.
const EIGHT: f64 = 0.625;
/// Rows that cannot fill this part of a chip with a warp each, of so many nonzeros on average, are cut; the
/// second pair, that leave it nearly empty.
const STARVED: [(f64, f64); 2] = [(0.25, 1024.0), (0.05, 256.0)];
/// The shortest such cut; the second of 16-bit values. Shorter where that gives every multiprocessor the third
/// number of segments.
const STARVED_CUT: (f64, f64, f64) = (512.0, 256.0, 4.0);
/// Parts of a row at most, where rows are cut to fill the chip: one group adds them up.
const PARTS: f64 = 512.0;
/// Nonzeros of a segment for each sub-group, and where all segments are on the chip at once.
const LENGTH: (f64, f64) = (17.7, 8.8);
/// Microseconds of a product of 16-bit values below which two sub-groups share a segment, and the mean
/// from which one takes chunks of two.
const QUICK: f64 = 16.0;
const PLAIN: f64 = 15.0;
/// Nonzeros on average below which, and microseconds of a product from which such rows have no need of long
/// flights; the part of the usual length at which they are cut then, and vectors of a panel, whose time
/// counts.
const WIDE_FLIGHTS: (f64, f64) = (5.0, 16.0);
const WIDE_CUT: (f64, f64) = (0.5, 64.0);
/// Vectors of such rows of B up to which two sub-groups share a long row.
const WIDE_SHARED: f64 = 32.0;
/// Parts of a full chip up to which all sub-groups of whole long rows of 8-byte values are on the chip at once
/// with registers for long flights; vectors of such a row of B at most.
const WIDE_ROOM: (f64, f64) = (0.625, 16.0);
/// 16-bit values whose nonzeros, seen from one of them, lie in rows of more than this, in rows of fewer
/// than this on average: a few rows are long, and many threads are worth more than long flights.
const UNEVEN: (f64, f64) = (15.0, 4.0);
/// Nonzeros of 16-bit values that see rows so many times the mean lie in hubs.
const HUBS: f64 = 100.0;
/// Hubs are cut at this.
const HUB_CUT: u32 = 64;
/// Columns of 4-byte values that no vector of 16 bytes divides, at most, of which lanes hold so few that
/// registers leave room for more threads: the second in pairs.
const RAGGED: (usize, usize) = (80, 48);
/// Long rows of 16-bit values that two sub-groups would share are cut at this, for four of them.
const SHARED_CUT: u32 = 256;
/// Rows of B of fewer vectors are too little for runs, half as many where the product lasts; of as many as the
/// second, long rows go in runs as well.
pub(super) const RUN_WIDTH: (f64, f64) = (16.0, 64.0);
/// Microseconds of a product, B and C moved once included, from which short rows of half as many vectors go in
/// runs, of 4-byte values; the second of long rows of up to the third on average and up to so many vectors.
const LASTING: (f64, f64, f64, f64) = (65.0, 85.0, 72.0, 32.0);
/// Runs of 16-bit values have fewer loads on their way, by more threads, from so many microseconds of
/// gathering on, where a row of B has so many vectors at most; for every microsecond, nonzeros from which a row
/// comes first.
const CROWDED: (f64, f64, f64) = (100.0, 16.0, 0.25);
/// Two sub-groups share long rows that are cut, with few loads on their way, where a row of B has more vectors
/// than the first and no more than the second, from so many microseconds of gathering on.
const PAIRED: (f64, f64, f64) = (16.0, 32.0, 45.0);
/// Bytes per second that memory moves, roughly.
const MOVED: f64 = 4.2e12;
/// Vectors of the widest panel with runs, two a lane.
const RUN_PANEL: u64 = 32;

/// How rows become segments.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Cut {
    /// Whole, in their order: alike, or few enough to be on the chip at once.
    InOrder,
    /// Whole, long ones first.
    Whole,
    /// At a fixed length that few rows reach.
    Mild,
    /// To fill the chip, which a few rows of thousands do not.
    Starved,
    /// By the time that the product takes.
    Timed,
}

/// What the rules know of a problem.
pub(super) struct Facts<'a> {
    problem: &'a Problem,
    pub(super) rows: &'a RowLengths,
    profile: &'a DeviceProfile,
    /// Nonzeros of a filled row.
    pub(super) mean: f64,
    /// Threads of a full chip, and those of a warp a row.
    pub(super) full: f64,
    pub(super) warps: f64,
    /// Rows, empty ones included, which have a place in the list as well.
    pub(super) listed: f64,
    /// The time that gathering takes, roughly.
    microseconds: f64,
    /// Vectors of 16 bytes in a row of B, and lanes that hold two each.
    pub(super) vectors: f64,
    pub(super) lanes: f64,
    /// Values of 8 bytes fill registers, those of 2 take instructions.
    pub(super) wide: bool,
    pub(super) slow_sums: bool,
    long: bool,
    brief: bool,
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
            brief: microseconds < longest_brief(vectors),
            cut: Cut::Timed,
        };
        facts.cut = facts.choose_cut();
        facts
    }

    fn choose_cut(&self) -> Cut {
        let (rows, mean) = (self.rows, self.mean);
        let longest = rows.max() as f64 / mean.max(1.0);
        let short = mean < EVEN_SHORT.0 && rows.variation() < 1.0 && rows.max() <= EVEN_SHORT.1
            || rows.max() <= EVEN_SHORT.2;
        let starved = |(part, least): (f64, f64)| mean >= least && self.warps < part * self.full;
        if STARVED.into_iter().any(starved) {
            Cut::Starved
        } else if self.alike() || short || self.at_once() || self.brief_rows().is_some() {
            Cut::InOrder
        } else if self.long && longest <= WHOLE.0 {
            // Best as A is stored.
            if self.slender() { Cut::InOrder } else { Cut::Whole }
        } else if self.long && !self.brief && longest <= MILD && (self.narrow() || self.slow_sums) {
            Cut::Mild
        } else {
            Cut::Timed
        }
    }

    /// Whether long rows not too unlike can have a warp each, all at once.
    fn at_once(&self) -> bool {
        let alike = self.rows.max() as f64 <= WHOLE.1 * self.mean.max(1.0);
        self.long && self.vectors <= 16.0 && alike && self.warps <= AT_ONCE * self.full
    }

    /// Whether rows have about one length.
    fn alike(&self) -> bool {
        self.rows.variation() < EVEN
    }

    /// Sub-groups of a row, where all of them are on the chip at once and none takes long.
    fn brief_rows(&self) -> Option<u32> {
        let most = if self.rows.max() > SHORTEST_SHARED { 4 } else { 1 };
        [4, 2, 1].into_iter().find(|&share| {
            let room = match share {
                1 => BRIEF_FILL.0,
                _ if self.vectors < 32.0 => BRIEF_FILL.1,
                _ => BRIEF_FILL.2,
            };
            let group = self.lanes * f64::from(share);
            share <= most
                && group <= 32.0
                && self.listed * group <= room * self.full
                && self.rows.max() <= BRIEF_ROW * share as usize
        })
    }

    /// Whether a row of B is a line of the caches.
    pub(super) fn narrow(&self) -> bool {
        self.vectors <= 8.0
    }

    /// Whether rows of B are so few columns that A is most of what is read.
    pub(super) fn slender(&self) -> bool {
        self.vectors <= SLENDER
    }

    fn whole(&self) -> bool {
        matches!(self.cut, Cut::InOrder | Cut::Whole)
    }

    /// The length at which rows are cut before sub-groups and flights have their say.
    fn first_cut(&self) -> f64 {
        let cut = match self.cut {
            Cut::Starved => {
                let least = if self.slow_sums { STARVED_CUT.1 } else { STARVED_CUT.0 };
                let even = self.problem.nnz as f64 / (STARVED_CUT.2 * self.profile.units as f64);
                nearest_power((self.mean / PARTS).max(least.min(even))).clamp(64, 4096)
            }
            _ => nearest_power(self.microseconds * CUT).clamp(64, 1024),
        };
        f64::from(cut)
    }

    /// Segments, and nonzeros of those that hold most.
    fn segments(&self) -> (f64, f64) {
        if self.whole() {
            return (self.listed, self.mean);
        }
        let first = self.first_cut();
        (self.listed + self.problem.nnz as f64 / first, self.rows.mean_of_nonzeros().min(first))
    }

    /// Sub-groups of a segment: more where there are too few segments to fill the chip.
    pub(super) fn share(&self) -> u32 {
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
        if let (Cut::InOrder, Some(share)) = (self.cut, self.brief_rows())
            && !(self.long && (self.alike() || self.at_once()))
        {
            return share;
        }
        let (segments, length) = self.segments();
        let part = if self.long && self.whole() { FILL.1 } else { FILL.0 };
        let fill = part * self.full * (self.vectors / 16.0).powf(FILL_WIDTH);
        let fill = if self.vectors >= 64.0 { FILL.2 * fill } else { fill };
        let least = if self.at_once() { LENGTH.1 } else { LENGTH.0 };
        let mut share = 1;
        // Eight that are not all on the chip at once wait for each other.
        let fits =
            |share: u32| share < 8 || segments * self.lanes * f64::from(share) <= EIGHT * self.full;
        while share < most
            && segments * self.lanes * f64::from(share) < fill
            && length >= least * f64::from(share)
            && (!self.whole() || fits(2 * share))
        {
            share *= 2;
        }
        if self.cut == Cut::Timed && self.wide && self.long && self.vectors <= WIDE_SHARED {
            return share.max(2);
        }
        if self.cut != Cut::Timed || !self.slow_sums || self.vectors < 16.0 {
            return share;
        }
        let quick = self.microseconds < QUICK;
        match share {
            1 if quick || self.long && self.brief && self.vectors <= 16.0 => 2,
            2 if self.long && self.vectors <= 16.0 => 4,
            share => share,
        }
    }

    /// Whether 16-bit rows are short but for a few.
    pub(super) fn uneven(&self) -> bool {
        let skewed = self.rows.mean_of_nonzeros() > UNEVEN.0 * self.mean;
        self.slow_sums && self.mean < UNEVEN.1 && skewed
    }

    /// Whether brief products of 16-bit rows, neither short nor long, have a sub-group a row.
    fn is_plain(&self, share: u32) -> bool {
        let ordinary = share == 1 && self.mean >= PLAIN && !self.long;
        self.slow_sums && self.brief && self.cut == Cut::Timed && self.vectors <= 16.0 && ordinary
    }

    /// Whether a few rows hold so much of a 16-bit matrix that they are worth many parts.
    fn has_hubs(&self) -> bool {
        let hubs = self.rows.mean_of_nonzeros() > HUBS * self.mean;
        self.slow_sums && self.brief && self.vectors <= 16.0 && hubs
    }

    /// Whether short rows in order are read value by value, or in pairs, and lanes hold few of them: many
    /// threads hide what single loads wait for.
    pub(super) fn ragged(&self) -> bool {
        let columns = self.problem.columns;
        let few = match columns % 4 {
            0 => false,
            2 => columns <= RAGGED.1,
            _ => columns <= RAGGED.0,
        };
        let single = self.problem.dtype.bytes() == 4 && few && self.vectors > 1.0;
        single && self.cut == Cut::InOrder && self.mean < EVEN_SHORT.0
    }

    /// Whether a sub-group takes a listed row of a few values of 8 bytes in short flights: many threads ask
    /// for as much.
    pub(super) fn wide_list(&self, share: u32) -> bool {
        let lasts = self.mean < WIDE_FLIGHTS.0 || self.microseconds >= WIDE_FLIGHTS.1;
        self.wide && self.cut == Cut::Timed && share == 1 && !self.long && lasts
    }

    /// Whether rows of 8-byte values are shared, in order or listed in short flights, so that lanes have no
    /// need of long ones.
    fn wide_light(&self, share: u32) -> bool {
        let light = self.wide_list(share) || share > 1 || self.cut == Cut::InOrder;
        self.wide && light && !self.wide_room(share)
    }

    /// Whether sub-groups of long rows of few 8-byte values leave so much of the chip idle that all of them
    /// have registers for long flights.
    pub(super) fn wide_room(&self, share: u32) -> bool {
        let threads = self.listed * self.lanes * f64::from(share);
        let idle = self.whole() && threads <= WIDE_ROOM.0 * self.full;
        self.wide && self.long && share > 1 && idle && self.vectors <= WIDE_ROOM.1
    }

    /// Whether long 16-bit rows are shared by many sub-groups, a warp each.
    pub(super) fn shared_by_warps(&self, share: u32) -> bool {
        let long = self.slow_sums && self.long && self.cut == Cut::Timed;
        long && share > 2 && self.vectors == 16.0
    }

    /// Nonzeros of A at once where many loads are under way: fewer of 16-bit values, which fill registers
    /// when they are widened, unless a few long rows want them.
    pub(super) fn in_flight(&self, share: u32) -> u32 {
        let light = match share {
            1 => self.mean >= PLAIN && !self.long,
            2 => !self.long || self.vectors <= 16.0,
            _ => self.cut != Cut::Starved,
        };
        if self.slow_sums && self.vectors >= 16.0 && light { 2 } else { 4 }
    }

    /// Whether sub-groups share cut rows of 16-bit values, of which a few at once leave registers for
    /// more threads.
    pub(super) fn short_flights(&self, share: u32) -> bool {
        self.slow_sums && self.cut == Cut::Timed && share > 1 && self.in_flight(share) == 2
    }

    /// Whether whole long rows fill the chip by themselves, so that loads of warps hide each other.
    pub(super) fn filled(&self, share: u32) -> bool {
        let part = if self.slow_sums { FILLED.1 } else { FILLED.0 };
        let group = (self.lanes * f64::from(share)).min(32.0);
        let filled = self.rows.filled() as f64 * group / self.full;
        let together = (share > 1 || self.vectors >= 64.0) && filled >= part;
        let wide = self.wide && !self.wide_room(share);
        self.whole() && self.long && (wide || together || self.one_wave(share))
    }

    /// Whether whole long rows are on the chip at once with registers for short flights alone.
    pub(super) fn one_wave(&self, share: u32) -> bool {
        let filled = self.rows.filled() as f64 * self.lanes * f64::from(share) / self.full;
        let waits = self.whole() && self.long && share > 1 && self.vectors <= 16.0;
        !self.slow_sums && waits && filled > FILLED.2 && filled <= FILLED.3
    }

    /// Whether a lane has many loads under way.
    pub(super) fn flights(&self, share: u32) -> bool {
        // Rows enough to fill the chip need none of that.
        let short = self.mean < EVEN_SHORT.0 && self.rows.max() <= FLIGHT;
        let part = if short { PLENTY.1 } else { PLENTY.0 };
        let plenty = self.cut == Cut::InOrder && self.listed * self.lanes >= part * self.full;
        match self.cut {
            Cut::Starved => true,
            Cut::Mild => false,
            _ if self.filled(share) || self.uneven() || self.is_plain(share) => false,
            _ if self.wide_light(share) => false,
            _ => share > 1 || !plenty && (self.brief || self.long && !self.wide && !self.slow_sums),
        }
    }

    /// Whether a group takes two listed segments one after another, so that it does not wait for A.
    pub(super) fn runs(&self, share: u32) -> bool {
        let listed = matches!(self.cut, Cut::Mild | Cut::Timed);
        let least = match self.long {
            true if self.long_runs() => RUN_WIDTH.0 / 2.0,
            true if self.crowded_runs() => RUN_WIDTH.0,
            true => RUN_WIDTH.1,
            false if self.lasts(LASTING.0) => RUN_WIDTH.0 / 2.0,
            false => RUN_WIDTH.0,
        };
        listed && share == 1 && self.may_run() && self.vectors >= least
    }

    /// Whether a product of values other than 16-bit ones takes so many microseconds, B and C moved once
    /// included.
    fn lasts(&self, least: f64) -> bool {
        let row = (self.problem.columns * self.problem.dtype.bytes()) as f64;
        let moved = (self.problem.inner() as f64 + self.listed) * row / MOVED * 1e6;
        !self.slow_sums && self.microseconds + moved >= least
    }

    /// Whether rows are long, but not too long for runs over few vectors, and many.
    fn long_runs(&self) -> bool {
        let rows = self.long && self.mean <= LASTING.2;
        let few = (RUN_WIDTH.0 / 2.0..=LASTING.3).contains(&self.vectors);
        rows && few && self.lasts(LASTING.1)
    }

    /// Whether two sub-groups share long rows of 4-byte values that are cut where one each would do: more of their
    /// rows are under way at once, and meet in L1 what others have read.
    pub(super) fn paired(&self, share: u32) -> bool {
        let whole = self.vectors.fract() == 0.0 && self.mean <= HUGE_MEAN;
        let width = self.vectors > PAIRED.0 && self.vectors <= PAIRED.1 && whole;
        let lasts = !self.wide && !self.slow_sums && self.microseconds >= PAIRED.2;
        lasts && width && self.cut == Cut::Timed && self.long && share == 1 && !self.runs(share)
    }

    /// Whether many threads, with a few loads each, take runs of 16-bit values: where there are many runs, and
    /// widening fills registers.
    pub(super) fn crowded_runs(&self) -> bool {
        let lasts = self.microseconds >= CROWDED.0 && self.vectors <= CROWDED.1;
        self.slow_sums && self.cut == Cut::Timed && lasts
    }

    /// Whether rows of B are whole vectors, in panels of which less than a quarter is idle, of values that leave
    /// registers for what is on its way.
    pub(super) fn may_run(&self) -> bool {
        // A third vector a lane would not fit, and idle lanes cost more than runs gain.
        let panel = (self.vectors as u64).next_power_of_two().min(RUN_PANEL);
        let idle = (self.vectors as u64).next_multiple_of(panel) as f64 - self.vectors;
        !self.wide && self.vectors.fract() == 0.0 && 3.0 * idle < self.vectors
    }

    /// The length of segments at most: a small part of the product's time, while ordinary rows stay
    /// whole.
    pub(super) fn longest(&self, share: u32, flights: bool, runs: bool) -> u32 {
        match self.cut {
            Cut::InOrder | Cut::Whole => {
                (self.rows.max() + 1).next_power_of_two().clamp(64, 4096) as u32
            }
            Cut::Starved => self.first_cut() as u32,
            Cut::Mild => MILD_CUT,
            Cut::Timed if self.mean > HUGE_MEAN => HUGE_ROWS,
            Cut::Timed if self.shared_by_warps(share) => SHARED_CUT,
            Cut::Timed if self.has_hubs() => HUB_CUT,
            Cut::Timed => {
                let speed = match flights {
                    true if self.long && self.short_flights(share) => 1.0,
                    true => SPEED,
                    false if self.wide_list(share) => {
                        WIDE_CUT.0 / (self.vectors / WIDE_CUT.1).ceil()
                    }
                    false => 1.0,
                } * f64::from(share);
                let many = self.segments().0 * self.lanes > 0.2 * self.full;
                let ordinary = if many { ORDINARY * self.mean } else { 0.0 };
                let most = if self.wide || flights || runs { 1024 } else { 256 };
                let cut = self.microseconds * CUT * speed;
                let lasting = (self.microseconds * CUT_RUNS.0).max(CUT_RUNS.1);
                let cut = if runs { cut.min(lasting) } else { cut }.max(ordinary);
                let short = if self.slow_sums { SHORT.1 } else { SHORT.0 };
                let least = if flights && share <= 2 && cut < short { SHORTEST } else { 64 };
                nearest_power(cut).clamp(least, most)
            }
        }
    }

    /// Nonzeros from which rows of a list that is cut by time come first, in runs or where rows of B pass through
    /// shared memory.
    pub(super) fn first(&self, longest: u32, runs: bool, copies: bool) -> Option<u32> {
        let most = if runs { FIRST.1 } else { FIRST.2 };
        let part = if runs && self.crowded_runs() { CROWDED.2 } else { FIRST.0 };
        let first = nearest_power(self.microseconds * part).clamp(32, most);
        (self.cut == Cut::Timed && (runs || copies)).then(|| first.min(longest))
    }

    /// Lanes at most, so that panels are narrow where that pays.
    pub(super) fn most_lanes(&self, share: u32, flights: bool) -> u32 {
        let wide_rows = self.vectors >= 32.0;
        if self.cut == Cut::Starved {
            32 / share
        } else if self.mean > HUGE_MEAN && wide_rows && share == 1 {
            // A few rows: panels make more of them.
            (self.vectors / 8.0).clamp(2.0, 16.0) as u32
        } else if self.cut == Cut::InOrder
            && !flights
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
