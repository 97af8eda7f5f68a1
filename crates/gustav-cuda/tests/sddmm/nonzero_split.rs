use gustav_core::f16;
use gustav_cuda::sddmm::{Config, nonzero_split};
use gustav_plan::Algorithm;
use gustav_testkit::battery::Settings;

use crate::{battery, every_type, named};

fn of(chunk: u32, batches: u32, block: u32, resident: u32) -> Option<Config> {
    let config = nonzero_split::Config { chunk, batches, block, resident };
    Some(Config::NonzeroSplit(config))
}

#[test]
#[ignore = "needs a CUDA device"]
fn passes_the_battery_in_every_type() {
    every_type(&named(Algorithm::NonzeroSplit, None));
}

#[test]
#[ignore = "needs a CUDA device"]
fn passes_the_battery_in_every_configuration() {
    let settings = Settings::default();
    for config in [of(1, 3, 32, 2048), of(2, 2, 128, 1024), of(8, 1, 64, 256), of(4, 8, 128, 512)] {
        battery::<f32, u32, u32>(&named(Algorithm::NonzeroSplit, config), &settings);
        battery::<f16, u32, u32>(&named(Algorithm::NonzeroSplit, config), &settings);
    }
}
