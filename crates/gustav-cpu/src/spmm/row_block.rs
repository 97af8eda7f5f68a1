//! `row-block` (ours): up to four consecutive rows with the same columns share every load of B,
//! such as the rows of one node of a finite-element mesh or of a dense block.

use std::ops::Range;

use gustav_core::{Buffer, Index, IndexType, Ops, PatternView, Result, Scalar, parallel};

use super::kernel::{Panel, Panels, Rows, for_each_panel, widest};
use super::operands::Operands;
use super::row_split;
use crate::Threads;
use crate::arch::Isa;
use crate::arch::vector::{Vector, Work};
use crate::static_partition::StaticPartition;
use crate::types::CpuScalar;

/// Most rows of a group.
const ROWS: usize = 4;

pub(super) struct RowBlock {
    /// For every row the size of the group that starts there, 0 inside a group.
    groups: Buffer<u8>,
    parts: Vec<Range<usize>>,
    assignment: StaticPartition,
}

impl RowBlock {
    pub(super) fn new<I: Index, O: Index>(
        a: &PatternView<'_, I, O>,
        columns: usize,
        threads: usize,
    ) -> Result<Self> {
        let rows = a.nrows();
        let mut groups = Buffer::<u8>::zeroed(rows, "groups of rows")?;
        // 1 where a row has the columns of the row before it.
        parallel::each_mut(&mut groups, 1 << 10, |r, same| {
            *same = u8::from(r > 0 && a.row(r) == a.row(r - 1));
        });
        let mut start = 0;
        while start < rows {
            let run = groups[start + 1..].iter().take(ROWS - 1).take_while(|same| **same == 1);
            let length = 1 + run.count();
            groups[start] = length as u8;
            groups[start + 1..start + length].fill(0);
            start += length;
        }
        let mut parts = row_split::parts(a.offsets(), columns, threads);
        let begin = |row: usize| (row..rows).find(|&r| groups[r] > 0).unwrap_or(rows);
        for part in &mut parts {
            *part = begin(part.start)..begin(part.end);
        }
        let assignment = StaticPartition::new(parts.len(), threads);
        Ok(RowBlock { groups, parts, assignment })
    }

    pub(super) fn bytes(&self) -> usize {
        self.groups.len() + size_of_val(&self.parts[..]) + self.assignment.bytes()
    }

    pub(super) fn execute<T: CpuScalar, I: Index>(
        &mut self,
        threads: &Threads,
        isa: Isa,
        op: &Operands<'_, T, I>,
    ) {
        let (groups, parts) = (&self.groups, &self.parts);
        self.assignment.run(threads, |_, p| {
            let work = Groups { op, groups, rows: parts[p].clone() };
            // SAFETY: the plan checked that the instruction set is there; parts are disjoint.
            unsafe { T::vectorize(isa, op.semiring, work) }
        });
    }
}

/// Groups of rows, one after another.
struct Groups<'a, T: Scalar, I> {
    op: &'a Operands<'a, T, I>,
    groups: &'a [u8],
    rows: Range<usize>,
}

// Rows for which one panel of columns is computed before the next.
const BLOCK: usize = 64;

impl<T: Scalar, I: Index> Panels<T> for Groups<'_, T, I> {
    #[inline(always)]
    unsafe fn panel<V: Vector<T>, const W: usize, const U: usize, const TAIL: bool>(
        &self,
        panel: &Panel<T, V, W, TAIL>,
    ) {
        let mut row = self.rows.start;
        while row < self.rows.end {
            let rows = usize::from(self.groups[row]).max(1);
            // SAFETY: the rows of a group belong to this part, and to the matrix.
            unsafe {
                match rows {
                    2.. if const { !V::GROUPS || matches!(I::TYPE, IndexType::U64) } => {
                        for r in 0..rows {
                            single::<T, I, V, W, U, TAIL>(self.op, panel, row + r);
                        }
                    }
                    2 => group::<T, I, V, W, U, TAIL, 2>(self.op, panel, row),
                    3 => group::<T, I, V, W, U, TAIL, 3>(self.op, panel, row),
                    4 => group::<T, I, V, W, U, TAIL, 4>(self.op, panel, row),
                    _ => single::<T, I, V, W, U, TAIL>(self.op, panel, row),
                }
            }
            row += rows;
        }
    }
}

/// One row.
///
/// # Safety
/// `row` is a row of C that no other thread touches; the instruction set is available.
#[inline(always)]
unsafe fn single<T, I, V, const W: usize, const U: usize, const TAIL: bool>(
    op: &Operands<'_, T, I>,
    panel: &Panel<T, V, W, TAIL>,
    row: usize,
) where
    T: Scalar,
    I: Index,
    V: Vector<T>,
{
    // SAFETY: promised by the caller.
    unsafe {
        let sums = panel.sum::<I, U, false>(op, op.offsets.row(row));
        panel.finish(op, row, &sums);
    }
}

/// The `R` rows from `row` on, which have the same columns.
///
/// # Safety
/// As [`single`], for all of the rows.
#[inline(always)]
unsafe fn group<T, I, V, const W: usize, const U: usize, const TAIL: bool, const R: usize>(
    op: &Operands<'_, T, I>,
    panel: &Panel<T, V, W, TAIL>,
    row: usize,
) where
    T: Scalar,
    I: Index,
    V: Vector<T>,
{
    let first = op.offsets.row(row);
    let length = first.len();
    // SAFETY: promised by the caller; the plan found these rows of its pattern to have the same
    // columns.
    unsafe {
        let s = V::S::of(op.semiring);
        let mut sums = [[V::splat(op.zero); W]; R];
        let indices = op.indices.as_ptr().add(first.start);
        let values = op.values.as_ptr().add(first.start);
        for k in 0..length {
            let b = op.b.add((*indices.add(k)).to_usize() * op.ldb);
            let mut x = [V::splat(op.zero); W];
            for w in 0..W {
                x[w] = panel.load(b, w);
            }
            for r in 0..R {
                // The rows of a group are consecutive in the value array and equally long.
                let a = V::splat((*values.add(r * length + k)).to_accum());
                for w in 0..W {
                    sums[r][w] = V::mul_add(s, a, x[w], sums[r][w]);
                }
            }
        }
        for r in 0..R {
            panel.finish(op, row + r, &sums[r]);
        }
    }
}

impl<T: Scalar, I: Index> Work<T> for Groups<'_, T, I> {
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(self) {
        let (op, groups, columns) = (self.op, self.groups, self.op.columns);
        let several = columns > V::LANES * widest::<I>(V::GROUP_WIDTH);
        let mut start = self.rows.start;
        while start < self.rows.end {
            let mut end = self.rows.end.min(start + BLOCK);
            while end < self.rows.end && groups[end] == 0 {
                end += 1;
            }
            let rows = Rows { op, rows: start..end };
            // SAFETY: promised by the caller.
            unsafe {
                // No run begins or ends within a group: all rows of a group have nonzeros, or none has.
                let rows = rows.after_run::<V>(several).rows;
                start = rows.end;
                let block = Groups { op, groups, rows };
                for_each_panel!(T, I, V, columns, V::GROUP_WIDTH, block)
            }
        }
    }
}
