//! `row-split`, which takes every type and semiring.

use gustav_core::{Index, PlusTimes, Scalar, StaticSemiring};
use gustav_cuda::spmv::Config;
use gustav_cuda::spmv::row_split::Config as RowSplit;
use gustav_plan::Algorithm;

fn check<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>(config: RowSplit) {
    crate::check::<T, I, O, S>(Algorithm::RowSplit, Some(Config::RowSplit(config)));
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_type() {
    crate::check_every_type(Algorithm::RowSplit);
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_semiring() {
    crate::check_every_semiring(Algorithm::RowSplit);
}

#[test]
#[ignore = "needs a CUDA device"]
fn one_lane_and_a_whole_warp() {
    check::<f32, u32, u32, PlusTimes>(RowSplit { lanes: 1, threads: 32 });
    check::<f64, u32, u32, PlusTimes>(RowSplit { lanes: 32, threads: 256 });
}
