//! Small examples worked by hand.

use gustav_plan::orders::{NO_ROW, Order, Search, WarpShape};

use crate::matrix;

const SHAPE: WarpShape = WarpShape { warps: 2, lanes: 2, line: 2 };

fn slots(order: Order, rows: &[&[u32]], cols: usize, shape: WarpShape) -> Vec<u32> {
    let a = matrix(rows, cols);
    order.of(&a.view().pattern(), shape, Search::Exact).expect("an order").slots().to_vec()
}

#[test]
fn six_rows() {
    // Loads 2 1 3 0 1 1; lines {0 1} {3} {0 1 2} {} {3} {0 2}.
    let rows: &[&[u32]] = &[&[0, 1, 2], &[6], &[0, 1, 2, 3, 4], &[], &[6, 7], &[0, 4]];
    for (order, expected) in [
        (Order::Stored, [0, 1, 2, 3, 4, 5]),
        (Order::Plain, [2, 0, 1, 4, 5, 3]),
        (Order::Flipped, [2, 0, 4, 1, 5, 3]),
        (Order::Lpt, [2, 0, 4, 1, 3, 5]),
        (Order::WarpAware, [3, 1, 4, 0, 5, 2]),
        (Order::CtaAware, [3, 1, 4, 0, 2, 5]),
        (Order::Hybrid1Plain, [2, 0, 5, 1, 4, 3]),
        (Order::Hybrid1Flipped, [2, 0, 1, 5, 4, 3]),
        (Order::Hybrid1Lpt, [2, 0, 1, 5, 3, 4]),
        (Order::Hybrid21, [3, 1, 4, 5, 2, 0]),
        (Order::Hybrid22, [3, 1, 4, 0, 2, 5]),
        (Order::Hybrid23, [3, 1, 4, 5, 0, 2]),
        (Order::Dcsr, [0, 1, 2, 4, 5, 3]),
    ] {
        assert_eq!(slots(order, rows, 8, SHAPE), expected, "{order}");
    }
}

#[test]
fn ties_by_the_row_before_in_the_warp() {
    // Lines {3} {0 1 3} {0 1 2 3 4} {0 2 3}, all of load 1: after rows 0 and 1, rows 2 and 3 are
    // two lines from row 1, and four and two lines from row 0.
    let rows: &[&[u32]] = &[&[6], &[0, 2, 6], &[0, 2, 4, 6, 8], &[0, 4, 6]];
    let shape = WarpShape { lanes: 8, ..SHAPE };
    assert_eq!(slots(Order::CtaAware, rows, 10, shape), [0, 1, 2, 3]);
    assert_eq!(slots(Order::Hybrid22, rows, 10, shape), [0, 1, 3, 2]);
    // Of four lanes, row 2 is a load of 2.
    let shape = WarpShape { lanes: 4, ..SHAPE };
    assert_eq!(slots(Order::CtaAware, rows, 10, shape), [0, 1, 2, 3]);
    assert_eq!(slots(Order::Hybrid21, rows, 10, shape), [0, 1, 3, 2]);
}

#[test]
fn longest_first_leaves_lists_of_different_lengths() {
    // One row of load 3 against three of load 1.
    let rows: &[&[u32]] = &[&[0], &[1], &[0, 1, 2, 3, 4, 5], &[2]];
    assert_eq!(slots(Order::Lpt, rows, 8, SHAPE), [2, 0, NO_ROW, 1, NO_ROW, 3]);
    let a = matrix(rows, 8);
    let order = Order::Lpt.of(&a.view().pattern(), SHAPE, Search::Auto).expect("an order");
    assert_eq!(order.warp(0).collect::<Vec<_>>(), [2]);
    assert_eq!(order.warp(1).collect::<Vec<_>>(), [0, 1, 3]);
    assert_eq!(order.sequence().collect::<Vec<_>>(), [2, 0, 1, 3]);
    // Rows without nonzeros are spread.
    let rows: &[&[u32]] = &[&[], &[0], &[], &[], &[]];
    assert_eq!(slots(Order::Lpt, rows, 1, SHAPE), [1, 0, 2, 3, 4, NO_ROW]);
}

#[test]
fn balance_costs_reuse() {
    // What figure 7 of the source shows, on four warps and a band: rows of two and of one lane
    // loads alternate. Stored, warps 0 and 2 carry 6 and the others 3; four rows of a group read
    // 5 lines. Longest first, loads are 5 5 4 4; the groups of long rows read more.
    let of = |row: u32| -> Vec<u32> {
        let long = row.is_multiple_of(2);
        (0..if long { 4 } else { 2 }).map(|k| 2 * (row + k % 2) + k / 2).collect()
    };
    let rows: Vec<Vec<u32>> = (0..12).map(of).collect();
    let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
    let a = matrix(&rows, 26);
    let shape = WarpShape { warps: 4, lanes: 2, line: 2 };
    let order = Order::Lpt.of(&a.view().pattern(), shape, Search::Exact).expect("an order");
    let load = |row: u32| rows[row as usize].len().div_ceil(2);
    let loads: Vec<usize> = (0..4).map(|w| order.warp(w).map(load).sum()).collect();
    assert_eq!(loads, [5, 5, 4, 4]);
    let lines = |rows_of_group: &[u32]| {
        let group = rows_of_group.iter().filter(|r| **r != NO_ROW);
        let read: std::collections::BTreeSet<u32> =
            group.flat_map(|r| rows[*r as usize].iter().map(|c| c / 2)).collect();
        read.len()
    };
    let stored: usize = (0..12).collect::<Vec<u32>>().chunks(4).map(lines).sum();
    let sorted: usize = order.slots().chunks(4).map(lines).sum();
    assert_eq!(stored, 15);
    assert!(sorted > stored, "{sorted}");
}

#[test]
fn a_shuffled_path_comes_back() {
    let place = |k: u32| 7 * k % 50;
    let mut rows = vec![Vec::new(); 50];
    for k in 0..49 {
        rows[place(k) as usize].push(place(k + 1));
        rows[place(k + 1) as usize].push(place(k));
    }
    let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
    let found = slots(Order::ReverseCuthillMckee, &rows, 50, WarpShape::default());
    let mut path: Vec<u32> = (0..50).map(place).collect();
    if found[0] != path[0] {
        path.reverse();
    }
    assert_eq!(found[..50], path);
}

#[test]
fn communities_and_equal_rows_come_together() {
    // Three cliques, dealt out in turn; their rows are equal sets of columns but for one.
    let rows: Vec<Vec<u32>> = (0..30).map(|r| (0..10).map(|k| 3 * k + r % 3).collect()).collect();
    let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
    for order in [Order::LabelPropagation, Order::MinHash] {
        let found = slots(order, &rows, 30, WarpShape { warps: 1, ..WarpShape::default() });
        for group in found.chunks(10) {
            assert!(group.iter().all(|r| r % 3 == group[0] % 3), "{order}: {found:?}");
            assert!(group.is_sorted(), "{order}: {found:?}");
        }
    }
}

#[test]
fn blocks_of_a_grid_are_compact() {
    // A grid of 32 x 32: a row of A reads its own row of B and those of its neighbours.
    let side = 32i64;
    let of = |k: i64| -> Vec<u32> {
        let near = [(0, -1), (-1, 0), (0, 0), (1, 0), (0, 1)];
        let at = near.map(|(dx, dy)| (k % side + dx, k / side + dy));
        let inside = |(x, y): &&(i64, i64)| (0..side).contains(x) && (0..side).contains(y);
        at.iter().filter(inside).map(|(x, y)| (y * side + x) as u32).collect()
    };
    let rows: Vec<Vec<u32>> = (0..side * side).map(of).collect();
    let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
    let read = |order: &[u32]| -> usize {
        let block = |block: &[u32]| {
            let columns = block.iter().flat_map(|r| rows[*r as usize]).copied();
            columns.collect::<std::collections::BTreeSet<u32>>().len()
        };
        order.chunks(32).map(block).sum()
    };
    // Blocks as stored are lines, which read three lines of B each, but at the rims two.
    let stored = read(&(0..1024).collect::<Vec<_>>());
    assert_eq!(stored, 30 * 96 + 2 * 64);
    for order in [Order::GraphGrowing, Order::GraphGrowingStored, Order::GraphGrowingRcm] {
        let grown = read(&slots(order, &rows, 1024, WarpShape::default()));
        assert!(grown < stored * 3 / 4, "{order}: {grown} of {stored}");
    }
    // Blocks that begin where rows are left follow one another as the rows do.
    let grown = slots(Order::GraphGrowingStored, &rows, 1024, WarpShape::default());
    let first = |block: usize| grown[block * 32];
    assert!((1..32).all(|block| first(block - 1) < first(block)));
}
