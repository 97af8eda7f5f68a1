//! `graph-growing`: blocks of rows that read the same rows of B. A block begins at a row that
//! shares columns with an earlier block and takes, again and again, the row whose columns it has
//! read already for the largest part; a CTA that works on a block reads a row of B once for many
//! rows of A.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use gustav_core::buffer::try_vec;
use gustav_core::{Index, Result, Scalar};

use super::graph::Graph;
use super::row_order::Arrangement;
use super::view::RowView;

// Rows of a block.
const BLOCK: usize = 32;
// Columns that more rows share join nothing: they are read anyway.
const WIDE: u32 = 64;
// Of parts of a row's columns, as whole numbers.
const UNIT: u32 = 1 << 16;

pub(super) fn arrange<T: Scalar, I: Index, O: Index>(
    view: &RowView<'_, '_, T, I, O>,
) -> Result<Arrangement> {
    let graph = Graph::bipartite(view.a)?;
    let mut growth = Growth::new(&graph, view.a.nrows())?;
    while let Some(seed) = growth.seed() {
        growth.block(seed);
    }
    Ok(Arrangement::striped(growth.order))
}

struct Growth<'a> {
    /// Rows, then columns.
    graph: &'a Graph,
    order: Vec<u32>,
    placed: Vec<bool>,
    // Every row before it is placed.
    next: u32,
    // Rows that share a column with an earlier block, and whether a row was ever among them.
    rim: VecDeque<u32>,
    met: Vec<bool>,
    // Of the block at hand: its number, the last block of each column, columns that each row
    // shares with it, and which rows share any.
    number: u32,
    read: Vec<u32>,
    shared: Vec<u32>,
    touched: Vec<u32>,
}

impl<'a> Growth<'a> {
    fn new(graph: &'a Graph, rows: usize) -> Result<Self> {
        let counts = |len: usize| -> Result<Vec<u32>> {
            let mut counts = try_vec(len, "blocks of rows")?;
            counts.resize(len, 0);
            Ok(counts)
        };
        Ok(Growth {
            graph,
            order: try_vec(rows, "an order of rows")?,
            placed: vec![false; rows],
            next: 0,
            rim: VecDeque::new(),
            met: vec![false; rows],
            number: 0,
            read: counts(graph.len())?,
            shared: counts(rows)?,
            touched: Vec::new(),
        })
    }

    /// The row that has waited longest beside earlier blocks, else the first that is left.
    fn seed(&mut self) -> Option<u32> {
        while let Some(row) = self.rim.pop_front() {
            if !self.placed[row as usize] {
                return Some(row);
            }
        }
        while *self.placed.get(self.next as usize)? {
            self.next += 1;
        }
        Some(self.next)
    }

    /// Places a block that begins with `seed`, or what there is left of rows.
    fn block(&mut self, seed: u32) {
        self.number += 1;
        // The part of its columns that is read already; of equal ones the first row. An entry
        // holds while the row shares as many columns as it says.
        let mut likely = BinaryHeap::from([(0, Reverse(seed), 0)]);
        let end = self.order.len() + BLOCK;
        while self.order.len() < end {
            let row = match likely.pop() {
                Some((_, Reverse(row), shared)) => {
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
            self.place(row, &mut likely);
        }
        for row in self.touched.drain(..) {
            self.shared[row as usize] = 0;
            if !self.placed[row as usize] && !self.met[row as usize] {
                self.met[row as usize] = true;
                self.rim.push_back(row);
            }
        }
    }

    fn place(&mut self, row: u32, likely: &mut BinaryHeap<(u32, Reverse<u32>, u32)>) {
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
                likely.push((part, Reverse(*other), *shared));
            }
        }
    }
}
