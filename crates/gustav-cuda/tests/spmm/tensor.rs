//! `tensor`.

use gustav_core::{Csr, Dense, Index, PlusTimes, Scalar, Semiring, bf16, f16};
use gustav_cuda::spmm::tensor::Config;
use gustav_cuda::{Call, DeviceCsr, DeviceDense, Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmm};

use crate::common::{device, run};
use crate::papers::{check_values, product};

const TENSOR: Options<'static> =
    Options { chooser: Chooser::Named(Algorithm::Tensor), config: None, order: None };

fn check<T: Scalar, I: Index, O: Index>(options: &Options<'_>) {
    let device = device();
    check_spmm::<T, I, O, PlusTimes>(&Settings::default(), |case| {
        run::<T, I, O, PlusTimes>(&device, options, case)
    });
}

fn configured(panel: u32, warps: u32, subgroups: u32) -> Options<'static> {
    let config = Config { panel, warps, subgroups, resident: 384 };
    Options { config: Some(gustav_cuda::Config::Tensor(config)), ..Options::default() }
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_f16() {
    check::<f16, u32, u32>(&TENSOR);
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_bf16() {
    check::<bf16, u32, u64>(&TENSOR);
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_f64() {
    check::<f64, u64, u32>(&TENSOR);
}

#[test]
#[ignore = "needs a CUDA device"]
fn shared_blocks_and_narrow_panels() {
    check::<f16, u64, u32>(&configured(16, 4, 4));
    check::<bf16, u32, u32>(&configured(32, 2, 2));
    check::<f64, u32, u32>(&configured(32, 8, 8));
}

/// A zero of a block meets NaN and infinity: rows that have no such entry do not see them.
#[test]
#[ignore = "needs a CUDA device"]
fn what_a_row_lacks_never_enters_its_sum() {
    let device = device();
    let (rows, inner, columns) = (40, 64, 72);
    let (mut offsets, mut indices) = (vec![0u32], Vec::new());
    for r in 0..rows {
        // Column 9 is in one row of each block, column 11 in two.
        indices.extend((0..inner).filter(|k| match k {
            9 => r % 8 == 3,
            11 => r % 8 == 3 || r % 8 == 6,
            _ => (r + k) % 3 == 0,
        }));
        offsets.push(indices.len() as u32);
    }
    let indices: Vec<u32> = indices.into_iter().map(|k| k as u32).collect();
    let values = vec![bf16::from_f64(1.0); indices.len()];
    let a = Csr::new(rows, inner, offsets, indices, values).expect("a matrix");
    let b = Dense::from_fn(inner, columns, Default::default(), |i, j| {
        bf16::from_f64(match (i, j % 5) {
            (9, 1) => f64::NAN,
            (9, 2) => f64::INFINITY,
            (11, 2) => f64::NEG_INFINITY,
            (11, 3) => f64::INFINITY,
            _ => 1.0,
        })
    })
    .expect("B");
    let (a, b) = (
        DeviceCsr::upload(&device, &a.view()).expect("A"),
        DeviceDense::upload(&device, &b.view()).expect("B"),
    );
    for options in [TENSOR, configured(64, 4, 2)] {
        let mut c = DeviceDense::zeros(&device, rows, columns, Default::default()).expect("C");
        c.data_mut().fill(0xff, device.stream()).expect("NaN");
        let problem = a.pattern().spmm(columns).problem;
        let mut plan = SpmmPlan::new(a.pattern(), &problem, &options).expect("a plan");
        plan.execute(&a, &b, &mut c, Call::new()).expect("C");
        for (i, c) in c.data().to_host().expect("C").iter().enumerate() {
            let (row, column) = (i / columns, i % columns);
            let found = c.to_f64();
            match (row % 8, column % 5) {
                (3, 1 | 2) => assert!(found.is_nan(), "{row}, {column}: {found}"),
                (6, 2) => assert_eq!(found, f64::NEG_INFINITY, "{row}, {column}"),
                (3 | 6, 3) => assert_eq!(found, f64::INFINITY, "{row}, {column}"),
                _ => assert!((18.0..26.0).contains(&found), "{row}, {column}: {found}"),
            }
        }
    }
}

/// TF32 keeps 11 bits: factors that fit are multiplied as f32 are.
#[test]
#[ignore = "needs a CUDA device"]
fn tf32_is_exact_where_factors_fit() {
    let device = device();
    let (rows, inner) = (203, 310);
    let (mut offsets, mut indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for r in 0..rows {
        for k in 0..r * 7 % 90 {
            indices.push(((r * 13 + k * 3) % inner) as u32);
            values.push(((r + 3 * k) % 512) as f32 - 255.0);
        }
        offsets.push(indices.len() as u32);
    }
    let host = Csr::new(rows, inner, offsets, indices, values).expect("a matrix");
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    for columns in [1, 4, 33, 64, 100] {
        let b = Dense::from_fn(inner, columns, Default::default(), |i, j| {
            ((i * 5 + j * 11) % 64) as f32 - 31.0
        })
        .expect("B");
        let expected = product(&host, &b);
        let b = DeviceDense::upload(&device, &b.view()).expect("B");
        for options in [TENSOR, configured(32, 4, 4)] {
            let problem = a.pattern().spmm(columns).problem.tf32(true);
            let mut c = DeviceDense::zeros(&device, rows, columns, Default::default()).expect("C");
            c.data_mut().fill(0xff, device.stream()).expect("NaN");
            let mut plan = SpmmPlan::new(a.pattern(), &problem, &options).expect("a plan");
            plan.execute(&a, &b, &mut c, Call::new()).expect("C");
            assert_eq!(c.data().to_host().expect("C")[..], expected, "{columns} columns");
        }
    }
}

/// Whole numbers that every type holds, in every kind of kernel: few enough products for
/// compute-sanitizer.
fn small_products<T: Scalar>(options: &[Options<'_>]) {
    let device = device();
    let (rows, inner) = (45, 60);
    let (mut offsets, mut indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for r in 0..rows {
        for k in 0..r * 7 % 40 {
            indices.push(((r * 13 + k * 3) % inner) as u32);
            values.push(((r + 3 * k) % 8) as f32 - 4.0);
        }
        offsets.push(indices.len() as u32);
    }
    let host = Csr::new(rows, inner, offsets, indices, values).expect("a matrix");
    let narrow = |v: &[f32]| -> Vec<T> { v.iter().map(|v| T::from_f64(f64::from(*v))).collect() };
    let (offsets, indices) = (host.offsets().to_vec(), host.indices().to_vec());
    let a = Csr::<T>::new(rows, inner, offsets, indices, narrow(&host.values())).expect("A");
    let a = DeviceCsr::upload(&device, &a.view()).expect("A");
    for columns in [1, 33, 72, 130] {
        let b = Dense::from_fn(inner, columns, Default::default(), |i, j| {
            ((i * 5 + j * 11) % 8) as f32 - 3.0
        })
        .expect("B");
        let expected = narrow(&product(&host, &b));
        let b = Dense::from_row_major(inner, columns, narrow(b.data())).expect("B");
        let b = DeviceDense::upload(&device, &b.view()).expect("B");
        for options in options {
            let problem = a.pattern().spmm(columns).problem.tf32(true);
            let mut c = DeviceDense::zeros(&device, rows, columns, Default::default()).expect("C");
            c.data_mut().fill(0xff, device.stream()).expect("NaN");
            let mut plan = SpmmPlan::new(a.pattern(), &problem, options).expect("a plan");
            let (one, zero) = (T::one().to_accum(), T::zero().to_accum());
            plan.execute(&a, &b, &mut c, Call::new().alpha(one).beta(zero)).expect("C");
            assert!(c.data().to_host().expect("C")[..] == expected, "{columns} columns");
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn small_products_in_every_type() {
    small_products::<f16>(&[TENSOR, configured(16, 4, 4)]);
    small_products::<bf16>(&[TENSOR, configured(32, 2, 2)]);
    small_products::<f32>(&[TENSOR, configured(64, 4, 1)]);
    small_products::<f64>(&[TENSOR, configured(32, 8, 8)]);
}

#[test]
#[ignore = "needs a CUDA device"]
fn values_may_change_under_a_plan() {
    check_values(Algorithm::Tensor, |problem| problem.tf32(true));
}

#[test]
#[ignore = "needs a CUDA device"]
fn f32_and_other_semirings_are_refused_by_name() {
    let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
    let a = DeviceCsr::upload(&device(), &eye.view()).expect("A");
    let refused = [
        (a.pattern().spmm(1).problem, "TF32 allowed"),
        (a.pattern().spmm(1).problem.tf32(true).semiring(Semiring::MinPlus), "plus-times"),
    ];
    for (problem, reason) in refused {
        let text = SpmmPlan::<f32>::new(a.pattern(), &problem, &TENSOR)
            .err()
            .expect("a refusal")
            .to_string();
        assert!(text.contains(reason) && text.contains("segmented"), "{text}");
    }
}
