//! `dense-naive`: the loop over dense operands.

use gustav_core::{Csr, PlusTimes};
use gustav_cuda::DeviceCsr;
use gustav_cuda::spgemm::dense_naive::Config;
use gustav_cuda::spgemm::{self, Options, SpgemmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::Settings;
use gustav_testkit::battery::matrices::random_rows;

use crate::{battery, device};

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery() {
    for config in [Config::default(), Config { width: 16, height: 2 }] {
        let config = Some(spgemm::Config::DenseNaive(config));
        let options = Options { config, ..Options::default() };
        // Entries of a column that repeats are added before they meet an infinity.
        let sorted = Settings { unsorted: false, ..Settings::default() };
        let finite = Settings { nonfinite: false, ..Settings::default() };
        for settings in [sorted, finite] {
            battery::<f32, u32, u32, PlusTimes>(&settings, &options);
            battery::<f64, u32, u32, PlusTimes>(&settings, &options);
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn hopeless_sizes_and_other_types_are_refused() {
    let device = device();
    let chooser = Chooser::Named(Algorithm::DenseNaive);
    let options = Options { chooser, ..Options::default() };
    let a = random_rows::<i32, u32, u32>(6, 6, 1, |_| 2);
    let a = DeviceCsr::upload(&device, &a.view()).expect("A");
    let refused = SpgemmPlan::<i32>::new(
        a.pattern(),
        a.pattern(),
        &a.pattern().spgemm(a.pattern()).problem,
        &options,
    )
    .err()
    .expect("a refusal");
    assert!(refused.to_string().contains("f32 and f64"), "{refused}");
    let huge = DeviceCsr::upload(&device, &Csr::<f32>::empty(1 << 15, 1 << 15).expect("A").view());
    let huge = huge.expect("A");
    let refused = SpgemmPlan::<f32>::new(
        huge.pattern(),
        huge.pattern(),
        &huge.pattern().spgemm(huge.pattern()).problem,
        &options,
    )
    .err();
    let refused = refused.expect("a refusal").to_string();
    assert!(refused.contains("shared-row"), "{refused}");
}
