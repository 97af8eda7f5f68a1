//! `merge-path`.

use gustav_core::Layout;
use gustav_cuda::spmm::merge_path::Config;
use gustav_plan::Algorithm;

use crate::papers::{check, check_refusals};

const ROWS: Layout = Layout::RowMajor;

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_f32_and_f64() {
    check::<f32>(Algorithm::MergePath, ROWS, None);
    check::<f64>(Algorithm::MergePath, ROWS, None);
}

#[test]
#[ignore = "needs a CUDA device"]
fn other_configurations() {
    let of = gustav_cuda::Config::MergePath;
    check::<f32>(
        Algorithm::MergePath,
        ROWS,
        Some(of(Config { threads: 32, items: 1, columns: 32, ahead: 32 })),
    );
    check::<f64>(
        Algorithm::MergePath,
        ROWS,
        Some(of(Config { threads: 64, items: 3, columns: 8, ahead: 2 })),
    );
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_rest_is_refused_by_name() {
    check_refusals(Algorithm::MergePath, ROWS);
}
