use gustav_core::{bf16, f16};
use gustav_cuda::sddmm::{Config, dense_tiles};
use gustav_plan::Algorithm;
use gustav_testkit::battery::Settings;

use crate::{battery, every_type, named};

#[test]
#[ignore = "needs a CUDA device"]
fn passes_the_battery_in_every_type() {
    every_type(&named(Algorithm::DenseTiles, None));
}

#[test]
#[ignore = "needs a CUDA device"]
fn passes_the_battery_in_every_configuration() {
    let settings = Settings::default();
    for (rows, block, stages) in [(64, 128, 2), (64, 128, 4), (128, 256, 2), (128, 256, 3)] {
        let config = dense_tiles::Config { rows, columns: 64, block, stages, resident: 512 };
        let options = named(Algorithm::DenseTiles, Some(Config::DenseTiles(config)));
        battery::<f32, u32, u32>(&options, &settings);
        battery::<f16, u32, u32>(&options, &settings);
        battery::<bf16, u32, u32>(&options, &settings);
    }
}
