//! The part of a plan that depends on the two patterns alone, not on the type of the values.

use std::sync::Arc;

use gustav_core::{
    AnyPattern, DType, Error, Index, IndexSlice, IndexType, PatternRef, Problem, Result, Scalar,
    TransposedPattern, Values, parallel, with_pattern,
};
use gustav_plan::heuristics::masked::reason_for_positions;
use gustav_plan::{Algorithm, Choice, Chooser};

use super::accumulator::Needs;
use super::columns::Columns;
use super::gustavson::{Entries, Task};
use super::operands::{Indices, Right, Rows};
use super::row::{Job, LONG, SHORT};
use super::units::{Analysis, products};
use super::{choose, masked};
use crate::{Config, Options, Threads};

/// The patterns of a product, and how it is computed.
pub(super) struct Setup<'a> {
    pub problem: Problem,
    pub choice: Choice<Config>,
    pub threads: Threads,
    pub drop_zeros: bool,
    pub mask: Option<AnyPattern<'a>>,
    pub transposed: Option<Transposed>,
    pub columns: Option<Columns>,
    /// Rows cut into units of work; a product under a mask needs none.
    pub analysis: Option<Analysis>,
    a: AnyPattern<'a>,
    b: AnyPattern<'a>,
}

/// The pattern of Aᵀ.
pub(super) struct Transposed {
    pattern: AnyPattern<'static>,
    permutation: Arc<dyn Permutation + Send + Sync>,
}

/// A transposed pattern of any index types.
trait Permutation {
    fn permutation(&self) -> IndexSlice<'_>;
    fn bytes(&self) -> usize;
}

impl<I: Index, O: Index> Permutation for TransposedPattern<I, O> {
    fn permutation(&self) -> IndexSlice<'_> {
        IndexSlice::new(TransposedPattern::permutation(self))
    }
    fn bytes(&self) -> usize {
        TransposedPattern::bytes(self)
    }
}

// A is first divided into this many parts per thread, each of at least so many rows and nonzeros;
// units are cut within these parts.
const PARTS: usize = 8;
const PART: usize = 1024;
// Up to this many rows and nonzeros of A one thread finishes before a second one would start.
const SERIAL: usize = 2048;

impl<'a> Setup<'a> {
    /// Reads both patterns and chooses how to multiply them.
    pub fn new(
        [a, b]: [AnyPattern<'a>; 2],
        mask: Option<AnyPattern<'a>>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        check_problem(problem, &a, &b)?;
        let isa = options.isa()?;
        let threads = options.threads.clone();
        if let Some(mask) = &mask {
            problem.check_like_c("a mask", (mask.nrows(), mask.ncols()))?;
        }
        let whole = mask.is_none();
        let size = a.nrows() + a.nnz();
        let count = if size <= SERIAL { 1 } else { threads.count() };
        let (transposed, columns, analysis) = threads.run(|| {
            let transposed = problem.transpose_a.then(|| Transposed::new(&a)).transpose()?;
            let columns = if whole { Columns::new(&b)? } else { None };
            let op_a = Rows::new(transposed.as_ref().map_or(&a, |t| &t.pattern));
            let parts = (size / PART).clamp(1, count * PARTS);
            let analysis = whole
                .then(|| Analysis::new(&op_a, &right(&b, columns.as_ref()), parts))
                .transpose()?;
            Ok::<_, Error>((transposed, columns, analysis))
        })?;
        let (count, bound) = match &analysis {
            None => (threads.count(), 0),
            Some(analysis) => (count.min(analysis.units.len()), analysis.bound),
        };
        let (algorithm, reason) = match (&mask, &analysis) {
            (None, Some(analysis)) => choose(problem, options, analysis.products)?,
            (mask, _) => choose_masked(problem, options, mask.as_ref().map_or(0, AnyPattern::nnz))?,
        };
        // As in SpMM: a C larger than the caches is out of them before anyone reads it.
        let large = bound * (problem.index_type.bytes() + problem.output.bytes()) as u128
            > (crate::profile::profile(count, isa).l2_bytes * count) as u128;
        let streaming = options.streaming.unwrap_or(large);
        let config = Config { isa, threads: count, tile: None, streaming, prefetch_distance: 0 };
        Ok(Setup {
            problem: problem.clone(),
            choice: Choice { algorithm, config, reason },
            threads,
            drop_zeros: options.drop_zeros,
            a,
            b,
            mask,
            transposed,
            columns,
            analysis,
        })
    }

    /// C = α·op(A)·B; none under a mask.
    pub fn task<'s, A>(
        &'s self,
        a: &'s [A],
        b: &'s [A],
        alpha: A,
    ) -> Option<Task<'s, A, IndexSlice<'s>>> {
        let analysis = self.analysis.as_ref()?;
        let job = Job {
            a: self.left(),
            a_values: a,
            b: right(&self.b, self.columns.as_ref()),
            b_values: b,
            canonical: analysis.canonical,
            ranges: analysis.ranges.as_deref(),
            sorted: self.problem.sorted,
            clustered: analysis.clustered,
        };
        let names = self.columns.as_ref().and_then(Columns::names);
        let (drop_zeros, streaming) = (self.drop_zeros, self.choice.config.streaming);
        Some(Task {
            job,
            needs: self.needs(),
            entries: Entries { alpha, drop_zeros, names, streaming },
            units: &analysis.units,
            ncols: self.problem.columns,
            bound: analysis.bound,
            types: self.types(),
            threads: &self.threads,
            isa: self.choice.config.isa,
        })
    }

    /// C = α·op(A)·B under `mask`.
    pub fn masked<'s, A>(
        &'s self,
        mask: &'s AnyPattern<'_>,
        a: &'s [A],
        b: &'s [A],
        alpha: A,
    ) -> masked::Job<'s, A> {
        masked::Job {
            a: self.left(),
            a_values: a,
            alpha,
            b: Rows::new(&self.b),
            b_values: b,
            mask: Rows::new(mask),
            drop_zeros: self.drop_zeros,
        }
    }

    /// Types of the column indices and the row offsets of A, B and C.
    pub fn types(&self) -> (IndexType, IndexType) {
        self.a.index_types()
    }

    /// op(A).
    fn left(&self) -> Rows<IndexSlice<'_>> {
        Rows::new(self.transposed.as_ref().map_or(&self.a, |t| &t.pattern))
    }

    /// The patterns of A and B where no index is wider than 32 bits.
    pub fn narrow(&self) -> Option<[&PatternRef<'a>; 2]> {
        match [&self.a, &self.b] {
            [AnyPattern::U32U32(a), AnyPattern::U32U32(b)] => Some([a, b]),
            _ => None,
        }
    }

    /// The values of both operands, with their pattern and number checked.
    pub fn fit<'v, T>(&self, a: Values<'v, T>, b: Values<'v, T>) -> Result<[&'v [T]; 2]> {
        Ok([a.fit("A", self.a.id(), self.a.nnz())?, b.fit("B", self.b.id(), self.b.nnz())?])
    }

    /// Intermediate products.
    pub fn products(&self) -> u64 {
        match &self.analysis {
            Some(analysis) => analysis.products,
            None => products(&self.left(), Rows::new(&self.b).offsets),
        }
    }

    /// The parts of the accumulators that a product uses.
    pub fn needs(&self) -> Needs {
        let units = self.analysis.as_ref().map_or(&[][..], |analysis| &analysis.units);
        let sorted = self.problem.sorted;
        let short = if sorted { SHORT } else { LONG };
        let dense = units.iter().any(|unit| unit.longest >= short);
        let slots = !sorted || units.iter().any(|unit| unit.longest < SHORT);
        Needs { sums: dense, flags: dense, lists: sorted, slots }
    }

    /// Columns of the accumulators.
    pub fn width(&self) -> usize {
        let merges = |analysis: &Analysis| analysis.units.iter().any(|unit| unit.merges);
        let merges = self.analysis.as_ref().is_some_and(merges);
        let used = merges && self.choice.algorithm == Algorithm::Gustavson;
        if used { right(&self.b, self.columns.as_ref()).ncols } else { 0 }
    }

    /// Bytes beside the patterns that the caller holds.
    pub fn bytes(&self) -> usize {
        let analysis = self.analysis.as_ref().map_or(0, |analysis| {
            size_of_val(&*analysis.units)
                + analysis.ranges.as_ref().map_or(0, |r| size_of_val(&**r))
        });
        analysis
            + self.columns.as_ref().map_or(0, Columns::bytes)
            + self.transposed.as_ref().map_or(0, |t| t.permutation.bytes())
    }

    /// Whether C has the same pattern in every product.
    pub fn same_pattern(&self) -> bool {
        let ours = matches!(self.choice.algorithm, Algorithm::Gustavson | Algorithm::Masked);
        ours && !self.drop_zeros
    }

    /// Values of C have the type that the plan was made for.
    ///
    /// # Errors
    /// [`Error::Pattern`] when they have another.
    pub fn check_output(&self, found: DType) -> Result<()> {
        let name = |dtype| format!("a product with values of {dtype}");
        let (expected, found) = (name(self.problem.output), name(found));
        if expected == found { Ok(()) } else { Err(Error::Pattern { expected, found }) }
    }

    /// The error for an option that this product does not support.
    pub fn refusal(&self, of: &str, reason: &str, nearest: &str) -> Error {
        Error::Unsupported {
            problem: self.problem.to_string(),
            backend: format!("{} {of}", self.choice.algorithm),
            reason: reason.into(),
            nearest: nearest.into(),
        }
    }
}

impl Transposed {
    fn new(a: &AnyPattern<'_>) -> Result<Self> {
        with_pattern!(a, |a| {
            let transposed = a.transposed()?;
            let pattern = PatternRef::Shared(transposed.pattern().clone()).into();
            Ok(Transposed { pattern, permutation: transposed })
        })
    }

    /// For each nonzero of Aᵀ the position of the same nonzero in A.
    pub fn permutation(&self) -> IndexSlice<'_> {
        self.permutation.permutation()
    }
}

/// B with labels for columns, if it has labels.
fn right<'s>(b: &'s AnyPattern<'_>, columns: Option<&'s Columns>) -> Right<'s, IndexSlice<'s>> {
    if let Some(columns) = columns {
        return columns.relabel(b);
    }
    let Rows { nrows, ncols, offsets, columns } = Rows::new(b);
    let columns = match columns {
        IndexSlice::U32(columns) => columns,
        // Indices wider than 32 bits have labels; products under a mask have none, and do not call
        // this.
        IndexSlice::U64(_) => &[],
    };
    Right { nrows, ncols, offsets, columns }
}

fn choose_masked(problem: &Problem, options: &Options, nnz: usize) -> Result<(Algorithm, String)> {
    super::any(problem)?;
    if matches!(options.chooser, Chooser::Auto | Chooser::Named(Algorithm::Masked)) {
        return Ok((Algorithm::Masked, reason_for_positions(nnz)));
    }
    Err(Error::Unsupported {
        problem: problem.to_string(),
        backend: format!("{} under a mask", options.chooser),
        reason: "it computes all of C".into(),
        nearest: Algorithm::Masked.name().into(),
    })
}

fn check_problem(problem: &Problem, a: &AnyPattern<'_>, b: &AnyPattern<'_>) -> Result<()> {
    if problem.inner() != b.nrows() && (problem.rows, problem.cols) == (a.nrows(), a.ncols()) {
        return Err(Error::Shape {
            op: "spgemm",
            expected: format!("B with {} rows", problem.inner()),
            found: format!("{} x {}", b.nrows(), b.ncols()),
        });
    }
    let name = |((rows, cols, nnz), (columns, nnz_b), (index, offset))| {
        format!(
            "A {rows} x {cols} with {nnz} nonzeros, B {columns} columns with {nnz_b}, \
             {index}/{offset} indices"
        )
    };
    let expected = (
        (problem.rows, problem.cols, problem.nnz),
        (problem.columns, problem.nnz_b.unwrap_or(b.nnz())),
        (problem.index_type, problem.offset_type),
    );
    let found = ((a.nrows(), a.ncols(), a.nnz()), (b.ncols(), b.nnz()), a.index_types());
    if expected == found {
        return Ok(());
    }
    Err(Error::Pattern { expected: name(expected), found: name(found) })
}

/// Writes values in the order of the kernels: widened to the type of sums, those of A permuted
/// where Aᵀ is multiplied.
pub(super) fn gather<T: Scalar>(from: &[T], to: &mut [T::Accum], transposed: Option<&Transposed>) {
    // Values of one parallel task.
    const TASK: usize = 1 << 14;
    match transposed.map(Transposed::permutation) {
        None => parallel::each_mut(to, TASK, |at, to| *to = from[at].to_accum()),
        Some(permutation) => parallel::each_mut(to, TASK, |at, to| {
            *to = from[permutation.at(at)].to_accum();
        }),
    }
}
