//! `heavy-light`.

use gustav_core::{Csr, Layout, PlusTimes, Scalar};
use gustav_cuda::spmm::heavy_light::Config;
use gustav_cuda::{DeviceCsr, Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmm};

use crate::common::{device, run};
use crate::papers::{check_refusals, check_values};

/// The battery with `config`. Additions in memory flush subnormal sums in f32, and their order cannot
/// be judged where sums overflow.
fn check<T: Scalar>(config: Config) {
    let rows = Layout::RowMajor;
    let settings = Settings { nonfinite: false, ..Settings::default() };
    let settings = settings.untransposed().layout(rows, rows);
    let config = Some(gustav_cuda::Config::HeavyLight(config));
    let heavy_light = Options { config, ..Options::default() };
    let device = device();
    check_spmm::<T, u32, u32, PlusTimes>(&settings, |case| {
        let subnormal = case.name.ends_with("tiny magnitudes");
        let options = if subnormal { Options::default() } else { heavy_light };
        run::<T, u32, u32, PlusTimes>(&device, &options, case)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_f32_and_f64() {
    check::<f32>(Config::default());
    check::<f64>(Config::default());
}

#[test]
#[ignore = "needs a CUDA device"]
fn all_heavy_and_narrow_panels() {
    check::<f32>(Config { panel: 16, heavy: 1, segments: 3, warps: 2 });
    check::<f64>(Config { panel: 40, heavy: 4, segments: 1, warps: 8 });
}

#[test]
#[ignore = "needs a CUDA device"]
fn values_may_change_under_a_plan() {
    check_values(Algorithm::HeavyLight, |problem| problem);
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_rest_is_refused_by_name() {
    check_refusals(Algorithm::HeavyLight, Layout::RowMajor);
    let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
    let a = DeviceCsr::upload(&device(), &eye.view()).expect("A");
    let options =
        Options { chooser: Chooser::Named(Algorithm::HeavyLight), config: None, order: None };
    let plan = SpmmPlan::<f32>::new(
        a.pattern(),
        &a.pattern().spmm(1).problem.deterministic(true),
        &options,
    );
    let text = plan.err().expect("a refusal").to_string();
    assert!(text.contains("no promised order") && text.contains("segmented"), "{text}");
}
