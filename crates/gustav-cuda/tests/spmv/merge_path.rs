//! `merge-path`.

use gustav_cuda::spmv::Config;
use gustav_cuda::spmv::merge_path::Config as Shape;
use gustav_plan::Algorithm::MergePath;

use crate::check_paper;

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_f32_and_f64() {
    check_paper::<f32>(MergePath, None);
    check_paper::<f64>(MergePath, None);
}

#[test]
#[ignore = "needs a CUDA device"]
fn other_shares() {
    check_paper::<f32>(MergePath, Some(Config::MergePath(Shape { threads: 32, items: 1 })));
    check_paper::<f64>(MergePath, Some(Config::MergePath(Shape { threads: 64, items: 3 })));
}
