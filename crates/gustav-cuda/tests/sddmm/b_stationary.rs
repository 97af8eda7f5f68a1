use gustav_core::f16;
use gustav_cuda::sddmm::{Config, b_stationary};
use gustav_plan::Algorithm;
use gustav_testkit::battery::Settings;

use crate::{battery, every_type, named};

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
