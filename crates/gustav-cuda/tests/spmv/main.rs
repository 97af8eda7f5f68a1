//! Products with a vector on the device against the oracle, one file per algorithm.

#[path = "../common/graph.rs"]
mod graph;

mod even_shares;
mod merge_path;
mod nonzero_split;
mod row_split;
mod segmented;
mod vendor;

use gustav_core::{
    Csr, Error, Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes, Problem, Result,
    Scalar, StaticSemiring, bf16, f16,
};
use gustav_cuda::spmv::{Config, Options};
use gustav_cuda::{Call, Device, DeviceBuffer, DeviceCsr, SpmvPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, SpmvCase, check_spmv};

use graph::Graph;

fn device() -> Device {
    Device::cuda(0).expect("a CUDA device")
}

fn named(algorithm: Algorithm, config: Option<Config>) -> Options {
    Options { chooser: Chooser::Named(algorithm), config }
}

/// One case of the battery, on a stream of its own.
fn run<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>(
    device: &Device,
    options: &Options,
    case: SpmvCase<'_, T, I, O>,
) -> Result<()> {
    run_refined::<T, I, O, S>(device, options, |problem| problem, case)
}

/// The same, of a problem of which more is said.
fn run_refined<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>(
    device: &Device,
    options: &Options,
    refine: impl Fn(Problem) -> Problem,
    case: SpmvCase<'_, T, I, O>,
) -> Result<()> {
    let a = DeviceCsr::upload(device, &case.a)?;
    let x = DeviceBuffer::from_slice(device, case.x, "x")?;
    let mut y = DeviceBuffer::from_slice(device, case.y, "y")?;
    let problem = a.pattern().spmv().problem.transpose_a(case.transpose_a).semiring(S::KIND);
    let mut plan = SpmvPlan::new(a.pattern(), &refine(problem), options)?;
    let stream = device.new_stream()?;
    plan.execute(&a, &x, &mut y, Call::new().alpha(case.alpha).beta(case.beta).on(&stream))?;
    stream.synchronize()?;
    y.read(case.y)
}

/// The battery by `algorithm`, in a configuration or by its rules.
fn check<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>(
    algorithm: Algorithm,
    config: Option<Config>,
) {
    let (device, options) = (device(), named(algorithm, config));
    check_spmv::<T, I, O, S>(&Settings::default(), |case| {
        run::<T, I, O, S>(&device, &options, case)
    });
}

fn check_every_type(algorithm: Algorithm) {
    check::<f32, u32, u32, PlusTimes>(algorithm, None);
    check::<f64, u32, u64, PlusTimes>(algorithm, None);
    check::<f16, u32, u32, PlusTimes>(algorithm, None);
    check::<bf16, u64, u32, PlusTimes>(algorithm, None);
    check::<i32, u32, u32, PlusTimes>(algorithm, None);
    check::<i64, u64, u64, PlusTimes>(algorithm, None);
}

fn check_every_semiring(algorithm: Algorithm) {
    check::<f32, u32, u32, MinPlus>(algorithm, None);
    check::<f64, u32, u32, MaxTimes>(algorithm, None);
    check::<f32, u32, u32, OrAnd>(algorithm, None);
    check::<f32, u32, u32, PlusFirst>(algorithm, None);
    check::<f32, u32, u32, PlusSecond>(algorithm, None);
}

/// The battery within what the papers define.
fn check_paper<T: Scalar>(algorithm: Algorithm, config: Option<Config>) {
    let (device, options) = (device(), named(algorithm, config));
    check_spmv::<T, u32, u32, PlusTimes>(&Settings::default().untransposed(), |case| {
        run::<T, u32, u32, PlusTimes>(&device, &options, case)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn vectors_that_do_not_fit_are_refused() {
    let device = device();
    let eye = gustav_core::Csr::<f32>::new(2, 2, vec![0u32, 1, 2], vec![0u32, 1], vec![1.0; 2]);
    let a = DeviceCsr::upload(&device, &eye.expect("a matrix").view()).expect("A");
    let mut plan = SpmvPlan::new(a.pattern(), &a.pattern().spmv().problem, &Options::default())
        .expect("a plan");
    let vector = |len| DeviceBuffer::from_slice(&device, &vec![1.0f32; len], "a vector");
    let (x, mut y) = (vector(2).expect("x"), vector(3).expect("y"));
    let wrong = plan.execute(&a, &x, &mut y, Call::new());
    assert!(matches!(wrong, Err(Error::Shape { .. })), "{wrong:?}");
    // SAFETY: the memory is x's, which outlives the view; the overlap is what must be refused.
    let mut overlapping = unsafe { DeviceBuffer::borrowed(&device, x.address(), 2) };
    let wrong = plan.execute(&a, &x, &mut overlapping, Call::new());
    assert!(matches!(wrong, Err(Error::Argument { name: "y", .. })), "{wrong:?}");
}

/// Algorithms in a promised order.
const NAMED: [Algorithm; 5] = [
    Algorithm::Segmented,
    Algorithm::EvenShares,
    Algorithm::RowSplit,
    Algorithm::NonzeroSplit,
    Algorithm::MergePath,
];

/// A few rows that hold much of the matrix.
fn skewed(rows: usize) -> Csr<f32> {
    let (mut offsets, mut indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for r in 0..rows {
        let length = if r % 997 == 5 { 9000 } else { r % 19 };
        indices.extend((0..length).map(|k| ((k * 31 + r * 7) % rows) as u32));
        values.extend((0..length).map(|k| ((k * 13 + r) % 29) as f32 / 16.0 - 0.9));
        offsets.push(indices.len() as u32);
    }
    Csr::new(rows, rows, offsets, indices, values).expect("a matrix")
}

/// Of whole numbers, whose sums are the same in any order: cuSPARSE promises none.
#[test]
#[ignore = "needs a CUDA device"]
fn an_execution_is_captured_in_a_graph() {
    let (device, rows) = (device(), 6000);
    let mut host = skewed(rows);
    host.values_mut().iter_mut().for_each(|value| *value = (16.0 * *value).round());
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let x: Vec<f32> = (0..rows).map(|k| (k % 23) as f32 - 11.0).collect();
    let x = DeviceBuffer::from_slice(&device, &x, "x").expect("x");
    let mut y = DeviceBuffer::<f32>::zeros(&device, rows, "y").expect("y");
    let stream = device.new_stream().expect("a stream");
    let ours = NAMED.map(Chooser::Named).into_iter().chain([Chooser::Auto]);
    let ours = ours.map(|chooser| Options { chooser, config: None });
    let vendor = gustav_cuda::spmv::vendor::Config::ALL.map(|c| Some(Config::Vendor(c)));
    let vendor = vendor.map(|config| Options { config, ..Options::default() });
    for options in ours.chain(vendor) {
        let mut plan = SpmvPlan::new(a.pattern(), &a.pattern().spmv().problem.calls(100), &options)
            .expect("a plan");
        plan.execute(&a, &x, &mut y, Call::new().on(&stream)).expect("y");
        let expected = y.to_host().expect("y");
        let graph = Graph::capture(&stream, || {
            plan.execute(&a, &x, &mut y, Call::new().on(&stream)).expect("y");
        });
        assert!(!graph.allocates(), "{options:?}");
        y.fill(0xff, &stream).expect("NaN");
        // SAFETY: the operands live to the end of the test.
        unsafe { graph.launch(&stream) };
        assert!(y.to_host().expect("y") == expected, "{options:?}");
    }
}

/// Rows of several shares, parts and segments.
#[test]
#[ignore = "needs a CUDA device"]
fn twenty_runs_give_the_same_bits() {
    let (device, rows) = (device(), 6000);
    let a = DeviceCsr::upload(&device, &skewed(rows).view()).expect("A");
    let x: Vec<f32> = (0..rows).map(|k| (k % 23) as f32 / 11.0 - 1.0).collect();
    let x = DeviceBuffer::from_slice(&device, &x, "x").expect("x");
    let mut y = DeviceBuffer::<f32>::zeros(&device, rows, "y").expect("y");
    for (chooser, calls) in NAMED.map(Chooser::Named).into_iter().zip([100; 5]).chain([
        (Chooser::Auto, 1),
        (Chooser::Auto, 100),
        (Chooser::Named(Algorithm::EvenShares), 1),
    ]) {
        let options = Options { chooser, config: None };
        let problem = a.pattern().spmv().problem.calls(calls).deterministic(true);
        let mut first: Option<Vec<u32>> = None;
        for _ in 0..20 {
            let mut plan = SpmvPlan::new(a.pattern(), &problem, &options).expect("a plan");
            y.fill(0xff, device.stream()).expect("NaN");
            plan.execute(&a, &x, &mut y, Call::new()).expect("y");
            let bits: Vec<u32> = y.to_host().expect("y").iter().map(|v| v.to_bits()).collect();
            assert!(*first.get_or_insert_with(|| bits.clone()) == bits, "{chooser}");
        }
    }
}

/// Executions share the sums of cut rows, so that they must not overlap.
#[test]
#[ignore = "needs a CUDA device"]
fn executions_on_two_streams_follow_one_another() {
    let (device, rows) = (device(), 60_000);
    let a = DeviceCsr::upload(&device, &skewed(rows).view()).expect("A");
    let x: Vec<f32> = (0..rows).map(|k| (k % 23) as f32 / 11.0 - 1.0).collect();
    let x = DeviceBuffer::from_slice(&device, &x, "x").expect("x");
    for (algorithm, calls) in [(Algorithm::Segmented, 9), (Algorithm::EvenShares, 1)] {
        let options = named(algorithm, None);
        let mut plan =
            SpmvPlan::new(a.pattern(), &a.pattern().spmv().problem.calls(calls), &options)
                .expect("a plan");
        let streams = [device.new_stream().expect("one"), device.new_stream().expect("two")];
        let mut results: Vec<_> =
            (0..16).map(|_| DeviceBuffer::<f32>::zeros(&device, rows, "y").expect("y")).collect();
        for (i, y) in results.iter_mut().enumerate() {
            plan.execute(&a, &x, y, Call::new().on(&streams[i % 2])).expect("y");
        }
        let expected = results[0].to_host().expect("y");
        for y in &results[1..] {
            assert!(y.to_host().expect("y") == expected, "{algorithm}");
        }
    }
}
