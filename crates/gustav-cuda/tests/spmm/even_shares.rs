//! `even-shares` on the device against the oracle.

use super::common::device;
use gustav_core::{MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes, Scalar, bf16, f16};
use gustav_cuda::spmm::even_shares::Config;
use gustav_cuda::{DeviceCsr, Options, SpmmPlan};

batteries! {
    EvenShares:
    f32_plus_times: f32, u32, u32, PlusTimes;
    f64_plus_times: f64, u32, u32, PlusTimes;
    f16_plus_times: f16, u32, u32, PlusTimes;
    bf16_plus_times: bf16, u32, u32, PlusTimes;
    i64_plus_times: i64, u64, u64, PlusTimes;
    f64_wide: f64, u64, u64, PlusTimes;
    i32_min_plus: i32, u32, u32, MinPlus;
    f64_max_times: f64, u32, u32, MaxTimes;
    f32_or_and: f32, u32, u32, OrAnd;
    f16_plus_first: f16, u32, u32, PlusFirst;
    f32_plus_second: f32, u32, u64, PlusSecond;
}

/// Shares so small that most rows lie in several.
fn configured<T: Scalar>(config: Config) {
    crate::common::configured::<T, u32, u32, PlusTimes>(gustav_cuda::Config::EvenShares(config));
}

#[test]
#[ignore = "needs a CUDA device"]
fn rows_meet_across_small_shares() {
    let config =
        Config { vector: 4, lanes: 8, tiles: 1, chunk: 4, work: 16, block: 64, resident: 384 };
    configured::<f32>(config);
    configured::<f32>(Config { vector: 1, lanes: 32, chunk: 2, work: 32, ..config });
    configured::<f32>(Config { vector: 1, lanes: 1, tiles: 8, chunk: 1, work: 64, ..config });
    configured::<f64>(Config { vector: 2, lanes: 16, tiles: 2, chunk: 8, block: 256, ..config });
}

#[test]
#[ignore = "needs a CUDA device"]
fn shares_are_powers_of_two() {
    let device = device();
    let one = gustav_core::Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]);
    let a = DeviceCsr::upload(&device, &one.expect("a matrix").view()).expect("A");
    let config =
        Config { vector: 1, lanes: 1, tiles: 1, chunk: 1, work: 48, block: 64, resident: 384 };
    let config = Some(gustav_cuda::Config::EvenShares(config));
    let plan = SpmmPlan::<f32>::new(
        a.pattern(),
        &a.pattern().spmm(1).problem,
        &Options { config, ..Options::default() },
    );
    assert!(matches!(plan.err(), Some(gustav_core::Error::Argument { .. })));
}
