//! The gain of row orders (section IV of the study of row permutations for SpMM on GPUs): time with
//! rows as stored over time in another order or in the algorithm's own order.

use std::collections::{BTreeMap, BTreeSet};

use gustav_plan::{Algorithm, Order};

use super::platform::{Platform, Product};
use super::ratios::grouped;
use crate::{CHOOSERS, Case, Record};

/// A format that counts as an order of an algorithm.
struct Format {
    algorithm: &'static str,
    /// The algorithm that reads the format.
    reader: &'static str,
    /// Its name among orders.
    name: &'static str,
}

/// DCSR leaves out empty rows; the order `dcsr` puts them last. Configuration 7 has strips of eight columns, and as many
/// CTAs as fill the chip.
const FORMATS: [Format; 2] = [
    Format { algorithm: "output-stationary", reader: "dcsr", name: "dcsr (format)" },
    Format { algorithm: "output-stationary#7", reader: "dcsr#7", name: "dcsr (format)" },
];

/// The order that others are compared with, if it was measured.
const STORED: &str = Order::Stored.name();

/// The order of `segmented` if none is given.
const OWN: &str = "its own list";

/// What `reason` says of an order that was searched with a bound, and of another.
const BOUNDED: &str = "candidates a neighbourhood";
const EXACT: &str = "as it is defined";

/// One product of one algorithm over the matrices of a suite that it was measured on in several
/// orders. Matrices that the suite derives from others are a study apart: they resemble each other.
pub(crate) struct OrderStudy<'a> {
    pub platform: &'a Platform,
    pub suite: &'a str,
    pub is_of_derived: bool,
    pub product: Product,
    pub algorithm: &'a str,
    pub matrices: Vec<OrderedMatrix<'a>>,
    /// What gains are relative to.
    pub base: &'static str,
}

/// One matrix in several orders.
pub(crate) struct OrderedMatrix<'a> {
    /// The record of the algorithm without an order.
    pub own: &'a Record,
    /// The records of the orders.
    pub orders: BTreeMap<&'a str, &'a Record>,
    /// Gain over the study's base, of everything else.
    pub gains: BTreeMap<&'a str, f64>,
    base: &'static str,
    /// The fastest peer of the same rounds.
    pub peer: Option<&'a Record>,
    /// The record of the predictor's choice in the same rounds, which includes a trial if the
    /// choice has an order.
    pub predicted: Option<&'a Record>,
}

impl<'a> OrderedMatrix<'a> {
    /// The records of `own` in other orders in a round; `None` if there are none.
    fn of(own: &'a Record, round: &[&'a Record], reference_peers: &[String]) -> Option<Self> {
        let orders = orders(own, round);
        if orders.is_empty() {
            return None;
        }
        let mut all = orders.clone();
        let segmented = own.algorithm == Algorithm::Segmented.name();
        all.insert(if segmented { OWN } else { STORED }, own);
        let base = if all.contains_key(STORED) { STORED } else { OWN };
        let over = all.remove(base).and_then(|r| r.execute_ms);
        let gain = |(name, r): (&'a str, &'a Record)| Some((name, over? / r.execute_ms?));
        let gains = all.into_iter().filter_map(gain).collect();
        let peers = round.iter().filter(|r| reference_peers.contains(&r.engine)).copied();
        let peer = peers.min_by(|a, b| a.time().total_cmp(&b.time()));
        let predicted = round.iter().find(|r| r.is_ours() && r.algorithm == "predictor").copied();
        Some(OrderedMatrix { own, orders, gains, base, peer, predicted })
    }

    /// Gain of the best over the base, which may be the best.
    pub fn best_gain(&self) -> f64 {
        self.best_gain_of(|_| true)
    }

    /// The same of some of the orders.
    pub fn best_gain_of(&self, some: impl Fn(&str) -> bool) -> f64 {
        let gains = self.gains.iter().filter(|(order, _)| some(order));
        gains.map(|(_, gain)| *gain).fold(1.0, f64::max)
    }

    /// Time of the fastest peer over that of an order that gains so much.
    pub fn over_peer(&self, gain: f64) -> Option<f64> {
        let base = self.orders.get(self.base).unwrap_or(&self.own);
        Some(gain * self.peer?.execute_ms? / base.execute_ms?)
    }

    /// Gain of the best over rows as stored, where those are the base.
    pub fn gain_over_stored(&self) -> Option<f64> {
        (self.base == STORED).then(|| self.best_gain())
    }

    /// Gain of the best order over the algorithm without one, which may be the best itself.
    pub fn gain_over_own(&self) -> f64 {
        self.orders.values().map(|r| self.own.time() / r.time()).fold(1.0, f64::max)
    }

    /// The best order.
    pub fn best(&self) -> &str {
        let best = self.gains.iter().max_by(|a, b| a.1.total_cmp(b.1));
        best.filter(|(_, gain)| **gain > 1.0).map_or(self.base, |(order, _)| order)
    }

    /// After how many executions the fastest order is amortized; `None` where no order gains.
    pub fn break_even(&self) -> Option<BreakEven> {
        let best = self.orders.values().min_by(|a, b| a.time().total_cmp(&b.time()));
        let best = best.filter(|r| r.time() < self.own.time())?;
        let floor = |r: &Record| Some(100.0 * r.floor_ms? / r.execute_ms?);
        Some(BreakEven {
            order_ms: best.plan_ms? - self.own.plan_ms?,
            features_ms: best.features_ms,
            saved_ms: self.own.time() - best.time(),
            floors: floor(self.own).zip(floor(best)),
        })
    }
}

/// What the fastest order of a matrix costs and saves.
pub(crate) struct BreakEven {
    /// Planning with the order less planning without.
    pub order_ms: f64,
    pub features_ms: Option<f64>,
    saved_ms: f64,
    /// Percentage of the memory floor reached without the order and with it.
    pub floors: Option<(f64, f64)>,
}

impl BreakEven {
    /// Executions that repay the order.
    pub fn executions(&self) -> f64 {
        (self.order_ms / self.saved_ms).max(1.0)
    }

    /// Executions that repay the order and the features by which it was chosen.
    pub fn with_features(&self) -> Option<f64> {
        Some(((self.order_ms + self.features_ms?) / self.saved_ms).max(1.0))
    }
}

impl<'a> OrderStudy<'a> {
    /// The studies in the records of the platforms.
    pub fn all(platforms: &'a [Platform]) -> Vec<Self> {
        platforms.iter().flat_map(Self::of).collect()
    }

    fn of(platform: &'a Platform) -> Vec<Self> {
        let plain = |r: &&Record| {
            let name = r.algorithm.as_str();
            r.is_ours() && !name.contains('@') && !CHOOSERS.contains(&name)
        };
        let ordered = |round: &[&Record]| round.iter().any(|r| r.algorithm.contains('@'));
        let of_suite = |(suite, rounds): (&'a str, Vec<(&'a Case, Vec<&'a Record>)>)| {
            let matrices = rounds.into_iter().flat_map(|(case, round)| {
                let own: Vec<_> = round.iter().copied().filter(plain).collect();
                let of = |own| OrderedMatrix::of(own, &round, &platform.reference_peers);
                let found: Vec<_> = own.into_iter().filter_map(of).collect();
                found.into_iter().map(|matrix| (case.is_derived(), matrix))
            });
            let keyed = matrices.map(|(derived, m)| {
                let algorithm = m.own.algorithm.as_str();
                ((Product::of_any_width(m.own), algorithm, m.base, derived), m)
            });
            let study = |((product, algorithm, base, is_of_derived), matrices)| OrderStudy {
                platform,
                suite,
                is_of_derived,
                product,
                algorithm,
                matrices,
                base,
            };
            grouped(keyed).into_iter().map(study).collect::<Vec<_>>()
        };
        platform.rounds_by_suite(ordered).into_iter().flat_map(of_suite).collect()
    }

    /// What gains are relative to, as text.
    pub fn over(&self) -> &'static str {
        if self.base == STORED { "rows as stored" } else { OWN }
    }

    /// The suite, and whether its derived matrices.
    pub fn matrices_of(&self) -> String {
        let derived = if self.is_of_derived { ", derived" } else { "" };
        format!("{}{derived}", self.suite)
    }

    /// The id of its figures: the platform, the product, the algorithm, the matrices, and the base
    /// unless it is rows as stored.
    pub fn id(&self) -> String {
        let OrderStudy { platform, product, algorithm, .. } = self;
        let over = if self.base == STORED { "" } else { " over its list" };
        format!("{} {} {algorithm} {}{over}", platform.name, product.title(), self.matrices_of())
    }

    /// The orders that were measured, and the algorithm's own list beside rows as stored.
    pub fn orders(&self) -> BTreeSet<&str> {
        self.matrices.iter().flat_map(|m| m.gains.keys().copied()).collect()
    }

    /// Gains of one order.
    pub fn gains(&self, order: &str) -> Vec<f64> {
        self.matrices.iter().filter_map(|m| m.gains.get(order).copied()).collect()
    }

    /// On how many matrices the search of a greedy order was bounded; `None` where no record says how
    /// it searched.
    pub fn bounded(&self, order: &str) -> Option<usize> {
        let records = self.matrices.iter().filter_map(|m| m.orders.get(order));
        let reasons: Vec<_> = records.filter_map(|r| r.reason.as_deref()).collect();
        let count = |words: &str| reasons.iter().filter(|reason| reason.contains(words)).count();
        let [bounded, exact] = [BOUNDED, EXACT].map(count);
        (bounded + exact > 0).then_some(bounded)
    }

    /// Gains by order, the best of all orders last.
    pub fn gains_by_order(&self) -> Vec<(&str, Vec<f64>)> {
        let best = self.matrices.iter().map(OrderedMatrix::best_gain).collect();
        let orders = self.orders().into_iter().map(|order| (order, self.gains(order)));
        orders.chain([("best of all", best)]).collect()
    }

    /// A greedy portfolio: each order is the one that adds the most to the mean gain of the best of
    /// those before it; with that mean.
    pub fn portfolio(&self) -> Vec<(&str, f64)> {
        let mut best = vec![1.0f64; self.matrices.len()];
        let mut left: Vec<_> = self.orders().into_iter().collect();
        let mut portfolio = Vec::new();
        while !left.is_empty() {
            let with = |order: &str| -> Vec<f64> {
                let gain = |k: usize| self.matrices[k].gains.get(order).copied().unwrap_or(1.0);
                best.iter().enumerate().map(|(k, gained)| gained.max(gain(k))).collect()
            };
            let mean = |gains: &[f64]| gains.iter().sum::<f64>() / gains.len() as f64;
            let means: Vec<f64> = left.iter().map(|order| mean(&with(order))).collect();
            let next = (0..left.len()).max_by(|a, b| means[*a].total_cmp(&means[*b])).unwrap_or(0);
            best = with(left[next]);
            portfolio.push((left.remove(next), means[next]));
        }
        portfolio
    }
}

/// The orders of `own`'s algorithm in the same rounds.
fn orders<'a>(own: &Record, round: &[&'a Record]) -> BTreeMap<&'a str, &'a Record> {
    let order = |r: &&'a Record| {
        let name = r.algorithm.as_str();
        let named = name.split_once('@').filter(|(algorithm, _)| *algorithm == own.algorithm);
        let reads = |f: &&Format| f.algorithm == own.algorithm && f.reader == name;
        named.map(|(_, order)| order).or(FORMATS.iter().find(reads).map(|f| f.name))
    };
    let ours = round.iter().filter(|r| r.is_ours() && r.execute_ms.is_some());
    let found: BTreeMap<_, _> = ours.filter_map(|r| Some((order(r)?, *r))).collect();
    // Formats count only if orders were measured in the same rounds.
    let formats_alone = found.keys().all(|name| FORMATS.iter().any(|f| f.name == *name));
    if formats_alone { BTreeMap::new() } else { found }
}

#[cfg(test)]
mod tests;
