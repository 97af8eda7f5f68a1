//! SpMM with one column: an SpMV, with B and C as vectors, in any layout.

use gustav_core::{
    AnyPattern, Buffer, DenseView, DenseViewMut, Layout, Operation, Problem, Result, Scale,
};
use gustav_plan::Choice;

use super::extremum::Output;
use super::plan::Method;
use crate::types::CpuScalar;
use crate::{Config, Options, SpmvPlan};

pub(super) struct Vector<'a, T: CpuScalar> {
    plan: SpmvPlan<'a, T>,
    zero: T::Accum,
    /// Copies of B and C when their elements are not contiguous.
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

impl<'a, T: CpuScalar> Vector<'a, T> {
    pub(super) fn new(
        pattern: AnyPattern<'a>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let problem = Problem { operation: Operation::Spmv, ..problem.clone() };
        let copy = |layout, len, what| match layout {
            Layout::RowMajor => Buffer::zeroed(len, what),
            Layout::ColumnMajor => Buffer::zeroed(0, what),
        };
        Ok(Vector {
            plan: SpmvPlan::of_any(pattern, &problem, options)?,
            zero: problem.semiring.zero(),
            x: copy(problem.layout_b, problem.inner(), "a column of B")?,
            y: copy(problem.layout_c, problem.output_rows(), "a column of C")?,
        })
    }

    /// The choice of the SpMV plan.
    pub(super) fn choice(&self) -> Choice<Config> {
        let mut choice = self.plan.choice().clone();
        choice.reason = format!("one column: an SpMV; {}", choice.reason);
        choice
    }
}

impl<T: CpuScalar> Method<T> for Vector<'_, T> {
    fn bytes(&self) -> usize {
        self.plan.workspace_bytes() + size_of_val(&self.x[..]) + size_of_val(&self.y[..])
    }

    fn execute(
        &mut self,
        values: &[T],
        b: DenseView<'_, T>,
        mut c: DenseViewMut<'_, T>,
        (alpha, beta): (T::Accum, T::Accum),
        _: Output<'_, T::Accum>,
    ) -> Result<()> {
        let scale = Scale { alpha: Some(alpha), beta: Some(beta) };
        let (inner, rows) = (b.nrows(), c.nrows());
        let (sb, sc) =
            (stride(b.layout(), b.leading_dimension()), stride(c.layout(), c.leading_dimension()));
        let x = match b.as_slice() {
            Some(x) if sb == 1 => &x[..inner],
            _ => {
                self.x.iter_mut().enumerate().for_each(|(i, to)| *to = b.get(i, 0));
                &self.x
            }
        };
        if sc == 1
            && let Some(y) = c.as_mut_slice()
        {
            return self.plan.execute(values, x, &mut y[..rows], scale);
        }
        if beta != self.zero {
            self.y.iter_mut().enumerate().for_each(|(i, to)| *to = c.get(i, 0));
        }
        self.plan.execute(values, x, &mut self.y, scale)?;
        self.y.iter().enumerate().for_each(|(i, from)| c.set(i, 0, *from));
        Ok(())
    }
}
