//! How the columns of C lie, judged by a few of its rows: the same for any number of threads, as
//! the order of columns in unsorted rows depends on it.

use gustav_core::{CsrView, Index, Scalar};

use super::row::{LONG, UNSORTED_SCAN};

/// What some rows of C have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layout {
    /// Few rows of less than [`LONG`] products are dense enough to be drained, so that none is
    /// looked at for it.
    pub far: bool,
    /// Most columns of rows of B have a neighbour closer than [`CLOSE`].
    pub clustered: bool,
}

// Rows that speak for all.
const SAMPLE: usize = 128;
// Of so many rows, one may be dense.
const RARE: usize = 8;
// Neighbours of a row of B that are looked at, so that long rows do not outvote the others.
const PAIRS: usize = 24;
const CLOSE: usize = 4;

impl Layout {
    /// `ranges`: smallest and largest column of every row of B, where B is not canonical.
    pub fn of<T: Scalar, I: Index, J: Index, O: Index>(
        a: &CsrView<'_, T, I, O>,
        b: &CsrView<'_, T, J, O>,
        ranges: Option<&[[u32; 2]]>,
    ) -> Self {
        let step = a.nrows().div_ceil(SAMPLE).max(1);
        let (mut rows, mut dense, mut pairs, mut close) = (0, 0, 0, 0);
        for row in (0..a.nrows()).step_by(step) {
            let (mut products, mut first, mut last) = (0, usize::MAX, 0);
            for k in a.row(row).0 {
                let k = k.to_usize();
                let columns = b.row(k).0;
                let [Some(least), Some(most)] = [columns.first(), columns.last()] else { continue };
                products += columns.len();
                if products >= LONG {
                    break;
                }
                let [least, most] = match ranges {
                    None => [least.to_usize(), most.to_usize()],
                    Some(ranges) => ranges[k].map(|column| column as usize),
                };
                (first, last) = (first.min(least), last.max(most));
            }
            if (2..LONG).contains(&products) {
                rows += 1;
                dense += usize::from(last - first < products * UNSORTED_SCAN);
            }
            let inner = a.row(row).0;
            if let Some(k) = inner.get(inner.len() / 2) {
                let columns = b.row(k.to_usize()).0;
                for pair in columns.windows(2).take(PAIRS) {
                    pairs += 1;
                    close += usize::from(pair[0].to_usize().abs_diff(pair[1].to_usize()) < CLOSE);
                }
            }
        }
        Layout { far: dense * RARE <= rows, clustered: 2 * close > pairs }
    }
}
