//! What the kernels of the papers have in common.

use gustav_core::{Csr, Layout, PlusTimes, Scalar, SemiringKind};
use gustav_cuda::{Config, DeviceCsr, Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmm};

use crate::common::{device, run};

/// The battery in `layout` with `config`, or with the algorithm's own choice.
pub fn check<T: Scalar>(algorithm: Algorithm, layout: Layout, config: Option<Config>) {
    let settings = Settings::default().untransposed().layout(layout, layout);
    let options = Options { chooser: Chooser::Named(algorithm), config, ..Options::default() };
    let device = device();
    check_spmm::<T, u32, u32, PlusTimes>(&settings, |case| {
        run::<T, u32, u32, PlusTimes>(&device, &options, case)
    });
}

/// What the papers leave out is refused by name, with what works.
pub fn check_refusals(algorithm: Algorithm, layout: Layout) {
    let device = device();
    let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
    let a = DeviceCsr::upload(&device, &eye.view()).expect("A");
    let other = match layout {
        Layout::RowMajor => Layout::ColumnMajor,
        Layout::ColumnMajor => Layout::RowMajor,
    };
    let problem = a.spmm().layouts(layout, layout);
    let refused = [
        problem.clone().transpose_a(true),
        problem.clone().semiring(SemiringKind::MinPlus),
        problem.layouts(other, layout),
    ];
    for problem in refused {
        let options = Options { chooser: Chooser::Named(algorithm), ..Options::default() };
        let plan = SpmmPlan::new(&a, &problem, &options);
        let text = plan.err().expect("a refusal").to_string();
        let named = text.contains(algorithm.name()) && text.contains("segmented");
        assert!(named, "{problem}: {text}");
    }
}
