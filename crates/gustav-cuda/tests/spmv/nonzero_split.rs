//! `nonzero-split`.

use gustav_cuda::spmv::Config;
use gustav_cuda::spmv::nonzero_split::Config as Shape;
use gustav_plan::Algorithm::NonzeroSplit;

use crate::check_paper;

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_f32_and_f64() {
    check_paper::<f32>(NonzeroSplit, None);
    check_paper::<f64>(NonzeroSplit, None);
}

#[test]
#[ignore = "needs a CUDA device"]
fn other_shares() {
    check_paper::<f32>(NonzeroSplit, Some(Config::NonzeroSplit(Shape { threads: 32, items: 1 })));
    check_paper::<f64>(NonzeroSplit, Some(Config::NonzeroSplit(Shape { threads: 64, items: 3 })));
}
