//! SpMV over ranks.

use crate::cases::spmv;
use crate::common::Threads;

#[test]
fn batteries() {
    spmv::batteries(&Threads);
}
