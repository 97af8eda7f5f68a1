//! SDDMM: `values[p] = α·⟨X[row p], Y[column p]⟩ + β·values[p]` for every nonzero p of a pattern.
//!
//! Nonzeros do not depend on each other: every thread takes an equal number of them, whatever the
//! lengths of rows. `nonzero_split` holds the inner products.

mod nonzero_split;

use gustav_core::{
    AnyPattern, Dense, DenseView, Error, Index, Layout, Operation, PatternId, PatternRef, Problem,
    Result, Scalar, Scale, Semiring, Values, validate, with_pattern,
};
use gustav_plan::{Algorithm, Choice, Chooser, RowStats};

use crate::arch::Isa;
use crate::catalog::{Entry, autotune_elsewhere};
use crate::offsets::Offsets;
use crate::profile::profile;
use crate::static_partition::StaticPartition;
use crate::types::CpuScalar;
use crate::{Config, Options, Threads};
use nonzero_split::{Factors, Operands, Part};

/// The SDDMM algorithms of this backend.
pub fn catalog() -> &'static [Entry] {
    &CATALOG
}

static CATALOG: [Entry; 1] = [Entry { algorithm: Algorithm::NonzeroSplit, supports }];

fn supports(problem: &Problem) -> Result<()> {
    let refuse = |reason: &str, nearest: &str| {
        Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: "the CPU's SDDMM".into(),
            reason: reason.into(),
            nearest: nearest.into(),
        })
    };
    if problem.operation != Operation::Sddmm {
        return refuse(
            "it multiplies dense matrices at the nonzeros of a pattern",
            "Pattern::sddmm",
        );
    }
    if problem.semiring != Semiring::PlusTimes {
        return refuse("its sums are of products", "plus-times");
    }
    if problem.transpose_a {
        return refuse(
            "it takes no transposed pattern",
            "the plan without transposition, X and Y exchanged: values come in A's order",
        );
    }
    problem.without_output("the CPU's SDDMM")?;
    problem.without_epilogue("the CPU's SDDMM")
}

// Nonzeros ahead of their use for which rows of Y are prefetched.
const PREFETCH_DISTANCE: usize = 16;
// Bytes of a row of Y from which rows near each other are prefetched as well.
const FETCHED_APART: usize = 256;

// Nonzeros of a part: enough to be worth a task, few enough to balance the threads.
const SMALLEST_PART: usize = 512;
const PARTS_PER_THREAD: usize = 16;

/// A plan for `values[p] = α·⟨X[row p], Y[column p]⟩·factors[p] + β·values[p]`, for one pattern,
/// which it holds or borrows.
///
/// Results are the same to the bit from run to run and for any number of threads.
pub struct SddmmPlan<'a, T: CpuScalar> {
    problem: Problem,
    choice: Choice<Config>,
    pattern: AnyPattern<'a>,
    isa: Isa,
    threads: Threads,
    parts: usize,
    partition: StaticPartition,
    // The rows of X that those of the pattern are multiplied with, if they are not all in order.
    rows_of_x: Option<RowsOfX>,
    // Where column-major operands are copied to, row-major.
    x: Option<Dense<T>>,
    y: Option<Dense<T>>,
}

/// The rows of X that the rows of a pattern are multiplied with, where that has some of the rows of a
/// larger one.
#[derive(Clone, Debug)]
pub struct RowsOfX {
    /// The row of X of every row of the pattern.
    pub rows: Vec<u32>,
    /// The number of rows of X.
    pub of: usize,
}

/// Options of one execution of an SDDMM; `()` and a [`Scale`] are taken in its place.
#[derive(Clone, Copy, Debug)]
pub struct SddmmCall<'v, T: Scalar> {
    /// α and β; β = 0, as it is unless set, leaves the values unread.
    pub scale: Scale<T::Accum>,
    /// A factor of every nonzero: values of the pattern, such as those of A in (X·Yᵀ)∘A.
    pub factors: Option<Values<'v, T>>,
}

impl<T: Scalar> From<()> for SddmmCall<'_, T> {
    fn from((): ()) -> Self {
        SddmmCall { scale: Scale::new(), factors: None }
    }
}

impl<T: Scalar> From<Scale<T::Accum>> for SddmmCall<'_, T> {
    fn from(scale: Scale<T::Accum>) -> Self {
        SddmmCall { scale, factors: None }
    }
}

impl<'a, T: CpuScalar> SddmmPlan<'a, T> {
    /// Prepares the product at `pattern`: a [`Pattern`](gustav_core::Pattern), of which the plan
    /// holds a clone, or a view, which it borrows.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when `problem` is not an SDDMM over plus-times or `options` name
    /// another algorithm, [`Error::Pattern`] when `problem` was made for a pattern of another size,
    /// [`Error::Argument`] for an instruction set that the machine lacks, [`Error::OutOfMemory`].
    pub fn new<I: Index, O: Index>(
        pattern: impl Into<PatternRef<'a, I, O>>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        T::plan_sddmm(pattern.into().into(), problem, options)
    }

    /// The same, with `rows` of an X that is larger than the pattern, where there are some.
    ///
    /// # Errors
    /// As [`SddmmPlan::new`], [`Error::Length`] when `rows` are not as many as the pattern has, and
    /// [`Error::Index`] when X does not have one of them.
    pub fn of_rows<I: Index, O: Index>(
        pattern: impl Into<PatternRef<'a, I, O>>,
        rows: Option<RowsOfX>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let mut plan = Self::new(pattern, problem, options)?;
        if let Some(RowsOfX { rows, of }) = &rows {
            validate::length("rows of X", plan.problem.rows, rows.len())?;
            validate::indices(*of, rows)?;
            plan.x = copy_of(*of, plan.problem.layout_c, &plan.problem)?;
        }
        plan.rows_of_x = rows;
        Ok(plan)
    }

    pub(crate) fn of_any(
        pattern: AnyPattern<'a>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let problem = problem.bound::<T>(&pattern)?;
        supports(&problem)?;
        problem.check_dense()?;
        problem.check_batch("the CPU's SDDMM")?;
        match options.chooser {
            Chooser::Named(Algorithm::NonzeroSplit) | Chooser::Auto => {}
            Chooser::Named(_) | Chooser::MeanRowLength => return Err(only(&problem)),
            _ => return Err(autotune_elsewhere(&problem)),
        }
        let (isa, threads) = (options.isa()?, options.threads.clone());
        let parts = (threads.count() * PARTS_PER_THREAD).min(problem.nnz.div_ceil(SMALLEST_PART));
        let algorithm = Algorithm::NonzeroSplit;
        let count = threads.count();
        // No prefetch where Y fits in L2, or where rows of Y are short and the columns of a row
        // span less than half of L2.
        let (row, l2) = (problem.columns * problem.dtype.bytes(), profile(count, isa).l2_bytes);
        let fits = problem.cols * row <= l2;
        let span = || with_pattern!(&pattern, |p| RowStats::new(&p.view())).mean_row_span;
        let near = row < FETCHED_APART && span() * row as f64 <= l2 as f64 / 2.0;
        let prefetch_distance = if fits || near { 0 } else { PREFETCH_DISTANCE };
        let prefetch_distance = options.prefetch_distance.unwrap_or(prefetch_distance);
        let config =
            Config { isa, threads: count, tile: None, streaming: false, prefetch_distance };
        let reason = "nonzeros do not depend on each other".into();
        let x = copy_of(problem.rows, problem.layout_c, &problem)?;
        let y = copy_of(problem.cols, problem.layout_b, &problem)?;
        Ok(SddmmPlan {
            problem,
            choice: Choice { algorithm, config, reason },
            pattern,
            isa,
            parts,
            partition: StaticPartition::new(parts, count),
            threads,
            rows_of_x: None,
            x,
            y,
        })
    }

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds beside the caller's arrays.
    pub fn workspace_bytes(&self) -> usize {
        let copies = [&self.x, &self.y].into_iter().flatten();
        let rows = self.rows_of_x.iter().map(|of| size_of_val(&of.rows[..])).sum::<usize>();
        self.partition.bytes() + rows + copies.map(|m| size_of_val(m.data())).sum::<usize>()
    }

    /// Computes the values in the order of the pattern's nonzeros. `x` has as many rows as the
    /// pattern, or as [`RowsOfX::of`] says, `y` as the pattern has columns, both the depth of the plan
    /// as columns.
    ///
    /// # Errors
    /// [`Error::Shape`] when `x` or `y` has another shape or layout, [`Error::Length`] for another
    /// number of values or factors, [`Error::Pattern`] for factors of another pattern.
    pub fn execute<'v>(
        &mut self,
        x: impl Into<DenseView<'v, T>>,
        y: impl Into<DenseView<'v, T>>,
        values: &mut [T],
        call: impl Into<SddmmCall<'v, T>>,
    ) -> Result<()> {
        let (x, y, SddmmCall { scale, factors }) = (x.into(), y.into(), call.into());
        let p = &self.problem;
        let (mut batch_x, batch_y) = (p.batch_c("X"), p.batch_b("Y"));
        batch_x.rows = self.rows_of_x.as_ref().map_or(batch_x.rows, |rows| rows.of);
        batch_x.strides((x.nrows(), x.ncols()), x.layout(), x.leading_dimension())?;
        batch_y.strides((y.nrows(), y.ncols()), y.layout(), y.leading_dimension())?;
        let (nnz, batch) = (p.nnz, p.batch);
        validate::length("values", nnz.saturating_mul(batch), values.len())?;
        let id = self.pattern.id();
        let factors = factors.map(|f| f.fit_batch("factors", id, nnz, batch)).transpose()?;
        let each = factors.map_or(0, |f| if f.len() == nnz { 0 } else { nnz });
        let scale = scale.over(Semiring::PlusTimes);
        for index in 0..batch {
            let (x, y) = (batch_x.matrix(&x, index)?, batch_y.matrix(&y, index)?);
            let values = &mut values[index * nnz..][..nnz];
            let factors = factors.map(|f| &f[index * each..][..nnz]);
            T::sddmm(self, [x, y], values, scale, factors)?;
        }
        Ok(())
    }

    /// One product of the batch, whose operands fit.
    pub(crate) fn multiply(
        &mut self,
        [x, y]: [DenseView<'_, T>; 2],
        values: &mut [T],
        (alpha, beta): (T::Accum, T::Accum),
        factors: Option<&[T]>,
    ) -> Result<()> {
        let p = &self.problem;
        let x = row_major(&self.threads, x, &mut self.x)?;
        let y = row_major(&self.threads, y, &mut self.y)?;
        // Rows without elements have no addresses.
        let leading = |m: &DenseView<'_, T>| if m.ncols() == 0 { 0 } else { m.leading_dimension() };
        let (ldx, ldy) = (leading(&x), leading(&y));
        let factors = Factors::new(alpha, beta, factors);
        let (isa, nnz, parts) = (self.isa, p.nnz, self.parts);
        let prefetch_distance = self.choice.config.prefetch_distance;
        let rows_of_x = self.rows_of_x.as_ref().map(|of| &of.rows[..]);
        let out = gustav_core::parallel::Shared::new(values);
        with_pattern!(&self.pattern, |pattern| {
            let pattern = pattern.view();
            let offsets = Offsets::new(pattern.offsets());
            let operands = Operands {
                rows: p.rows,
                rows_of_x,
                offsets,
                indices: pattern.indices(),
                x,
                ldx,
                y,
                ldy,
                prefetch_distance,
                factors,
                out,
            };
            self.partition.run(&self.threads, |_, part| {
                let cut = |part: usize| (nnz as u128 * part as u128 / parts as u128) as usize;
                let nonzeros = cut(part)..cut(part + 1);
                // SAFETY: the instruction set was checked when the plan was made; parts have
                // different nonzeros, of a checked pattern; X, Y and the values have been found to
                // fit it, and rows of X are such of it.
                unsafe { T::vectorize(isa, Semiring::PlusTimes, Part { operands, nonzeros }) }
            });
        });
        Ok(())
    }

    /// The identity of the pattern.
    pub fn pattern_id(&self) -> PatternId {
        self.pattern.id()
    }
}

fn only(problem: &Problem) -> Error {
    Error::Unsupported {
        problem: problem.to_string(),
        backend: "the CPU's SDDMM".into(),
        reason: "it has one algorithm".into(),
        nearest: Algorithm::NonzeroSplit.name().into(),
    }
}

/// Where an operand of `rows` rows is copied to, if its `layout` is not that of the kernel.
fn copy_of<T: Scalar>(rows: usize, layout: Layout, problem: &Problem) -> Result<Option<Dense<T>>> {
    (layout == Layout::ColumnMajor)
        .then(|| Dense::zeros(rows, problem.columns, Layout::RowMajor))
        .transpose()
}

/// `m` where it is row-major, else `copy` with its elements.
fn row_major<'m, T: Scalar>(
    threads: &Threads,
    m: DenseView<'m, T>,
    copy: &'m mut Option<Dense<T>>,
) -> Result<DenseView<'m, T>> {
    let Some(copy) = copy else { return Ok(m) };
    threads.run(|| m.copy_to(copy))?;
    Ok(copy.view())
}
