//! New values under a known pattern: no memory is taken, and nothing is counted.

use gustav_cuda::SpgemmCall;
use std::ops::ControlFlow;

use gustav_core::Csr;
use gustav_cuda::DeviceCsr;
use gustav_cuda::spgemm::tiled::Progress;
use gustav_cuda::spgemm::{Options, SpgemmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::oracle;

use crate::device;
use crate::graph::Graph;

fn by(algorithm: Algorithm) -> Options {
    Options { chooser: Chooser::Named(algorithm), ..Options::default() }
}

/// Captures new values of A·B, in which what waits for the device fails, runs them, and returns how
/// many kernels that took, and how many parts C was computed in.
fn kernels_of_new_values(
    a: &Csr<f32>,
    b: &Csr<f32>,
    options: Options,
    deterministic: bool,
) -> (usize, usize) {
    let device = device();
    let [on_a, on_b] = [a, b].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let problem =
        on_a.pattern().spgemm(on_b.pattern()).problem.deterministic(deterministic).calls(2);
    let mut plan =
        SpgemmPlan::new(on_a.pattern(), on_b.pattern(), &problem, &options).expect("a plan");
    let mut parts = 0;
    let mut watch = |progress: Progress| {
        parts = progress.tiles;
        ControlFlow::Continue(())
    };
    let c = plan.execute(&on_a, &on_b, SpgemmCall::new().watch(&mut watch));
    let mut c = c.expect("C");
    let first = c.download().expect("C");
    c.values_mut().fill(0xff, device.stream()).expect("poison");
    device.stream().synchronize().expect("work");
    let stream = device.new_stream().expect("a stream");
    let graph = Graph::capture(&stream, || {
        plan.execute_into(&on_a, &on_b, &mut c, SpgemmCall::new().on(&stream)).expect("new values");
    });
    assert!(!graph.allocates(), "{options:?} takes memory");
    // SAFETY: the operands and the plan are alive.
    unsafe { graph.launch(&stream) };
    let again = c.download().expect("C");
    assert_eq!((first.offsets(), first.indices()), (again.offsets(), again.indices()));
    let verdict = oracle::Spgemm::new(a.view(), b.view()).verify(again.view()).expect("shapes");
    assert!(verdict.ok, "{options:?}: {verdict}");
    (graph.kernels(), parts)
}

#[test]
#[ignore = "needs a CUDA device"]
fn full_rows() {
    let a = random_rows::<f32, u32, u32>(300, 600, 1, |_| 300);
    let b = random_rows::<f32, u32, u32>(600, 2100, 2, |row| 400 + row % 9);
    // Values of B to where they are packed, and the rows.
    assert_eq!(kernels_of_new_values(&a, &b, by(Algorithm::DenseOutput), false), (2, 1));
    assert_eq!(kernels_of_new_values(&a, &b, by(Algorithm::Binned), false), (1, 1));
}

#[test]
#[ignore = "needs a CUDA device"]
fn parts_are_not_counted_again() {
    // Rows of one kind: a part takes one kernel, and counting it would take four more.
    let a = random_rows::<f32, u32, u32>(4000, 900, 1, |_| 40);
    let b = random_rows::<f32, u32, u32>(900, 3000, 2, |_| 30);
    let options = Options { workspace: Some(20_000), ..Options::default() };
    let (kernels, parts) = kernels_of_new_values(&a, &b, options, false);
    assert!(parts > 2, "{parts} parts");
    assert_eq!(kernels, parts);
}

#[test]
#[ignore = "needs a CUDA device"]
fn rows_of_all_kinds() {
    // From none to all columns, and rows that are full.
    let a = random_rows::<f32, u32, u32>(3000, 900, 3, |row| [0, 1, 3, 20, 90, 600][row % 6]);
    let b = random_rows::<f32, u32, u32>(900, 1500, 4, |row| [1, 5, 40, 300][row % 4]);
    let bounded = Options { workspace: Some(20_000), ..Options::default() };
    for options in [by(Algorithm::Binned), by(Algorithm::DenseOutput), bounded] {
        for deterministic in [false, true] {
            let (kernels, parts) = kernels_of_new_values(&a, &b, options, deterministic);
            assert!(kernels > parts, "{kernels} kernels, {parts} parts");
            assert_eq!(parts > 1, options.workspace.is_some());
        }
    }
}
