//! What the rules choose, on the device: against the oracle, captured in a graph, run after run,
//! and past 2³¹; the other algorithms beside them.

use gustav_core::{Csr, Dense, Layout, PlusTimes, Problem, Scalar, bf16, f16};
use gustav_cuda::spmm::vendor;
use gustav_cuda::{Call, Config, Device, DeviceBuffer, DeviceCsr, DeviceDense, Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmm, matrices};

use super::common::{device, run, run_refined};
use super::graph::Graph;

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery() {
    let device = device();
    check_spmm::<f32, u32, u32, PlusTimes>(&Settings::default(), |case| {
        run::<f32, u32, u32, PlusTimes>(&device, &Options::default(), case)
    });
    check_spmm::<bf16, u32, u64, PlusTimes>(&Settings::default(), |case| {
        run::<bf16, u32, u64, PlusTimes>(&device, &Options::default(), case)
    });
}

/// Expected calls for which the rows are inspected.
#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_of_many_calls() {
    fn check<T: Scalar>() {
        let (device, options) = (device(), Options::default());
        check_spmm::<T, u32, u32, PlusTimes>(&Settings::default(), |case| {
            let many = |problem: Problem| problem.calls(1000);
            run_refined::<T, u32, u32, PlusTimes>(&device, &options, many, case)
        });
    }
    check::<f32>();
    check::<f64>();
    check::<f16>();
}

type Refine = fn(Problem) -> Problem;

fn plain(p: Problem) -> Problem {
    p
}

/// Algorithms that sum in f32 in a promised order where one is asked for, with what each asks of a problem.
fn variants() -> Vec<(Chooser, Refine)> {
    use Algorithm::*;
    fn in_columns(p: Problem) -> Problem {
        p.layouts(Layout::ColumnMajor, Layout::ColumnMajor)
    }
    let by_rows = [
        Segmented,
        EvenShares,
        RowBlock,
        ColumnPanel,
        BStationary,
        RowSplit,
        ThreadRow,
        NonzeroSplit,
        MergePath,
        SellP,
        EllR,
    ];
    let mut variants: Vec<(Chooser, Refine)> = vec![(Chooser::Auto, plain)];
    variants.extend(by_rows.map(|a| (Chooser::Named(a), plain as Refine)));
    variants.extend([OutputStationary, Dcsr].map(|a| (Chooser::Named(a), in_columns as _)));
    variants.push((Chooser::Named(Tensor), |p| p.tf32(true)));
    variants
}

/// These and the others, which promise no order: sums of whole numbers are the same in any.
fn all_variants() -> Vec<(Options<'static>, Refine)> {
    let by = |chooser| Options { chooser, ..Options::default() };
    let mut all: Vec<_> = variants().into_iter().map(|(c, refine)| (by(c), refine)).collect();
    all.push((by(Chooser::Named(Algorithm::HeavyLight)), plain));
    all.push((by(Chooser::Named(Algorithm::Dense)), |p| p.finite(true)));
    let configured = |c| Options { config: Some(Config::Vendor(c)), ..Options::default() };
    all.extend(vendor::Config::ALL.map(|c| (configured(c), plain as Refine)));
    all
}

/// Rows of one long, some middling and many short, on neighbouring columns.
fn skewed(rows: usize) -> Csr<f32> {
    let mut offsets = vec![0u32];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for r in 0..rows {
        let length =
            if r == rows / 2 { rows / 2 } else { r * 5 % 97 * usize::from(r % 3 == 0) + 2 };
        for k in 0..length {
            indices.push(((r + k * 13) % rows) as u32);
            values.push(((r * 7 + k) % 23) as f32 / 11.0 - 1.0);
        }
        offsets.push(indices.len() as u32);
    }
    Csr::new(rows, rows, offsets, indices, values).expect("a matrix")
}

fn dense(rows: usize, columns: usize) -> Dense<f32> {
    Dense::from_fn(rows, columns, Layout::RowMajor, |i, j| {
        ((i * 31 + j * 7) % 41) as f32 / 19.0 - 1.0
    })
    .expect("B")
}

#[test]
#[ignore = "needs a CUDA device"]
fn an_execution_is_captured_in_a_graph() {
    let device = device();
    let mut host = skewed(3000);
    host.values_mut().iter_mut().for_each(|value| *value = (11.0 * *value).round());
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let stream = device.new_stream().expect("a stream");
    for (options, refine) in all_variants() {
        let problem = refine(a.pattern().spmm(64).problem.calls(100));
        let (mut b, mut c) = operands(&device, &problem);
        let whole: Vec<f32> = b.data().to_host().expect("B").iter().map(|v| v.round()).collect();
        b.data_mut().write(&whole).expect("B");
        let mut plan = SpmmPlan::new(a.pattern(), &problem, &options).expect("a plan");
        plan.execute(&a, &b, &mut c, Call::new().on(&stream)).expect("C");
        let expected = c.data().to_host().expect("C");
        let graph = Graph::capture(&stream, || {
            plan.execute(&a, &b, &mut c, Call::new().on(&stream)).expect("C");
        });
        assert!(!graph.allocates(), "{options:?}");
        for _ in 0..3 {
            c.data_mut().fill(0xff, &stream).expect("NaN");
            // SAFETY: the operands live to the end of the test.
            unsafe { graph.launch(&stream) };
            assert!(c.data().to_host().expect("C") == expected, "{options:?}");
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn executions_on_two_streams_share_no_workspace_at_once() {
    let device = device();
    let host = skewed(20_000);
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let b = DeviceDense::upload(&device, &dense(20_000, 128).view()).expect("B");
    let problem = a.pattern().spmm(128).problem.calls(20);
    let mut plan = SpmmPlan::new(a.pattern(), &problem, &Options::default()).expect("a plan");
    let streams = [device.new_stream().expect("one"), device.new_stream().expect("another")];
    let mut results: Vec<_> = (0..8)
        .map(|_| DeviceDense::zeros(&device, 20_000, 128, Layout::RowMajor).expect("C"))
        .collect();
    for (i, c) in results.iter_mut().enumerate() {
        plan.execute(&a, &b, c, Call::new().on(&streams[i % 2])).expect("C");
    }
    let expected = results[0].data().to_host().expect("C");
    for c in &results[1..] {
        assert!(c.data().to_host().expect("C") == expected);
    }
}

/// B of `problem`, and memory for C, on the device.
fn operands(device: &Device, problem: &Problem) -> (DeviceDense<f32>, DeviceDense<f32>) {
    let (rows, columns) = (problem.inner(), problem.columns);
    let b = dense(rows, columns).to_layout(problem.layout_b).expect("B");
    let c = DeviceDense::zeros(device, problem.output_rows(), columns, problem.layout_c);
    (DeviceDense::upload(device, &b.view()).expect("B"), c.expect("C"))
}

#[test]
#[ignore = "needs a CUDA device"]
fn twenty_runs_give_the_same_bits() {
    let device = device();
    let host = skewed(20_000);
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    for (chooser, refine) in variants() {
        let options = Options { chooser, ..Options::default() };
        let problem = refine(a.pattern().spmm(32).problem.calls(20).deterministic(true));
        let mut first: Option<Vec<u32>> = None;
        for _ in 0..20 {
            let (b, mut c) = operands(&device, &problem);
            let mut plan = SpmmPlan::new(a.pattern(), &problem, &options).expect("a plan");
            plan.execute(&a, &b, &mut c, Call::new()).expect("C");
            let c = c.data().to_host().expect("C");
            let bits: Vec<u32> = c.iter().map(|v| v.to_bits()).collect();
            assert!(*first.get_or_insert_with(|| bits.clone()) == bits, "{chooser}");
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_mean_row_length_decides_when_it_is_asked() {
    let device = device();
    let options = Options { chooser: Chooser::MeanRowLength, ..Options::default() };
    for (length, chosen) in [(9, Algorithm::NonzeroSplit), (10, Algorithm::RowSplit)] {
        let host = matrices::random_rows::<f32, u32, u32>(70, 70, 1, |_| length);
        let a = DeviceCsr::upload(&device, &host.view()).expect("A");
        let plan = SpmmPlan::<f32>::new(a.pattern(), &a.pattern().spmm(8).problem, &options)
            .expect("a plan");
        assert_eq!(plan.choice().algorithm, chosen);
    }
    let host = matrices::random_rows::<f16, u32, u32>(70, 70, 1, |_| 3);
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let refused = SpmmPlan::<f16>::new(a.pattern(), &a.pattern().spmm(8).problem, &options);
    let text = refused.err().expect("the paper's kernels take f32 and f64").to_string();
    assert!(text.contains("nonzero-split") && text.contains("segmented"), "{text}");
}

#[test]
#[ignore = "needs a CUDA device with 20 GB"]
fn more_nonzeros_than_31_bits_count() {
    let device = device();
    let nnz = (1usize << 31) + 1234;
    let offsets: Vec<u64> = [0, 3, 5, 1 << 30, 1 << 31, nnz as u64 - 7, nnz as u64].into();
    let rows = offsets.len() - 1;
    let indices = DeviceBuffer::<u32>::zeros(&device, nnz, "indices").expect("indices");
    let mut values = DeviceBuffer::<i32>::zeros(&device, nnz, "values").expect("values");
    values.fill(1, device.stream()).expect("ones in every byte");
    let offset_buffer = DeviceBuffer::from_slice(&device, &offsets, "offsets").expect("offsets");
    let a = DeviceCsr::from_parts(rows, 1, offset_buffer, indices, values).expect("A");
    let ones = Dense::from_fn(1, 4, Layout::RowMajor, |_, _| 1i32).expect("B");
    let b = DeviceDense::upload(&device, &ones.view()).expect("B");
    let mut c = DeviceDense::zeros(&device, rows, 4, Layout::RowMajor).expect("C");
    let problem = a.pattern().spmm(4).problem;
    let mut plan = SpmmPlan::new(a.pattern(), &problem, &Options::default()).expect("a plan");
    plan.execute(&a, &b, &mut c, Call::new().alpha(1).beta(0)).expect("C");
    let found = c.data().to_host().expect("C");
    for (r, pair) in offsets.windows(2).enumerate() {
        let expected = ((pair[1] - pair[0]) as i32).wrapping_mul(0x0101_0101);
        assert_eq!(found[4 * r..4 * r + 4], [expected; 4], "row {r}");
    }
}

#[test]
#[ignore = "needs a CUDA device with 20 GB"]
fn more_values_of_c_than_32_bits_count() {
    let device = device();
    let (rows, columns) = (1 << 20, 4160);
    let offsets: Vec<u32> = (0..=rows as u32).collect();
    let indices: Vec<u32> = (0..rows as u32).map(|r| r % 3).collect();
    let values: Vec<f32> = (0..rows).map(|r| (r % 1000) as f32).collect();
    let host = Csr::new(rows, 3, offsets, indices, values).expect("A");
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let host_b = dense(3, columns);
    let b = DeviceDense::upload(&device, &host_b.view()).expect("B");
    let mut c = DeviceDense::zeros(&device, rows, columns, Layout::RowMajor).expect("C");
    let mut plan =
        SpmmPlan::new(a.pattern(), &a.pattern().spmm(columns).problem, &Options::default())
            .expect("a plan");
    plan.execute(&a, &b, &mut c, Call::new()).expect("C");
    for r in [0, 1, 516_222, rows - 2, rows - 1] {
        let mut row = vec![0.0; columns];
        c.data().read_at(r * columns, &mut row).expect("a row");
        let b_row = &host_b.data()[r % 3 * columns..][..columns];
        let factor = (r % 1000) as f32;
        assert!(row.iter().zip(b_row).all(|(c, b)| *c == factor * b), "row {r}");
    }
}
