//! `thread-row`.

use gustav_core::Layout;
use gustav_cuda::spmm::thread_row::Config;
use gustav_plan::Algorithm;

use crate::papers::{check, check_refusals};

const ROWS: Layout = Layout::RowMajor;

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_f32_and_f64() {
    check::<f32>(Algorithm::ThreadRow, ROWS, None);
    check::<f64>(Algorithm::ThreadRow, ROWS, None);
}

#[test]
#[ignore = "needs a CUDA device"]
fn other_configurations() {
    let of = gustav_cuda::Config::ThreadRow;
    check::<f32>(Algorithm::ThreadRow, ROWS, Some(of(Config { threads: 64, width: 1 })));
    check::<f64>(Algorithm::ThreadRow, ROWS, Some(of(Config { threads: 256, width: 8 })));
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_rest_is_refused_by_name() {
    check_refusals(Algorithm::ThreadRow, ROWS);
}
