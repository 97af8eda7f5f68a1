//! `ell-r`.

use gustav_core::Layout;
use gustav_cuda::spmm::ell_r::Config;
use gustav_plan::Algorithm;

use crate::papers::{check, check_refusals, check_values};

const ROWS: Layout = Layout::RowMajor;

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_f32_and_f64() {
    check::<f32>(Algorithm::EllR, ROWS, None);
    check::<f64>(Algorithm::EllR, ROWS, None);
}

#[test]
#[ignore = "needs a CUDA device"]
fn other_configurations() {
    let of = gustav_cuda::Config::EllR;
    check::<f32>(Algorithm::EllR, ROWS, Some(of(Config { lanes: 32 })));
    check::<f64>(Algorithm::EllR, ROWS, Some(of(Config { lanes: 1 })));
}

#[test]
#[ignore = "needs a CUDA device"]
fn values_may_change_under_a_plan() {
    check_values(Algorithm::EllR, |problem| problem);
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_rest_is_refused_by_name() {
    check_refusals(Algorithm::EllR, ROWS);
}
