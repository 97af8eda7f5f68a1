//! cuSPARSE through our interface: the comparison must compute the same thing.

use gustav_core::{PlusTimes, Scalar, bf16, f16};
use gustav_cuda::spmv::Config;
use gustav_cuda::spmv::Options;
use gustav_cuda::spmv::vendor;
use gustav_testkit::battery::{Settings, check_spmv};

use crate::{device, run};

// cuSPARSE promises neither the order of its sums nor subnormal ones, so matrices that overflow or
// underflow are multiplied by `row-split` in its place. In 16 bits it rounds more than once where both
// alpha and beta scale: so are those.
fn check<T: Scalar>(config: vendor::Config) {
    let device = device();
    let settings = Settings { nonfinite: false, ..Settings::default() };
    let vendor = Options { config: Some(Config::Vendor(config)), ..Options::default() };
    check_spmv::<T, u32, u32, PlusTimes>(&settings, |case| {
        let subnormal = case.name == "tiny magnitudes";
        let one = T::one().to_accum();
        let twice = size_of::<T>() == 2 && case.alpha != one && case.beta != T::zero().to_accum();
        let options = if subnormal || twice { Options::default() } else { vendor };
        run::<T, u32, u32, PlusTimes>(&device, &options, case)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_algorithm_in_f32_and_f64() {
    for config in vendor::Config::ALL {
        check::<f32>(config);
        check::<f64>(config);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_algorithm_in_16_bits() {
    for config in vendor::Config::ALL {
        check::<f16>(config);
        check::<bf16>(config);
    }
}
