//! Whether a product under a mask on a GPU computes the positions of the mask alone, or all of C.

use gustav_core::Problem;

// Fitted to an H200, see docs/decisions/0031. Microseconds before the first product.
const POSITIONS_US: f64 = 90.0;
const WHOLE_US: f64 = 250.0;
// Picoseconds of a product on a busy device: merged by a thread, in a warp's table, of a task.
const MERGED: f64 = 8.0;
const TABLE: f64 = 6.0;
const CUT: f64 = 3.5;
// Of an entry that a search reads, and of a position of a task.
const SEARCHED: f64 = 0.9;
const CUT_POSITION: f64 = 25.0;
// Of a product of a task whose positions have as many products as this or more; positions of a task.
const ALONE: f64 = 16_000.0;
const CROWDED: f64 = 1000.0;
const TASK: f64 = 1024.0;
// Of a product of all of C, and of a position that is found there.
const PRODUCT: f64 = 5.5;
const FOUND: f64 = 35.0;

/// What was counted on the GPU of a product under a mask: products, by how the rows that have them
/// would sum them at positions of the mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Intermediate products of all rows.
    pub products: u64,
    /// Products of rows whose rows of B a thread merges.
    pub merged: u64,
    /// Entries of B that are read in searches for positions.
    pub searched: u64,
    /// Products of rows whose positions are in a warp's table.
    pub table: u64,
    /// Products of rows that are cut into tasks.
    pub cut: u64,
    /// Such rows.
    pub cut_rows: u64,
}

/// Microseconds that both ways are expected to take, counted from where they part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// The positions of the mask alone.
    pub positions_us: f64,
    /// All of C, and finding the positions there.
    pub whole_us: f64,
}

impl Expected {
    /// For a product of so much work, under a mask of so many positions.
    pub fn new(problem: &Problem, positions: usize, work: &Work) -> Self {
        let of = |count: u64, picoseconds: f64| count as f64 * picoseconds * 1e-6;
        let cut_positions = positions as f64 * work.cut as f64 / work.products.max(1) as f64;
        let cut = of(work.cut, CUT) + cut_positions * CUT_POSITION * 1e-6;
        // A CTA has a task, which has a thousand positions of one row at most; where these have many products
        // each, threads wait for one another to add to them.
        let tasks = (work.cut_rows as f64).max(cut_positions / TASK).max(1.0);
        let crowded = work.cut as f64 >= CROWDED * cut_positions;
        let alone = if crowded { of(work.cut, ALONE) / tasks } else { 0.0 };
        let positions_us = POSITIONS_US
            + of(work.merged, MERGED)
            + of(work.searched, SEARCHED)
            + of(work.table, TABLE)
            + cut.max(alone);
        // Every sum would be made a second time.
        if problem.deterministic {
            return Expected { positions_us, whole_us: f64::INFINITY };
        }
        let whole_us = WHOLE_US + of(work.products, PRODUCT) + of(positions as u64, FOUND);
        Expected { positions_us, whole_us }
    }

    /// Whether all of C is expected to take less.
    pub fn prefers_whole(&self) -> bool {
        self.whole_us < self.positions_us
    }
}

/// Why the positions are computed alone.
pub fn reason_for_positions(positions: usize) -> String {
    format!("{positions} positions of the mask, other products are left")
}

/// Why all of C is computed.
pub fn reason_for_whole(positions: usize, work: &Work) -> String {
    let products = work.products;
    format!(
        "all of C, of which {positions} positions of the mask are kept: to look up {products} products for \
         them would take longer"
    )
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    #[test]
    fn all_of_c_is_for_few_tasks_of_many_products() {
        let a = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let problem = Problem::spgemm(&a.view(), &a.view());
        let of = |positions: usize, cut: u64, cut_rows: u64| Work {
            products: cut.max(positions as u64),
            cut,
            cut_rows,
            ..Work::default()
        };
        let long = of(1200, 5_000_000, 36);
        assert!(Expected::new(&problem, 1200, &long).prefers_whole());
        let ordered = problem.clone().deterministic(true);
        assert!(!Expected::new(&ordered, 1200, &long).prefers_whole());
        let roomy = of(100_000, 5_000_000, 36);
        assert!(!Expected::new(&problem, 100_000, &roomy).prefers_whole());
        let many = of(1_000_000, 50_000_000, 20_000);
        assert!(!Expected::new(&problem, 1_000_000, &many).prefers_whole());
        assert!(!Expected::new(&problem, 5, &Work::default()).prefers_whole());
        assert!(reason_for_whole(1200, &long).starts_with("all of C, of which 1200 positions"));
    }
}
