//! `sell-p`.

use gustav_core::Layout;
use gustav_cuda::spmm::sell_p::Config;
use gustav_plan::Algorithm;

use crate::papers::{check, check_refusals, check_values};

const ROWS: Layout = Layout::RowMajor;

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_f32_and_f64() {
    check::<f32>(Algorithm::SellP, ROWS, None);
    check::<f64>(Algorithm::SellP, ROWS, None);
}

#[test]
#[ignore = "needs a CUDA device"]
fn other_configurations() {
    let of = gustav_cuda::Config::SellP;
    check::<f32>(Algorithm::SellP, ROWS, Some(of(Config { rows: 32, lanes: 1 })));
    check::<f64>(Algorithm::SellP, ROWS, Some(of(Config { rows: 1, lanes: 8 })));
}

#[test]
#[ignore = "needs a CUDA device"]
fn values_may_change_under_a_plan() {
    check_values(Algorithm::SellP, |problem| problem);
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_rest_is_refused_by_name() {
    check_refusals(Algorithm::SellP, ROWS);
}
