//! `reverse-cuthill-mckee`: breadth-first search from a peripheral vertex, neighbours by degree, in
//! reverse order. Neighbours are close to each other in the order, so that their rows of B are
//! still in the caches.

use gustav_core::buffer::try_vec;
use gustav_core::{Index, Result};

use super::graph::Graph;
use super::row_order::Arrangement;
use super::view::{RowView, sorted_by};

// Most searches for a peripheral vertex of a component.
const SEARCHES: usize = 8;

pub(super) fn arrange<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    Ok(Arrangement::striped(rows(view)?))
}

/// The rows in this order.
pub(super) fn rows<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Vec<u32>> {
    let graph = Graph::new(view.a)?;
    let mut walk = Walk::new(&graph)?;
    let mut order: Vec<u32> = try_vec(graph.len(), "an order of vertices")?;
    let mut done = vec![false; graph.len()];
    for start in sorted_by(graph.len(), |v| graph.degree(v))? {
        if done[start as usize] {
            continue;
        }
        let rim = walk.rim(start);
        walk.from(rim);
        for v in &walk.queue {
            done[*v as usize] = true;
        }
        order.extend_from_slice(&walk.queue);
    }
    order.reverse();
    order.retain(|v| (*v as usize) < view.a.nrows());
    Ok(order)
}

/// A breadth-first search of one component.
struct Walk<'a> {
    graph: &'a Graph,
    // For each vertex the number of the search that visited it last.
    visited: Vec<u32>,
    number: u32,
    // Vertices in the order of visiting, and the start of the last level.
    queue: Vec<u32>,
    last_level: usize,
    levels: usize,
}

impl<'a> Walk<'a> {
    fn new(graph: &'a Graph) -> Result<Self> {
        let mut visited = try_vec(graph.len(), "a walk through a graph")?;
        visited.resize(graph.len(), 0);
        let queue = try_vec(graph.len(), "a walk through a graph")?;
        Ok(Walk { graph, visited, number: 0, queue, last_level: 0, levels: 0 })
    }

    /// Searches from `start`, neighbours by degree.
    fn from(&mut self, start: u32) {
        if self.number == u32::MAX {
            self.visited.fill(0);
            self.number = 0;
        }
        self.number += 1;
        self.queue.clear();
        self.queue.push(start);
        self.visited[start as usize] = self.number;
        (self.last_level, self.levels) = (0, 1);
        let (mut at, mut level_end) = (0, 1);
        while at < self.queue.len() {
            if at == level_end {
                (self.last_level, level_end) = (at, self.queue.len());
                self.levels += 1;
            }
            let begin = self.queue.len();
            for next in self.graph.of(self.queue[at]) {
                if self.visited[*next as usize] != self.number {
                    self.visited[*next as usize] = self.number;
                    self.queue.push(*next);
                }
            }
            self.queue[begin..].sort_unstable_by_key(|v| (self.graph.degree(*v), *v));
            at += 1;
        }
    }

    /// A pseudo-peripheral vertex (George, Liu): the next search begins at the vertex of lowest
    /// degree in the last level, as long as the number of levels grows.
    fn rim(&mut self, start: u32) -> u32 {
        let (mut rim, mut levels) = (start, 0);
        for _ in 0..SEARCHES {
            self.from(rim);
            if self.levels <= levels {
                break;
            }
            levels = self.levels;
            let far = self.queue[self.last_level..].iter().copied();
            match far.min_by_key(|v| (self.graph.degree(*v), *v)) {
                Some(next) if next != rim => rim = next,
                _ => break,
            }
        }
        rim
    }
}
