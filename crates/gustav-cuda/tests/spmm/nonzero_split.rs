//! `nonzero-split`.

use gustav_core::Layout;
use gustav_cuda::spmm::nonzero_split::Config;
use gustav_plan::Algorithm;

use crate::papers::{check, check_refusals};

const ROWS: Layout = Layout::RowMajor;

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_f32_and_f64() {
    check::<f32>(Algorithm::NonzeroSplit, ROWS, None);
    check::<f64>(Algorithm::NonzeroSplit, ROWS, None);
}

#[test]
#[ignore = "needs a CUDA device"]
fn other_configurations() {
    let of = gustav_cuda::Config::NonzeroSplit;
    check::<f32>(
        Algorithm::NonzeroSplit,
        ROWS,
        Some(of(Config { threads: 32, items: 1, columns: 32, ahead: 16 })),
    );
    check::<f64>(
        Algorithm::NonzeroSplit,
        ROWS,
        Some(of(Config { threads: 128, items: 8, columns: 4, ahead: 4 })),
    );
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_rest_is_refused_by_name() {
    check_refusals(Algorithm::NonzeroSplit, ROWS);
}
