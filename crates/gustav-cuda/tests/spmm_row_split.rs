//! `row-split` on the device against the oracle, within what the paper defines.

mod common;

use common::{device, run};
use gustav_core::{Csr, Error, Layout, PlusTimes, Scalar, SemiringKind};
use gustav_cuda::{DeviceCsr, Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmm};

fn options() -> Options {
    Options { chooser: Chooser::Named(Algorithm::RowSplit), ..Options::default() }
}

fn check<T: Scalar>() {
    let settings = Settings::default().untransposed().layout(Layout::RowMajor, Layout::RowMajor);
    let device = device();
    check_spmm::<T, u32, u32, PlusTimes>(&settings, |case| {
        run::<T, u32, u32, PlusTimes>(&device, &options(), case)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn f32_plus_times() {
    check::<f32>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn f64_plus_times() {
    check::<f64>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_rest_is_refused_by_name() {
    let device = device();
    let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
    let a = DeviceCsr::upload(&device, &eye.view()).expect("A");
    let refused = [
        a.spmm().transpose_a(true),
        a.spmm().semiring(SemiringKind::MinPlus),
        a.spmm().layouts(Layout::ColumnMajor, Layout::RowMajor),
    ];
    for problem in refused {
        let plan = SpmmPlan::new(&a, &problem, &options());
        assert!(matches!(plan, Err(Error::Unsupported { .. })), "{problem}");
    }
}
