//! The SpMM algorithms of this backend.

use super::{b_stationary, column_panel, even_shares, row_block, segmented, tensor};
use crate::papers::spmm::{
    dcsr, dense, ell_r, heavy_light, merge_path, nonzero_split, output_stationary, row_split,
    sell_p, thread_row,
};
use crate::product::catalog::algorithms_with_dense;
use crate::vendor::spmm as vendor;

algorithms_with_dense! {
    Segmented => segmented,
    EvenShares => even_shares,
    RowBlock => row_block,
    ColumnPanel => column_panel,
    BStationary => b_stationary,
    Tensor => tensor,
    RowSplit => row_split,
    ThreadRow => thread_row,
    NonzeroSplit => nonzero_split,
    MergePath => merge_path,
    OutputStationary => output_stationary,
    Dcsr => dcsr,
    SellP => sell_p,
    EllR => ell_r,
    HeavyLight => heavy_light,
    Dense => dense,
    Vendor => vendor,
}
