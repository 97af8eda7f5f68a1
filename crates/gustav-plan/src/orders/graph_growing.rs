//! `graph-growing`: blocks of rows that read the same rows of B. A block takes, again and again, the
//! row whose columns it has read already for the largest part; a CTA that works on a block reads a
//! row of B once for many rows of A. A block begins at a row that shares columns with an earlier
//! one, or at the first row that is left as stored (`graph-growing-stored`), or of
//! `reverse-cuthill-mckee` (`graph-growing-rcm`).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use gustav_core::buffer::try_vec;
use gustav_core::{Index, Result};

use super::graph::Graph;
use super::reverse_cuthill_mckee;
use super::row_order::Arrangement;
use super::view::RowView;

// Rows of a block.
const BLOCK: usize = 32;
// Columns that more rows share join nothing: they are read anyway.
const WIDE: u32 = 64;
// Of parts of a row's columns, as whole numbers.
const UNIT: u32 = 1 << 16;

/// Blocks begin beside earlier ones.
pub(super) fn arrange<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    grown(view, stored_rows(view)?, true)
}

/// Blocks begin at the first row as stored, so that they follow one another as the rows do.
pub(super) fn stored<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    grown(view, stored_rows(view)?, false)
}

/// Blocks begin at the first row of `reverse-cuthill-mckee`.
pub(super) fn rcm<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    grown(view, reverse_cuthill_mckee::rows(view)?, false)
}

fn stored_rows<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Vec<u32>> {
    let mut rows = try_vec(view.a.nrows(), "an order of rows")?;
    rows.extend(0..view.a.nrows() as u32);
    Ok(rows)
}

/// Blocks of all rows; of equal ones the first in `base`.
fn grown<I: Index, O: Index>(
    view: &RowView<'_, '_, I, O>,
    base: Vec<u32>,
    at_rim: bool,
) -> Result<Arrangement> {
    let graph = Graph::bipartite(view.a)?;
    let mut growth = Growth::new(&graph, base, at_rim)?;
    while let Some(seed) = growth.seed() {
        growth.block(seed);
    }
    Ok(Arrangement::striped(growth.order))
}

struct Growth<'a> {
    /// Rows, then columns.
    graph: &'a Graph,
    // Rows as they come first, and the place of each.
    base: Vec<u32>,
    rank: Vec<u32>,
    order: Vec<u32>,
    placed: Vec<bool>,
    // Every row of `base` before it is placed.
    next: usize,
    // Whether blocks begin at the rim of earlier ones, rows that share a column with those, and
    // whether a row was ever among them.
    at_rim: bool,
    rim: VecDeque<u32>,
    visited: Vec<bool>,
    // Of the block at hand: its number, the last block of each column, columns that each row
    // shares with it, and which rows share any.
    number: u32,
    read: Vec<u32>,
    shared: Vec<u32>,
    touched: Vec<u32>,
}

impl<'a> Growth<'a> {
    fn new(graph: &'a Graph, base: Vec<u32>, at_rim: bool) -> Result<Self> {
        let rows = base.len();
        let counts = |len: usize| -> Result<Vec<u32>> {
            let mut counts = try_vec(len, "blocks of rows")?;
            counts.resize(len, 0);
            Ok(counts)
        };
        let mut rank = counts(rows)?;
        for (at, row) in base.iter().enumerate() {
            rank[*row as usize] = at as u32;
        }
        Ok(Growth {
            graph,
            base,
            rank,
            order: try_vec(rows, "an order of rows")?,
            placed: vec![false; rows],
            next: 0,
            at_rim,
            rim: VecDeque::new(),
            visited: vec![false; rows],
            number: 0,
            read: counts(graph.len())?,
            shared: counts(rows)?,
            touched: Vec::new(),
        })
    }

    /// The row that has waited longest beside earlier blocks, if they begin there, else the first
    /// that is left.
    fn seed(&mut self) -> Option<u32> {
        while let Some(row) = self.rim.pop_front() {
            if !self.placed[row as usize] {
                return Some(row);
            }
        }
        loop {
            let row = *self.base.get(self.next)?;
            if !self.placed[row as usize] {
                return Some(row);
            }
            self.next += 1;
        }
    }

    /// Places a block that begins with `seed`, or what there is left of rows.
    fn block(&mut self, seed: u32) {
        self.number += 1;
        // The part of its columns that is read already; of equal ones the first row. An entry
        // holds while the row shares as many columns as it says.
        let mut likely = BinaryHeap::from([(0, Reverse(self.rank[seed as usize]), 0)]);
        let end = self.order.len() + BLOCK;
        while self.order.len() < end {
            let row = match likely.pop() {
                Some((_, Reverse(rank), shared)) => {
                    let row = self.base[rank as usize];
                    if self.placed[row as usize] || self.shared[row as usize] != shared {
                        continue;
                    }
                    row
                }
                None => match self.seed() {
                    Some(row) => row,
                    None => break,
                },
            };
            self.add(row, &mut likely);
        }
        for row in self.touched.drain(..) {
            self.shared[row as usize] = 0;
            if self.at_rim && !self.placed[row as usize] && !self.visited[row as usize] {
                self.visited[row as usize] = true;
                self.rim.push_back(row);
            }
        }
    }

    fn add(&mut self, row: u32, likely: &mut BinaryHeap<(u32, Reverse<u32>, u32)>) {
        self.placed[row as usize] = true;
        self.order.push(row);
        let graph = self.graph;
        for column in graph.of(row) {
            let read = &mut self.read[*column as usize];
            if *read == self.number || graph.degree(*column) > WIDE {
                continue;
            }
            *read = self.number;
            for other in graph.of(*column).iter().filter(|r| !self.placed[**r as usize]) {
                let shared = &mut self.shared[*other as usize];
                if *shared == 0 {
                    self.touched.push(*other);
                }
                *shared += 1;
                let part =
                    (u64::from(*shared) * u64::from(UNIT) / u64::from(graph.degree(*other))) as u32;
                likely.push((part, Reverse(self.rank[*other as usize]), *shared));
            }
        }
    }
}
