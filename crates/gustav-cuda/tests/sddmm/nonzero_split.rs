use gustav_core::f16;
use gustav_cuda::sddmm::{Config, nonzero_split};
use gustav_plan::Algorithm;
use gustav_testkit::battery::Settings;

use crate::{battery, every_type, named};

fn of(chunk: u32, (batch, batches): (u32, u32), block: u32, resident: u32) -> Option<Config> {
    let config = nonzero_split::Config { chunk, batch, batches, block, resident };
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
    let configs = [
        of(1, (8, 3), 32, 2048),
        of(2, (16, 2), 128, 1024),
        of(8, (8, 1), 64, 256),
        of(4, (32, 8), 128, 512),
    ];
    for config in configs {
        battery::<f32, u32, u32>(&named(Algorithm::NonzeroSplit, config), &settings);
        battery::<f16, u32, u32>(&named(Algorithm::NonzeroSplit, config), &settings);
    }
}
