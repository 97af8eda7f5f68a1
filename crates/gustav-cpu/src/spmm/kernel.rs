//! The row kernel that the algorithms share: a row of C in registers, one nonzero of A after
//! another broadcast against a row of B.

use std::ops::Range;
use std::slice;

use gustav_core::{Index, IndexType, Ops, Scalar};

use super::operands::{Operands, Streaming};
use crate::arch::vector::{Vector, Work};

// Bytes of a cache line.
const LINE: usize = 64;

/// Keeps the compiler from unrolling the loop that calls this: rows are short, and the remainder
/// loop after an unrolled one costs every row another mispredicted branch.
#[inline(always)]
fn keep_rolled() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: no instruction.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

/// Columns of B and C that are summed together: `W` vectors from column `start` on, the last one
/// cut by a mask when `TAIL`.
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

    /// Adds `values[k] ⊗ B[column]` to `sums`.
    ///
    /// # Safety
    /// `k` is a nonzero, `column` a row of B; the instruction set is available.
    #[inline(always)]
    unsafe fn add<I: Index, const SMALL: bool>(
        &self,
        op: &Operands<'_, T, I>,
        k: usize,
        column: usize,
        sums: &mut [V::V; W],
    ) {
        // SAFETY: promised by the caller.
        unsafe {
            if !SMALL && op.prefetch_distance > 0 {
                self.prefetch(op, k.saturating_add(op.prefetch_distance));
            }
            let s = V::S::of(op.semiring);
            let a = V::splat(op.values.get_unchecked(k).to_accum());
            let row = op.b.add(column * op.ldb);
            for w in 0..W {
                sums[w] = V::mul_add(s, a, self.load(row, w), sums[w]);
            }
        }
    }

    /// Prefetches the row of B that nonzero `k` multiplies to L1.
    ///
    /// # Safety
    /// The instruction set is available.
    #[inline(always)]
    pub(super) unsafe fn prefetch<I: Index>(&self, op: &Operands<'_, T, I>, k: usize) {
        let k = k.min(op.indices.len() - 1);
        let lines = (W * V::LANES * size_of::<T>()).div_ceil(LINE);
        // SAFETY: `k` is a nonzero; nothing is read through the pointers.
        unsafe {
            let row = op.b.wrapping_add(op.indices.get_unchecked(k).to_usize() * op.ldb);
            for line in 0..lines {
                V::prefetch(row.wrapping_add(self.start).wrapping_byte_add(line * LINE));
            }
        }
    }

    /// The sums of the nonzeros in `range`, in `U` independent chains: in long rows, a single chain
    /// would be limited by the latency of an addition.
    ///
    /// # Safety
    /// The nonzeros in `range` exist, their indices lie within B; the instruction set is
    /// available; with `SMALL`, `op` is [`Operands::small`].
    #[inline(always)]
    pub(super) unsafe fn sum<I: Index, const U: usize, const SMALL: bool>(
        &self,
        op: &Operands<'_, T, I>,
        range: Range<usize>,
    ) -> [V::V; W] {
        // SAFETY: promised by the caller.
        unsafe {
            let mut chains = [[V::splat(op.zero); W]; U];
            let Range { start: mut k, end } = range;
            while k + 2 * U <= end {
                keep_rolled();
                for u in (0..2 * U).step_by(2) {
                    let [one, two] = I::pair(op.indices.as_ptr().add(k + u));
                    self.add::<I, SMALL>(op, k + u, one, &mut chains[u % U]);
                    self.add::<I, SMALL>(op, k + u + 1, two, &mut chains[(u + 1) % U]);
                }
                k += 2 * U;
            }
            let mut sums = chains[0];
            for chain in &chains[1..] {
                for w in 0..W {
                    sums[w] = V::add(V::S::of(op.semiring), sums[w], chain[w]);
                }
            }
            while k < end {
                keep_rolled();
                let column = op.indices.get_unchecked(k).to_usize();
                self.add::<I, SMALL>(op, k, column, &mut sums);
                k += 1;
            }
            sums
        }
    }

    /// Writes scale(α, `sums`) ⊕ scale(β, C) to row `row` of C, for means with α divided by the
    /// length of the row.
    ///
    /// # Safety
    /// `row` is a row of C that no other thread touches; the instruction set is available.
    #[inline(always)]
    pub(super) unsafe fn finish<I>(&self, op: &Operands<'_, T, I>, row: usize, sums: &[V::V; W]) {
        // SAFETY: promised by the caller.
        unsafe {
            let c = op.c.add(row * op.ldc);
            if op.plain {
                self.write(op, c, sums);
                return;
            }
            let s = V::S::of(op.semiring);
            let (alpha, beta) = (V::splat(op.alpha_of(row)), V::splat(op.beta));
            let mut scaled = *sums;
            for w in 0..W {
                scaled[w] = V::scale(s, alpha, sums[w]);
                if op.reads_c {
                    let before = V::scale(s, beta, self.load(c, w));
                    scaled[w] = V::add(s, scaled[w], before);
                }
            }
            self.write(op, c, &scaled);
        }
    }

    /// Writes `values` to the row of C that starts at `c`.
    ///
    /// # Safety
    /// As [`Panel::finish`].
    #[inline(always)]
    pub(super) unsafe fn write<I>(&self, op: &Operands<'_, T, I>, c: *mut T, values: &[V::V; W]) {
        // SAFETY: promised by the caller; rows that are streamed are made of whole vectors.
        unsafe {
            match op.streaming {
                Streaming::No => self.store(c, values),
                Streaming::Vectors => {
                    for w in 0..W {
                        V::stream(c.add(self.start + w * V::LANES), values[w]);
                    }
                }
                Streaming::Bytes16 => {
                    for w in 0..W {
                        V::stream_16(c.add(self.start + w * V::LANES), values[w]);
                    }
                }
            }
        }
    }

    /// Writes `values` to the row of C that starts at `c`, with ordinary stores.
    ///
    /// # Safety
    /// As [`Panel::finish`].
    #[inline(always)]
    unsafe fn store(&self, c: *mut T, values: &[V::V; W]) {
        for w in 0..W {
            // SAFETY: promised by the caller.
            unsafe {
                let p = c.add(self.start + w * V::LANES);
                if TAIL && w == W - 1 {
                    V::store_masked(p, self.mask, values[w]);
                } else {
                    V::store(p, values[w]);
                }
            }
        }
    }
}

/// Work that is done for one panel of columns after another.
pub(super) trait Panels<T: Scalar> {
    /// Processes `panel`, with sums in `U` chains; must be `#[inline(always)]`.
    ///
    /// # Safety
    /// The instruction set of `V` is available.
    unsafe fn panel<V: Vector<T>, const W: usize, const U: usize, const TAIL: bool>(
        &self,
        panel: &Panel<T, V, W, TAIL>,
    );
}

/// `work` on the panel from column `start` on whose last vector has `lanes` lanes.
pub(super) struct OnPanel<'a, P, const W: usize, const U: usize, const TAIL: bool> {
    pub work: &'a P,
    pub start: usize,
    pub lanes: usize,
}

impl<T: Scalar, P: Panels<T>, const W: usize, const U: usize, const TAIL: bool> Work<T>
    for OnPanel<'_, P, W, U, TAIL>
{
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(self) {
        // SAFETY: promised by the caller.
        unsafe {
            let panel = Panel::<T, V, W, TAIL> { start: self.start, mask: V::mask(self.lanes) };
            self.work.panel::<V, W, U, TAIL>(&panel)
        }
    }
}

/// The widest panel in vectors: for 64-bit indices, which are rare, fewer kernels are compiled.
pub(super) const fn widest<I: Index>(most: usize) -> usize {
    if matches!(I::TYPE, IndexType::U64) && most > 4 { 4 } else { most }
}

/// Whether kernels without masks are compiled.
pub(super) const fn has_whole<I: Index>(whole: bool) -> bool {
    whole && matches!(I::TYPE, IndexType::U32)
}

/// Runs `$work`, with column indices `$i`, for panels that cover `$columns` columns: as few panels
/// of at most `$width` vectors as possible, of nearly equal width.
macro_rules! for_each_panel {
    ($t:ty, $i:ty, $v:ty, $columns:expr, $width:expr, $work:expr) => {{
        use crate::arch::vector::Vector;
        let columns = $columns;
        let lanes = <$v as Vector<$t>>::LANES;
        let vectors = columns.div_ceil(lanes);
        let count = vectors.div_ceil(const { crate::spmm::kernel::widest::<$i>($width) });
        let rest = columns - (vectors.max(1) - 1) * lanes;
        for p in 0..count {
            let (first, last) = (vectors * p / count, vectors * (p + 1) / count);
            let tail = last == vectors && rest < lanes;
            let part = (first * lanes, if tail { rest } else { lanes });
            for_each_panel!(@arms $t, $i, $v, $width, $work, last - first, tail, part,
                [1, 2] [2, 2] [3, 2] [4, 2] [5, 1] [6, 1] [7, 1] [8, 1]);
        }
    }};
    (@arms $t:ty, $i:ty, $v:ty, $most:expr, $work:expr, $width:expr, $tail:expr, $part:expr,
     $([$w:literal, $u:literal])*) => {
        // Widths that rarely divide evenly into whole vectors always use masks: a second kernel
        // without masks costs more compile time than it is worth.
        use crate::spmm::kernel::{OnPanel, has_whole, widest};
        let whole = const { has_whole::<$i>(<$v as Vector<$t>>::WHOLE) };
        let tail = $tail || !whole || !matches!($width, 1 | 2 | 4 | 8);
        let (start, lanes) = $part;
        let work = &$work;
        match ($width, tail) {
            $(
                ($w, false) if const {
                    widest::<$i>($most) >= $w
                        && has_whole::<$i>(<$v as Vector<$t>>::WHOLE)
                        && matches!($w, 1 | 2 | 4 | 8)
                } => {
                    <$v as Vector<$t>>::enter(OnPanel::<_, $w, $u, false> { work, start, lanes })
                }
                ($w, true) if const {
                    widest::<$i>($most) >= $w && <$v as Vector<$t>>::CHAINS
                } => <$v as Vector<$t>>::enter(OnPanel::<_, $w, $u, true> { work, start, lanes }),
                ($w, true) if const {
                    widest::<$i>($most) >= $w && !<$v as Vector<$t>>::CHAINS
                } => <$v as Vector<$t>>::enter(OnPanel::<_, $w, 1, true> { work, start, lanes }),
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

// Rows for which one panel of columns is computed before the next: their part of A stays in L1.
const BLOCK: usize = 16;
// Fewest consecutive empty rows that `clear` writes: with fewer, restarting the panels costs more
// than it saves.
const RUN: usize = 4;

impl<T: Scalar, I: Index> Panels<T> for Rows<'_, T, I> {
    #[inline(always)]
    unsafe fn panel<V: Vector<T>, const W: usize, const U: usize, const TAIL: bool>(
        &self,
        panel: &Panel<T, V, W, TAIL>,
    ) {
        // A local copy stays in registers: the compiler knows that stores to C cannot change it.
        let op = *self.op;
        // SAFETY: promised by the caller.
        unsafe {
            match op.small() {
                Some(offsets) if const { W <= 4 } => {
                    self.each::<V, W, U, TAIL, true>(panel, &op, |k| {
                        *offsets.get_unchecked(k) as usize
                    });
                }
                _ => self.each::<V, W, U, TAIL, false>(panel, &op, |k| op.offsets.get(k)),
            }
        }
    }
}

impl<T: Scalar, I: Index> Rows<'_, T, I> {
    /// # Safety
    /// Rows and their nonzeros come from a checked matrix, of which `offset` has the offsets;
    /// the instruction set is available; with `SMALL`, `op` is [`Operands::small`].
    #[inline(always)]
    unsafe fn each<
        V: Vector<T>,
        const W: usize,
        const U: usize,
        const TAIL: bool,
        const SMALL: bool,
    >(
        &self,
        panel: &Panel<T, V, W, TAIL>,
        op: &Operands<'_, T, I>,
        offset: impl Fn(usize) -> usize,
    ) {
        let mut start = offset(self.rows.start);
        for row in self.rows.clone() {
            let end = offset(row + 1);
            // SAFETY: promised by the caller.
            unsafe {
                let sums = panel.sum::<I, U, SMALL>(op, start..end);
                if SMALL {
                    panel.store(op.c.add(row * op.ldc), &sums);
                } else {
                    panel.finish(op, row, &sums);
                }
            }
            start = end;
        }
    }
}

impl<'a, T: Scalar, I> Rows<'a, T, I> {
    /// Writes the run of empty rows that these begin with, if they do, and returns the rows from
    /// there to the next run. Runs of fewer than [`RUN`] rows count as other rows, and so do all
    /// where C has one panel of columns or is not plain.
    ///
    /// # Safety
    /// No other thread touches these rows of C; the instruction set is available.
    #[inline(always)]
    pub(super) unsafe fn after_run<V: Vector<T>>(self, several_panels: bool) -> Self {
        let (op, Range { start, end }) = (self.op, self.rows.clone());
        if !several_panels || !op.plain {
            return self;
        }
        let run = |from: usize| (from..end).take_while(|&row| op.offsets.row(row).is_empty());
        let begins = |row: &usize| run(*row).take(RUN).count() == RUN;
        let first = if begins(&start) { start + run(start).count() } else { start };
        // SAFETY: promised by the caller; `op` is plain.
        unsafe { Rows { op, rows: start..first }.clear::<V>() };
        Rows { op, rows: first..(first..end).find(begins).unwrap_or(end) }
    }

    /// Writes empty sums to the rows, in the order of addresses. Panels one after another would
    /// write a part of every row, and return for the next: memory takes that more slowly, and
    /// several times so where a cache line that is streamed has columns of two panels.
    ///
    /// # Safety
    /// `op` is plain; no other thread touches these rows of C; the instruction set is available.
    #[inline(always)]
    unsafe fn clear<V: Vector<T>>(&self) {
        let op = self.op;
        // Rows of a packed C are one span.
        let (spans, length) = match op.ldc == op.columns {
            true => (1, self.rows.len() * op.columns),
            false => (self.rows.len(), op.columns),
        };
        for span in 0..spans {
            // SAFETY: promised by the caller; rows that are streamed are made of whole vectors.
            unsafe {
                let c = op.c.add((self.rows.start + span) * op.ldc);
                let starts = (0..length).step_by(V::LANES);
                let zero = V::splat(op.zero);
                match op.streaming {
                    Streaming::No => {
                        slice::from_raw_parts_mut(c, length).fill(T::from_accum(op.zero));
                    }
                    Streaming::Vectors => {
                        for k in starts {
                            V::stream(c.add(k), zero);
                        }
                    }
                    Streaming::Bytes16 => {
                        for k in starts {
                            V::stream_16(c.add(k), zero);
                        }
                    }
                }
            }
        }
    }
}

impl<T: Scalar, I: Index> Work<T> for Rows<'_, T, I> {
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(self) {
        let (op, columns) = (self.op, self.op.columns);
        let several = columns > V::LANES * widest::<I>(V::WIDTH);
        let step = if several { BLOCK } else { self.rows.len().max(1) };
        let mut start = self.rows.start;
        while start < self.rows.end {
            let block = Rows { op, rows: start..self.rows.end.min(start + step) };
            // SAFETY: promised by the caller.
            unsafe {
                let block = block.after_run::<V>(several);
                start = block.rows.end;
                for_each_panel!(T, I, V, columns, V::WIDTH, block)
            }
        }
    }
}
