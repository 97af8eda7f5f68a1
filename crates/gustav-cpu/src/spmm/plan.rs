//! The SpMM plan: made once for a pattern, executed any number of times.

use gustav_core::{
    CsrView, DenseView, DenseViewMut, Error, Index, Layout, PlusTimes, Problem, Result, Scalar,
    Semiring,
};
use gustav_plan::{Algorithm, Choice, Chooser, RowStats, heuristics};

use super::carry::Cuts;
use super::operands::{Offsets, Operands};
use super::row_split::RowSplit;
use super::transposed::Transposed;
use super::workspace::Workspace;
use super::{CpuScalar, catalog, merge_path, nonzero_split};
use crate::{Config, Options, Threads};

// Parts that cut rows when the result must not depend on the number of threads.
const FIXED_PARTS: usize = 64;

/// A planned SpMM: C = scale(α, op(A)·B) ⊕ scale(β, C).
///
/// Belongs to the pattern of the matrix it was made for, and to the columns, layouts and
/// transposition of its [`Problem`]; values, α, β and the semiring may change from call to call.
/// Nothing is allocated by [`SpmmPlan::execute`].
pub struct SpmmPlan<T: CpuScalar, I: Index = u32, O: Index = u32> {
    problem: Problem,
    choice: Choice<Config>,
    threads: Threads,
    transposed: Option<Transposed<T, I, O>>,
    method: Method<T>,
    workspace: Workspace<T>,
}

/// What each algorithm keeps.
enum Method<T: Scalar> {
    RowSplit(RowSplit),
    Cuts(Cuts<T::Accum>),
}

impl<T: CpuScalar, I: Index, O: Index> SpmmPlan<T, I, O> {
    /// Plans `problem` for the pattern of `a`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when the problem is not an SpMM or the algorithm asked for does
    /// not do it, [`Error::Pattern`] when the problem was made from another matrix,
    /// [`Error::Argument`] for an instruction set that this machine lacks,
    /// [`Error::OutOfMemory`] for the workspace.
    pub fn new(a: CsrView<'_, T, I, O>, problem: &Problem, options: &Options) -> Result<Self> {
        check_pattern(problem, &a)?;
        let isa = options.isa()?;
        let transposed = if problem.transpose_a { Some(Transposed::new(&a)?) } else { None };
        let op_a = transposed.as_ref().map_or(a, |t| t.view());
        let (algorithm, reason) = choose(&op_a, options);
        (catalog::find(algorithm, problem)?.supports)(problem)?;

        let threads = options.threads.clone();
        let count = threads.count();
        let parts = if problem.deterministic { FIXED_PARTS } else { count };
        let workspace = Workspace::new(problem)?;
        let offsets = op_a.offsets();
        let columns = workspace.panel(problem);
        let method = match algorithm {
            Algorithm::NonzeroSplit => Method::Cuts(nonzero_split::new(offsets, parts, columns)?),
            Algorithm::MergePath => Method::Cuts(merge_path::new(offsets, parts, columns)?),
            _ => Method::RowSplit(RowSplit::new(offsets, count)),
        };
        let config = Config { isa, threads: count, tile: None, streaming: false };
        let choice = Choice { algorithm, config, reason };
        Ok(SpmmPlan { problem: problem.clone(), choice, threads, transposed, method, workspace })
    }

    /// The algorithm, its configuration, and why it was chosen.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds for [`SpmmPlan::execute`].
    pub fn workspace_bytes(&self) -> usize {
        let method = match &self.method {
            Method::RowSplit(m) => m.bytes(),
            Method::Cuts(m) => m.bytes(),
        };
        self.transposed.as_ref().map_or(0, Transposed::bytes) + method + self.workspace.bytes()
    }

    /// C = αAB + βC, the ordinary product; see [`SpmmPlan::execute`].
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`].
    pub fn multiply(
        &mut self,
        a: CsrView<'_, T, I, O>,
        alpha: T::Accum,
        b: DenseView<'_, T>,
        beta: T::Accum,
        c: DenseViewMut<'_, T>,
    ) -> Result<()> {
        self.execute(PlusTimes, a, alpha, b, beta, c)
    }

    /// C = scale(α, op(A)·B) ⊕ scale(β, C) over `semiring`. `a` is stored as rows × columns of
    /// the problem, B has as many rows as op(A) has columns. A β equal to the semiring's zero
    /// leaves C unread.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a` has another shape or number of nonzeros than the plan's
    /// matrix, [`Error::Shape`] when B or C does not fit it or lies in another layout than
    /// planned. Of a matrix with the right numbers but other columns the product is right,
    /// except that Aᵀ is formed from the columns the plan has seen.
    pub fn execute<S: Semiring<T::Accum>>(
        &mut self,
        _semiring: S,
        a: CsrView<'_, T, I, O>,
        alpha: T::Accum,
        b: DenseView<'_, T>,
        beta: T::Accum,
        mut c: DenseViewMut<'_, T>,
    ) -> Result<()> {
        check_pattern(&self.problem, &a)?;
        let p = &self.problem;
        check_dense("B", (p.inner(), p.columns, p.layout_b), (b.nrows(), b.ncols(), b.layout()))?;
        let found = (c.nrows(), c.ncols(), c.layout());
        check_dense("C", (p.output_rows(), p.columns, p.layout_c), found)?;
        if c.nrows() == 0 || c.ncols() == 0 {
            return Ok(());
        }
        if let Some(t) = &mut self.transposed {
            t.gather(&self.threads, a.values());
        }
        let a = self.transposed.as_ref().map_or(a, |t| t.view());
        let (ldb, ldc) = (b.leading_dimension(), c.leading_dimension());
        let op = Operands {
            offsets: Offsets::new(a.offsets()),
            indices: a.indices(),
            values: a.values(),
            rows: a.nrows(),
            columns: c.ncols(),
            b: b.data().as_ptr(),
            ldb,
            c: c.data().as_mut_ptr(),
            ldc,
            alpha,
            beta,
            zero: S::zero(),
            reads_c: beta != S::zero(),
            streaming: self.choice.config.streaming,
        };
        let (threads, isa, method) = (&self.threads, self.choice.config.isa, &mut self.method);
        self.workspace.for_each_panel(threads, a.ncols(), &op, (b.layout(), c.layout()), |op| {
            match method {
                Method::RowSplit(m) => m.execute::<T, I, S>(threads, isa, op),
                Method::Cuts(m) => m.execute::<T, I, S>(threads, isa, op),
            }
        });
        Ok(())
    }
}

/// Who chooses, and what.
fn choose<T: CpuScalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    options: &Options,
) -> (Algorithm, String) {
    match options.chooser {
        Chooser::Named(algorithm) => (algorithm, "asked for by name".into()),
        Chooser::MeanRowLength => heuristics::mean_row_length::choose(&RowStats::new(a)),
        _ => (Algorithm::RowSplit, "whole rows, taken by whichever thread is free".into()),
    }
}

fn check_pattern<T: Scalar, I: Index, O: Index>(
    problem: &Problem,
    a: &CsrView<'_, T, I, O>,
) -> Result<()> {
    let (planned, found) =
        ((problem.rows, problem.cols, problem.nnz), (a.nrows(), a.ncols(), a.nnz()));
    if planned == found {
        return Ok(());
    }
    let words = |(rows, cols, nnz)| format!("{rows} x {cols} with {nnz} nonzeros");
    Err(Error::Pattern { expected: words(planned), found: words(found) })
}

fn check_dense(
    name: &str,
    expected: (usize, usize, Layout),
    found: (usize, usize, Layout),
) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    let words = |(rows, cols, layout)| format!("{name} {rows} x {cols}, {layout}");
    Err(Error::Shape { op: "spmm", expected: words(expected), found: words(found) })
}
