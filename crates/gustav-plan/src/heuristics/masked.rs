//! Chooses whether a product under a mask on a GPU computes the mask entries alone or all of C.

use gustav_core::Problem;

// Cost model, fitted to an H200, see docs/decisions/0031. `_US`: fixed microseconds; `_PS`:
// picoseconds per item on a busy device.
const POSITIONS_US: f64 = 90.0;
const WHOLE_US: f64 = 250.0;
// An intermediate product: merged by a thread, in a warp's table, and in a task.
const MERGED_PS: f64 = 8.0;
const TABLE_PS: f64 = 6.0;
const CUT_PS: f64 = 3.5;
// An entry read in a search, and a mask entry of a task.
const SEARCHED_PS: f64 = 0.9;
const CUT_POSITION_PS: f64 = 25.0;
// An intermediate product of a task whose mask entries have at least `CROWDED` products each.
const ALONE_PS: f64 = 16_000.0;
const CROWDED: f64 = 1000.0;
// Mask entries of a task.
const TASK: f64 = 1024.0;
// An intermediate product of all of C, and a mask entry that is searched there.
const PRODUCT_PS: f64 = 5.5;
const FOUND_PS: f64 = 35.0;

/// The work of a product under a mask, counted on the GPU: intermediate products by the kernel that
/// would sum them at the mask entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Intermediate products of all rows.
    pub products: u64,
    /// Products of rows in which one thread merges each row of B with the mask.
    pub merged: u64,
    /// Entries of B that are read in searches for positions.
    pub searched: u64,
    /// Products of rows whose mask entries are in a warp's table.
    pub table: u64,
    /// Products of rows that are cut into tasks.
    pub cut: u64,
    /// Rows that are cut into tasks.
    pub cut_rows: u64,
}

/// Expected microseconds of both methods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Computing the mask entries alone.
    pub positions_us: f64,
    /// Computing all of C, and finding the mask entries in it.
    pub whole_us: f64,
}

impl Expected {
    /// The times of a product with this work, under a mask with `positions` entries.
    pub fn new(problem: &Problem, positions: usize, work: &Work) -> Self {
        let of = |count: u64, picoseconds: f64| count as f64 * picoseconds * 1e-6;
        let cut_positions = positions as f64 * work.cut as f64 / work.products.max(1) as f64;
        let cut = of(work.cut, CUT_PS) + cut_positions * CUT_POSITION_PS * 1e-6;
        // A CTA processes a task: at most a thousand mask entries of one row. If these have many
        // products each, threads wait for one another to add to them.
        let tasks = (work.cut_rows as f64).max(cut_positions / TASK).max(1.0);
        let crowded = work.cut as f64 >= CROWDED * cut_positions;
        let alone = if crowded { of(work.cut, ALONE_PS) / tasks } else { 0.0 };
        let positions_us = POSITIONS_US
            + of(work.merged, MERGED_PS)
            + of(work.searched, SEARCHED_PS)
            + of(work.table, TABLE_PS)
            + cut.max(alone);
        // With a deterministic order of summation every sum of C would be computed a second time.
        if problem.deterministic {
            return Expected { positions_us, whole_us: f64::INFINITY };
        }
        let whole_us = WHOLE_US + of(work.products, PRODUCT_PS) + of(positions as u64, FOUND_PS);
        Expected { positions_us, whole_us }
    }

    /// Whether computing all of C is expected to be faster.
    pub fn prefers_whole(&self) -> bool {
        self.whole_us < self.positions_us
    }
}

/// The reason for computing the mask entries alone.
pub fn reason_for_positions(positions: usize) -> String {
    format!("the {positions} mask entries alone, other products are skipped")
}

/// The reason for computing all of C.
pub fn reason_for_whole(positions: usize, work: &Work) -> String {
    let products = work.products;
    format!(
        "all of C, of which {positions} positions of the mask are kept: looking up {products} products in the \
         mask would take longer"
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
