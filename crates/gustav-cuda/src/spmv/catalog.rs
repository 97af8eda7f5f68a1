//! The SpMV algorithms of this backend.

use super::{even_shares, segmented};
use crate::papers::spmv::{merge_path, nonzero_split, row_split};
use crate::product::catalog::algorithms_with_dense;
use crate::vendor::spmv as vendor;

algorithms_with_dense! {
    Segmented => segmented,
    EvenShares => even_shares,
    RowSplit => row_split,
    NonzeroSplit => nonzero_split,
    MergePath => merge_path,
    Vendor => vendor,
}
