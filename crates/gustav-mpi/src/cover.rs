//! What has to be sent for a block: the cheapest vertex cover of its bipartite graph.
//!
//! The nonzeros of a block connect rows and columns. Every nonzero is multiplied on one of two ranks: where the rows
//! are, which needs the row of B of its column, or where the columns are, which sends a partial row of C. So every
//! edge needs one of its ends, and the cheapest set of ends is a vertex cover of least weight. By Kőnig's theorem,
//! with weights, that is a minimum cut of the network source → rows → columns → sink with the weights as capacities
//! (SHIRO 2025). A nonzero whose column is not taken also has its value sent: that is a cost of leaving the column,
//! and so lowers the price of taking it.

/// Prices in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Prices {
    /// Of a row.
    pub row: u64,
    /// Of a column.
    pub column: u64,
    /// Of a nonzero whose column is not taken.
    pub nonzero: u64,
}

/// Which columns to take, so that the cost is the least. `edges` are (row, column), both counted from 0 without gaps,
/// rows not decreasing. Rows with a nonzero in a column that is not taken have to be taken.
pub fn columns_to_take(
    rows: usize,
    columns: usize,
    edges: &[(u32, u32)],
    prices: Prices,
) -> Vec<bool> {
    let mut degrees = vec![0_u64; columns];
    edges.iter().for_each(|(_, c)| degrees[*c as usize] += 1);
    let price = |c: usize| prices.column.saturating_sub(degrees[c] * prices.nonzero);
    let left: Vec<u64> = (0..columns).map(price).collect();
    // Columns that cost no more than the values they save.
    let free: Vec<bool> = left.iter().map(|p| *p == 0).collect();
    let edges = edges.iter().copied().filter(|(_, c)| !free[*c as usize]);
    let mut network = Network::new(rows, columns, edges, prices.row, left);
    network.begin();
    network.saturate();
    let mut take = free;
    network.reachable_columns(|c| take[c] = true);
    take
}

/// A flow from rows to columns by Dinic's algorithm: shortest augmenting paths, many at a time. With equal prices that
/// is the algorithm of Hopcroft and Karp.
struct Network {
    rows: usize,
    /// Edges of row r: `row_offsets[r]..row_offsets[r + 1]`.
    row_offsets: Vec<usize>,
    edge_columns: Vec<u32>,
    edge_rows: Vec<u32>,
    /// Edges of every column, by number.
    column_offsets: Vec<usize>,
    column_edges: Vec<u32>,
    flow: Vec<u64>,
    /// Capacity that rows and columns have left.
    row_left: Vec<u64>,
    column_left: Vec<u64>,
    /// Distance from the source of rows, then columns.
    level: Vec<u32>,
    /// The next edge to try of rows, then columns.
    next: Vec<usize>,
}

const UNREACHED: u32 = u32::MAX;

impl Network {
    fn new(
        rows: usize,
        columns: usize,
        edges: impl Iterator<Item = (u32, u32)>,
        row_price: u64,
        column_left: Vec<u64>,
    ) -> Self {
        let (edge_rows, edge_columns): (Vec<u32>, Vec<u32>) = edges.unzip();
        let offsets = |ends: &[u32], count: usize| {
            let mut offsets = vec![0; count + 1];
            ends.iter().for_each(|e| offsets[*e as usize + 1] += 1);
            (0..count).for_each(|k| offsets[k + 1] += offsets[k]);
            offsets
        };
        let row_offsets = offsets(&edge_rows, rows);
        let column_offsets = offsets(&edge_columns, columns);
        let mut at = column_offsets.clone();
        let mut column_edges = vec![0; edge_rows.len()];
        for (edge, column) in edge_columns.iter().enumerate() {
            column_edges[at[*column as usize]] = edge as u32;
            at[*column as usize] += 1;
        }
        Network {
            rows,
            row_offsets,
            flow: vec![0; edge_rows.len()],
            edge_columns,
            edge_rows,
            column_offsets,
            column_edges,
            row_left: vec![row_price; rows],
            column_left,
            level: vec![UNREACHED; rows + columns],
            next: vec![0; rows + columns],
        }
    }

    /// Sends flow along single edges, first from and to those with one neighbour left: what these send is part of some
    /// largest flow, and it is nearly all of it where blocks have few nonzeros in a row (Karp, Sipser 1981).
    fn begin(&mut self) {
        let columns = self.column_left.len();
        let edges_of = |offsets: &[usize], k: usize| offsets[k + 1] - offsets[k];
        let of_rows = (0..self.rows).map(|r| edges_of(&self.row_offsets, r));
        let of_columns = (0..columns).map(|c| edges_of(&self.column_offsets, c));
        // Neighbours with capacity left of rows, then columns.
        let mut degrees: Vec<usize> = of_rows.chain(of_columns).collect();
        let mut leaves: Vec<usize> = (0..degrees.len()).filter(|k| degrees[*k] == 1).collect();
        let mut row = 0;
        loop {
            while let Some(leaf) = leaves.pop() {
                self.push_from(leaf, &mut degrees, &mut leaves);
            }
            while row < self.rows && (self.row_left[row] == 0 || degrees[row] == 0) {
                row += 1;
            }
            if row == self.rows {
                return;
            }
            self.push_from(row, &mut degrees, &mut leaves);
        }
    }

    /// Sends what the node can send over one of its edges.
    fn push_from(&mut self, node: usize, degrees: &mut [usize], leaves: &mut Vec<usize>) {
        let Some(edge) = self.edges_of(node).find(|e| {
            let (row, column) = (self.edge_rows[*e] as usize, self.edge_columns[*e] as usize);
            self.row_left[row] > 0 && self.column_left[column] > 0
        }) else {
            return;
        };
        let (row, column) = (self.edge_rows[edge] as usize, self.edge_columns[edge] as usize);
        let amount = self.row_left[row].min(self.column_left[column]);
        self.flow[edge] += amount;
        self.row_left[row] -= amount;
        self.column_left[column] -= amount;
        let full = [(row, self.row_left[row]), (self.rows + column, self.column_left[column])];
        for (node, _) in full.into_iter().filter(|(_, left)| *left == 0) {
            for edge in self.edges_of(node) {
                let ends =
                    [self.edge_rows[edge] as usize, self.rows + self.edge_columns[edge] as usize];
                let other = if ends[0] == node { ends[1] } else { ends[0] };
                degrees[other] -= 1;
                if degrees[other] == 1 {
                    leaves.push(other);
                }
            }
        }
    }

    /// The edges of a row, or of a column after the rows.
    fn edges_of(&self, node: usize) -> impl Iterator<Item = usize> {
        let (by_row, range) = match node.checked_sub(self.rows) {
            None => (true, self.row_offsets[node]..self.row_offsets[node + 1]),
            Some(column) => (false, self.column_offsets[column]..self.column_offsets[column + 1]),
        };
        range.map(move |k| if by_row { k } else { self.column_edges[k] as usize })
    }

    fn saturate(&mut self) {
        while self.find_levels() {
            self.next[..self.rows].copy_from_slice(&self.row_offsets[..self.rows]);
            let columns = self.column_left.len();
            self.next[self.rows..].copy_from_slice(&self.column_offsets[..columns]);
            for row in 0..self.rows {
                while self.row_left[row] > 0 && self.augment(row) {}
            }
        }
    }

    /// Distances from rows with capacity left, and whether a column with capacity left is reached.
    fn find_levels(&mut self) -> bool {
        self.level.fill(UNREACHED);
        let mut queue: Vec<usize> = (0..self.rows).filter(|r| self.row_left[*r] > 0).collect();
        queue.iter().for_each(|r| self.level[*r] = 0);
        let (mut at, mut found) = (0, false);
        while at < queue.len() {
            let node = queue[at];
            let level = self.level[node] + 1;
            at += 1;
            match node.checked_sub(self.rows) {
                None => {
                    for edge in self.row_offsets[node]..self.row_offsets[node + 1] {
                        let to = self.rows + self.edge_columns[edge] as usize;
                        if self.level[to] == UNREACHED {
                            self.level[to] = level;
                            queue.push(to);
                        }
                    }
                }
                Some(column) => {
                    found |= self.column_left[column] > 0;
                    for k in self.column_offsets[column]..self.column_offsets[column + 1] {
                        let edge = self.column_edges[k] as usize;
                        let to = self.edge_rows[edge] as usize;
                        if self.flow[edge] > 0 && self.level[to] == UNREACHED {
                            self.level[to] = level;
                            queue.push(to);
                        }
                    }
                }
            }
        }
        found
    }

    /// Sends flow along one path of rising levels from `row`, if there is one.
    fn augment(&mut self, row: usize) -> bool {
        // Edges of the path: forward, backward, forward, …
        let mut path: Vec<usize> = Vec::new();
        let mut node = row;
        loop {
            if let Some(column) = node.checked_sub(self.rows)
                && self.column_left[column] > 0
            {
                let backward = path.iter().skip(1).step_by(2).map(|e| self.flow[*e]);
                let ends = self.row_left[row].min(self.column_left[column]);
                let amount = backward.fold(ends, u64::min);
                for (k, edge) in path.iter().enumerate() {
                    let flow = &mut self.flow[*edge];
                    *flow = if k % 2 == 0 { *flow + amount } else { *flow - amount };
                }
                self.row_left[row] -= amount;
                self.column_left[column] -= amount;
                return true;
            }
            if let Some((edge, to)) = self.step(node) {
                path.push(edge);
                node = to;
                continue;
            }
            // A dead end: nothing leads through it in this phase.
            self.level[node] = UNREACHED;
            let Some(edge) = path.pop() else { return false };
            let ends =
                [self.edge_rows[edge] as usize, self.rows + self.edge_columns[edge] as usize];
            node = if ends[0] == node { ends[1] } else { ends[0] };
        }
    }

    /// An edge from `node` to the next level, and its other end.
    fn step(&mut self, node: usize) -> Option<(usize, usize)> {
        let next = self.level[node].checked_add(1)?;
        loop {
            let k = self.next[node];
            let (edge, to, open) = match node.checked_sub(self.rows) {
                None => {
                    if k >= self.row_offsets[node + 1] {
                        return None;
                    }
                    (k, self.rows + self.edge_columns[k] as usize, true)
                }
                Some(column) => {
                    if k >= self.column_offsets[column + 1] {
                        return None;
                    }
                    let edge = self.column_edges[k] as usize;
                    (edge, self.edge_rows[edge] as usize, self.flow[edge] > 0)
                }
            };
            if open && self.level[to] == next {
                return Some((edge, to));
            }
            self.next[node] += 1;
        }
    }

    /// Columns on the source's side of the cut: those in the cover.
    fn reachable_columns(&mut self, mut visit: impl FnMut(usize)) {
        self.find_levels();
        let columns = self.level[self.rows..].iter().enumerate();
        columns.filter(|(_, level)| **level != UNREACHED).for_each(|(column, _)| visit(column));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a choice of columns.
    fn cost(rows: usize, edges: &[(u32, u32)], prices: Prices, take: &[bool]) -> u64 {
        let mut taken_rows = vec![false; rows];
        let mut nonzeros = 0;
        for (r, c) in edges.iter().filter(|(_, c)| !take[*c as usize]) {
            (taken_rows[*r as usize], nonzeros) = (true, nonzeros + u64::from(*c < u32::MAX));
        }
        let count = |taken: &[bool]| taken.iter().filter(|t| **t).count() as u64;
        count(take) * prices.column + count(&taken_rows) * prices.row + nonzeros * prices.nonzero
    }

    #[test]
    fn no_choice_is_cheaper() {
        let mut random = 12345_u64;
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize
        };
        let mut mixed = 0;
        for case in 0..400 {
            let (rows, columns) = (1 + next() % 9, 1 + next() % 9);
            let count = next() % (rows * columns + 1);
            let mut edges: Vec<_> =
                (0..count).map(|_| ((next() % rows) as u32, (next() % columns) as u32)).collect();
            edges.sort();
            let price = [(4, 4, 0), (4, 4, 1), (8, 4, 4), (4, 8, 1), (2, 6, 2)][case % 5];
            let prices = Prices { row: price.0, column: price.1, nonzero: price.2 };
            let found = columns_to_take(rows, columns, &edges, prices);
            let choices = (0..1_usize << columns)
                .map(|bits| (0..columns).map(|c| bits >> c & 1 == 1).collect::<Vec<_>>());
            let least = choices.map(|take| cost(rows, &edges, prices, &take)).min().unwrap();
            assert_eq!(cost(rows, &edges, prices, &found), least, "{edges:?} {prices:?}");
            let taken = found.iter().filter(|t| **t).count();
            mixed += usize::from(taken > 0 && taken < columns);
        }
        assert!(mixed > 50, "{mixed} mixed covers");
    }

    #[test]
    fn a_dense_row_and_a_dense_column_cost_two() {
        // Row 0 meets all columns, column 0 all rows.
        let edges: Vec<_> = (0..100).map(|c| (0, c)).chain((1..100).map(|r| (r, 0))).collect();
        let prices = Prices { row: 10, column: 10, nonzero: 0 };
        let take = columns_to_take(100, 100, &edges, prices);
        assert!(take[0] && take[1..].iter().all(|t| !t));
    }
}
