//! The attention algorithms of this backend.

use super::segmented;
use crate::product::catalog::algorithms;

algorithms! {
    Segmented => segmented,
}
