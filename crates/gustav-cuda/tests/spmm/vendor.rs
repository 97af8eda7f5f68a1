//! cuSPARSE through our interface, against the oracle: the comparison must compute the same thing.

use super::common::{device, run};
use gustav_core::{PlusTimes, Scalar};
use gustav_cuda::Options;
use gustav_cuda::spmm::vendor::Config;
use gustav_testkit::battery::{Settings, check_spmm};

// cuSPARSE promises neither the order of its sums nor subnormal ones (it flushes them in f32), so
// matrices that overflow or underflow are multiplied by `segmented` in its place.
fn check<T: Scalar>(config: Config) {
    let device = device();
    let settings = Settings { nonfinite: false, ..Settings::default() };
    let vendor =
        Options { config: Some(gustav_cuda::Config::Vendor(config)), ..Options::default() };
    check_spmm::<T, u32, u32, PlusTimes>(&settings, |case| {
        let subnormal = case.name == "tiny magnitudes";
        let options = if subnormal { Options::default() } else { vendor };
        run::<T, u32, u32, PlusTimes>(&device, &options, case)
    });
}

// In f16 its results miss the bound of 32-bit sums; 16-bit types stay unchecked here.
#[test]
#[ignore = "needs a CUDA device"]
fn default_in_f32_and_f64() {
    check::<f32>(Config::Default);
    check::<f64>(Config::Default);
}
