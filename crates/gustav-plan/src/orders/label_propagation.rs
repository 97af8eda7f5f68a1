//! `label-propagation`: communities of the graph, one after another. Every vertex begins as a
//! community of its own and repeatedly moves to the one that most of its neighbours are in. Rows of
//! a community read the same rows of B, and are consecutive in the order.

use gustav_core::buffer::try_vec;
use gustav_core::{Index, Result, parallel};

use super::graph::Graph;
use super::min_hash::hash;
use super::row_order::Arrangement;
use super::view::{RowView, sorted_by};

// Number of rounds: how often every vertex may move.
const ROUNDS: u64 = 8;
// Largest community: its rows of B should fit in a cache.
const MOST: u32 = 4096;

pub(super) fn arrange<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    let labels = labels(&Graph::new(view.a)?)?;
    // Communities by their first row.
    let mut first = try_vec(labels.len(), "communities")?;
    first.resize(labels.len(), u32::MAX);
    let rows = view.a.nrows();
    for (row, label) in (0..).zip(&labels[..rows]) {
        let first = &mut first[*label as usize];
        *first = row.min(*first);
    }
    Ok(Arrangement::striped(sorted_by(rows, |row| first[labels[row as usize] as usize])?))
}

/// The community of each vertex. In every step one half of the vertices moves while the other
/// stays, so that threads do not depend on each other and no two vertices swap forever.
fn labels(graph: &Graph) -> Result<Vec<u32>> {
    let count = graph.len();
    let vector = || try_vec::<u32>(count, "communities");
    let (mut labels, mut sizes, mut next) = (vector()?, vector()?, vector()?);
    labels.extend(0..count as u32);
    next.extend(0..count as u32);
    sizes.resize(count, 1);
    for round in 0..2 * ROUNDS {
        let goes = |v: usize| u64::from(hash(v as u64, round / 2) & 1) == round % 2;
        let (labels_now, sizes_now) = (&labels, &sizes);
        parallel::ranges(count, 1 << 8, {
            let next = parallel::Shared::new(&mut next);
            move |range| {
                let mut around = Vec::new();
                for v in range.filter(|v| goes(*v)) {
                    let label = best(graph, labels_now, sizes_now, v as u32, &mut around);
                    // SAFETY: every vertex is visited once.
                    unsafe { next.put(v, label) };
                }
            }
        });
        for v in 0..count {
            if labels[v] != next[v] {
                sizes[labels[v] as usize] -= 1;
                sizes[next[v] as usize] += 1;
                labels[v] = next[v];
            }
        }
    }
    Ok(labels)
}

/// The community of most neighbours of `v`; its own in a tie.
fn best(graph: &Graph, labels: &[u32], sizes: &[u32], v: u32, around: &mut Vec<u32>) -> u32 {
    around.clear();
    around.extend(graph.of(v).iter().map(|u| labels[*u as usize]));
    around.sort_unstable();
    let own = labels[v as usize];
    let open = |label: u32| label == own || sizes[label as usize] < MOST;
    let groups = around.chunk_by(|a, b| a == b).filter(|g| open(g[0]));
    groups
        .map(|group| (group.len(), group[0] == own, hash(u64::from(group[0]), ROUNDS), group[0]))
        .max()
        .map_or(own, |(.., label)| label)
}
