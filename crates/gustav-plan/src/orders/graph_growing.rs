//! `graph-growing`: blocks of rows that read the same rows of B. A block repeatedly adds the row
//! with the largest fraction of columns that the block already reads; a CTA that works on a block
//! reads a row of B once for many rows of A. A block begins at a row that shares columns with an
//! earlier block, or at the first remaining row as stored (`graph-growing-stored`) or in
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
// Columns of more rows than this are ignored: they are in the caches anyway.
const WIDE: u32 = 64;
// Unit of fractions of a row's columns, as integers.
const UNIT: u32 = 1 << 16;

/// Blocks begin at rows that share columns with earlier ones.
pub(super) fn arrange<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    grown(view, stored_rows(view)?, true)
}

/// Blocks begin at the first remaining row as stored, so that blocks are in the order of the rows.
pub(super) fn stored<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    grown(view, stored_rows(view)?, false)
}

/// Blocks begin at the first remaining row of `reverse-cuthill-mckee`.
pub(super) fn rcm<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    grown(view, reverse_cuthill_mckee::rows(view)?, false)
}

fn stored_rows<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Vec<u32>> {
    let mut rows = try_vec(view.a.nrows(), "an order of rows")?;
    rows.extend(0..view.a.nrows() as u32);
    Ok(rows)
}

/// Blocks of all rows; ties go to the first in `base`.
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
    /// The bipartite graph: rows, then columns.
    graph: &'a Graph,
    // Rows in the order in which they are candidates to begin a block, and the position of each in
    // it.
    base: Vec<u32>,
    rank: Vec<u32>,
    order: Vec<u32>,
    placed: Vec<bool>,
    // All rows of `base` before this position are placed.
    next: usize,
    // Whether blocks begin at the rim of earlier ones (rows that share a column with them), and
    // which rows have been in it.
    at_rim: bool,
    rim: VecDeque<u32>,
    visited: Vec<bool>,
    // The current block: its number, the last block that read each column, the number of columns
    // that each row shares with the block, and the rows that share any.
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

    /// The row that has been in the rim longest, if blocks begin there, else the first remaining
    /// one.
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

    /// Places a block that begins with `seed`; it is smaller if too few rows remain.
    fn block(&mut self, seed: u32) {
        self.number += 1;
        // Rows by the fraction of their columns that the block already reads; ties go to the first
        // row. An entry is stale if the row shares more columns than the entry says.
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
