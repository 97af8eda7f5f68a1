//! The parts of a product that one rank computes, and what it does with operands in between.

use gustav_core::buffer::try_vec;
use gustav_core::semiring::{Ops, Visit};
use gustav_core::{
    Arith, Batch, Buffer, DType, Dense, DenseView, DenseViewMut, Layout, Operation, Pattern,
    Problem, Result, Scalar, Scale, Semiring, parallel,
};
use gustav_cpu::{CpuScalar, Options, SpmmPlan};

use crate::blocks::Part;
use crate::positions::Positions;

// Values that one task moves.
const TASK: usize = 1 << 14;

/// A scalar whose sums are multiplied as well: partial sums are sent and are added in the type of sums. Every
/// [`Scalar`] is one.
pub trait DistScalar: CpuScalar<Accum: CpuScalar> {}

impl<T: CpuScalar<Accum: CpuScalar>> DistScalar for T {}

/// Some nonzeros of op(A), to be multiplied in the type of sums.
pub struct Product<A: CpuScalar> {
    plan: SpmmPlan<'static, A>,
    /// Where the values are, among those of the rank or of a message; in order when there are none.
    positions: Option<Positions>,
    nnz: usize,
}

/// The pattern of a [`Product`], and where its values are.
pub struct Nonzeros {
    pub pattern: Pattern<u32, u64>,
    pub positions: Option<Vec<usize>>,
}

impl Nonzeros {
    /// The nonzeros of `part` over `columns` columns; with `transpose` of their transpose.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub fn new(part: Part, columns: usize, transpose: bool) -> Result<Self> {
        let pattern = part.pattern(columns)?;
        let positions = part.positions;
        if !transpose {
            return Ok(Nonzeros { pattern, positions: Some(positions) });
        }
        let transposed = pattern.transposed()?;
        let from = |p: &u64| positions[*p as usize];
        let positions = transposed.permutation().iter().map(from).collect();
        Ok(Nonzeros { pattern: transposed.pattern().clone(), positions: Some(positions) })
    }

    /// The same over `columns` columns, of which column k is number `of[k]`; they increase.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub fn renumbered(self, columns: usize, of: &[u32]) -> Result<Self> {
        let Nonzeros { pattern, positions } = self;
        let indices = pattern.indices().iter().map(|k| of[*k as usize]).collect::<Vec<_>>();
        let offsets = pattern.offsets().to_vec();
        let pattern = Pattern::new(pattern.nrows(), columns, offsets, indices)?;
        Ok(Nonzeros { pattern, positions })
    }

    /// The same in `rows` rows, of which row k is number `of[k]`, and the others are empty; they increase.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub fn spread(self, rows: usize, of: &[u32]) -> Result<Self> {
        let Nonzeros { pattern, positions } = self;
        let mut offsets = try_vec::<u64>(rows + 1, "row offsets")?;
        for (row, ends) in of.iter().zip(pattern.offsets().windows(2)) {
            offsets.resize(*row as usize + 1, ends[0]);
        }
        offsets.resize(rows + 1, pattern.nnz() as u64);
        let indices = pattern.indices().to_vec();
        let pattern = Pattern::new(rows, pattern.ncols(), offsets, indices)?;
        Ok(Nonzeros { pattern, positions })
    }

    /// Drops the positions if they say nothing.
    #[must_use]
    pub fn simplified(mut self, values: usize) -> Self {
        let in_order =
            |p: &Vec<usize>| p.len() == values && p.iter().enumerate().all(|(k, p)| k == *p);
        self.positions = self.positions.filter(|p| !in_order(p));
        self
    }
}

/// What the plans of one product have in common.
pub struct Common<'p> {
    pub problem: &'p Problem,
    pub options: &'p Options,
}

impl<A: CpuScalar> Product<A> {
    /// Plans the product of `nonzeros` with a B and into a C of these layouts.
    ///
    /// # Errors
    /// As [`SpmmPlan::new`].
    pub fn new(
        nonzeros: Nonzeros,
        (layout_b, layout_c): (Layout, Layout),
        common: &Common<'_>,
    ) -> Result<Self> {
        let Nonzeros { pattern, positions } = nonzeros;
        let shape = (pattern.nrows(), pattern.ncols(), pattern.nnz());
        let of = common.problem;
        let problem = Problem::of_pattern(Operation::Spmm, shape.0, shape.1, shape.2)
            .columns(of.columns)
            .semiring(of.semiring)
            .deterministic(of.deterministic)
            .finite(of.finite)
            .layouts(layout_b, layout_c)
            .calls(of.calls);
        let plan = SpmmPlan::new(&pattern, &problem, common.options)?;
        Ok(Product { plan, positions: positions.map(Positions::new), nnz: shape.2 })
    }

    /// The number of nonzeros.
    pub fn nnz(&self) -> usize {
        self.nnz
    }

    /// Values that [`Product::execute`] needs memory for; `widened` says that those given are not of the type of sums.
    pub fn gathered(&self, widened: bool) -> usize {
        if widened || self.positions.is_some() { self.nnz } else { 0 }
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.plan.workspace_bytes() + self.positions.as_ref().map_or(0, Positions::bytes)
    }

    /// Algorithm, configuration and reason.
    pub fn choice(&self) -> &gustav_plan::Choice<gustav_cpu::Config> {
        self.plan.choice()
    }
}

impl<A: CpuScalar + Arith> Product<A> {
    /// C = op(A)·B ⊕ scale(β, C), the values of A among `values`.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`].
    pub fn execute<T: Scalar<Accum = A>>(
        &mut self,
        values: &[T],
        scratch: &mut [A],
        b: DenseView<'_, A>,
        c: DenseViewMut<'_, A>,
        beta: A,
    ) -> Result<()> {
        let values = match (&self.positions, as_sums(values)) {
            (None, Some(values)) => values,
            (positions, _) => {
                let scratch = &mut scratch[..self.nnz];
                match positions {
                    Some(positions) => positions.gather(values, scratch),
                    None => {
                        parallel::each_mut(scratch, TASK, |k, to| *to = values[k].to_accum());
                    }
                }
                scratch
            }
        };
        self.plan.execute(values, b, c, Scale::new().beta(beta))
    }
}

/// The rows of a dense operand that one rank has, as an operand of `layout`; of a matrix of one row or one column the
/// caller's may be the other.
pub fn local_rows(problem: &Problem, name: &'static str, rows: usize, layout: Layout) -> Batch {
    let (op, columns) = (problem.operation.name(), problem.columns);
    Batch { op, name, count: 1, rows, columns, layout }
}

/// `values` under the name of their sums' type, where that is the same type.
pub fn as_sums<T: Scalar>(values: &[T]) -> Option<&[T::Accum]> {
    (T::DTYPE == T::Accum::DTYPE).then(|| bytemuck::cast_slice(values))
}

/// `b` in the type of sums: as it is, or copied to `copy`, of its shape and layout.
pub fn view_of_sums<'v, T: Scalar>(
    b: &'v DenseView<'_, T>,
    copy: &'v mut Option<Dense<T::Accum>>,
) -> Result<DenseView<'v, T::Accum>> {
    if T::DTYPE == T::Accum::DTYPE {
        let (at, ld) = (b.as_ptr().cast(), b.leading_dimension());
        // SAFETY: the same elements of the same type, `T` and its sums being one; borrowed for as long.
        return unsafe { DenseView::from_raw_parts(b.nrows(), b.ncols(), b.layout(), ld, at) };
    }
    let Some(copy) = copy else {
        return DenseView::new(0, 0, b.layout(), 0, &[]);
    };
    let (lines, len) = lines(b.layout(), b.nrows(), b.ncols());
    parallel::chunks_mut(copy.data_mut(), len.max(1), |line, to| {
        if line < lines {
            to.iter_mut().zip(b.line(line)).for_each(|(to, from)| *to = from.to_accum());
        }
    });
    Ok(copy.view())
}

/// Rows of B in the type of sums: as they are, or copied to `copy`, which has their length.
pub fn rows_of_sums<'v, T: Scalar>(rows: &'v [T], copy: &'v mut [T::Accum]) -> &'v [T::Accum] {
    if let Some(rows) = as_sums(rows) {
        return rows;
    }
    let copy = &mut copy[..rows.len()];
    copy.iter_mut().zip(rows).for_each(|(to, from)| *to = from.to_accum());
    copy
}

/// `c` in the type of sums, where that is the same type; else an empty matrix.
pub fn view_mut_of_sums<'v, T: Scalar>(
    c: &'v mut DenseViewMut<'_, T>,
) -> Result<DenseViewMut<'v, T::Accum>> {
    if T::DTYPE != T::Accum::DTYPE {
        return DenseViewMut::new(0, 0, c.layout(), 0, &mut []);
    }
    let (rows, columns, layout, ld) = (c.nrows(), c.ncols(), c.layout(), c.leading_dimension());
    // SAFETY: the same elements of the same type, `T` and its sums being one; borrowed for as long.
    unsafe { DenseViewMut::from_raw_parts(rows, columns, layout, ld, c.as_mut_ptr().cast()) }
}

/// Rows `rows` of `c`.
pub fn rows_mut<'v, A: Scalar>(
    c: &'v mut DenseViewMut<'_, A>,
    rows: std::ops::Range<usize>,
) -> Result<DenseViewMut<'v, A>> {
    assert!(rows.start <= rows.end && rows.end <= c.nrows(), "rows of the matrix");
    let (columns, layout, ld) = (c.ncols(), c.layout(), c.leading_dimension());
    let step = if layout == Layout::RowMajor { ld } else { 1 };
    // An empty matrix may have no memory after its first row.
    let skip = if rows.is_empty() { 0 } else { rows.start * step };
    // SAFETY: elements of `c` at its distances, borrowed for as long; the first is one of its elements.
    unsafe {
        let first = c.as_mut_ptr().add(skip);
        DenseViewMut::from_raw_parts(rows.len(), columns, layout, ld, first)
    }
}

fn lines(layout: Layout, rows: usize, columns: usize) -> (usize, usize) {
    match layout {
        Layout::RowMajor => (rows, columns),
        Layout::ColumnMajor => (columns, rows),
    }
}

/// The elements of a matrix of one column that are neighbours in memory.
fn contiguous_column<'v, T: Scalar>(b: &'v DenseView<'_, T>) -> Option<&'v [T]> {
    let is_contiguous = b.layout() == Layout::ColumnMajor || b.leading_dimension() == 1;
    b.as_slice().filter(|_| b.ncols() == 1 && is_contiguous)
}

/// Copies rows `rows` of `b` to `to`, one after another.
pub fn pack<T: Scalar>(b: &DenseView<'_, T>, rows: &[u32], to: &mut [T]) {
    let n = b.ncols();
    if n == 0 {
        return;
    }
    if let Some(column) = contiguous_column(b) {
        return parallel::chunks_mut(to, TASK, |k, to| {
            let rows = &rows[k * TASK..][..to.len()];
            to.iter_mut().zip(rows).for_each(|(to, row)| *to = column[*row as usize]);
        });
    }
    // A row may be a few values, and a task costs more than copying those.
    let task = (TASK / n).max(1);
    parallel::chunks_mut(to, task * n, |k, to| {
        for (to, row) in to.chunks_exact_mut(n).zip(&rows[k * task..]) {
            let row = *row as usize;
            match b.layout() {
                Layout::RowMajor => to.copy_from_slice(b.line(row)),
                Layout::ColumnMajor => {
                    to.iter_mut().enumerate().for_each(|(j, to)| *to = b.get(row, j))
                }
            }
        }
    });
}

/// Copies all rows of `b` to `to`, one after another.
pub fn copy_all<A: Scalar>(b: &DenseView<'_, A>, to: &mut [A]) {
    let n = b.ncols();
    match (b.layout(), b.leading_dimension() == n, b.as_slice()) {
        (Layout::RowMajor, true, Some(values)) => parallel::chunks_mut(to, TASK, |k, to| {
            to.copy_from_slice(&values[k * TASK..][..to.len()]);
        }),
        _ if n > 0 => parallel::chunks_mut(to, n, |row, to| match b.layout() {
            Layout::RowMajor => to.copy_from_slice(b.line(row)),
            Layout::ColumnMajor => {
                to.iter_mut().enumerate().for_each(|(j, to)| *to = b.get(row, j));
            }
        }),
        _ => {}
    }
}

/// c[rows[k]] = c[rows[k]] ⊕ partial row k, for every k; no row repeats.
pub fn add_rows<A: Arith>(
    semiring: Semiring,
    c: &mut DenseViewMut<'_, A>,
    rows: &[u32],
    partial: &[A],
) {
    semiring.specialize(AddRows { c, rows, partial });
}

struct AddRows<'r, 'c, A: Arith> {
    c: &'r mut DenseViewMut<'c, A>,
    rows: &'r [u32],
    partial: &'r [A],
}

impl<A: Arith> Visit<A> for AddRows<'_, '_, A> {
    type Output = ();
    fn visit<S: Ops<A>>(self, s: S) {
        let n = self.c.ncols();
        for (row, partial) in self.rows.iter().zip(self.partial.chunks_exact(n.max(1))) {
            let row = *row as usize;
            if self.c.layout() == Layout::RowMajor {
                let c = self.c.line_mut(row);
                c.iter_mut().zip(partial).for_each(|(c, p)| *c = s.add(*c, *p));
            } else {
                for (j, p) in partial.iter().enumerate() {
                    self.c.set(row, j, s.add(self.c.get(row, j), *p));
                }
            }
        }
    }
}

/// C = scale(α, sums) ⊕ scale(β, C); `sums` may be of another layout than C.
pub fn store<T: Scalar>(
    semiring: Semiring,
    (alpha, beta): (T::Accum, T::Accum),
    sums: &DenseView<'_, T::Accum>,
    c: &mut DenseViewMut<'_, T>,
) {
    semiring.specialize(Store { alpha, beta, sums, c });
}

struct Store<'r, 'c, T: Scalar> {
    alpha: T::Accum,
    beta: T::Accum,
    sums: &'r DenseView<'r, T::Accum>,
    c: &'r mut DenseViewMut<'c, T>,
}

impl<T: Scalar> Visit<T::Accum> for Store<'_, '_, T> {
    type Output = ();
    fn visit<S: Ops<T::Accum>>(self, s: S) {
        let Store { alpha, beta, sums, c } = self;
        let (reads_c, plain) = (beta != s.zero(), alpha == s.one());
        let stored = |sum: T::Accum, before: T| {
            let sum = if plain { sum } else { s.scale(alpha, sum) };
            let sum = if reads_c { s.add(sum, s.scale(beta, before.to_accum())) } else { sum };
            T::from_accum(sum)
        };
        if c.layout() != sums.layout() {
            for row in 0..c.nrows() {
                for column in 0..c.ncols() {
                    c.set(row, column, stored(sums.get(row, column), c.get(row, column)));
                }
            }
            return;
        }
        for line in 0..lines(c.layout(), c.nrows(), c.ncols()).0 {
            for (c, sum) in c.line_mut(line).iter_mut().zip(sums.line(line)) {
                *c = stored(*sum, *c);
            }
        }
    }
}

/// Memory for the largest of `lengths`.
///
/// # Errors
/// [`gustav_core::Error::OutOfMemory`].
pub fn largest_buffer<A: bytemuck::Pod>(
    lengths: impl Iterator<Item = usize>,
    what: &'static str,
) -> Result<Buffer<A>> {
    Buffer::zeroed(lengths.max().unwrap_or(0), what)
}

/// Whether values of this type are summed in another.
pub fn is_widened(dtype: DType) -> bool {
    dtype.bytes() == 2
}
