//! What L2 misses of an attention, by a model.

use gustav_core::{Operation, Scalar};
use gustav_report::Gpu;

use crate::engine::Task;

/// Milliseconds that memory takes for what L2 misses of an attention, at the copy bandwidth: the pattern, Q and O once,
/// and the rows of K and V that an L2 of whole rows misses, which takes them in the order of the nonzeros and drops the
/// row that was not used for longest. `None` for other products, and for gradients.
///
/// A GPU takes many rows of the pattern at once, and its L2 is made of two halves that may both hold a row: real
/// traffic can be more.
pub(crate) fn miss_ms<T: Scalar>(task: &Task<'_, T>, gpu: &Gpu) -> Option<f64> {
    if task.operation != Operation::Attention || task.gradients {
        return None;
    }
    let row = task.width() * size_of::<T>();
    let held = gpu.l2_bytes / (2 * row).max(1);
    let missed = 2 * row * misses(task.a.indices(), task.a.ncols(), held);
    let (m, nnz) = (task.a.nrows(), task.a.nnz());
    let once = 4 * (m + nnz) + 2 * m * row;
    Some((once + missed) as f64 / gpu.copy_bandwidth * 1e3)
}

/// How many of `columns`, each below `count`, are not among the `held` others that were used last.
fn misses(columns: &[u32], count: usize, held: usize) -> usize {
    if held >= count {
        let mut seen = vec![false; count];
        return columns
            .iter()
            .filter(|j| !std::mem::replace(&mut seen[**j as usize], true))
            .count();
    }
    let mut used = Recent::new(count);
    let mut missed = 0;
    for &j in columns {
        if !used.take(j as usize) {
            missed += 1;
            if used.len > held {
                used.drop_oldest();
            }
        }
    }
    missed
}

/// Numbers in the order in which they were last used: a list with links in both directions, whose end is its last
/// element.
struct Recent {
    /// Those used before and after each; itself for one that is not in the list.
    links: Vec<[u32; 2]>,
    len: usize,
}

impl Recent {
    fn new(count: usize) -> Self {
        Recent { links: (0..=count as u32).map(|k| [k, k]).collect(), len: 0 }
    }

    fn end(&self) -> usize {
        self.links.len() - 1
    }

    fn unlink(&mut self, k: usize) {
        let [before, after] = self.links[k];
        self.links[before as usize][1] = after;
        self.links[after as usize][0] = before;
        self.links[k] = [k as u32; 2];
    }

    /// Puts `k` last, and says whether it was in the list.
    fn take(&mut self, k: usize) -> bool {
        let was = self.links[k][0] as usize != k;
        match was {
            true => self.unlink(k),
            false => self.len += 1,
        }
        let end = self.end();
        let last = self.links[end][0];
        self.links[k] = [last, end as u32];
        self.links[last as usize][1] = k as u32;
        self.links[end][0] = k as u32;
        was
    }

    fn drop_oldest(&mut self) {
        let oldest = self.links[self.end()][1] as usize;
        self.unlink(oldest);
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_is_dropped() {
        let columns = [0, 1, 2, 0, 3, 1, 0, 0, 2];
        // With room for two: 0 1 2 | 0 | 3 | 1 | 0 | hit | 2.
        for (held, expected) in [(1, 8), (2, 8), (3, 6), (4, 4), (9, 4)] {
            assert_eq!(misses(&columns, 4, held), expected, "{held}");
        }
        assert_eq!(misses(&[], 4, 1), 0);
    }
}
