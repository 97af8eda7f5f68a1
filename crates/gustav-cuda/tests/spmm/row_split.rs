//! `row-split`.

use gustav_core::Layout;
use gustav_plan::Algorithm;

use crate::papers::{check, check_refusals};

const ROWS: Layout = Layout::RowMajor;

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_f32_and_f64() {
    check::<f32>(Algorithm::RowSplit, ROWS, None);
    check::<f64>(Algorithm::RowSplit, ROWS, None);
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_rest_is_refused_by_name() {
    check_refusals(Algorithm::RowSplit, ROWS);
}
