//! `output-stationary`.

use gustav_core::Layout;
use gustav_cuda::spmm::output_stationary::Config;
use gustav_plan::Algorithm;

use crate::papers::{check, check_refusals};

const COLUMNS: Layout = Layout::ColumnMajor;

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_f32_and_f64() {
    check::<f32>(Algorithm::OutputStationary, COLUMNS, None);
    check::<f64>(Algorithm::OutputStationary, COLUMNS, None);
}

#[test]
#[ignore = "needs a CUDA device"]
fn other_strips() {
    let of = gustav_cuda::Config::OutputStationary;
    check::<f32>(
        Algorithm::OutputStationary,
        COLUMNS,
        Some(of(Config { warps: 1, width: 4, fill: true })),
    );
    check::<f64>(
        Algorithm::OutputStationary,
        COLUMNS,
        Some(of(Config { warps: 8, width: 3, fill: false })),
    );
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_rest_is_refused_by_name() {
    check_refusals(Algorithm::OutputStationary, COLUMNS);
}
