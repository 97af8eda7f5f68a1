//! What a plan promises.

use gustav_core::{Error, Layout, Result, Semiring};
use gustav_cuda::sddmm::{Options, catalog};
use gustav_cuda::{
    DeviceBuffer, DeviceCsr, DeviceDense, DevicePattern, Graph, SddmmCall, SddmmPlan,
};
use gustav_plan::Algorithm;
use gustav_testkit::battery::matrices::random_rows;

use crate::{device, named, operands};

fn pattern(seed: u64) -> gustav_core::Pattern {
    let rows = random_rows::<f32, u32, u32>(900, 700, seed, |r| if r == 7 { 690 } else { r % 9 });
    rows.pattern().clone()
}

fn plan(pattern: &DevicePattern, depth: usize) -> SddmmPlan<f32> {
    let request = pattern.sddmm(depth);
    SddmmPlan::new(pattern, &request.problem, &Options::default()).expect("a plan")
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_execution_gives_the_same_bits() {
    let (device, host) = (device(), pattern(1));
    let on = DevicePattern::upload(&device, host.view()).expect("a pattern");
    let own = catalog().iter().map(|e| e.algorithm).filter(|a| *a != Algorithm::Vendor);
    for (algorithm, depth) in own.flat_map(|a| [1, 33, 64, 200, 1000].map(|d| (a, d))) {
        let [x, y] = operands(&device, &host, depth);
        let options = named(algorithm, None);
        let mut plan = SddmmPlan::new(&on, &on.sddmm(depth).problem, &options).expect("a plan");
        let mut values = DeviceBuffer::zeros(&device, host.nnz(), "values").expect("memory");
        let mut results = Vec::new();
        for _ in 0..3 {
            plan.execute(&x, &y, &mut values, ()).expect("a product");
            results.push(values.to_host().expect("values").to_vec());
        }
        assert!(results[0].iter().any(|v| *v != 0.0));
        assert!(results.iter().all(|r| *r == results[0]), "{algorithm}, depth {depth}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn what_does_not_fit_is_refused_and_nothing_is_written() {
    let (device, host) = (device(), pattern(1));
    let on = DevicePattern::upload(&device, host.view()).expect("a pattern");
    let [x, y] = operands(&device, &host, 40);
    let mut plan = plan(&on, 40);
    let five = vec![5.0f32; host.nnz()];
    let mut values = DeviceBuffer::from_slice(&device, &five, "values").expect("memory");
    let shape = |r: Result<()>| assert!(matches!(r, Err(Error::Shape { .. })), "{r:?}");
    shape(plan.execute(&y, &y, &mut values, ()));
    shape(plan.execute(&x, &x, &mut values, ()));
    let turned = DeviceDense::zeros(&device, 900, 40, Layout::ColumnMajor).expect("memory");
    shape(plan.execute(&turned, &y, &mut values, ()));
    for length in [0, host.nnz() - 1, host.nnz() + 1] {
        let mut other = DeviceBuffer::zeros(&device, length, "values").expect("memory");
        let refused = plan.execute(&x, &y, &mut other, ());
        assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
        let call = SddmmCall::new().factors(&other);
        let refused = plan.execute(&x, &y, &mut values, call);
        assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
    }
    // The memory of X.
    assert!(host.nnz() <= x.data().len());
    let address = x.data().address();
    // SAFETY: so many values are there, and the call below is refused.
    let mut overlapping = unsafe { DeviceBuffer::<f32>::borrowed(&device, address, host.nnz()) };
    let refused = plan.execute(&x, &y, &mut overlapping, ());
    assert!(matches!(refused, Err(Error::Argument { .. })), "{refused:?}");
    // Factors of an equal pattern that is another one.
    let equal = gustav_core::Csr::from_pattern(&pattern(1), five.clone()).expect("a matrix");
    let equal = DeviceCsr::upload(&device, &equal.view()).expect("a matrix");
    let refused = plan.execute(&x, &y, &mut values, SddmmCall::new().factors(&equal));
    assert!(matches!(refused, Err(Error::Pattern { .. })), "{refused:?}");
    assert_eq!(values.to_host().expect("values")[..], five[..]);
    plan.execute(&x, &y, &mut values, ()).expect("a product");
}

#[test]
#[ignore = "needs a CUDA device"]
fn other_semirings_and_transposes_are_refused() {
    let (device, host) = (device(), pattern(1));
    let on = DevicePattern::upload(&device, host.view()).expect("a pattern");
    let problem = on.sddmm(8).problem;
    for problem in [problem.clone().semiring(Semiring::MinPlus), problem.transpose_a(true)] {
        let refused = SddmmPlan::<f32>::new(&on, &problem, &Options::default());
        let error = refused.err().expect("a refusal");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_graph_repeats_a_product() {
    let (device, host) = (device(), pattern(3));
    let on = DevicePattern::upload(&device, host.view()).expect("a pattern");
    let [x, y] = operands(&device, &host, 96);
    let mut plan = plan(&on, 96);
    let mut values = DeviceBuffer::zeros(&device, host.nnz(), "values").expect("memory");
    plan.execute(&x, &y, &mut values, ()).expect("a product");
    let expected = values.to_host().expect("values");
    let stream = device.new_stream().expect("a stream");
    let graph =
        Graph::capture(&stream, || plan.execute(&x, &y, &mut values, SddmmCall::new().on(&stream)));
    let mut graph = graph.expect("a graph");
    drop((plan, x, y));
    values.fill(0, &stream).expect("zeros");
    graph.launch(&stream).expect("a launch");
    assert_eq!(values.to_host().expect("values")[..], expected[..]);
}

#[test]
#[ignore = "needs a CUDA device"]
fn executions_on_several_streams_follow_one_another() {
    let (device, host) = (device(), pattern(4));
    let on = DevicePattern::upload(&device, host.view()).expect("a pattern");
    let streams = [0; 3].map(|_| device.new_stream().expect("a stream"));
    for calls in [1, 100] {
        let [x, y] = operands(&device, &host, 64);
        let problem = on.sddmm(64).calls(calls).problem;
        let mut plan = SddmmPlan::new(&on, &problem, &Options::default()).expect("a plan");
        let mut values = DeviceBuffer::zeros(&device, host.nnz(), "values").expect("memory");
        // 1 + 2·(1 + 2·(...)) times the product: an execution out of order shows.
        for stream in streams.iter().cycle().take(9) {
            let call = SddmmCall::new().beta(2.0).on(stream);
            plan.execute(&x, &y, &mut values, call).expect("a product");
        }
        let mut once = DeviceBuffer::zeros(&device, host.nnz(), "values").expect("memory");
        plan.execute(&x, &y, &mut once, ()).expect("a product");
        let (found, once) = (values.to_host().expect("values"), once.to_host().expect("values"));
        for (found, once) in found.iter().zip(&once[..]) {
            let expected = 511.0 * once;
            assert!((found - expected).abs() <= 1e-4 * expected.abs() + 1e-4, "{found} {expected}");
        }
    }
}
