use gustav_cuda::{DeviceBuffer, DevicePattern, SddmmCall, SddmmPlan};
use gustav_plan::Algorithm;
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::{Settings, check_sddmm};

use crate::{device, named, operands, run};

/// What cuSPARSE takes: a depth, no factors, finite numbers, matrices with nonzeros.
#[test]
#[ignore = "needs a CUDA device"]
fn passes_what_it_takes_of_the_battery() {
    let (device, options) = (device(), named(Algorithm::Vendor, None));
    let settings = Settings { nonfinite: false, ..Settings::default() };
    let mut ran = 0;
    check_sddmm::<f32, u32, u32>(&settings, |case| {
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
    let mut values = DeviceBuffer::zeros(&device, host.nnz(), "values").expect("memory");
    let factors = DeviceBuffer::zeros(&device, host.nnz(), "factors").expect("memory");
    let problem = pattern.sddmm(16).problem;
    let mut plan = SddmmPlan::<f32>::new(&pattern, &problem, &options).expect("a plan");
    let refused = plan.execute(&x, &y, &mut values, SddmmCall::new().factors(&factors));
    let without = SddmmPlan::<f32>::new(&pattern, &pattern.sddmm(0).problem, &options).map(drop);
    for refused in [refused, without] {
        let text = refused.expect_err("a refusal").to_string();
        assert!(text.contains("nonzero-split"), "{text}");
    }
    plan.execute(&x, &y, &mut values, ()).expect("a product");
}
