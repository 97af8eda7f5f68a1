use gustav_core::{Error, Index, Layout, Scalar, f16};
use gustav_cuda::{DeviceBuffer, DeviceDense, DevicePattern, SddmmCall, SddmmPlan};
use gustav_plan::Algorithm;
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::values::values;
use gustav_testkit::battery::{Settings, check_sddmm};

use crate::{device, named, operands, run};

/// What cuSPARSE takes: a depth, no factors, finite numbers, matrices with nonzeros.
#[test]
#[ignore = "needs a CUDA device"]
fn passes_what_it_takes_of_the_battery() {
    takes_part::<f32, u32>();
    takes_part::<f64, u32>();
    takes_part::<f32, u64>();
}

/// Version 12.6 lacks 16-bit values, 12.9 has them.
#[test]
#[ignore = "needs a CUDA device"]
fn passes_16_bits_or_refuses_them() {
    let version = gustav_cuda::cusparse::version().expect("a version");
    let mut parts = version.split('.').map(|part| part.parse::<u32>().expect("a number"));
    match (parts.next(), parts.next()) >= (Some(12), Some(9)) {
        true => takes_part::<f16, u32>(),
        false => refuses_16_bits(),
    }
}

fn refuses_16_bits() {
    let device = device();
    let host = random_rows::<f16, u32, u32>(50, 40, 1, |r| r % 5);
    let pattern = DevicePattern::upload(&device, host.pattern().view()).expect("a pattern");
    let [x, y] = [50, 40].map(|rows| {
        let zeros = DeviceBuffer::<f16>::zeros(&device, rows * 16, "elements").expect("memory");
        DeviceDense::new(rows, 16, Layout::RowMajor, 16, zeros).expect("an operand")
    });
    let mut to = DeviceBuffer::zeros(&device, host.nnz(), "values").expect("memory");
    let (problem, options) = (pattern.sddmm(16).problem, named(Algorithm::Vendor, None));
    let mut plan = SddmmPlan::<f16>::new(&pattern, &problem, &options).expect("a plan");
    let refused = plan.execute(&x, &y, &mut to, ()).expect_err("a refusal");
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused:?}");
    assert!(refused.to_string().contains("nonzero-split"), "{refused}");
}

fn takes_part<T: Scalar, I: Index>() {
    let (device, options) = (device(), named(Algorithm::Vendor, None));
    let settings = Settings { nonfinite: false, ..Settings::default() };
    let mut ran = 0;
    check_sddmm::<T, I, I>(&settings, |case| {
        if case.factors.is_none() && case.x.ncols() > 0 && case.pattern.nnz() > 0 {
            ran += 1;
            return run(&device, &options, case);
        }
        run(&device, &named(Algorithm::NonzeroSplit, None), case)
    });
    assert!(ran > 50, "{ran} cases");
}

#[test]
#[ignore = "needs a CUDA device"]
fn refuses_factors_and_depth_zero_with_what_works() {
    let device = device();
    let host = random_rows::<f32, u32, u32>(50, 40, 1, |r| r % 5);
    let pattern = DevicePattern::upload(&device, host.pattern().view()).expect("a pattern");
    let options = named(Algorithm::Vendor, None);
    let [x, y] = operands(&device, host.pattern(), 16);
    let mut to = DeviceBuffer::zeros(&device, host.nnz(), "values").expect("memory");
    let factors = DeviceBuffer::zeros(&device, host.nnz(), "factors").expect("memory");
    let problem = pattern.sddmm(16).problem;
    let mut plan = SddmmPlan::<f32>::new(&pattern, &problem, &options).expect("a plan");
    let refused = plan.execute(&x, &y, &mut to, SddmmCall::new().factors(&factors));
    let without = SddmmPlan::<f32>::new(&pattern, &pattern.sddmm(0).problem, &options).map(drop);
    for refused in [refused, without] {
        let text = refused.expect_err("a refusal").to_string();
        assert!(text.contains("nonzero-split"), "{text}");
    }
    plan.execute(&x, &y, &mut to, ()).expect("a product");
}

/// A plan that has preprocessed its pattern takes other operands, at other places.
#[test]
#[ignore = "needs a CUDA device"]
fn takes_other_operands_after_the_first() {
    let device = device();
    let host = random_rows::<f32, u32, u32>(90, 80, 1, |r| r % 5);
    let pattern = DevicePattern::upload(&device, host.pattern().view()).expect("a pattern");
    let problem = pattern.sddmm(16).problem;
    let plan = |algorithm| {
        SddmmPlan::<f32>::new(&pattern, &problem, &named(algorithm, None)).expect("a plan")
    };
    let (mut vendor, mut ours) = (plan(Algorithm::Vendor), plan(Algorithm::NonzeroSplit));
    for ld in [16, 20, 16] {
        let dense = |rows: usize, seed| {
            let elements = values::<f32>(rows * ld, seed + ld as u64);
            let data = DeviceBuffer::from_slice(&device, &elements, "elements").expect("memory");
            DeviceDense::new(rows, 16, Layout::RowMajor, ld, data).expect("an operand")
        };
        let (x, y) = (dense(90, 1), dense(80, 2));
        let [found, expected] = [&mut vendor, &mut ours].map(|plan| {
            let mut to = DeviceBuffer::zeros(&device, host.nnz(), "values").expect("memory");
            plan.execute(&x, &y, &mut to, ()).expect("a product");
            to.to_host().expect("values")
        });
        for (found, expected) in found.iter().zip(&expected[..]) {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
    }
}
