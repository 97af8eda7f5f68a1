//! Column-major B and C: a panel of columns at a time is transposed to row-major, multiplied, and
//! transposed back, so that algorithms are written for row-major operands only.

use gustav_core::{Buffer, Layout, Problem, Result, Scalar};

use super::layout;
use super::operands::{Operands, Streaming};
use crate::Threads;

// Columns of a panel: a row of it fills whole cache lines.
const PANEL: usize = 32;

pub(super) struct Workspace<T> {
    /// A panel of B, when B is column-major.
    b: Buffer<T>,
    /// A panel of C, when C is column-major.
    c: Buffer<T>,
}

impl<T: Scalar> Workspace<T> {
    pub(super) fn new(problem: &Problem) -> Result<Self> {
        let panel = |layout: Layout, rows: usize, what| match layout {
            Layout::RowMajor => Buffer::zeroed(0, what),
            Layout::ColumnMajor => {
                Buffer::zeroed(rows.saturating_mul(PANEL.min(problem.columns)), what)
            }
        };
        Ok(Workspace {
            b: panel(problem.layout_b, problem.inner(), "a panel of B")?,
            c: panel(problem.layout_c, problem.output_rows(), "a panel of C")?,
        })
    }

    /// Columns that an algorithm multiplies in one pass.
    pub(super) fn panel(&self, problem: &Problem) -> usize {
        match (problem.layout_b, problem.layout_c) {
            (Layout::RowMajor, Layout::RowMajor) => problem.columns,
            _ => PANEL.min(problem.columns),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.b[..]) + size_of_val(&self.c[..])
    }

    /// Calls `run` with row-major operands: those of `op` when they are row-major, else panels.
    pub(super) fn for_each_panel<I: Copy>(
        &mut self,
        threads: &Threads,
        inner: usize,
        op: &Operands<'_, T, I>,
        layouts: (Layout, Layout),
        mut run: impl FnMut(&Operands<'_, T, I>),
    ) {
        if layouts == (Layout::RowMajor, Layout::RowMajor) {
            return run(op);
        }
        for start in (0..op.columns).step_by(PANEL) {
            let columns = PANEL.min(op.columns - start);
            let mut part = Operands { columns, ..*op };
            // SAFETY: the pointers span whole matrices, and the workspace holds a panel of each.
            unsafe {
                match layouts.0 {
                    Layout::RowMajor => part.b = op.b.add(start),
                    Layout::ColumnMajor => {
                        let (from, to) = (op.b.add(start * op.ldb), self.b.as_mut_ptr());
                        let shape = (inner, columns);
                        layout::copy(threads, shape, from, (1, op.ldb), to, (columns, 1));
                        (part.b, part.ldb) = (to, columns);
                    }
                }
                match layouts.1 {
                    Layout::RowMajor => {
                        part.c = op.c.add(start);
                        run(&part);
                    }
                    Layout::ColumnMajor => {
                        let (c, scratch) = (op.c.add(start * op.ldc), self.c.as_mut_ptr());
                        let shape = (op.rows, columns);
                        if op.reads_c {
                            layout::copy(threads, shape, c, (1, op.ldc), scratch, (columns, 1));
                        }
                        (part.c, part.ldc) = (scratch, columns);
                        part.streaming = Streaming::No;
                        run(&part);
                        layout::copy(threads, shape, scratch, (columns, 1), c, (1, op.ldc));
                    }
                }
            }
        }
    }
}
