//! `dense`.

use gustav_core::{Csr, PlusTimes, Scalar, bf16, f16};
use gustav_cuda::{DeviceCsr, Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmm};

use crate::common::{device, run_refined};
use crate::papers::{check_padding, check_values};

const DENSE: Options<'static> =
    Options { chooser: Chooser::Named(Algorithm::Dense), config: None, order: None };

/// The battery without NaN and infinity, and, in 16 bits, without repeated columns.
fn check<T: Scalar>() {
    let canonical = T::DTYPE.bytes() == 2;
    let settings = Settings { nonfinite: false, ..Settings::default() };
    let device = device();
    check_spmm::<T, u32, u32, PlusTimes>(&settings, |case| {
        // What is left out goes through `segmented`, so that the battery stays whole.
        let repeats = canonical && case.name == "duplicate and unsorted columns";
        let options = if repeats { Options::default() } else { DENSE };
        run_refined::<T, u32, u32, PlusTimes>(&device, &options, |p| p.finite(true), case)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_f32_and_f64() {
    check::<f32>();
    check::<f64>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_16_bits() {
    check::<f16>();
    check::<bf16>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn values_may_change_under_a_plan() {
    check_values(Algorithm::Dense, |problem| problem.finite(true));
    check_values(Algorithm::Dense, |problem| problem.finite(true).transpose_a(true));
}

#[test]
#[ignore = "needs a CUDA device"]
fn undeclared_operands_and_other_semirings_are_refused_by_name() {
    check_padding(Algorithm::Dense, |problem| problem);
}

#[test]
#[ignore = "needs a CUDA device"]
fn repeated_columns_in_16_bits_are_refused() {
    let one = f16::from_f64(1.0);
    let twice = Csr::<f16>::new(1, 3, vec![0u32, 2], vec![2u32, 2], vec![one; 2]);
    let a = DeviceCsr::upload(&device(), &twice.expect("a matrix").view()).expect("A");
    let plan = SpmmPlan::<f16>::new(a.pattern(), &a.pattern().spmm(1).problem.finite(true), &DENSE);
    let text = plan.err().expect("a refusal").to_string();
    assert!(text.contains("columns repeat") && text.contains("segmented"), "{text}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_matrix_too_large_for_its_zeros_is_out_of_memory() {
    let device = device();
    let rows = 1 << 21;
    let diagonal: Vec<u32> = (0..rows as u32).collect();
    let offsets: Vec<u32> = (0..=rows as u32).collect();
    let host = Csr::<f32>::new(rows, rows, offsets, diagonal, vec![1.0; rows]).expect("a matrix");
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let error =
        SpmmPlan::<f32>::new(a.pattern(), &a.pattern().spmm(1).problem.finite(true), &DENSE)
            .err()
            .expect("no such memory");
    assert!(matches!(error, gustav_core::Error::OutOfMemory { available: Some(_), .. }), "{error}");
    let auto = SpmmPlan::<f32>::new(a.pattern(), &a.pattern().spmm(1).problem, &Options::default());
    assert!(auto.is_ok(), "the device lives on");
}
