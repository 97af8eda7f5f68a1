//! `even-shares` on the device against the oracle.

use super::common::{device, run};
use gustav_core::{
    DType, Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes, Scalar, Semiring,
    bf16, f16,
};
use gustav_cuda::spmm::even_shares::Config;
use gustav_cuda::{DeviceCsr, Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmm};

fn named<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>() {
    let options = Options { chooser: Chooser::Named(Algorithm::EvenShares), ..Options::default() };
    let device = device();
    check_spmm::<T, I, O, S>(&Settings::default(), |case| {
        run::<T, I, O, S>(&device, &options, case)
    });
}

macro_rules! battery_of {
    ($($name:ident: $t:ty, $i:ty, $o:ty, $s:ty;)*) => {$(
        #[test]
        #[ignore = "needs a CUDA device"]
        fn $name() {
            named::<$t, $i, $o, $s>();
        }
    )*};
}

battery_of! {
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
    // The oracle's own sums are f64, so that it cannot judge other orders where those overflow.
    let nonfinite = T::DTYPE != DType::F64;
    let settings = Settings { nonfinite, ..Settings::default() };
    let device = device();
    let config = Some(gustav_cuda::Config::EvenShares(config));
    let options = Options { config, ..Options::default() };
    check_spmm::<T, u32, u32, PlusTimes>(&settings, |case| {
        run::<T, u32, u32, PlusTimes>(&device, &options, case)
    });
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
    let plan = SpmmPlan::new(&a, &a.spmm().columns(1), &Options { config, ..Options::default() });
    assert!(matches!(plan.err(), Some(gustav_core::Error::Argument { .. })));
}
