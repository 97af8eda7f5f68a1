//! `tensor`.

use gustav_core::{Csr, Dense, Index, PlusTimes, Scalar, bf16, f16};
use gustav_cuda::spmm::tensor::Config;
use gustav_cuda::{DeviceCsr, DeviceDense, Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmm};

use crate::common::{device, run_refined};
use crate::papers::{check_padding, check_values, product};

const TENSOR: Options<'static> =
    Options { chooser: Chooser::Named(Algorithm::Tensor), config: None, order: None };

/// The battery without NaN and infinity.
fn check<T: Scalar, I: Index, O: Index>(options: &Options<'_>) {
    let settings = Settings { nonfinite: false, ..Settings::default() };
    let device = device();
    check_spmm::<T, I, O, PlusTimes>(&settings, |case| {
        run_refined::<T, I, O, PlusTimes>(&device, options, |p| p.finite(true), case)
    });
}

fn configured(panel: u32, warps: u32, share: u32) -> Options<'static> {
    let config = Config { panel, warps, share };
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
fn shared_blocks_and_narrow_panels() {
    check::<f16, u64, u32>(&configured(16, 4, 4));
    check::<bf16, u32, u32>(&configured(32, 2, 2));
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
            let problem = a.spmm().columns(columns).finite(true).tf32(true);
            let mut c = DeviceDense::uninit(&device, rows, columns, Default::default()).expect("C");
            c.data_mut().fill(0xff, device.stream()).expect("NaN");
            let mut plan = SpmmPlan::new(&a, &problem, &options).expect("a plan");
            plan.execute(&a, 1.0, &b, 0.0, &mut c, device.stream()).expect("C");
            assert_eq!(c.data().to_host().expect("C")[..], expected, "{columns} columns");
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn values_may_change_under_a_plan() {
    check_values(Algorithm::Tensor, |problem| problem.finite(true).tf32(true));
}

#[test]
#[ignore = "needs a CUDA device"]
fn undeclared_operands_and_f32_are_refused_by_name() {
    check_padding(Algorithm::Tensor, |problem| problem.tf32(true));
    let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
    let a = DeviceCsr::upload(&device(), &eye.view()).expect("A");
    let plan = SpmmPlan::new(&a, &a.spmm().finite(true), &TENSOR);
    let text = plan.err().expect("a refusal").to_string();
    assert!(text.contains("TF32 asked for") && text.contains("segmented"), "{text}");
}
