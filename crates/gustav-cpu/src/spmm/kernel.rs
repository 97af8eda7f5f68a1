//! The row kernel that the algorithms share: a row of C in registers, one nonzero of A after
//! another broadcast against a row of B.

use std::ops::Range;

use gustav_core::{Index, Scalar};

use super::operands::Operands;
use crate::arch::vector::{Vector, Work};

/// Columns of B and C that are summed at once: `W` vectors from column `start` on, the last
/// one cut by a mask when `TAIL`.
pub(super) struct Panel<T: Scalar, V: Vector<T>, const W: usize, const TAIL: bool> {
    pub start: usize,
    pub mask: V::Mask,
}

impl<T: Scalar, V: Vector<T>, const W: usize, const TAIL: bool> Panel<T, V, W, TAIL> {
    /// Loads vector `w` of the panel from the row that starts at `row`.
    ///
    /// # Safety
    /// `row` has the panel's columns; the instruction set is available.
    #[inline(always)]
    pub(super) unsafe fn load(&self, row: *const T, w: usize) -> V::V {
        // SAFETY: promised by the caller.
        unsafe {
            let p = row.add(self.start + w * V::LANES);
            if TAIL && w == W - 1 { V::load_masked(p, self.mask) } else { V::load(p) }
        }
    }

    /// Adds `values[k] ⊗ B[indices[k]]` over `k` in `range` to `sums`.
    ///
    /// # Safety
    /// `range` lies within the nonzeros, and indices within B; the instruction set is available.
    #[inline(always)]
    pub(super) unsafe fn accumulate<I: Index>(
        &self,
        op: &Operands<'_, T, I>,
        range: Range<usize>,
        sums: &mut [V::V; W],
    ) {
        for k in range {
            // SAFETY: promised by the caller.
            unsafe {
                let a = V::splat(op.values.get_unchecked(k).to_accum());
                let row = op.b.add(op.indices.get_unchecked(k).to_usize() * op.ldb);
                for w in 0..W {
                    sums[w] = V::mul_add(a, self.load(row, w), sums[w]);
                }
            }
        }
    }

    /// The sums of the nonzeros in `range`, `U` independent chains of them.
    ///
    /// # Safety
    /// As [`Panel::accumulate`].
    #[inline(always)]
    pub(super) unsafe fn sum<I: Index, const U: usize>(
        &self,
        op: &Operands<'_, T, I>,
        range: Range<usize>,
    ) -> [V::V; W] {
        // SAFETY: promised by the caller.
        unsafe {
            let mut sums = [V::splat(op.zero); W];
            let mut at = range.start;
            // Few chains leave the adders waiting for each other; short rows overlap by themselves.
            if U > 1 && range.len() >= 2 * U {
                let mut chains = [[V::splat(op.zero); W]; U];
                while at + U <= range.end {
                    for u in 0..U {
                        self.accumulate(op, at + u..at + u + 1, &mut chains[u]);
                    }
                    at += U;
                }
                for chain in chains {
                    for w in 0..W {
                        sums[w] = V::add(sums[w], chain[w]);
                    }
                }
            }
            self.accumulate(op, at..range.end, &mut sums);
            sums
        }
    }

    /// Writes scale(α, `sums`) ⊕ scale(β, C) to row `row` of C.
    ///
    /// # Safety
    /// `row` is a row of C that no other thread touches; the instruction set is available.
    #[inline(always)]
    pub(super) unsafe fn finish<I>(&self, op: &Operands<'_, T, I>, row: usize, sums: &[V::V; W]) {
        // SAFETY: promised by the caller.
        unsafe {
            let c = op.c.add(row * op.ldc);
            let (alpha, beta) = (V::splat(op.alpha), V::splat(op.beta));
            for w in 0..W {
                let mut v = V::scale(alpha, sums[w]);
                if op.reads_c {
                    v = V::add(v, V::scale(beta, self.load(c, w)));
                }
                let p = c.add(self.start + w * V::LANES);
                if TAIL && w == W - 1 && !op.streaming {
                    V::store_masked(p, self.mask, v);
                } else if op.streaming {
                    V::stream(p, v);
                } else {
                    V::store(p, v);
                }
            }
        }
    }
}

/// Calls `$work.panel::<V, W, U, TAIL>(&panel)` for the panels that cover `$columns` columns:
/// at most `$width` vectors wide, as few as that allows, of as equal width as possible.
macro_rules! for_each_panel {
    ($t:ty, $v:ty, $columns:expr, $width:expr, $work:expr) => {{
        use crate::arch::vector::Vector;
        use crate::spmm::kernel::Panel;
        let columns = $columns;
        let lanes = <$v as Vector<$t>>::LANES;
        let vectors = columns.div_ceil(lanes);
        let count = vectors.div_ceil($width);
        let rest = columns - (vectors.max(1) - 1) * lanes;
        for p in 0..count {
            let (first, last) = (vectors * p / count, vectors * (p + 1) / count);
            let tail = last == vectors && rest < lanes;
            let start = first * lanes;
            let mask = <$v as Vector<$t>>::mask(if tail { rest } else { lanes });
            for_each_panel!(@arms $t, $v, $width, $work, last - first, tail, start, mask,
                [1, 4] [2, 4] [3, 2] [4, 2] [5, 1] [6, 1] [7, 1] [8, 1]);
        }
    }};
    (@arms $t:ty, $v:ty, $most:expr, $work:expr, $width:expr, $tail:expr, $start:expr, $mask:expr,
     $([$w:literal, $u:literal])*) => {
        // Vectors of plain arrays, and widths seldom met without a rest, are always masked:
        // kernels compiled twice cost more than they give there.
        let tail = $tail || !<$v as Vector<$t>>::WHOLE || !matches!($width, 1 | 2 | 4 | 8);
        match ($width, tail) {
            $(
                ($w, false) if const {
                    $most >= $w && <$v as Vector<$t>>::WHOLE && matches!($w, 1 | 2 | 4 | 8)
                } => {
                    let panel = Panel::<$t, $v, $w, false> { start: $start, mask: $mask };
                    $work.panel::<$v, $w, $u, false>(&panel)
                }
                ($w, true) if const { $most >= $w } => {
                    let panel = Panel::<$t, $v, $w, true> { start: $start, mask: $mask };
                    $work.panel::<$v, $w, $u, true>(&panel)
                }
            )*
            _ => {}
        }
    };
}
pub(super) use for_each_panel;

/// Whole rows of C, one after another.
pub(super) struct Rows<'a, T: Scalar, I> {
    pub op: &'a Operands<'a, T, I>,
    pub rows: Range<usize>,
}

// Rows that one panel of columns is done for before the next: their part of A stays in L1.
const BLOCK: usize = 16;

impl<T: Scalar, I: Index> Rows<'_, T, I> {
    #[inline(always)]
    unsafe fn panel<V: Vector<T>, const W: usize, const U: usize, const TAIL: bool>(
        &self,
        panel: &Panel<T, V, W, TAIL>,
    ) {
        for row in self.rows.clone() {
            // SAFETY: rows and their nonzeros come from a checked matrix.
            unsafe {
                let sums = panel.sum::<I, U>(self.op, self.op.offsets.row(row));
                panel.finish(self.op, row, &sums);
            }
        }
    }
}

impl<T: Scalar, I: Index> Work<T> for Rows<'_, T, I> {
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(self) {
        let columns = self.op.columns;
        let step = if columns <= V::LANES * V::WIDTH { self.rows.len().max(1) } else { BLOCK };
        let mut start = self.rows.start;
        while start < self.rows.end {
            let rows = start..self.rows.end.min(start + step);
            start = rows.end;
            let block = Rows { op: self.op, rows };
            // SAFETY: promised by the caller.
            unsafe { for_each_panel!(T, V, columns, V::WIDTH, block) }
        }
    }
}
