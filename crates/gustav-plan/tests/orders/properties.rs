//! What holds for every order of every matrix.

use gustav_core::parallel::{self, Executor};
use gustav_core::{CsrView, Error};
use gustav_plan::orders::{Order, RowOrder, Search, WarpShape};
use gustav_testkit::battery::matrices::{matrices, random_rows};

fn check_rows(order: &RowOrder, rows: usize) {
    let mut found: Vec<u32> = order.sequence().collect();
    found.sort_unstable();
    assert!(found.into_iter().eq(0..rows as u32), "{}: every row exactly once", order.order());
    let warps = order.shape().warps;
    assert_eq!(order.slots().len() % warps, 0);
    assert_eq!((0..warps).map(|w| order.warp(w).count()).sum::<usize>(), rows);
    assert_eq!(order.rows(), rows);
}

#[test]
fn every_row_exactly_once() {
    for m in matrices::<f32, u32, u64>() {
        for &order in Order::ALL {
            for search in [Search::Auto, Search::Exact, Search::Bounded(1), Search::Bounded(3)] {
                for warps in [1, 7, 32] {
                    let shape = WarpShape { warps, ..WarpShape::default() };
                    let found = order.of(&m.csr.view().pattern(), shape, search).expect("an order");
                    check_rows(&found, m.csr.nrows());
                }
            }
        }
    }
}

#[test]
fn bounded_searches_say_so() {
    let a = random_rows::<f32, u32, u32>(500, 5000, 1, |r| r % 9);
    let bound = |order: Order, search| {
        order.of(&a.view().pattern(), WarpShape::default(), search).expect("an order").bound()
    };
    assert_eq!(bound(Order::WarpAware, Search::Bounded(5)), Some(5));
    assert_eq!(bound(Order::Hybrid1Lpt, Search::Bounded(5)), Some(5));
    assert_eq!(bound(Order::WarpAware, Search::Auto), None);
    assert_eq!(bound(Order::Lpt, Search::Bounded(5)), None);
}

#[test]
fn a_bounded_search_brings_like_rows_together() {
    // Twenty kinds of rows in random order: neighbours that differ are few.
    let kinds = random_rows::<f32, u32, u32>(20, 20_000, 5, |_| 12);
    let (mut offsets, mut indices) = (vec![0u32], Vec::new());
    for row in 0..4000usize {
        indices.extend_from_slice(kinds.view().row(row * row % 4001 % 20).0);
        offsets.push(indices.len() as u32);
    }
    let values = vec![1f32; indices.len()];
    let a = CsrView::new(4000, 20_000, &offsets, &indices, &values).expect("a matrix");
    let order = Order::CtaAware
        .of(&a.pattern(), WarpShape::default(), Search::Bounded(4))
        .expect("an order");
    let rows: Vec<usize> = order.sequence().map(|r| r as usize).collect();
    let changes = rows.windows(2).filter(|w| a.row(w[0]).0 != a.row(w[1]).0).count();
    assert!(changes < 40, "{changes} changes of 20 kinds");
}

#[test]
fn threads_change_nothing() {
    struct Backwards;
    impl Executor for Backwards {
        fn threads(&self) -> usize {
            5
        }
        fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
            (0..count).rev().for_each(work);
        }
    }
    let a = random_rows::<f32, u32, u32>(3000, 3000, 7, |r| 1 + r % 17);
    for &order in Order::ALL {
        for search in [Search::Exact, Search::Bounded(4)] {
            let build =
                || order.of(&a.view().pattern(), WarpShape::default(), search).expect("an order");
            assert!(build() == parallel::on(&Backwards, build), "{order}");
        }
    }
}

#[test]
fn bad_requests_are_errors() {
    let a = random_rows::<f32, u32, u32>(9, 9, 1, |_| 2);
    let of = |shape, search| Order::CtaAware.of(&a.view().pattern(), shape, search);
    for (warps, lanes, line) in [(0, 1, 1), (1, 0, 1), (1, 1, 0)] {
        let e = of(WarpShape { warps, lanes, line }, Search::Auto).expect_err("a zero");
        assert!(e.to_string().contains("at least 1"), "{e}");
    }
    let e = of(WarpShape::default(), Search::Bounded(0)).expect_err("no candidate");
    assert!(matches!(e, Error::Argument { .. }), "{e}");
    let e = "sorted".parse::<Order>().expect_err("no such order").to_string();
    assert!(e.contains("warp-aware") && e.contains("hybrid-2-3"), "{e}");
}
