//! `binned` on the battery: types, index types and semirings.

use gustav_core::{
    Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes, Scalar, Semiring, bf16, f16,
};
use gustav_cuda::spgemm::Options;
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::Settings;

use crate::battery;

fn passes<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>() {
    let chooser = Chooser::Named(Algorithm::Binned);
    battery::<T, I, O, S>(&Settings::default(), &Options { chooser, ..Options::default() });
}

macro_rules! battery {
    ($($name:ident: $t:ty, $semiring:ident, $index:ty, $offset:ty;)*) => {$(
        #[test]
        #[ignore = "needs a CUDA device"]
        fn $name() {
            passes::<$t, $index, $offset, $semiring>();
        }
    )*};
}

battery! {
    f32_plus_times: f32, PlusTimes, u32, u32;
    f64_plus_times: f64, PlusTimes, u32, u64;
    f16_plus_times: f16, PlusTimes, u64, u32;
    bf16_plus_times: bf16, PlusTimes, u64, u64;
    i32_plus_times: i32, PlusTimes, u32, u32;
    i64_plus_times: i64, PlusTimes, u32, u32;
    f32_min_plus: f32, MinPlus, u32, u32;
    f64_max_times: f64, MaxTimes, u32, u32;
    i32_or_and: i32, OrAnd, u64, u64;
    f64_plus_first: f64, PlusFirst, u32, u32;
    f16_plus_second: f16, PlusSecond, u32, u32;
    i64_min_plus: i64, MinPlus, u64, u32;
}
