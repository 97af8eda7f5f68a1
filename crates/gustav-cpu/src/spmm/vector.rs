//! One column: the product is an SpMV, and B and C are vectors, in any layout.

use gustav_core::{
    Buffer, CsrView, DenseView, DenseViewMut, Index, Layout, Operation, Problem, Result, Semiring,
};

use super::CpuScalar;
use crate::{Options, SpmvPlan};

pub(super) struct Vector<T: CpuScalar, I: Index, O: Index> {
    pub(super) plan: SpmvPlan<T, I, O>,
    /// Room for B and C when their elements are not neighbours.
    x: Buffer<T>,
    y: Buffer<T>,
}

/// Distance between neighbouring elements of a matrix of one column.
fn stride(layout: Layout, ld: usize) -> usize {
    match layout {
        Layout::RowMajor => ld,
        Layout::ColumnMajor => 1,
    }
}

impl<T: CpuScalar, I: Index, O: Index> Vector<T, I, O> {
    pub(super) fn new(
        a: CsrView<'_, T, I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let problem = Problem { operation: Operation::Spmv, ..problem.clone() };
        let room = |layout, len, what| match layout {
            Layout::RowMajor => Buffer::zeroed(len, what),
            Layout::ColumnMajor => Buffer::zeroed(0, what),
        };
        Ok(Vector {
            plan: SpmvPlan::new(a, &problem, options)?,
            x: room(problem.layout_b, problem.inner(), "a column of B")?,
            y: room(problem.layout_c, problem.output_rows(), "a column of C")?,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.plan.workspace_bytes() + size_of_val(&self.x[..]) + size_of_val(&self.y[..])
    }

    /// The product; shapes have been checked, and C has one column and at least one row.
    pub(super) fn execute<S: Semiring<T::Accum>>(
        &mut self,
        a: CsrView<'_, T, I, O>,
        alpha: T::Accum,
        b: DenseView<'_, T>,
        beta: T::Accum,
        mut c: DenseViewMut<'_, T>,
    ) -> Result<()> {
        let (inner, rows) = (b.nrows(), c.nrows());
        let (sb, sc) =
            (stride(b.layout(), b.leading_dimension()), stride(c.layout(), c.leading_dimension()));
        let x = if sb == 1 {
            &b.data()[..inner]
        } else {
            for (to, from) in self.x.iter_mut().zip(b.data().iter().step_by(sb)) {
                *to = *from;
            }
            &self.x
        };
        if sc == 1 {
            return self.plan.execute(S::default(), a, alpha, x, beta, &mut c.data()[..rows]);
        }
        if beta != S::zero() {
            for (to, from) in self.y.iter_mut().zip(c.data().iter().step_by(sc)) {
                *to = *from;
            }
        }
        self.plan.execute(S::default(), a, alpha, x, beta, &mut self.y)?;
        for (to, from) in c.data().iter_mut().step_by(sc).zip(self.y.iter()) {
            *to = *from;
        }
        Ok(())
    }
}
