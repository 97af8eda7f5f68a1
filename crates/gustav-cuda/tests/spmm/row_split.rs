//! `row-split`.

use gustav_core::Layout;
use gustav_cuda::spmm::row_split::{Config, Variant};
use gustav_plan::Algorithm;

use crate::papers::{check, check_layouts, check_refusals};

const ROWS: Layout = Layout::RowMajor;

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_in_f32_and_f64() {
    check::<f32>(Algorithm::RowSplit, ROWS, None);
    check::<f64>(Algorithm::RowSplit, ROWS, None);
}

#[test]
#[ignore = "needs a CUDA device"]
fn what_the_paper_tried() {
    for (variant, ahead) in Variant::ALL.into_iter().zip([32, 16, 2, 1]) {
        let config = gustav_cuda::Config::RowSplit(Config { warps: 3, ahead, variant });
        check::<f32>(Algorithm::RowSplit, ROWS, Some(config));
        let to_columns = (ROWS, Layout::ColumnMajor);
        check_layouts::<f32>(Algorithm::RowSplit, to_columns, Some(config));
    }
    check_layouts::<f64>(Algorithm::RowSplit, (ROWS, Layout::ColumnMajor), None);
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_rest_is_refused_by_name() {
    check_refusals(Algorithm::RowSplit, ROWS);
}
