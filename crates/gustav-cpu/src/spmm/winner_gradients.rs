//! Gradients of an SpMM with max or min: every element of C passes its gradient to its winner.
//!
//! The gradient of B reads the pattern of op(A)ᵀ: an element sums over the nonzeros of its row that
//! are winners. The gradient of the values reads rows of C, whose winners are nonzeros of the same
//! row of op(A). Every sum is computed by one thread, in a fixed order.

use std::ops::Range;
use std::sync::Arc;

use gustav_core::parallel::Shared;
use gustav_core::{
    AnyPattern, Arith, Batch, Buffer, DenseView, DenseViewMut, Error, Index, IndexSlice, Layout,
    PatternId, PatternRef, Problem, Result, Scalar, Scale, Semiring, TransposedPattern, Values,
    with_pattern,
};

use super::row_split;
use crate::offsets::Offsets;
use crate::static_partition::StaticPartition;
use crate::types::CpuScalar;
use crate::{Options, Threads};

// Columns that are compared, and summed, together.
const BLOCK: usize = 64;
// Columns that share one branch: whether any of them has the winner.
const CHUNK: usize = 16;

/// Plans for both gradients of an SpMM with max or min, for one pattern of A.
pub struct WinnerGradients<'a, T: CpuScalar> {
    problem: Problem,
    pattern: PatternId,
    method: Box<dyn Gradients<T> + 'a>,
}

/// The gradients for any index types.
trait Gradients<T: Scalar>: Send {
    fn bytes(&self) -> usize;
    fn of_b(&mut self, values: &[T], g: Strided<'_, T>, winners: IndexSlice<'_>, to: To<'_, T>);
    fn of_values(
        &mut self,
        g: Strided<'_, T>,
        b: Strided<'_, T>,
        winners: IndexSlice<'_>,
        to: &mut [T],
        factors: (T::Accum, T::Accum),
    );
}

/// A dense matrix by the distances between its rows and columns.
#[derive(Clone, Copy)]
struct Strided<'v, T> {
    data: &'v [T],
    row: usize,
    column: usize,
}

impl<'v, T: Scalar> Strided<'v, T> {
    /// `m`, which has to be `expected`.
    fn new(expected: &Batch, m: &DenseView<'v, T>) -> Result<Self> {
        let m = expected.matrix(m, 0)?;
        let ld = m.leading_dimension();
        let (row, column) = strides(m.layout(), ld);
        let len = span(m.nrows(), m.ncols(), m.layout(), ld);
        // SAFETY: a view spans its lines and the gaps between them.
        let data = unsafe { std::slice::from_raw_parts(m.as_ptr(), len) };
        Ok(Strided { data, row, column })
    }

    #[inline(always)]
    fn get(&self, i: usize, j: usize) -> T::Accum {
        self.data[i * self.row + j * self.column].to_accum()
    }
}

/// Output of the gradient of B.
struct To<'v, T: Scalar> {
    data: Shared<'v, T>,
    row: usize,
    column: usize,
    factors: (T::Accum, T::Accum),
}

fn strides(layout: Layout, ld: usize) -> (usize, usize) {
    match layout {
        Layout::RowMajor => (ld, 1),
        Layout::ColumnMajor => (1, ld),
    }
}

/// Elements from the first to the last of a matrix.
fn span(rows: usize, columns: usize, layout: Layout, ld: usize) -> usize {
    let (lines, len) = match layout {
        Layout::RowMajor => (rows, columns),
        Layout::ColumnMajor => (columns, rows),
    };
    if lines == 0 || len == 0 { 0 } else { (lines - 1) * ld + len }
}

impl<'a, T: CpuScalar> WinnerGradients<'a, T> {
    /// Plans the gradients of the product that `problem` describes, with a `pattern` of A.
    ///
    /// # Errors
    /// [`Error::Unsupported`] unless `problem` is an SpMM with max or min, [`Error::Pattern`] when
    /// it was made for another size, [`Error::OutOfMemory`].
    pub fn new<I: Index, O: Index>(
        pattern: impl Into<PatternRef<'a, I, O>>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        T::plan_winner_gradients(pattern.into().into(), problem, options)
    }

    pub(crate) fn of_any(
        pattern: AnyPattern<'a>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let problem = problem.bound::<T>(&pattern)?;
        let backend = "gradients of max and min on the CPU";
        problem.check_extremum(backend)?;
        problem.check_batch(backend)?;
        if problem.extremum.is_none() {
            return Err(Error::Unsupported {
                problem: problem.to_string(),
                backend: backend.into(),
                reason: "nothing wins in a sum".into(),
                nearest: "an SpMM and an SDDMM, which are the gradients of sums".into(),
            });
        }
        problem.check_dense()?;
        let id = pattern.id();
        let method: Box<dyn Gradients<T> + 'a> = with_pattern!(pattern, |p| {
            Box::new(Typed::<T::Accum, _, _>::new(p, &problem, options.threads.clone())?)
        });
        Ok(WinnerGradients { problem, pattern: id, method })
    }

    /// Bytes that the plan holds besides the operands.
    pub fn workspace_bytes(&self) -> usize {
        self.method.bytes()
    }

    /// The gradient of B: `to[k, j]` = α·Σ `values[p]`·G[i, j] + β·`to[k, j]` over the nonzeros p
    /// of op(A) in column k that are the winner of (i, j), where i is the row of p. `winners` as an
    /// SpMM wrote them; a number that is not the position of a nonzero in row i is ignored.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`](crate::SpmmPlan::execute).
    pub fn of_b<'v>(
        &mut self,
        values: impl Into<Values<'v, T>>,
        g: impl Into<DenseView<'v, T>>,
        winners: IndexSlice<'v>,
        to: impl Into<DenseViewMut<'v, T>>,
        scale: impl Into<Scale<T::Accum>>,
    ) -> Result<()> {
        let (p, mut to) = (&self.problem, to.into());
        let values = values.into().fit("A", self.pattern, p.nnz)?;
        let g = Strided::new(&p.batch_c("G"), &g.into())?;
        check_winners(p, &winners)?;
        let mut to = p.batch_b("the gradient of B").matrix_mut(&mut to, 0)?;
        let (layout, ld) = (to.layout(), to.leading_dimension());
        let (row, column) = strides(layout, ld);
        let len = span(to.nrows(), to.ncols(), layout, ld);
        // SAFETY: as many elements as the view has; it is borrowed until the end of this function.
        let data = unsafe { Shared::from_raw(to.as_mut_ptr(), len) };
        let factors = scale.into().over(Semiring::PlusTimes);
        self.method.of_b(values, g, winners, To { data, row, column, factors });
        Ok(())
    }

    /// The gradient of the values of A: `to[p]` = α·Σ G[i, j]·B[k, j] + β·`to[p]` over the columns
    /// j whose winner in row i is p, where p is in row i and column k of op(A).
    ///
    /// # Errors
    /// [`Error::Shape`] when G or B does not fit, [`Error::Length`] for another number of winners
    /// or values.
    pub fn of_values<'v>(
        &mut self,
        g: impl Into<DenseView<'v, T>>,
        b: impl Into<DenseView<'v, T>>,
        winners: IndexSlice<'v>,
        to: &mut [T],
        scale: impl Into<Scale<T::Accum>>,
    ) -> Result<()> {
        let p = &self.problem;
        let g = Strided::new(&p.batch_c("G"), &g.into())?;
        let b = Strided::new(&p.batch_b("B"), &b.into())?;
        check_winners(p, &winners)?;
        gustav_core::validate::length("values", p.nnz, to.len())?;
        let factors = scale.into().over(Semiring::PlusTimes);
        self.method.of_values(g, b, winners, to, factors);
        Ok(())
    }
}

fn check_winners(problem: &Problem, winners: &IndexSlice<'_>) -> Result<()> {
    let described = match winners {
        IndexSlice::U32(winners) => (u32::TYPE, winners.len()),
        IndexSlice::U64(winners) => (u64::TYPE, winners.len()),
    };
    problem.check_reduction(false, false, Some(described))
}

struct Typed<'a, A, I: Index, O: Index> {
    pattern: PatternRef<'a, I, O>,
    transposed: Arc<TransposedPattern<I, O>>,
    transpose_a: bool,
    columns: usize,
    threads: Threads,
    /// Rows of op(A)ᵀ, and of op(A), in parts of about the same work.
    rows_of_b: Parts,
    rows_of_c: Parts,
    /// Sums of the longest row of op(A) for every thread.
    sums: Buffer<A>,
    longest: usize,
}

struct Parts {
    parts: Vec<Range<usize>>,
    assignment: StaticPartition,
}

impl Parts {
    fn new<O: Index>(offsets: &[O], columns: usize, threads: usize) -> Self {
        let parts = row_split::parts(offsets, columns, threads);
        let assignment = StaticPartition::new(parts.len(), threads);
        Parts { parts, assignment }
    }
}

/// A pattern, and the positions in A of its nonzeros, if they differ from its own.
#[derive(Clone, Copy)]
struct Side<'a> {
    offsets: Offsets<'a>,
    indices: IndexSlice<'a>,
    positions: Option<IndexSlice<'a>>,
}

impl Side<'_> {
    #[inline(always)]
    fn position(&self, nonzero: usize) -> usize {
        self.positions.map_or(nonzero, |positions| positions.get(nonzero))
    }

    /// The nonzero of `row` at `position` of A, if there is one: positions of a row increase.
    #[inline(always)]
    fn find(&self, row: &Range<usize>, position: usize) -> Option<usize> {
        let Some(positions) = self.positions else {
            return row.contains(&position).then_some(position);
        };
        let (mut low, mut high) = (row.start, row.end);
        while low < high {
            let middle = low + (high - low) / 2;
            match positions.get(middle) < position {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        (low < row.end && positions.get(low) == position).then_some(low)
    }
}

impl<'a, A: Arith, I: Index, O: Index> Typed<'a, A, I, O> {
    fn new(pattern: PatternRef<'a, I, O>, problem: &Problem, threads: Threads) -> Result<Self> {
        let transposed = pattern.transposed()?;
        let (of_a, of_at) = (pattern.view(), transposed.pattern().view());
        let (c, b) = if problem.transpose_a { (of_at, of_a) } else { (of_a, of_at) };
        let count = threads.count();
        let rows_of_b = Parts::new(b.offsets(), problem.columns, count);
        let rows_of_c = Parts::new(c.offsets(), problem.columns, count);
        let longest = (0..c.nrows()).map(|row| c.row_range(row).len()).max().unwrap_or(0);
        let most = longest.saturating_mul(rows_of_c.assignment.threads());
        let sums = Buffer::zeroed(most, "sums of a row")?;
        let (columns, transpose_a) = (problem.columns, problem.transpose_a);
        Ok(Typed {
            pattern,
            transposed,
            transpose_a,
            columns,
            threads,
            rows_of_b,
            rows_of_c,
            sums,
            longest,
        })
    }
}

/// The patterns of op(A) and of op(A)ᵀ.
fn sides<'s, I: Index, O: Index>(
    pattern: &'s PatternRef<'_, I, O>,
    transposed: &'s TransposedPattern<I, O>,
    transpose_a: bool,
) -> (Side<'s>, Side<'s>) {
    let side = |view: gustav_core::PatternView<'s, I, O>, positions| Side {
        offsets: Offsets::new(view.offsets()),
        indices: IndexSlice::new(view.indices()),
        positions,
    };
    let stored = side(pattern.view(), None);
    let permutation = IndexSlice::new(transposed.permutation());
    let other = side(transposed.pattern().view(), Some(permutation));
    if transpose_a { (other, stored) } else { (stored, other) }
}

impl<T: CpuScalar, I: Index, O: Index> Gradients<T> for Typed<'_, T::Accum, I, O> {
    fn bytes(&self) -> usize {
        self.transposed.bytes() + size_of_val(&self.sums[..])
    }

    fn of_b(&mut self, values: &[T], g: Strided<'_, T>, winners: IndexSlice<'_>, to: To<'_, T>) {
        let (_, side) = sides(&self.pattern, &self.transposed, self.transpose_a);
        let (columns, Parts { parts, assignment }) = (self.columns, &mut self.rows_of_b);
        assignment.run(&self.threads, |_, part| {
            for row in parts[part].clone() {
                match winners {
                    IndexSlice::U32(w) => row_of_b(side, row, columns, values, g, w, &to),
                    IndexSlice::U64(w) => row_of_b(side, row, columns, values, g, w, &to),
                }
            }
        });
    }

    fn of_values(
        &mut self,
        g: Strided<'_, T>,
        b: Strided<'_, T>,
        winners: IndexSlice<'_>,
        to: &mut [T],
        (alpha, beta): (T::Accum, T::Accum),
    ) {
        let (side, _) = sides(&self.pattern, &self.transposed, self.transpose_a);
        let (columns, longest) = (self.columns, self.longest);
        let (sums, to) = (Shared::new(&mut self.sums), Shared::new(to));
        let Parts { parts, assignment } = &mut self.rows_of_c;
        assignment.run(&self.threads, |thread, part| {
            // SAFETY: every thread has sums of its own.
            let sums = unsafe { sums.slice(thread * longest..(thread + 1) * longest) };
            for row in parts[part].clone() {
                let range = side.offsets.row(row);
                let sums = &mut sums[..range.len()];
                sums.fill(T::Accum::zero());
                for j in 0..columns {
                    let winner = winners.get(row * columns + j);
                    let Some(nonzero) = side.find(&range, winner) else { continue };
                    let sum = &mut sums[nonzero - range.start];
                    *sum = g.get(row, j).times_plus(b.get(side.indices.get(nonzero), j), *sum);
                }
                for (nonzero, sum) in range.zip(&*sums) {
                    let at = side.position(nonzero);
                    // SAFETY: a nonzero belongs to one row, and a row to one thread.
                    unsafe { put(to, at, alpha.times(*sum), beta) }
                }
            }
        });
    }
}

/// Stores `value` + β times the old value, which is not read if β is zero.
///
/// # Safety
/// As [`Shared::slice`].
#[inline(always)]
unsafe fn put<T: Scalar>(to: Shared<'_, T>, at: usize, value: T::Accum, beta: T::Accum) {
    // SAFETY: promised by the caller.
    let to = unsafe { &mut to.slice(at..at + 1)[0] };
    let sum = if beta.is_zero() { value } else { value.plus(beta.times(to.to_accum())) };
    *to = T::from_accum(sum);
}

/// One row of the gradient of B.
fn row_of_b<T: Scalar, W: Index>(
    side: Side<'_>,
    row: usize,
    columns: usize,
    values: &[T],
    g: Strided<'_, T>,
    winners: &[W],
    to: &To<'_, T>,
) {
    let (alpha, beta) = to.factors;
    for start in (0..columns).step_by(BLOCK) {
        let mut sums = [T::Accum::zero(); BLOCK];
        let block = start..columns.min(start + BLOCK);
        for nonzero in side.offsets.row(row) {
            let (p, i) = (side.position(nonzero), side.indices.get(nonzero));
            let (value, mine) = (values[p].to_accum(), W::truncate(p));
            let winners = &winners[i * columns..(i + 1) * columns][block.clone()];
            for (at, chunk) in winners.chunks(CHUNK).enumerate() {
                // Most chunks have no winner: one branch for all of them.
                if !chunk.iter().fold(false, |any, winner| any | (*winner == mine)) {
                    continue;
                }
                for (k, _) in chunk.iter().enumerate().filter(|(_, winner)| **winner == mine) {
                    let j = at * CHUNK + k;
                    sums[j] = value.times_plus(g.get(i, start + j), sums[j]);
                }
            }
        }
        for (j, sum) in block.zip(sums) {
            // SAFETY: a row belongs to one thread.
            unsafe { put(to.data, row * to.row + j * to.column, alpha.times(sum), beta) }
        }
    }
}
