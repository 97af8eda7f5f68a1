//! Arrays that the CTAs of a product prefetch in slices. See `kernels/tile/slices.cuh`.

use crate::device::Device;
use crate::product::operands::Operands;

// What is prefetched, A or B, takes at most one in PART of L2, and a product that gathers more bytes than L2 holds prefetches
// nothing: it is so long that the first wait does not count (docs/decisions/0054-slices-in-l2.md).
const PART: u64 = 8;
// Slices of 16-bit elements begin at sectors of L2.
const ALIGNMENT: u64 = 16;

parameter_block! {
    /// What each CTA prefetches: `of_a` nonzeros of A and `of_b` of the first `b` values of B; 0 for none.
    pub(crate) struct Slices {
        b: u64,
        of_a: u32,
        of_b: u32,
    }
}

impl Slices {
    /// Of a short product: of column indices and values of A, if they are small, and of B, if it is and A has as many
    /// nonzeros as B has rows, which are then read once each at least, on average.
    pub(crate) fn new(o: &Operands, device: &Device, ctas: u64) -> Self {
        let l2 = device.profile().l2_bytes as u64;
        let (nnz, value) = (o.nnz as u64, o.dtype.bytes() as u64);
        let a_bytes = nnz.saturating_mul(o.index_type.bytes() as u64 + value);
        let before_last = (o.inner as u64).saturating_sub(1).saturating_mul(o.ldb as u64);
        let b = before_last.saturating_add(o.columns as u64);
        let is_read = o.inner > 0 && o.nnz >= o.inner;
        let is_short = nnz.saturating_mul(o.columns as u64).saturating_mul(value) <= l2;
        let is_small = |bytes: u64| is_short && bytes <= l2 / PART;
        Slices {
            b,
            of_a: if is_small(a_bytes) { slice(nnz, ctas) } else { 0 },
            of_b: if is_read && is_small(b.saturating_mul(value)) { slice(b, ctas) } else { 0 },
        }
    }

    /// Of B alone.
    pub(crate) fn of_b(o: &Operands, device: &Device, ctas: u64) -> Self {
        Slices { of_a: 0, ..Slices::new(o, device, ctas) }
    }
}

/// Elements for each of `ctas` CTAs; `count` is of an array that is smaller than L2.
fn slice(count: u64, ctas: u64) -> u32 {
    let own = count.div_ceil(ctas.max(1)).next_multiple_of(ALIGNMENT);
    u32::try_from(own).expect("an array that is smaller than L2")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_an_array() {
        for (count, ctas) in [(0, 1), (1, 7), (16, 1), (1000, 3), (1000, 999), (1 << 20, 132)] {
            let own = u64::from(slice(count, ctas));
            assert!(own * ctas >= count, "{count} in {ctas}");
            assert!(own.is_multiple_of(ALIGNMENT));
        }
    }
}
