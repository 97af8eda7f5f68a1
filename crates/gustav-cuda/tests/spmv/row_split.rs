//! `row-split`, which takes every type and semiring.

use gustav_core::{
    Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusTimes, Scalar, Semiring, bf16, f16,
};
use gustav_cuda::spmv::Config;
use gustav_cuda::spmv::row_split::Config as RowSplit;
use gustav_plan::Algorithm;
use gustav_testkit::battery::{Settings, check_spmv};

use crate::{device, named, run};

fn check<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>(config: Option<RowSplit>) {
    let options = named(Algorithm::RowSplit, config.map(Config::RowSplit));
    let device = device();
    check_spmv::<T, I, O, S>(&Settings::default(), |case| {
        run::<T, I, O, S>(&device, &options, case)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_type() {
    check::<f32, u32, u32, PlusTimes>(None);
    check::<f64, u32, u64, PlusTimes>(None);
    check::<f16, u32, u32, PlusTimes>(None);
    check::<bf16, u64, u32, PlusTimes>(None);
    check::<i32, u32, u32, PlusTimes>(None);
    check::<i64, u64, u64, PlusTimes>(None);
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_semiring() {
    check::<f32, u32, u32, MinPlus>(None);
    check::<f64, u32, u32, MaxTimes>(None);
    check::<f32, u32, u32, OrAnd>(None);
    check::<f32, u32, u32, PlusFirst>(None);
}

#[test]
#[ignore = "needs a CUDA device"]
fn one_lane_and_a_whole_warp() {
    check::<f32, u32, u32, PlusTimes>(Some(RowSplit { lanes: 1, threads: 32 }));
    check::<f64, u32, u32, PlusTimes>(Some(RowSplit { lanes: 32, threads: 256 }));
}
