//! Chooses the SpGEMM algorithm on a GPU.

use gustav_core::Problem;

use crate::{Algorithm, DeviceProfile};

/// Intermediate products per entry of C, if all rows were alike, from which `dense-output` pays.
const FULL: f64 = 10.0;
/// Rows that keep the warps of a multiprocessor busy.
const ROWS: f64 = 28.0;

/// The algorithm for `problem`: `dense-output` where C is nearly dense and has enough rows for the
/// whole device, else `binned`, which computes any product of two sparse matrices. Both choose a
/// thread group and an accumulator for each row. Deterministic products and a C in the type of sums
/// take `binned`.
///
/// The algorithms of Chen et al. and of the vendor are for comparison and never chosen here.
pub fn choose(problem: &Problem, profile: &DeviceProfile) -> Algorithm {
    let rows = problem.output_rows() as f64;
    let mean_of_b = problem.nnz_b.unwrap_or(0) as f64 / problem.inner().max(1) as f64;
    let products = problem.nnz as f64 * mean_of_b / (rows * problem.columns as f64).max(1.0);
    let plain = !problem.deterministic && problem.output == problem.dtype;
    if plain && products >= FULL && rows >= ROWS * profile.units as f64 {
        Algorithm::DenseOutput
    } else {
        Algorithm::Binned
    }
}

/// The reason for the choice, with the number of intermediate products if it is known.
pub fn reason(problem: &Problem, algorithm: Algorithm, products: Option<u64>) -> String {
    let rows = problem.output_rows().max(1);
    let mean = products.map_or_else(
        || "rows".into(),
        |p| format!("{:.1} intermediate products in a mean row", p as f64 / rows as f64),
    );
    let what = match algorithm {
        Algorithm::DenseOutput => "C is full, its full rows have a sum for every column",
        _ => "each row has its thread group and accumulator",
    };
    let again = match algorithm {
        Algorithm::Binned if problem.deterministic => {
            "; every sum is then made a second time, in the order of A's row"
        }
        _ => "",
    };
    format!("{mean} of {} columns: {what}{again}", problem.columns)
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    #[test]
    fn full_products_of_many_rows_are_dense() {
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let device = DeviceProfile {
            name: "a GPU".into(),
            units: 132,
            lanes: 32,
            l2_bytes: 60 << 20,
            llc_bytes: 60 << 20,
        };
        let of = |m: usize, nnz: usize| {
            let problem = Problem::spgemm(&eye.view(), &eye.view());
            let problem =
                Problem { rows: m, cols: m, columns: m, nnz, nnz_b: Some(nnz), ..problem };
            choose(&problem, &device)
        };
        assert_eq!(of(8192, 8192 * 410), Algorithm::DenseOutput);
        assert_eq!(of(8192, 8192 * 40), Algorithm::Binned);
        assert_eq!(of(2048, 2048 * 500), Algorithm::Binned);
        assert_eq!(of(0, 0), Algorithm::Binned);
    }

    #[test]
    fn the_reason_counts_products_of_a_mean_row() {
        let a =
            Csr::<f32>::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0; 3]).expect("a matrix");
        let problem = Problem::spgemm(&a.view(), &a.view());
        let text = reason(&problem, Algorithm::Binned, Some(5));
        assert!(text.starts_with("2.5 intermediate products in a mean row of 2 columns"));
        assert!(!text.contains("second time"));
        let text = reason(&problem.deterministic(true), Algorithm::Binned, Some(5));
        assert!(text.ends_with("made a second time, in the order of A's row"));
    }
}
