//! `row-block` on the device against the oracle.

use gustav_core::{MinPlus, OrAnd, PlusFirst, PlusTimes, Scalar, bf16, f16};
use gustav_cuda::spmm::row_block::Config;

batteries! {
    RowBlock:
    f32_plus_times: f32, u32, u32, PlusTimes;
    f64_plus_times: f64, u32, u32, PlusTimes;
    f16_plus_times: f16, u32, u32, PlusTimes;
    bf16_plus_times: bf16, u32, u32, PlusTimes;
    i64_wide: i64, u64, u64, PlusTimes;
    f32_wide_offsets: f32, u32, u64, PlusTimes;
    f32_min_plus: f32, u32, u32, MinPlus;
    f32_or_and: f32, u32, u32, OrAnd;
    f16_plus_first: f16, u32, u32, PlusFirst;
}

fn configured<T: Scalar>(config: Config) {
    crate::common::configured::<T, u32, u32, PlusTimes>(gustav_cuda::Config::RowBlock(config));
}

#[test]
#[ignore = "needs a CUDA device"]
fn heights_and_shares() {
    let config = Config {
        rows: 2,
        vector: 4,
        lanes: 8,
        tiles: 1,
        subgroups: 1,
        unroll: 4,
        block: 64,
        resident: 384,
    };
    configured::<f32>(config);
    configured::<f32>(Config { rows: 4, lanes: 4, subgroups: 8, unroll: 2, block: 128, ..config });
    configured::<f64>(Config { rows: 3, vector: 2, lanes: 16, tiles: 2, subgroups: 2, ..config });
    configured::<f16>(Config { rows: 4, vector: 8, lanes: 32, unroll: 1, ..config });
}
