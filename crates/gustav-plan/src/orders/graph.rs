//! The graph of a matrix, for orders that work on graphs.

use gustav_core::buffer::try_vec;
use gustav_core::parallel::Shared;
use gustav_core::{Buffer, Error, Index, IndexType, PatternView, Result, parallel};

/// Neighbours of vertices. The vertices of a square matrix are its rows, joined where either of
/// a_ij and a_ji is stored; those of a rectangular matrix are its rows and then its columns.
pub(super) struct Graph {
    starts: Vec<usize>,
    degrees: Vec<u32>,
    neighbours: Buffer<u32>,
}

impl Graph {
    pub fn new<I: Index, O: Index>(a: &PatternView<'_, I, O>) -> Result<Self> {
        if a.nrows() == a.ncols() {
            return Self::of_entries(a, a.nrows(), 0);
        }
        Self::bipartite(a)
    }

    /// The rows and then the columns of any matrix, joined where an element is stored.
    pub fn bipartite<I: Index, O: Index>(a: &PatternView<'_, I, O>) -> Result<Self> {
        Self::of_entries(a, a.nrows().saturating_add(a.ncols()), a.nrows())
    }

    fn of_entries<I: Index, O: Index>(
        a: &PatternView<'_, I, O>,
        count: usize,
        columns_from: usize,
    ) -> Result<Self> {
        if count >= u32::MAX as usize {
            return Err(Error::Overflow {
                what: "rows and columns of a graph",
                need: count as u128,
                index_type: IndexType::U32,
            });
        }
        let mut starts = try_vec(count + 1, "a graph")?;
        starts.resize(count + 1, 0usize);
        each_edge(a, columns_from, |u, v| {
            starts[u + 1] += 1;
            starts[v + 1] += 1;
        });
        for v in 0..count {
            starts[v + 1] += starts[v];
        }
        let mut neighbours = Buffer::<u32>::zeroed(starts[count], "a graph")?;
        let mut next = try_vec(count, "a graph")?;
        next.extend_from_slice(&starts[..count]);
        each_edge(a, columns_from, |u, v| {
            neighbours[next[u]] = v as u32;
            neighbours[next[v]] = u as u32;
            next[u] += 1;
            next[v] += 1;
        });
        let mut degrees = try_vec(count, "a graph")?;
        degrees.resize(count, 0);
        let shared = Shared::new(&mut neighbours);
        parallel::each_mut(&mut degrees, 1 << 10, |v, degree| {
            // SAFETY: the lists of vertices are disjoint.
            let list = unsafe { shared.slice(starts[v]..starts[v + 1]) };
            *degree = sort_and_dedup(list) as u32;
        });
        Ok(Graph { starts, degrees, neighbours })
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.degrees.len()
    }

    /// Neighbours of a vertex, ascending, each once.
    pub fn of(&self, vertex: u32) -> &[u32] {
        let start = self.starts[vertex as usize];
        &self.neighbours[start..start + self.degrees[vertex as usize] as usize]
    }

    /// Number of neighbours of a vertex.
    pub fn degree(&self, vertex: u32) -> u32 {
        self.degrees[vertex as usize]
    }
}

/// Calls `work` for both ends of every stored entry off the diagonal; columns are numbered from
/// `columns_from` on.
fn each_edge<I: Index, O: Index>(
    a: &PatternView<'_, I, O>,
    columns_from: usize,
    mut work: impl FnMut(usize, usize),
) {
    for row in 0..a.nrows() {
        for c in a.row(row) {
            let column = columns_from + c.to_usize();
            if row != column {
                work(row, column);
            }
        }
    }
}

/// Sorts a list and moves its distinct elements to its beginning; returns their number.
fn sort_and_dedup(list: &mut [u32]) -> usize {
    list.sort_unstable();
    let mut retained = 0;
    for at in 0..list.len() {
        if retained == 0 || list[retained - 1] != list[at] {
            list[retained] = list[at];
            retained += 1;
        }
    }
    retained
}
