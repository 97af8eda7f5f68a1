//! cuSPARSE through our interface: the comparison must compute the same thing.

use gustav_core::{Csr, Error, PlusTimes, Scalar, bf16, f16};
use gustav_cuda::spmv::{Config, Options, vendor};
use gustav_cuda::{Call, DeviceBuffer, DeviceCsr, SpmvPlan};
use gustav_testkit::battery::{Settings, check_spmv};

use crate::{device, run};

// cuSPARSE promises neither the order of its sums nor subnormal ones, so matrices that overflow or
// underflow are multiplied by `row-split` in its place. In 16 bits it rounds more than once where both
// alpha and beta scale: so are those.
fn check<T: Scalar>(config: vendor::Config) {
    let device = device();
    let settings = Settings { nonfinite: false, ..Settings::default() };
    let vendor = Options { config: Some(Config::Vendor(config)), ..Options::default() };
    check_spmv::<T, u32, u32, PlusTimes>(&settings, |case| {
        let subnormal = case.name == "tiny magnitudes";
        let one = T::one().to_accum();
        let twice = size_of::<T>() == 2 && case.alpha != one && case.beta != T::zero().to_accum();
        let options = if subnormal || twice { Options::default() } else { vendor };
        run::<T, u32, u32, PlusTimes>(&device, &options, case)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_algorithm_in_f32_and_f64() {
    for config in vendor::Config::ALL {
        check::<f32>(config);
        check::<f64>(config);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_algorithm_in_16_bits() {
    for config in vendor::Config::ALL {
        check::<f16>(config);
        check::<bf16>(config);
    }
}

/// Whether the library is the version whose SpMVOp is called.
fn has_spmv_op() -> bool {
    gustav_cuda::cusparse::version().expect("a version").starts_with("12.9.")
}

#[test]
#[ignore = "needs a CUDA device"]
fn spmv_op_passes_the_battery_or_is_refused() {
    for config in vendor::Config::OP {
        if has_spmv_op() {
            check::<f32>(config);
            check::<f64>(config);
        } else {
            assert_refused::<f32>(config);
        }
        assert_refused::<f16>(config);
    }
}

fn assert_refused<T: Scalar>(config: vendor::Config) {
    let (a, x, mut y) = operands::<T>(&[1.0; 5]);
    let options = Options { config: Some(Config::Vendor(config)), ..Options::default() };
    let problem = a.pattern().spmv().problem;
    let mut plan = SpmvPlan::<T>::new(a.pattern(), &problem, &options).expect("a plan");
    let refused = plan.execute(&a, &x, &mut y, Call::new()).expect_err("a refusal");
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused:?}");
    assert!(refused.to_string().contains("SpMVOp"), "{refused}");
}

/// A matrix of one row with these values, an x of ones, and a y.
fn operands<T: Scalar>(values: &[f64]) -> (DeviceCsr<T>, DeviceBuffer<T>, DeviceBuffer<T>) {
    let (device, n) = (device(), values.len());
    let values: Vec<T> = values.iter().map(|v| T::from_f64(*v)).collect();
    let indices: Vec<u32> = (0..n as u32).collect();
    let host = Csr::new(1, n, vec![0, n as u32], indices, values).expect("a matrix");
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let x = DeviceBuffer::from_slice(&device, &vec![T::from_f64(1.0); n], "x").expect("x");
    let y = DeviceBuffer::zeros(&device, 1, "y").expect("y");
    (a, x, y)
}

/// SpMVOp may copy values when it plans; a plan of ours multiplies by those of each call.
#[test]
#[ignore = "needs a CUDA device"]
fn every_execution_has_its_own_values() {
    let spmv_op = if has_spmv_op() { &vendor::Config::OP[..] } else { &[] };
    for config in vendor::Config::ALL.iter().chain(spmv_op) {
        let (a, x, mut y) = operands::<f32>(&[1.0, 2.0, 3.0]);
        let options = Options { config: Some(Config::Vendor(*config)), ..Options::default() };
        let problem = a.pattern().spmv().problem;
        let mut plan = SpmvPlan::new(a.pattern(), &problem, &options).expect("a plan");
        let mut values =
            DeviceBuffer::from_slice(&device(), &[0.0f32; 3], "values").expect("values");
        for (written, expected) in [([1.0, 2.0, 3.0], 6.0), ([10.0, 20.0, 30.0], 60.0)] {
            values.write(&written).expect("values");
            plan.execute(&values, &x, &mut y, Call::new()).expect("y");
            assert_eq!(y.to_host().expect("y")[..], [expected], "{config:?}");
        }
    }
}
