//! Arrays that the CTAs of a product prefetch in slices. See `kernels/tile/slices.cuh`.

use crate::device::Device;
use crate::product::operands::Operands;

// An array that is prefetched takes at most one in PART of L2. A product that gathers more bytes than L2 holds prefetches
// nothing: it is so long that its first waits do not count (docs/decisions/0054-slices-in-l2.md).
const PART: u64 = 8;
// Slices of 16-bit elements begin at sectors of L2.
const ALIGNMENT: u64 = 16;
// The first compute capability with prefetches in bulk; single ones take longer than they save.
const HAS_BULK_PREFETCH: (i32, i32) = (9, 0);

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
    /// nonzeros as B has rows, which are then read once each at least, on average. Of a batch nothing.
    pub(crate) fn new(o: &Operands, device: &Device, ctas: u64) -> Self {
        let profile = device.profile();
        match profile.compute_capability >= HAS_BULK_PREFETCH {
            true => Slices::in_l2(o, profile.l2_bytes as u64, ctas),
            false => Slices::default(),
        }
    }

    fn in_l2(o: &Operands, l2: u64, ctas: u64) -> Self {
        let (nnz, value) = (o.nnz as u64, o.dtype.bytes() as u64);
        let a_bytes = nnz.saturating_mul(o.index_type.bytes() as u64 + value);
        let before_last = (o.inner as u64).saturating_sub(1).saturating_mul(o.ldb as u64);
        let b = before_last.saturating_add(o.columns as u64);
        let is_read = o.inner > 0 && o.nnz >= o.inner;
        let is_short = nnz.saturating_mul(o.columns as u64).saturating_mul(value) <= l2;
        let is_small = |bytes: u64| o.batch.count == 1 && is_short && bytes <= l2 / PART;
        Slices {
            b,
            of_a: if is_small(a_bytes) { slice(nnz, ctas) } else { 0 },
            of_b: if is_read && is_small(b.saturating_mul(value)) { slice(b, ctas) } else { 0 },
        }
    }
}

/// Elements for each of `ctas` CTAs; `count` is of an array that is smaller than L2.
fn slice(count: u64, ctas: u64) -> u32 {
    let own = count.div_ceil(ctas.max(1)).next_multiple_of(ALIGNMENT);
    u32::try_from(own).expect("an array that is smaller than L2")
}

#[cfg(test)]
mod tests {
    use gustav_core::{DType, IndexType, Layout, Semiring};

    use super::*;
    use crate::product::operands::Batch;

    #[test]
    fn slices_cover_an_array() {
        for (count, ctas) in [(0, 1), (1, 7), (16, 1), (1000, 3), (1000, 999), (1 << 20, 132)] {
            let own = u64::from(slice(count, ctas));
            assert!(own * ctas >= count, "{count} in {ctas}");
            assert!(own.is_multiple_of(ALIGNMENT));
        }
    }

    /// A product in f32 of 1000 nonzeros, 500 rows of B and 8 columns.
    fn product() -> Operands {
        Operands {
            offsets: 0,
            indices: 0,
            values: 0,
            rows: 100,
            inner: 500,
            nnz: 1000,
            b: 0,
            ldb: 8,
            c: 0,
            ldc: 8,
            layouts: (Layout::RowMajor, Layout::RowMajor),
            columns: 8,
            batch: Batch::ONE,
            alpha: 0,
            beta: 0,
            dtype: DType::F32,
            dtype_c: DType::F32,
            index_type: IndexType::U32,
            offset_type: IndexType::U32,
            semiring: Semiring::PlusTimes,
            steps: 0,
            bias: 0,
            extremum: None,
            winner: None,
            winners: 0,
            permutation: 0,
            filtered: false,
        }
    }

    #[test]
    fn what_is_prefetched_is_small_and_read() {
        let l2 = 8 * 500 * 8 * 4;
        let of = |o: &Operands, l2| {
            let Slices { of_a, of_b, .. } = Slices::in_l2(o, l2, 1);
            (of_a, of_b)
        };
        let o = product();
        // B takes an eighth of L2, then more.
        assert_eq!(of(&o, l2), (1008, 4000));
        assert_eq!(of(&o, l2 - 8), (1008, 0));
        // A takes 8000 bytes.
        assert_eq!(of(&o, 64_000), (1008, 0));
        assert_eq!(of(&o, 63_992), (0, 0));
        // It gathers 32,000 bytes, in f32 of 8 columns.
        assert_eq!(of(&Operands { nnz: 4001, ..o }, l2).0, 0);
        // Rows of B that are mostly not read, no rows, and a batch.
        assert_eq!(of(&Operands { nnz: 499, ..o }, l2), (512, 0));
        assert_eq!(of(&Operands { inner: 0, ..o }, l2), (1008, 0));
        assert_eq!(of(&Operands { batch: Batch { count: 2, ..Batch::ONE }, ..o }, l2), (0, 0));
    }

    #[test]
    fn rows_of_b_that_lie_apart_end_with_the_last() {
        let o = Operands { ldb: 10, ..product() };
        assert_eq!(Slices::in_l2(&o, 1 << 20, 1).b, 499 * 10 + 8);
        assert_eq!(Slices::in_l2(&o, 1 << 20, 1).of_b, 5008);
    }
}
