//! Bounds of SpMV on a GPU, from the lengths of the rows.

use gustav_core::Problem;

use super::lengths::{LengthCounts, Lengths};
use super::parameters::Rates;
use super::{Bound, Bounds, Class};
use crate::DeviceProfile;

/// Lanes of a warp.
const WARP: f64 = 32.0;
/// Resident threads of a multiprocessor, unless a kernel takes more registers than these leave.
const RESIDENT: f64 = 2048.0;
/// Instructions for a nonzero: loads of A and x, an address, a multiplication.
const NONZERO: f64 = 6.0;
/// Instructions at the beginning and the end of a row or segment, and for each halving of its lanes.
const SEGMENT: f64 = 16.0;
const HALVING: f64 = 2.0;
/// Bytes that are read for a value of x.
const SECTOR: f64 = 32.0;
/// Bytes of an index.
const INDEX: f64 = 4.0;
/// Bytes of a cache line, which a load of a warp takes at once.
const LINE: f64 = 128.0;
/// Dependent loads before the first nonzero of a row or segment, in steps.
const STARTS: f64 = 2.0;

/// How a configuration divides the rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// `segmented`, rows in their order.
    InOrder(InOrder),
    /// `segmented`, segments from a list.
    Listed(Listed),
    /// `even-shares`.
    EvenShares(EvenShares),
}

/// Rows in their order, a group of lanes each; a warp for each part of a cut row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InOrder {
    /// Lanes of a row.
    pub lanes: u32,
    /// Nonzeros that a lane loads together.
    pub loads_in_flight: u32,
    /// Rows with more nonzeros are cut.
    pub longest: u32,
    /// Most nonzeros of a part.
    pub part: u32,
}

/// A list of segments, sorted by length in windows, a group of lanes each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Listed {
    /// Lanes of a segment.
    pub lanes: u32,
    /// Nonzeros that a lane loads together.
    pub chunk: u32,
    /// Nonzeros from which rows are cut.
    pub longest: u32,
    /// Resident threads of a multiprocessor.
    pub resident: u32,
}

/// Equal numbers of row starts and nonzeros for every CTA.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvenShares {
    /// Row starts and nonzeros of a thread.
    pub items: u32,
    /// Threads of a CTA.
    pub threads: u32,
    /// Resident threads of a multiprocessor.
    pub resident: u32,
}

/// A product, and the lengths of its rows.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The product.
    pub problem: &'a Problem,
    /// The lengths of its rows.
    pub lengths: &'a Lengths<'a>,
    /// The device.
    pub profile: &'a DeviceProfile,
    /// Its nominal rates.
    pub rates: Rates,
}

/// Groups of lanes and their work.
struct Groups<'a> {
    lanes: f64,
    /// Nonzeros that the group loads together.
    step: f64,
    resident: f64,
    /// Lengths of what the groups take.
    lengths: &'a LengthCounts,
    /// Time of a warp over that of its groups alone: it waits for the longest of them.
    waiting: f64,
    /// Whether neighbouring groups take neighbouring rows, so that short ones are in the same cache lines of A.
    neighbours: bool,
}

impl Work<'_> {
    /// The bounds of a configuration.
    pub fn bounds(&self, schedule: &Schedule) -> Bounds {
        let mut terms = self.common();
        let class = match schedule {
            Schedule::InOrder(s) => self.in_order(s, &mut terms),
            Schedule::Listed(s) => self.listed(s, &mut terms),
            Schedule::EvenShares(s) => self.even_shares(s, &mut terms),
        };
        // Several kinds of groups add to one bound.
        let mut sums: Vec<(Bound, f64)> = Vec::with_capacity(terms.len());
        for (bound, us) in terms.into_iter().filter(|term| term.1 > 0.0) {
            match sums.iter_mut().find(|sum| sum.0 == bound) {
                // Chains run beside each other.
                Some(sum) if bound == Bound::Chain => sum.1 = sum.1.max(us),
                Some(sum) => sum.1 += us,
                None => sums.push((bound, us)),
            }
        }
        Bounds { class, terms: sums }
    }

    fn units(&self) -> f64 {
        self.profile.units as f64
    }

    /// Bytes of a value.
    fn bytes(&self) -> f64 {
        self.problem.dtype.bytes() as f64
    }

    /// Instructions at the issue rate of the device, in microseconds.
    fn issued(&self, instructions: f64) -> f64 {
        instructions / (self.units() * self.rates.issue)
    }

    fn common(&self) -> Vec<(Bound, f64)> {
        let (rows, nnz) = (self.lengths.histogram().rows() as f64, self.problem.nnz as f64);
        let x = self.problem.inner() as f64 * self.bytes();
        let once = (nnz + rows) * (INDEX + self.bytes()) + x;
        let missing = (1.0 - self.profile.l2_bytes as f64 / x.max(1.0)).max(0.0);
        vec![
            (Bound::Execution, 1.0),
            (Bound::Class, 1.0),
            (Bound::Memory, once / self.rates.memory),
            (Bound::Misses, nnz * SECTOR * missing / self.rates.memory),
            (Bound::Gather, nnz * SECTOR / (self.units() * self.rates.l2)),
        ]
    }

    fn in_order(&self, s: &InOrder, terms: &mut Vec<(Bound, f64)>) -> Class {
        let (lanes, part) = (f64::from(s.lanes), f64::from(s.part));
        let (whole, longer) = LengthCounts::split(self.lengths.histogram(), s.longest);
        let steps = |length: f64| (length / (lanes * f64::from(s.loads_in_flight))).ceil();
        let mean = whole.sum_of(steps) / whole.number().max(1.0);
        let waiting = whole.expected_greatest_of(WARP as u32 / s.lanes, steps) / mean.max(1e-9);
        let cut = longer.in_parts(part);
        self.groups(
            &Groups {
                lanes,
                step: lanes * f64::from(s.loads_in_flight),
                resident: RESIDENT,
                lengths: &whole,
                waiting: waiting.max(1.0),
                neighbours: true,
            },
            terms,
        );
        let parts = cut.number();
        if parts > 0.0 {
            // A part of few loads has all of them in flight.
            let loads = if part <= 8.0 * WARP { 8.0 } else { f64::from(s.loads_in_flight) };
            let (lanes, step) = (WARP, WARP * loads);
            self.groups(
                &Groups {
                    lanes,
                    step,
                    resident: RESIDENT,
                    lengths: &cut,
                    waiting: 1.0,
                    neighbours: false,
                },
                terms,
            );
            terms.push((Bound::Parts, self.issued(parts * SEGMENT)));
            terms.push((Bound::Cut, 1.0));
            terms.push((
                Bound::FixUp,
                (self.lengths.histogram().max() as f64 / part / WARP).ceil() * 0.1,
            ));
        }
        Class::VectorInOrder
    }

    fn listed(&self, s: &Listed, terms: &mut Vec<(Bound, f64)>) -> Class {
        let lanes = f64::from(s.lanes);
        let groups = Groups {
            lanes,
            step: lanes * f64::from(s.chunk),
            resident: f64::from(s.resident),
            lengths: self.lengths.cut(s.longest),
            waiting: 1.0,
            neighbours: false,
        };
        self.groups(&groups, terms);
        let parts = self.lengths.parts(s.longest);
        if parts > 0.0 {
            terms.push((Bound::Parts, self.issued(parts * SEGMENT)));
            terms.push((Bound::Cut, 1.0));
            let of_longest = (self.lengths.histogram().max() as f64 / f64::from(s.longest)).ceil();
            terms.push((Bound::FixUp, of_longest * 0.1));
        }
        Class::VectorListed
    }

    fn groups(&self, g: &Groups<'_>, terms: &mut Vec<(Bound, f64)>) {
        let number = g.lengths.number();
        let steps = g.lengths.sum_of(|length| (length / g.step).ceil()) * g.waiting;
        let of_warp = g.lanes / WARP;
        let concurrent = self.units() * g.resident / g.lanes;
        let greatest = g.lengths.greatest();
        let loads = steps * g.step / g.lanes * of_warp;
        // A load of a warp, of indices or of values, touches a cache line of A for each of its groups; of a line that
        // neighbours fill together, a group counts the fraction that its row fills.
        let fraction = |bytes: f64| if g.neighbours { (bytes / LINE).min(1.0) } else { 1.0 };
        let lines = g.lengths.sum_of(|length| {
            let of_a_load = fraction(length * INDEX) + fraction(length * self.bytes());
            (length / g.step).ceil() * of_a_load
        }) * g.waiting
            * g.step
            / g.lanes;
        terms.push((Bound::Latency, (steps + STARTS * number) / concurrent));
        terms.push((Bound::Chain, (greatest / g.step).ceil() + STARTS));
        terms.push((Bound::Serial, greatest / g.lanes * NONZERO / self.rates.serial));
        terms.push((Bound::Indices, self.issued(loads * NONZERO)));
        terms.push((Bound::Lines, self.issued(lines)));
        let ends = SEGMENT + HALVING * g.lanes.log2();
        terms.push((Bound::Segments, self.issued(number * of_warp * ends)));
    }

    fn even_shares(&self, s: &EvenShares, terms: &mut Vec<(Bound, f64)>) -> Class {
        let (items, threads) = (f64::from(s.items), f64::from(s.threads));
        let (rows, nnz) = (self.lengths.histogram().rows() as f64, self.problem.nnz as f64);
        let work = (items * threads - 4.0).max(1.0);
        let partitions = ((rows + nnz) / work).ceil().max(1.0);
        let concurrent = self.units() * (f64::from(s.resident) / threads).floor().max(1.0);
        let warps = partitions * threads / WARP;
        terms.push((Bound::Latency, partitions / concurrent));
        terms.push((Bound::Chain, (partitions / concurrent).ceil()));
        terms.push((Bound::Serial, items * NONZERO / self.rates.serial));
        terms.push((Bound::Indices, self.issued(warps * items * NONZERO)));
        terms.push((Bound::Segments, self.issued(rows / WARP * SEGMENT)));
        terms.push((Bound::Stores, self.issued(warps * 5.0 * HALVING)));
        // CTAs wait for each other at barriers.
        terms.push((Bound::Tiles, threads / 1024.0));
        let of_longest = self.lengths.histogram().max() as f64 / work;
        if of_longest > 1.0 {
            terms.push((Bound::Cut, 1.0));
            terms.push((Bound::FixUp, (of_longest / WARP).ceil() * 0.1));
        }
        Class::VectorEvenShares
    }
}
