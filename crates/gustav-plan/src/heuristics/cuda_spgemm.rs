//! Which SpGEMM algorithm on a GPU.

use gustav_core::Problem;

use crate::Algorithm;

/// The algorithm that computes any product of two sparse matrices.
///
/// The algorithms of Chen et al. and the vendor's are there for comparison and never chosen here;
/// `binned` chooses a team and an accumulator row by row.
pub const ALGORITHM: Algorithm = Algorithm::Binned;

/// Why, from the number of intermediate products where it is known.
pub fn reason(problem: &Problem, products: Option<u64>) -> String {
    let rows = problem.output_rows().max(1);
    let mean = products.map_or_else(
        || "rows".into(),
        |p| format!("{:.1} intermediate products in a mean row", p as f64 / rows as f64),
    );
    format!("{mean} of {} columns: each row picks its team and accumulator", problem.columns)
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    #[test]
    fn the_reason_counts_products_of_a_mean_row() {
        let a =
            Csr::<f32>::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0; 3]).expect("a matrix");
        let problem = Problem::spgemm(&a.view(), &a.view());
        let reason = reason(&problem, Some(5));
        assert!(reason.starts_with("2.5 intermediate products in a mean row of 2 columns"));
    }
}
