//! A plan for SpGEMM: the patterns of A and B looked at once.

use gustav_core::{
    Buffer, Csr, CsrView, Error, Index, Problem, Result, Scalar, Semiring, parallel,
};
use gustav_plan::{Algorithm, Choice};

use super::accumulator::Needs;
use super::columns::Columns;
use super::gustavson::{self, Entries, Product, Workers};
use super::row::{Job, LONG, SHORT};
use super::units::Analysis;
use super::{add, choose, published, refill};
use crate::fingerprint::Fingerprint;
use crate::{Config, Options, Threads};

/// A plan for C = α·op(A)·B ⊕ β·D, for one pattern of A and of B and any values.
///
/// op(A) is m × k and B k × n. C holds every entry that the patterns produce exactly once; sums
/// of exactly zero stay as explicit zeros unless [`Options::drop_zeros`] is set. Its rows are
/// sorted when [`Problem::sorted`] asks for it. A and B may be unsorted and hold duplicates.
/// Results are the same to the bit from run to run and for any number of threads.
pub struct SpgemmPlan<T: Scalar, I: Index, O: Index> {
    problem: Problem,
    choice: Choice<Config>,
    threads: Threads,
    drop_zeros: bool,
    /// The patterns of A and B, unless the plan serves a single call.
    patterns: Option<[Fingerprint; 2]>,
    transposed: Option<Transposed<T, I, O>>,
    columns: Option<Columns<I, O>>,
    analysis: Analysis,
    workers: Workers<T::Accum>,
    /// Digest of every unit's part of C, once C was computed.
    product: Option<Vec<u64>>,
}

/// The pattern of Aᵀ, where its entries are in A, and room for its values.
struct Transposed<T, I, O> {
    offsets: Buffer<O>,
    indices: Buffer<I>,
    source: Buffer<O>,
    values: Buffer<T>,
}

// Units are cut within this many parts of A for every thread, each of so many rows and nonzeros
// or more.
const PARTS: usize = 8;
const PART: usize = 1024;
// Rows and nonzeros of A up to which one thread is done before a second one would have begun.
const SERIAL: usize = 2048;

impl<T: Scalar, I: Index, O: Index> SpgemmPlan<T, I, O> {
    /// Looks at the patterns of `a` and `b` and chooses how to multiply them.
    ///
    /// # Errors
    /// [`Error::Shape`] when `a` and `b` do not fit together, [`Error::Pattern`] when `problem`
    /// was made for others, [`Error::Unsupported`] when the algorithm named in `options` cannot
    /// compute `problem`, [`Error::Argument`] when the machine lacks the instruction set named
    /// there, [`Error::OutOfMemory`].
    pub fn new(
        a: CsrView<'_, T, I, O>,
        b: CsrView<'_, T, I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let mut plan = Self::for_one_call(a, b, problem, options)?;
        let pattern = |m| Fingerprint::new(m, false, &plan.threads);
        plan.patterns = Some([pattern(&a), pattern(&b)]);
        Ok(plan)
    }

    /// A plan that does not remember patterns: it serves the call that made it.
    pub(super) fn for_one_call(
        a: CsrView<'_, T, I, O>,
        b: CsrView<'_, T, I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        check_problem(problem, &a, &b)?;
        let isa = options.isa()?;
        let threads = options.threads.clone();
        let count = if a.nrows() + a.nnz() <= SERIAL { 1 } else { threads.count() };
        let (transposed, columns, analysis) = threads.run(|| {
            let transposed = problem.transpose_a.then(|| Transposed::new(&a)).transpose()?;
            let columns = Columns::new(&b)?;
            let op_a = transposed.as_ref().map_or(a, |t| t.view(&a));
            let parts = ((a.nrows() + a.nnz()) / PART).clamp(1, count * PARTS);
            let analysis = match &columns {
                None => Analysis::new(&op_a, &b, parts)?,
                Some(columns) => Analysis::new(&op_a, &columns.relabel(b), parts)?,
            };
            Ok::<_, Error>((transposed, columns, analysis))
        })?;
        let (algorithm, reason) = choose(problem, options, analysis.products)?;
        let width = columns.as_ref().map_or(b.ncols(), |c| c.names.len());
        let count = count.min(analysis.units.len());
        let merges = analysis.units.iter().any(|unit| unit.merges);
        let width = if algorithm == Algorithm::Gustavson && merges { width } else { 0 };
        // As for an SpMM: nobody finds C in the caches of the threads when it is larger than they are.
        let large = analysis.bound * (size_of::<I>() + size_of::<T>()) as u128
            > (crate::profile::profile(count, isa).l2_bytes * count) as u128;
        let streaming = options.streaming.unwrap_or(large);
        let config = Config { isa, threads: count, tile: None, streaming, ahead: 0 };
        Ok(SpgemmPlan {
            problem: problem.clone(),
            choice: Choice { algorithm, config, reason },
            threads,
            drop_zeros: options.drop_zeros,
            patterns: None,
            transposed,
            columns,
            workers: Workers::new(count, width)?,
            analysis,
            product: None,
        })
    }

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Intermediate products: multiplications that the patterns of A and B call for. The usual
    /// count of floating-point operations is twice this.
    pub fn products(&self) -> u64 {
        self.analysis.products
    }

    /// Bytes that the plan holds beside the caller's arrays.
    pub fn workspace_bytes(&self) -> usize {
        self.workers.bytes(self.needs())
            + size_of_val(&*self.analysis.units)
            + self.analysis.ranges.as_ref().map_or(0, |r| size_of_val(&**r))
            + self.columns.as_ref().map_or(0, Columns::bytes)
            + self.transposed.as_ref().map_or(0, Transposed::bytes)
    }

    /// The parts of the accumulators that a product uses.
    fn needs(&self) -> Needs {
        let (sorted, units) = (self.problem.sorted, &self.analysis.units);
        let short = if sorted { SHORT } else { LONG };
        let dense = units.iter().any(|unit| unit.longest >= short);
        let slots = !sorted || units.iter().any(|unit| unit.longest < SHORT);
        Needs { sums: dense, flags: dense, lists: sorted, slots }
    }

    /// Computes C = α·op(A)·B as a new matrix. `a` and `b` have the patterns that the plan was
    /// made for, and any values.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a` or `b` has another pattern, [`Error::Overflow`] when the
    /// entries of C outnumber the offset type, [`Error::OutOfMemory`].
    pub fn execute<S: Semiring<T::Accum>>(
        &mut self,
        semiring: S,
        a: CsrView<'_, T, I, O>,
        alpha: T::Accum,
        b: CsrView<'_, T, I, O>,
    ) -> Result<Csr<T, I, O>> {
        self.execute_as(semiring, a, alpha, b)
    }

    /// [`SpgemmPlan::execute`] with C's values in the type [`Problem::output`], which is that of A's
    /// or of their sums.
    ///
    /// # Errors
    /// As there, and [`Error::Pattern`] when the plan was made for a C of another type.
    pub fn execute_as<S: Semiring<T::Accum>, U: Scalar<Accum = T::Accum>>(
        &mut self,
        _semiring: S,
        a: CsrView<'_, T, I, O>,
        alpha: T::Accum,
        b: CsrView<'_, T, I, O>,
    ) -> Result<Csr<U, I, O>> {
        if self.problem.output != U::DTYPE {
            let name = |dtype| format!("a product with values of {dtype}");
            let (expected, found) = (name(self.problem.output), name(U::DTYPE));
            return Err(Error::Pattern { expected, found });
        }
        self.check_patterns(&a, &b)?;
        let threads = self.threads.clone();
        match self.choice.algorithm {
            Algorithm::DenseNaive | Algorithm::HashRows => {
                let algorithm = self.choice.algorithm;
                return published::multiply::<S, _, _, _, _>(algorithm, &threads, a, alpha, b);
            }
            _ => {}
        }
        let isa = self.choice.config.isa;
        let mut digests = match self.patterns {
            Some(_) => Some(vec![0; self.analysis.units.len()]),
            None => None,
        };
        let c = {
            let (op_a, rest) = self.parts(a);
            let kept = digests.as_deref_mut();
            match rest.columns {
                None => gustavson::multiply::<S, U, _, _, _, _>(
                    rest.product(op_a, b, alpha, None, kept),
                    rest.workers,
                    &threads,
                    isa,
                ),
                Some(columns) => gustavson::multiply::<S, U, _, _, _, _>(
                    rest.product(op_a, columns.relabel(b), alpha, Some(&columns.names), kept),
                    rest.workers,
                    &threads,
                    isa,
                ),
            }?
        };
        self.product = digests;
        Ok(c)
    }

    /// Computes the values of C = α·op(A)·B into a matrix that an earlier call of
    /// [`SpgemmPlan::execute`] returned: its pattern is known, so nothing symbolic is done and no
    /// memory is taken.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a`, `b` or `c` has another pattern (values of `c` are then
    /// undefined) or nothing was computed before; [`Error::Unsupported`] when zeros are dropped,
    /// as the pattern of C then depends on the values, for the algorithms of Chen et al., and for a C of
    /// another type than A.
    pub fn execute_into<S: Semiring<T::Accum>>(
        &mut self,
        _semiring: S,
        a: CsrView<'_, T, I, O>,
        alpha: T::Accum,
        b: CsrView<'_, T, I, O>,
        c: &mut Csr<T, I, O>,
    ) -> Result<()> {
        self.check_patterns(&a, &b)?;
        self.problem.without_output("gustavson into a known pattern")?;
        if self.drop_zeros || self.choice.algorithm != Algorithm::Gustavson {
            return Err(Error::Unsupported {
                problem: self.problem.to_string(),
                backend: format!("{} into a known pattern", self.choice.algorithm),
                reason: "its pattern of C is not that of A and B alone".into(),
                nearest: "SpgemmPlan::execute".into(),
            });
        }
        let Some(digests) = self.product.take() else {
            return Err(gustavson::unknown_pattern("a matrix from elsewhere".into()));
        };
        let threads = self.threads.clone();
        let result = {
            let (op_a, rest) = self.parts(a);
            match rest.columns {
                None => refill::refill::<S, _, _, _, _>(
                    rest.product(op_a, b, alpha, None, None),
                    &digests,
                    c,
                    rest.workers,
                    &threads,
                ),
                Some(columns) => refill::refill::<S, _, _, _, _>(
                    rest.product(op_a, columns.relabel(b), alpha, Some(&columns.names), None),
                    &digests,
                    c,
                    rest.workers,
                    &threads,
                ),
            }
        };
        self.product = Some(digests);
        result
    }

    /// Computes C = α·op(A)·B ⊕ β·D with a sparse `d` of the shape of C; C holds the union of
    /// both patterns, rows sorted. β equal to the semiring's zero leaves `d` unread and C with
    /// the pattern of the product.
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute`], and [`Error::Shape`] when `d` has another shape.
    pub fn execute_add<S: Semiring<T::Accum>>(
        &mut self,
        semiring: S,
        a: CsrView<'_, T, I, O>,
        alpha: T::Accum,
        b: CsrView<'_, T, I, O>,
        beta: T::Accum,
        d: CsrView<'_, T, I, O>,
    ) -> Result<Csr<T, I, O>> {
        self.problem.check_like_c("D", (d.nrows(), d.ncols()))?;
        let product = self.execute(semiring, a, alpha, b)?;
        if beta == S::zero() {
            return Ok(product);
        }
        self.threads.run(|| add::add::<S, _, _, _>(product.view(), beta, d, self.drop_zeros))
    }

    fn check_patterns(&self, a: &CsrView<'_, T, I, O>, b: &CsrView<'_, T, I, O>) -> Result<()> {
        check_problem(&self.problem, a, b)?;
        let Some([of_a, of_b]) = &self.patterns else { return Ok(()) };
        of_a.check_whole("A", a, &self.threads)?;
        of_b.check_whole("B", b, &self.threads)
    }

    /// op(A) with the values of `a`, and what else a product needs.
    fn parts<'a>(
        &'a mut self,
        a: CsrView<'a, T, I, O>,
    ) -> (CsrView<'a, T, I, O>, Parts<'a, T, I, O>) {
        let needs = self.needs();
        let threads = &self.threads;
        let op_a = match &mut self.transposed {
            None => a,
            Some(t) => {
                threads.run(|| t.fill(&a));
                t.view(&a)
            }
        };
        let parts = Parts {
            columns: self.columns.as_ref(),
            analysis: &self.analysis,
            workers: &self.workers,
            problem: &self.problem,
            drop_zeros: self.drop_zeros,
            streaming: self.choice.config.streaming,
            needs,
        };
        (op_a, parts)
    }
}

struct Parts<'a, T: Scalar, I: Index, O: Index> {
    columns: Option<&'a Columns<I, O>>,
    analysis: &'a Analysis,
    workers: &'a Workers<T::Accum>,
    problem: &'a Problem,
    drop_zeros: bool,
    streaming: bool,
    needs: Needs,
}

impl<'a, T: Scalar, I: Index, O: Index> Parts<'a, T, I, O> {
    fn product<J: Index>(
        &self,
        a: CsrView<'a, T, I, O>,
        b: CsrView<'a, T, J, O>,
        alpha: T::Accum,
        columns: Option<&'a [I]>,
        digests: Option<&'a mut [u64]>,
    ) -> Product<'a, T, I, J, O> {
        Product {
            job: Job {
                a,
                b,
                canonical: self.analysis.canonical,
                ranges: self.analysis.ranges.as_deref(),
                sorted: self.problem.sorted,
                clustered: self.analysis.clustered,
            },
            needs: self.needs,
            entries: Entries {
                alpha,
                drop_zeros: self.drop_zeros,
                columns,
                streaming: self.streaming,
            },
            units: &self.analysis.units,
            ncols: self.problem.columns,
            bound: self.analysis.bound,
            digests,
        }
    }
}

impl<T: Scalar, I: Index, O: Index> Transposed<T, I, O> {
    fn new(a: &CsrView<'_, T, I, O>) -> Result<Self> {
        let (offsets, indices, source) = a.transpose_pattern()?;
        let values = Buffer::zeroed(a.nnz(), "values of the transpose")?;
        Ok(Transposed { offsets, indices, source, values })
    }

    /// Brings the values of `a` over.
    fn fill(&mut self, a: &CsrView<'_, T, I, O>) {
        let (values, source) = (a.values(), &self.source);
        parallel::each_mut(&mut self.values, 1 << 14, |at, to| *to = values[source[at].to_usize()]);
    }

    fn view(&self, a: &CsrView<'_, T, I, O>) -> CsrView<'_, T, I, O> {
        // SAFETY: the transpose of a valid matrix of this shape, as built by the core.
        unsafe {
            CsrView::new_unchecked(a.ncols(), a.nrows(), &self.offsets, &self.indices, &self.values)
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.offsets)
            + size_of_val(&*self.indices)
            + size_of_val(&*self.source)
            + size_of_val(&*self.values)
    }
}

pub(super) fn check_problem<T: Scalar, I: Index, O: Index>(
    problem: &Problem,
    a: &CsrView<'_, T, I, O>,
    b: &CsrView<'_, T, I, O>,
) -> Result<()> {
    if problem.inner() != b.nrows() && (problem.rows, problem.cols) == (a.nrows(), a.ncols()) {
        return Err(Error::Shape {
            op: "spgemm",
            expected: format!("B with {} rows", problem.inner()),
            found: format!("{} x {}", b.nrows(), b.ncols()),
        });
    }
    let name = |(rows, cols, nnz), (columns, nnz_b)| {
        format!("A {rows} x {cols} with {nnz} nonzeros, B {columns} columns with {nnz_b}")
    };
    let expected = (
        (problem.rows, problem.cols, problem.nnz),
        (problem.columns, problem.nnz_b.unwrap_or(b.nnz())),
    );
    let found = ((a.nrows(), a.ncols(), a.nnz()), (b.ncols(), b.nnz()));
    if expected == found {
        return Ok(());
    }
    Err(Error::Pattern { expected: name(expected.0, expected.1), found: name(found.0, found.1) })
}

#[cfg(test)]
mod tests {
    use gustav_core::{Csr, PlusTimes};

    use super::*;

    #[test]
    fn entries_are_counted_as_they_come_out() {
        // Rows near each other, rows far apart, empty ones, duplicates, and one long row.
        let (n, mut offsets, mut indices) = (9000u32, vec![0u32], Vec::new());
        for row in 0..n {
            let step = if row % 3 == 0 { 1 } else { 2654 };
            let len = [0, 3, 9, 1][row as usize % 4] + if row == 5 { 4000 } else { 0 };
            indices.extend((0..len).map(|k| (row.wrapping_mul(7) + k * step) % n));
            offsets.push(indices.len() as u32);
        }
        let values = vec![1.0f32; indices.len()];
        let n = n as usize;
        let a = Csr::new(n, n, offsets, indices, values).unwrap();
        for (a, sorted) in
            [(a.clone(), false), (a.clone(), true), (a.canonicalize().unwrap(), false)]
        {
            let (a, problem) = (a.view(), Problem::spgemm(&a.view(), &a.view()).sorted(sorted));
            let mut plan = SpgemmPlan::new(a, a, &problem, &Options::default()).unwrap();
            let c = plan.execute(PlusTimes, a, 1.0, a).unwrap();
            let threads = Threads::global();
            let (op_a, rest) = plan.parts(a);
            let product = rest.product(op_a, a, 1.0, None, None);
            let count = gustavson::count(&product.job, product.units, rest.workers, &threads);
            assert_eq!(count.unwrap(), c.nnz());
        }
    }
}
