//! What row orders gain (section IV of the study of row permutations for SpMM on GPUs): time with
//! rows as stored over time in another order, or over that of a list which an algorithm makes by itself.

mod break_even;
mod kernel;
mod portfolio;
mod spread;

use std::collections::{BTreeMap, BTreeSet};

use super::super::figure::slug;
use super::super::site::{CHOOSERS, Product, Site};
use crate::Record;
use gustav_plan::{Algorithm, Order};

/// The formats of an algorithm that count as an order of it: rows that are empty are left out.
const FORMATS: [(&str, &str); 1] = [("output-stationary", "dcsr")];

/// The order that others are compared with, where it was measured.
const STORED: &str = Order::Stored.name();

/// What `segmented` does without an order.
const OWN: &str = "its own list";

/// What an algorithm does without an order.
fn unordered(algorithm: &str) -> &'static str {
    if algorithm == Algorithm::Segmented.name() { OWN } else { STORED }
}

/// Of `orders` of an algorithm and of what it does without one, `own`: what gains are over, rows as stored where
/// those were measured, and everything else with its gain.
pub(crate) fn gains<'a>(
    own: &'a Record,
    orders: impl IntoIterator<Item = (&'a str, &'a Record)>,
) -> (&'static str, Vec<(&'a str, f64)>) {
    let mut all: BTreeMap<_, _> = orders.into_iter().collect();
    all.insert(unordered(&own.algorithm), own);
    let base = if all.contains_key(STORED) { STORED } else { OWN };
    let over = all.remove(base).and_then(|r| r.execute_ms);
    let gain = |(name, r): (&'a str, &'a Record)| Some((name, over? / r.execute_ms?));
    (base, all.into_iter().filter_map(gain).collect())
}

/// One product of one algorithm over the matrices that it was measured on in several orders.
struct Study<'a> {
    site: &'a Site,
    product: Product,
    algorithm: &'a str,
    /// What gains are over.
    base: &'static str,
    matrices: Vec<Matrix<'a>>,
}

/// One matrix in several orders.
struct Matrix<'a> {
    /// The record of the algorithm without an order.
    own: &'a Record,
    /// The records of the orders.
    orders: BTreeMap<&'a str, &'a Record>,
    /// Gain over the study's base, of everything else.
    gains: BTreeMap<&'a str, f64>,
    base: &'static str,
    /// The fastest peer of the same rounds.
    peer: Option<&'a Record>,
    /// What the predictor took in the same rounds, after a trial where that has an order.
    predicted: Option<&'a Record>,
}

impl Matrix<'_> {
    /// Gain of the best over the base, which may be the best.
    fn oracle(&self) -> f64 {
        self.gains.values().copied().fold(1.0, f64::max)
    }

    /// Gain of the best order over what the algorithm does without one, which may be the best.
    fn over_own(&self) -> f64 {
        self.orders.values().map(|r| time(self.own) / time(r)).fold(1.0, f64::max)
    }

    /// The best order.
    fn best(&self) -> &str {
        let best = self.gains.iter().max_by(|a, b| a.1.total_cmp(b.1));
        best.filter(|(_, gain)| **gain > 1.0).map_or(self.base, |(order, _)| order)
    }
}

impl<'a> Study<'a> {
    /// The studies that the records of the places hold.
    fn all(sites: &'a [Site]) -> Vec<Self> {
        let mut found = Vec::new();
        for site in sites {
            let mut groups = BTreeMap::<(Product, &str, &str), Vec<Matrix<'_>>>::new();
            let ordered = |round: &[&Record]| round.iter().any(|r| r.algorithm.contains('@'));
            for (_, round) in site.rounds_with(ordered) {
                for own in round.iter().filter(|r| r.engine == "gustav") {
                    if own.algorithm.contains('@') || CHOOSERS.contains(&own.algorithm.as_str()) {
                        continue;
                    }
                    let orders = orders(own, &round);
                    if orders.is_empty() {
                        continue;
                    }
                    let (base, gains) = gains(own, orders.iter().map(|(name, r)| (*name, *r)));
                    let gains = gains.into_iter().collect();
                    let peers = round.iter().filter(|r| site.rivals.contains(&r.engine)).copied();
                    let peer = peers.min_by(|a, b| time(a).total_cmp(&time(b)));
                    let timed = |r: &&&Record| r.engine == "gustav" && r.execute_ms.is_some();
                    let mut ours = round.iter().filter(timed).copied();
                    let predicted = ours.find(|r| r.algorithm == "predictor");
                    let key = (Product::of_any_width(own), own.algorithm.as_str(), base);
                    let matrix = Matrix { own, orders, gains, base, peer, predicted };
                    groups.entry(key).or_default().push(matrix);
                }
            }
            found.extend(groups.into_iter().filter_map(|((product, algorithm, _), matrices)| {
                let base = matrices.first()?.base;
                Some(Study { site, product, algorithm, base, matrices })
            }));
        }
        found
    }

    /// What gains are over, in words.
    fn over(&self) -> &'static str {
        if self.base == STORED { "rows as stored" } else { OWN }
    }

    /// The orders that were measured, and the algorithm's own list beside rows as stored.
    fn orders(&self) -> BTreeSet<&str> {
        self.matrices.iter().flat_map(|m| m.gains.keys().copied()).collect()
    }

    /// Gains of one order.
    fn of(&self, order: &str) -> Vec<f64> {
        self.matrices.iter().filter_map(|m| m.gains.get(order).copied()).collect()
    }

    /// The file of its figure `what`.
    fn id(&self, what: &str) -> String {
        let Study { site, product, algorithm, .. } = self;
        let (name, variant) = (product.name(), product.variant());
        let over = if self.base == STORED { "" } else { " over its list" };
        slug(&format!("{what} {} {name} {variant} {algorithm}{over}", site.name))
    }

    /// The title of its figure that shows `what`.
    fn title(&self, what: &str) -> String {
        let Study { site, product, algorithm, .. } = self;
        format!("{algorithm}, {} {}, {}: {what}", product.name(), product.variant(), site.name)
    }
}

fn time(r: &Record) -> f64 {
    r.execute_ms.unwrap_or(f64::INFINITY)
}

/// The orders of `own`'s algorithm in the same rounds.
fn orders<'a>(own: &Record, round: &[&'a Record]) -> BTreeMap<&'a str, &'a Record> {
    let order = |r: &&'a Record| {
        let name = r.algorithm.as_str();
        let named = name.split_once('@').filter(|(algorithm, _)| *algorithm == own.algorithm);
        // The format is an order when orders stand beside it.
        let format = FORMATS.iter().find(|f| **f == (own.algorithm.as_str(), name));
        named.map(|(_, order)| order).or(format.map(|_| name))
    };
    let ours = round.iter().filter(|r| r.engine == "gustav" && r.execute_ms.is_some());
    let found: BTreeMap<_, _> = ours.filter_map(|r| Some((order(r)?, *r))).collect();
    let formats_alone = found.keys().all(|name| FORMATS.iter().any(|f| f.1 == *name));
    if formats_alone { BTreeMap::new() } else { found }
}

pub(crate) use break_even::{all as break_even, table as break_even_table};
pub(crate) use kernel::all as kernel;
pub(crate) use portfolio::all as portfolio;
pub(crate) use spread::{all as spread, table};
