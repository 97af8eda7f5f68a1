//! The cost of building a row order, and how many calls repay it.

use gustav_core::Problem;

use super::Order;
use crate::DeviceProfile;

// Nanoseconds for every row and nonzero, medians of `bench/records/gpu-paper-c-f32.jsonl.zst` and
// `bench/records/gpu-orders-segmented-n128.jsonl`, on 32 threads: sorting by loads, hashing
// columns, traversing the graph, searching for the nearest row.
const SORTING: f64 = 3.0;
const HASHING: f64 = 8.0;
const FOLLOWING: f64 = 50.0;
const SEARCHING: f64 = 500.0;
// Time of a call on a GPU in `bench/records/gpu-orders-segmented-n128.jsonl`: milliseconds of the
// shortest, and milliseconds per (row or nonzero) and 16 bytes of a row of B, on one
// multiprocessor.
const SHORTEST_CALL_MS: f64 = 0.01;
const CALL_MS_PER_VECTOR: f64 = 0.3e-6;
// Fraction of a call that an order saves if it is the fastest of all, in the same record.
const SAVED: f64 = 0.05;

impl Order {
    /// Orders whose cost grows no faster than the matrix and that have been the fastest with
    /// `segmented`.
    pub const NEAR_LINEAR: &[Order] = &[
        Order::Plain,
        Order::ReverseCuthillMckee,
        Order::LabelPropagation,
        Order::GraphGrowing,
        Order::GraphGrowingStored,
        Order::GraphGrowingRcm,
        Order::MinHash,
    ];

    /// Estimated milliseconds of building the order for A of `problem`, from its rows and nonzeros
    /// alone.
    pub fn cost_ms(self, problem: &Problem) -> f64 {
        let nanoseconds = match self {
            Order::Stored | Order::Plain | Order::Flipped | Order::Lpt | Order::Dcsr => SORTING,
            Order::MinHash => HASHING,
            Order::ReverseCuthillMckee
            | Order::LabelPropagation
            | Order::GraphGrowing
            | Order::GraphGrowingStored
            | Order::GraphGrowingRcm => FOLLOWING,
            Order::WarpAware
            | Order::CtaAware
            | Order::Hybrid1Plain
            | Order::Hybrid1Flipped
            | Order::Hybrid1Lpt
            | Order::Hybrid21
            | Order::Hybrid22
            | Order::Hybrid23 => SEARCHING,
        };
        (problem.rows + problem.nnz) as f64 * nanoseconds * 1e-6
    }

    /// Calls of `problem` that repay building the order, if it saves `saved_ms` of each. If
    /// `saved_ms` is `None`, the fraction that the fastest orders typically save is assumed.
    pub fn repaying_calls(
        self,
        problem: &Problem,
        profile: &DeviceProfile,
        saved_ms: Option<f64>,
    ) -> f64 {
        let saved = saved_ms.unwrap_or_else(|| SAVED * call_ms(problem, profile));
        if saved > 0.0 { self.cost_ms(problem) / saved } else { f64::INFINITY }
    }
}

/// Rough estimate of the milliseconds of a call: off by a factor of 2 in either direction.
fn call_ms(problem: &Problem, profile: &DeviceProfile) -> f64 {
    let items = (problem.rows + problem.nnz) as f64;
    let vectors = (problem.columns * problem.dtype.bytes()) as f64 / 16.0;
    SHORTEST_CALL_MS + CALL_MS_PER_VECTOR * items * vectors / profile.units.max(1) as f64
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    fn problem(rows: usize, nnz: usize, columns: usize) -> Problem {
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        Problem { rows, nnz, ..Problem::spmm(&eye.view()).columns(columns) }
    }

    fn device() -> DeviceProfile {
        let (l2_bytes, llc_bytes) = (60 << 20, 60 << 20);
        DeviceProfile { name: "a GPU".into(), units: 132, lanes: 32, l2_bytes, llc_bytes }
    }

    #[test]
    fn expensive_orders_need_more_calls_and_wide_products_fewer() {
        let calls =
            |order: Order, n| order.repaying_calls(&problem(50_000, 1_000_000, n), &device(), None);
        assert!(calls(Order::Plain, 128) < calls(Order::MinHash, 128));
        assert!(calls(Order::MinHash, 128) < calls(Order::WarpAware, 128));
        assert!(calls(Order::MinHash, 256) < calls(Order::MinHash, 32));
        assert!((500.0..50_000.0).contains(&calls(Order::MinHash, 128)));
    }

    #[test]
    fn a_measured_saving_replaces_the_estimate() {
        let problem = problem(1000, 9000, 64);
        let of = |saved| Order::LabelPropagation.repaying_calls(&problem, &device(), Some(saved));
        assert!((of(0.1) - 5.0).abs() < 1e-9);
        assert!(of(0.0).is_infinite() && of(-1.0).is_infinite());
    }
}
