//! New values under a known pattern: no memory is taken, and nothing is counted.

use gustav_core::Csr;
use gustav_cuda::DeviceCsr;
use gustav_cuda::spgemm::{Options, SpgemmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::oracle;

use crate::device;
use crate::graph::Graph;

/// Captures new values of A·B, in which what waits for the device fails, runs them, and returns how
/// many kernels that took.
fn kernels_of_new_values(
    a: &Csr<f32>,
    b: &Csr<f32>,
    algorithm: Algorithm,
    deterministic: bool,
) -> usize {
    let device = device();
    let [on_a, on_b] = [a, b].map(|m| DeviceCsr::upload(&device, &m.view()).expect("room"));
    let problem = on_a.spgemm(&on_b).deterministic(deterministic);
    let options = Options { chooser: Chooser::Named(algorithm), ..Options::default() };
    let mut plan = SpgemmPlan::new(&on_a, &on_b, &problem, &options).expect("a plan");
    let mut c = plan.execute(&on_a, 1.0, &on_b, device.stream()).expect("C");
    let first = c.download().expect("C");
    c.values_mut().fill(0xff, device.stream()).expect("poison");
    device.stream().synchronize().expect("work");
    let stream = device.new_stream().expect("a stream");
    let graph = Graph::capture(&stream, || {
        plan.execute_into(&on_a, 1.0, &on_b, &mut c, &stream).expect("new values");
    });
    assert!(!graph.allocates(), "{algorithm} takes memory");
    // SAFETY: the operands and the plan are alive.
    unsafe { graph.launch(&stream) };
    let again = c.download().expect("C");
    assert_eq!((first.offsets(), first.indices()), (again.offsets(), again.indices()));
    let verdict = oracle::Spgemm::new(a.view(), b.view()).verify(again.view()).expect("shapes");
    assert!(verdict.ok, "{algorithm}: {verdict}");
    graph.kernels()
}

#[test]
#[ignore = "needs a CUDA device"]
fn full_rows() {
    let a = random_rows::<f32, u32, u32>(300, 600, 1, |_| 300);
    let b = random_rows::<f32, u32, u32>(600, 2100, 2, |row| 400 + row % 9);
    // Values of B to where they are packed, and the rows.
    assert_eq!(kernels_of_new_values(&a, &b, Algorithm::DenseOutput, false), 2);
    assert_eq!(kernels_of_new_values(&a, &b, Algorithm::Binned, false), 1);
}

#[test]
#[ignore = "needs a CUDA device"]
fn rows_of_all_kinds() {
    // From none to all columns, and rows that are full.
    let a = random_rows::<f32, u32, u32>(3000, 900, 3, |row| [0, 1, 3, 20, 90, 600][row % 6]);
    let b = random_rows::<f32, u32, u32>(900, 1500, 4, |row| [1, 5, 40, 300][row % 4]);
    for algorithm in [Algorithm::Binned, Algorithm::DenseOutput] {
        for deterministic in [false, true] {
            assert!(kernels_of_new_values(&a, &b, algorithm, deterministic) > 1);
        }
    }
}
