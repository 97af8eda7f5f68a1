//! Mean, bias and ReLU on the device against sums in f64.

use gustav_core::{Csr, DType, Dense, Epilogue, Error, Layout, Scalar, Semiring, bf16, f16};
use gustav_cuda::spmm::column_panel;
use gustav_cuda::spmm::segmented::{Config, Reduction};
use gustav_cuda::{Call, DeviceBuffer, DeviceCsr, DeviceDense, Options, SpmmPlan};
use gustav_plan::orders::{Order, Search, WarpShape};
use gustav_plan::{Algorithm, Chooser};

use crate::common::device;

const ROWS: usize = 301;
const COLS: usize = 257;
const ALPHA: f64 = 0.5;
const BETA: f64 = 2.0;

/// Every combination of the three steps.
fn epilogues() -> impl Iterator<Item = Epilogue> {
    (0..8).map(|k| Epilogue { mean: k & 1 == 1, bias: k & 2 == 2, relu: k & 4 == 4 })
}

/// Rows of 0 to 12 entries, and one of 200, which is cut.
fn matrix<T: Scalar>() -> Csr<T> {
    let (mut offsets, mut indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for row in 0..ROWS {
        let length = if row == 7 { 200 } else { row % 13 };
        let mut columns: Vec<_> = (0..length).map(|k| ((row * 31 + k) % COLS) as u32).collect();
        columns.sort_unstable();
        values.extend((0..length).map(|k| T::from_f64(small(row + 3 * k))));
        indices.extend(columns);
        offsets.push(indices.len() as u32);
    }
    Csr::new(ROWS, COLS, offsets, indices, values).expect("a matrix")
}

/// Whole numbers from -3 to 3, whose sums are exact in every type.
fn small(k: usize) -> f64 {
    (k * 5 % 7) as f64 - 3.0
}

/// How a product is asked for.
#[derive(Clone)]
struct Case<'a> {
    options: Options<'a>,
    columns: usize,
    layouts: (Layout, Layout),
    /// Whether A is handed over transposed.
    transpose: bool,
}

impl Case<'_> {
    fn named(algorithm: Algorithm) -> Self {
        let options = Options { chooser: Chooser::Named(algorithm), ..Options::default() };
        Case {
            options,
            columns: 33,
            layouts: (Layout::RowMajor, Layout::RowMajor),
            transpose: false,
        }
    }
}

fn check<T: Scalar>(case: &Case<'_>) {
    let device = device();
    let host = matrix::<T>();
    let rows = host.view();
    let stored = case.transpose.then(|| rows.transpose().expect("a transpose"));
    let stored = stored.as_ref().unwrap_or(&host);
    let a = DeviceCsr::upload(&device, &stored.view()).expect("A");
    let Case { options, columns, layouts, transpose } = case.clone();
    let dense = |rows, layout, shift: usize| {
        Dense::from_fn(rows, columns, layout, |i, j| T::from_f64(small(i + 3 * j + shift)))
            .expect("B")
    };
    let (b, before) = (dense(COLS, layouts.0, 0), dense(ROWS, layouts.1, 5));
    let b_device = DeviceDense::upload(&device, &b.view()).expect("B");
    let bias: Vec<_> = (0..columns).map(|j| T::from_f64(small(2 * j)).to_accum()).collect();
    let bias = DeviceBuffer::from_slice(&device, &bias, "bias").expect("memory");
    for epilogue in epilogues() {
        let problem = a.pattern().spmm(columns).problem.layouts(layouts.0, layouts.1).calls(10);
        let problem = problem.transpose_a(transpose).epilogue(epilogue);
        let mut plan = SpmmPlan::new(a.pattern(), &problem, &options).expect("a plan");
        let mut c = DeviceDense::upload(&device, &before.view()).expect("C");
        let (alpha, beta) = (T::from_f64(ALPHA).to_accum(), T::from_f64(BETA).to_accum());
        let stream = device.new_stream().expect("a stream");
        let bias = epilogue.bias.then_some(&bias);
        plan.execute(
            &a,
            &b_device,
            &mut c,
            Call::new().alpha(alpha).beta(beta).bias(bias).on(&stream),
        )
        .expect("C");
        stream.synchronize().expect("the end");
        let found = c.data().to_host().expect("C");
        for i in 0..ROWS {
            let (indices, values) = rows.row(i);
            for j in 0..columns {
                let at = |m: &Dense<T>, i| m.view().get(i, j).to_f64();
                let terms = indices.iter().zip(values);
                let sum: f64 = terms.map(|(k, v)| v.to_f64() * at(&b, *k as usize)).sum();
                let length = if epilogue.mean { indices.len().max(1) as f64 } else { 1.0 };
                let mut expected = ALPHA * sum / length + BETA * at(&before, i);
                if epilogue.bias {
                    expected += small(2 * j);
                }
                if epilogue.relu {
                    expected = expected.max(0.0);
                }
                let index = match layouts.1 {
                    Layout::RowMajor => i * columns + j,
                    Layout::ColumnMajor => j * ROWS + i,
                };
                let found = found[index].to_f64();
                // One rounding to the stored type, and a few of sums up to some hundreds.
                let bound = unit::<T>() * expected.abs() + 1e-4 * f64::from(epilogue.mean as u8);
                assert!(
                    (found - expected).abs() <= bound,
                    "{} {epilogue:?} {layouts:?} transposed {transpose}: C[{i}, {j}] is {found}, \
                     not {expected}",
                    plan.choice().algorithm
                );
            }
        }
    }
}

fn unit<T: Scalar>() -> f64 {
    match T::DTYPE {
        DType::F16 => 0.5f64.powi(10),
        DType::Bf16 => 0.5f64.powi(7),
        DType::F32 => 0.5f64.powi(22),
        _ => 0.5f64.powi(50),
    }
}

macro_rules! steps_of {
    ($($name:ident: $t:ty, $algorithm:ident;)*) => {$(
        #[test]
        #[ignore = "needs a CUDA device"]
        fn $name() {
            for layout in [Layout::RowMajor, Layout::ColumnMajor] {
                for columns in [33, 64] {
                    let layouts = (layout, layout);
                    check::<$t>(&Case { layouts, columns, ..Case::named(Algorithm::$algorithm) });
                }
            }
        }
    )*};
}

steps_of! {
    segmented_f32: f32, Segmented;
    segmented_f64: f64, Segmented;
    segmented_f16: f16, Segmented;
    segmented_bf16: bf16, Segmented;
    even_shares_f32: f32, EvenShares;
    even_shares_f16: f16, EvenShares;
    row_block_f32: f32, RowBlock;
    row_block_f64: f64, RowBlock;
    column_panel_f32: f32, ColumnPanel;
    column_panel_bf16: bf16, ColumnPanel;
    b_stationary_f32: f32, BStationary;
    b_stationary_f64: f64, BStationary;
    b_stationary_f16: f16, BStationary;
    tensor_f16: f16, Tensor;
    tensor_bf16: bf16, Tensor;
    tensor_f64: f64, Tensor;
}

/// The algorithms that have epilogues.
const FINISHING: [Algorithm; 5] = [
    Algorithm::Segmented,
    Algorithm::EvenShares,
    Algorithm::RowBlock,
    Algorithm::ColumnPanel,
    Algorithm::BStationary,
];

#[test]
#[ignore = "needs a CUDA device"]
fn of_a_transposed_matrix() {
    for algorithm in FINISHING {
        check::<f32>(&Case { transpose: true, ..Case::named(algorithm) });
    }
    check::<f16>(&Case { transpose: true, columns: 64, ..Case::named(Algorithm::Tensor) });
}

#[test]
#[ignore = "needs a CUDA device"]
fn of_mixed_layouts() {
    let (rows, columns) = (Layout::RowMajor, Layout::ColumnMajor);
    for layouts in [(rows, columns), (columns, rows)] {
        for algorithm in FINISHING {
            check::<f32>(&Case { layouts, ..Case::named(algorithm) });
            check::<f64>(&Case { layouts, transpose: true, ..Case::named(algorithm) });
        }
        check::<bf16>(&Case { layouts, columns: 64, ..Case::named(Algorithm::Tensor) });
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn of_rows_in_an_order() {
    let host = matrix::<f32>();
    for order in [Order::Lpt, Order::ReverseCuthillMckee] {
        let order =
            order.of(&host.pattern().view(), WarpShape::default(), Search::Auto).expect("an order");
        let segmented = Case::named(Algorithm::Segmented);
        let options = Options { order: Some(&order), ..segmented.options };
        check::<f32>(&Case { options, ..segmented });
        // Whole rows as listed, where none is cut.
        let config = Config { longest: None, ..segmented_config() };
        let config = Some(gustav_cuda::Config::Segmented(config));
        check::<f32>(&Case { options: Options { config, ..options }, ..segmented });
        let config = Config {
            subgroups: 1,
            segments_per_group: 4,
            at_once: false,
            prefetch_b: true,
            window: 64,
            ..segmented_config()
        };
        let config = Some(gustav_cuda::Config::Segmented(config));
        check::<f32>(&Case { options: Options { config, ..options }, ..segmented });
    }
}

/// Four lanes of two vectors.
fn segmented_config() -> Config {
    Config {
        vector: 4,
        lanes: 4,
        tiles: 2,
        subgroups: 2,
        warps: 1,
        chunk: 2,
        segments_per_group: 1,
        at_once: false,
        prefetch_b: false,
        stages: 0,
        prefetch_a: false,
        longest: Some(1024),
        first: 32,
        window: 1024,
        reduction: Reduction::FixUp,
        block: 64,
        resident: 384,
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn of_many_panels() {
    for columns in [24, 64, 100] {
        let segment = Config { lanes: 4, tiles: 1, ..segmented_config() };
        let config = column_panel::Config { columns: 24, rows: 9, segment };
        let config = Some(gustav_cuda::Config::ColumnPanel(config));
        let case = Case::named(Algorithm::ColumnPanel);
        check::<f32>(&Case { options: Options { config, ..case.options }, columns, ..case });
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_nan_passes_and_an_unasked_bias_is_refused() {
    let device = device();
    let host = Csr::new(1, 1, vec![0u32, 1], vec![0u32], vec![f32::NAN]).expect("a matrix");
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let ones = Dense::from_fn(1, 4, Layout::RowMajor, |_, _| 1.0f32).expect("B");
    let b = DeviceDense::upload(&device, &ones.view()).expect("B");
    let mut c = DeviceDense::upload(&device, &ones.view()).expect("C");
    let relu = Epilogue { relu: true, ..Epilogue::default() };
    let problem = a.pattern().spmm(4).problem.epilogue(relu);
    let mut plan = SpmmPlan::new(a.pattern(), &problem, &Options::default()).expect("a plan");
    plan.execute(&a, &b, &mut c, Call::new()).expect("C");
    assert!(c.data().to_host().expect("C").iter().all(|v| v.is_nan()));

    let bias = DeviceBuffer::from_slice(&device, &[0f32; 4], "bias").expect("memory");
    let mut with =
        |plan: &mut SpmmPlan<f32>, bias| plan.execute(&a, &b, &mut c, Call::new().bias(bias));
    let unasked = with(&mut plan, Some(&bias)).expect_err("no bias was asked for");
    assert!(matches!(unasked, Error::Argument { name: "bias", .. }), "{unasked}");
    let problem = a.pattern().spmm(4).problem.epilogue(Epilogue { bias: true, ..relu });
    let mut plan =
        SpmmPlan::<f32>::new(a.pattern(), &problem, &Options::default()).expect("a plan");
    let missing = with(&mut plan, None).expect_err("a bias was asked for");
    assert!(missing.to_string().contains("4 values"), "{missing}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn what_has_no_epilogue_says_so() {
    let device = device();
    let a = DeviceCsr::upload(&device, &matrix::<f32>().view()).expect("A");
    let relu = Epilogue { relu: true, ..Epilogue::default() };
    let problem = a.pattern().spmm(8).problem.epilogue(relu);
    let refused = |problem, chooser| -> String {
        let options = Options { chooser, ..Options::default() };
        let error = SpmmPlan::<f32>::new(a.pattern(), &problem, &options).err().expect("a refusal");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("ReLU"), "{error}");
        error.to_string()
    };
    let without = [
        Algorithm::RowSplit,
        Algorithm::ThreadRow,
        Algorithm::NonzeroSplit,
        Algorithm::MergePath,
        Algorithm::OutputStationary,
        Algorithm::Dcsr,
        Algorithm::SellP,
        Algorithm::EllR,
        Algorithm::HeavyLight,
        Algorithm::Dense,
        Algorithm::Vendor,
    ];
    for algorithm in without {
        let text = refused(problem.clone(), Chooser::Named(algorithm));
        assert!(text.contains(algorithm.name()), "{algorithm}: {text}");
    }
    refused(problem.clone().semiring(Semiring::MinPlus), Chooser::Auto);
    for algorithm in FINISHING {
        let other = problem.clone().semiring(Semiring::MaxTimes);
        let text = refused(other, Chooser::Named(algorithm));
        assert!(text.contains(algorithm.name()), "{algorithm}: {text}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn sums_that_meet_by_reductions_have_no_epilogue() {
    let device = device();
    let a = DeviceCsr::upload(&device, &matrix::<f32>().view()).expect("A");
    let relu = Epilogue { relu: true, ..Epilogue::default() };
    let config = Config { reduction: Reduction::Atomic, ..segmented_config() };
    let config = Some(gustav_cuda::Config::Segmented(config));
    let options = Options { config, ..Options::default() };
    let error =
        SpmmPlan::<f32>::new(a.pattern(), &a.pattern().spmm(8).problem.epilogue(relu), &options)
            .err();
    let error = error.expect("a refusal");
    assert!(matches!(error, Error::Argument { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("by fix-up") && text.contains("without an epilogue"), "{text}");
}
