//! `column-panel`.

use gustav_core::{
    Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusTimes, Scalar, Semiring, bf16, f16,
};
use gustav_cuda::Options;
use gustav_cuda::spmm::column_panel::Config;
use gustav_cuda::spmm::segmented::{self, Reduction};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmm};

use crate::common::{device, run};
use crate::papers::check_values;

fn check<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>(options: &Options<'_>) {
    // The oracle's own sums are f64, so that it cannot judge other orders where those overflow.
    let nonfinite = T::DTYPE != gustav_core::DType::F64;
    let settings = Settings { nonfinite, ..Settings::default() };
    let device = device();
    check_spmm::<T, I, O, S>(&settings, |case| run::<T, I, O, S>(&device, options, case));
}

/// Panels and tiles so small that the battery's matrices have many of them.
fn small<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>() {
    let segment = segmented::Config {
        vector: 16 / T::DTYPE.bytes() as u32,
        lanes: 4,
        tiles: 1,
        share: 2,
        chunk: 2,
        run: 1,
        fetch: false,
        ahead: 0,
        early: false,
        longest: Some(1024),
        window: 1024,
        reduction: Reduction::FixUp,
        block: 64,
        resident: 384,
    };
    let config = Config { columns: 24, rows: 9, segment };
    let config = Some(gustav_cuda::Config::ColumnPanel(config));
    check::<T, I, O, S>(&Options { config, ..Options::default() });
}

#[test]
#[ignore = "needs a CUDA device"]
fn its_own_choice() {
    let options =
        Options { chooser: Chooser::Named(Algorithm::ColumnPanel), config: None, order: None };
    check::<f32, u32, u32, PlusTimes>(&options);
}

macro_rules! small_tiles {
    ($($name:ident: $t:ty, $i:ty, $o:ty, $s:ty;)*) => {$(
        #[test]
        #[ignore = "needs a CUDA device"]
        fn $name() {
            small::<$t, $i, $o, $s>();
        }
    )*};
}

small_tiles! {
    f32_plus_times: f32, u32, u32, PlusTimes;
    f64_max_times: f64, u32, u64, MaxTimes;
    f16_plus_times: f16, u64, u32, PlusTimes;
    bf16_plus_first: bf16, u32, u32, PlusFirst;
    i32_min_plus: i32, u32, u32, MinPlus;
    i64_or_and: i64, u64, u64, OrAnd;
}

#[test]
#[ignore = "needs a CUDA device"]
fn values_may_change_under_a_plan() {
    check_values(Algorithm::ColumnPanel, |problem| problem);
}
