use gustav_core::f16;
use gustav_cuda::sddmm::{Config, row_block};
use gustav_plan::Algorithm;
use gustav_testkit::battery::Settings;

use crate::{battery, every_type, named};

#[test]
#[ignore = "needs a CUDA device"]
fn passes_the_battery_in_every_type() {
    every_type(&named(Algorithm::RowBlock, None));
}

#[test]
#[ignore = "needs a CUDA device"]
fn passes_the_battery_in_every_configuration() {
    let settings = Settings::default();
    for (rows, parts, unroll, block) in [(2, 3, 1, 32), (3, 1, 2, 64), (4, 64, 4, 256)] {
        let config = row_block::Config { rows, parts, unroll, block, resident: 512 };
        let options = named(Algorithm::RowBlock, Some(Config::RowBlock(config)));
        battery::<f32, u32, u32>(&options, &settings);
        battery::<f16, u32, u32>(&options, &settings);
    }
}
