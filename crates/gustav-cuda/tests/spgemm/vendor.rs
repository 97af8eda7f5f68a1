//! `vendor`: cuSPARSE's algorithms, as a peer whose results count only when they are right. It
//! refuses matrices whose columns are unsorted or repeat, and promises no order.

use gustav_core::{Index, PlusTimes, Scalar};
use gustav_cuda::spgemm::vendor::Config;
use gustav_cuda::spgemm::{self, Options};
use gustav_testkit::battery::Settings;

use crate::battery;

fn passes<T: Scalar, I: Index>() {
    for config in Config::ALL {
        let config = Some(spgemm::Config::Vendor(config));
        let options = Options { config, ..Options::default() };
        let settings = Settings { unsorted: false, sorted: vec![false], ..Settings::default() };
        battery::<T, I, I, PlusTimes>(&settings, &options);
    }
}

#[test]
#[ignore = "needs a CUDA device and cuSPARSE"]
fn the_battery() {
    passes::<f32, u32>();
    passes::<f64, u32>();
}
