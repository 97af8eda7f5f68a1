//! The orders of the source, written down as it defines them: every place looks at every row.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use gustav_core::Csr;
use gustav_plan::orders::{NO_ROW, Order, Search, WarpShape};
use gustav_testkit::battery::matrices::{matrices, random_rows, unsorted};

struct Reference {
    loads: Vec<usize>,
    masks: Vec<BTreeSet<usize>>,
    warps: usize,
}

impl Reference {
    fn new(a: &Csr<f32, u32, u32>, shape: WarpShape) -> Self {
        let rows = 0..a.nrows();
        let mask = |r| a.view().row(r).0.iter().map(|c| *c as usize / shape.line).collect();
        Reference {
            loads: rows.clone().map(|r| a.view().row_len(r).div_ceil(shape.lanes)).collect(),
            masks: rows.map(mask).collect(),
            warps: shape.warps,
        }
    }

    fn distance(&self, r: usize, s: usize) -> usize {
        self.masks[r].symmetric_difference(&self.masks[s]).count()
    }

    fn plain(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.loads.len()).collect();
        rows.sort_by_key(|r| Reverse(self.loads[*r]));
        rows
    }

    fn hybrid_1(&self) -> Vec<usize> {
        let mut left: BTreeSet<usize> = (0..self.loads.len()).collect();
        let mut rows: Vec<usize> = Vec::new();
        while let Some(most) = left.iter().map(|r| self.loads[*r]).max() {
            let class = left.iter().copied().filter(|r| self.loads[*r] == most);
            let apart = |r: &usize| (rows.last().map_or(0, |last| self.distance(*last, *r)), *r);
            let next = class.min_by_key(apart).expect("a row of this load");
            left.remove(&next);
            rows.push(next);
        }
        rows
    }

    fn flip(&self, rows: Vec<usize>) -> Vec<usize> {
        let groups = rows.chunks(self.warps).enumerate();
        let flipped = |(k, group): (usize, &[usize])| {
            let mut group = group.to_vec();
            if k % 2 == 1 {
                group.reverse();
            }
            group
        };
        groups.flat_map(flipped).collect()
    }

    fn deal(&self, rows: Vec<usize>) -> Vec<Vec<usize>> {
        let mut lists = vec![Vec::new(); self.warps];
        let load = |list: &Vec<usize>| list.iter().map(|r| self.loads[*r]).sum::<usize>();
        for row in rows {
            let empty = self.loads[row] == 0;
            let cost = |w: &usize| if empty { lists[*w].len() } else { load(&lists[*w]) };
            let warp = (0..self.warps).min_by_key(cost).expect("a warp");
            lists[warp].push(row);
        }
        lists
    }

    /// `tie(row, place, sequence)` decides among equal distances.
    fn chain(&self, step: usize, tie: impl Fn(usize, usize, &[usize]) -> usize) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.loads.len()).collect();
        left.sort_by_key(|r| self.loads[*r]);
        let mut rows: Vec<usize> = left.drain(..step.min(left.len())).collect();
        while !left.is_empty() {
            let place = rows.len();
            let key =
                |r: &usize| (self.distance(*r, rows[place - step]), tie(*r, place, &rows), *r);
            let next = left.iter().copied().min_by_key(key).expect("a row");
            left.retain(|r| *r != next);
            rows.push(next);
        }
        rows
    }

    fn lists(&self, order: Order) -> Vec<Vec<usize>> {
        let none = |_: usize, _: usize, _: &[usize]| 0;
        let load = |r: usize, _: usize, _: &[usize]| self.loads[r];
        let warp = |r: usize, place: usize, rows: &[usize]| {
            if place < self.warps { 0 } else { self.distance(r, rows[place - self.warps]) }
        };
        let striped = match order {
            Order::Plain => self.plain(),
            Order::Flipped => self.flip(self.plain()),
            Order::Lpt => return self.deal(self.plain()),
            Order::WarpAware => self.chain(self.warps, none),
            Order::CtaAware => self.chain(1, none),
            Order::Hybrid1Plain => self.hybrid_1(),
            Order::Hybrid1Flipped => self.flip(self.hybrid_1()),
            Order::Hybrid1Lpt => return self.deal(self.hybrid_1()),
            Order::Hybrid21 => self.chain(1, load),
            Order::Hybrid22 => self.chain(1, warp),
            Order::Hybrid23 => self.chain(self.warps, load),
            other => panic!("{other} is not one of the source's"),
        };
        let of_warp = |w| striped.iter().copied().skip(w).step_by(self.warps).collect();
        (0..self.warps).map(of_warp).collect()
    }

    fn slots(&self, order: Order) -> Vec<u32> {
        let lists = self.lists(order);
        let deep = lists.iter().map(Vec::len).max().unwrap_or(0);
        let slot =
            |k: usize| lists[k % self.warps].get(k / self.warps).map_or(NO_ROW, |r| *r as u32);
        (0..deep * self.warps).map(slot).collect()
    }
}

fn of_the_source() -> impl Iterator<Item = Order> {
    let ours = [
        Order::Stored,
        Order::Dcsr,
        Order::ReverseCuthillMckee,
        Order::LabelPropagation,
        Order::GraphGrowing,
        Order::GraphGrowingStored,
        Order::GraphGrowingRcm,
        Order::MinHash,
    ];
    Order::ALL.iter().copied().filter(move |o| !ours.contains(o))
}

fn check(name: &str, a: &Csr<f32, u32, u32>, shape: WarpShape, search: Search) {
    let reference = Reference::new(a, shape);
    for order in of_the_source() {
        let found = order.of(&a.view().pattern(), shape, search).expect("an order");
        assert_eq!(found.slots(), reference.slots(order), "{order} of {name}, {shape:?}");
    }
}

fn shapes() -> [WarpShape; 3] {
    let of = |warps, lanes, line| WarpShape { warps, lanes, line };
    [of(32, 32, 32), of(4, 2, 8), of(1, 1, 3)]
}

/// Matrices whose rows share lines in different ways.
fn samples() -> Vec<(&'static str, Csr<f32, u32, u32>)> {
    vec![
        ("few lines", random_rows(150, 40, 1, |r| r * r % 23)),
        ("many lines", random_rows(120, 4000, 2, |r| r % 5)),
        ("a hub", random_rows(90, 900, 3, |r| if r == 40 { 700 } else { r % 4 })),
        ("unsorted", unsorted(140, 300, 4)),
    ]
}

#[test]
fn exact_orders_are_those_of_the_source() {
    for shape in shapes() {
        for m in matrices::<f32, u32, u32>() {
            check(m.name, &m.csr, shape, Search::Exact);
        }
        for (name, a) in samples() {
            check(name, &a, shape, Search::Exact);
            check(name, &a, shape, Search::Auto);
        }
    }
}

#[test]
fn a_bound_that_covers_everything_is_exact() {
    for shape in shapes() {
        for (name, a) in samples() {
            check(name, &a, shape, Search::Bounded(a.nrows()));
        }
    }
}
