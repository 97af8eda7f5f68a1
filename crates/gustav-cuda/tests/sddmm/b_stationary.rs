use gustav_core::f16;
use gustav_cuda::sddmm::{Config, b_stationary};
use gustav_cuda::{DeviceBuffer, DevicePattern, SddmmPlan};
use gustav_plan::Algorithm;
use gustav_testkit::battery::Settings;
use gustav_testkit::battery::matrices::random_rows;

use crate::{battery, device, every_type, named, operands};

#[test]
#[ignore = "needs a CUDA device"]
fn passes_the_battery_in_every_type() {
    every_type(&named(Algorithm::BStationary, None));
}

#[test]
#[ignore = "needs a CUDA device"]
fn passes_the_battery_in_every_configuration() {
    let settings = Settings::default();
    for (tile_kib, chunk, block) in [(1, 8, 32), (2, 1, 1024), (8, 2, 96)] {
        let config = b_stationary::Config { tile_kib, chunk, block };
        let options = named(Algorithm::BStationary, Some(Config::BStationary(config)));
        battery::<f32, u32, u32>(&options, &settings);
        battery::<f16, u32, u32>(&options, &settings);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn parts_of_a_row_in_one_tile_are_apart_from_others() {
    // A row of more nonzeros than a segment has comes back in its tile, after others.
    let rows = random_rows::<f32, u32, u32>(300, 3000, 5, |r| if r % 3 == 0 { 2900 } else { 3 });
    let (device, host) = (device(), rows.pattern().clone());
    let on = DevicePattern::upload(&device, host.view()).expect("a pattern");
    for depth in [16, 64, 256] {
        let [x, y] = operands(&device, &host, depth);
        let of = |algorithm, config| {
            let problem = on.sddmm(depth).problem;
            let mut plan =
                SddmmPlan::new(&on, &problem, &named(algorithm, config)).expect("a plan");
            let mut values = DeviceBuffer::zeros(&device, host.nnz(), "values").expect("memory");
            plan.execute(&x, &y, &mut values, ()).expect("a product");
            values.to_host().expect("values").to_vec()
        };
        let config = b_stationary::Config { tile_kib: 1024, chunk: 8, block: 256 };
        let tiles = of(Algorithm::BStationary, Some(Config::BStationary(config)));
        // Both add in the same order.
        assert_eq!(tiles, of(Algorithm::NonzeroSplit, None), "depth {depth}");
    }
}
