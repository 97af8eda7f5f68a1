//! The SpMM plan: made once for a pattern, executed any number of times with any values.

use gustav_core::{
    AnyPattern, DenseView, DenseViewMut, Extremum, Index, IndexSlice, Layout, PatternId,
    PatternRef, Problem, Reduce, Result, Scalar, Scale, Values, WinnersMut, with_pattern,
};
use gustav_plan::{Algorithm, Choice, Chooser, DeviceProfile, RowStats, heuristics};

use super::carry::Cuts;
use super::column_panel::ColumnPanel;
use super::csb::Blocks;
use super::extremum::{Output, Split};
use super::operands::{Operands, Streaming};
use super::row_block::RowBlock;
use super::row_split::RowSplit;
use super::vector::Vector;
use super::workspace::Workspace;
use super::{catalog, merge_path, nonzero_split};
use crate::arch::Isa;
use crate::catalog::autotune_elsewhere;
use crate::offsets::Offsets;
use crate::profile::profile;
use crate::transposed::Transposed;
use crate::types::CpuScalar;
use crate::{Config, Options, Threads};

// Number of partitions that cut rows when the result must not depend on the number of threads.
const FIXED_PARTS: usize = 64;
// Bytes of B that are prefetched, and the nonzeros ahead of their use.
const PREFETCH_DISTANCE_BYTES: usize = 8192;
const FEWEST_AHEAD: usize = 8;
const MOST_AHEAD: usize = 64;
// Rows of C of fewer bytes fill no cache line.
const LINE_BYTES: usize = 64;

/// A planned SpMM: C = scale(α, op(A)·B) ⊕ scale(β, C) over the semiring of its [`Problem`].
///
/// Made for one pattern, which it holds or borrows; values, α and β may change from call to call.
/// Nothing is allocated by [`SpmmPlan::execute`].
pub struct SpmmPlan<'a, T: CpuScalar> {
    problem: Problem,
    choice: Choice<Config>,
    pattern: PatternId,
    method: Box<dyn Method<T> + 'a>,
}

/// Options of one execution; `()` and a [`Scale`] convert to it.
#[derive(Debug)]
pub struct SpmmCall<'v, T: Scalar> {
    /// α and β; max and min take no β.
    pub scale: Scale<T::Accum>,
    /// Value of C in empty rows with max or min, 0 by default.
    pub empty: Option<T::Accum>,
    /// Output of the winners of max and min.
    pub winners: Option<WinnersMut<'v>>,
}

impl<T: Scalar> From<()> for SpmmCall<'_, T> {
    fn from((): ()) -> Self {
        Scale::new().into()
    }
}

impl<T: Scalar> From<Scale<T::Accum>> for SpmmCall<'_, T> {
    fn from(scale: Scale<T::Accum>) -> Self {
        SpmmCall { scale, empty: None, winners: None }
    }
}

/// When rows of B are prefetched, if they have at least `row_bytes`.
struct Prefetching {
    row_bytes: usize,
    /// B is larger than so many times a core's L2.
    times_l2: usize,
    /// [`RowStats::near_next`] is at most this: where rows read on, the processor's own prefetcher follows.
    near_next: f64,
    /// Rows of A are shorter in the mean: the loads of longer ones overlap without a prefetch, which costs as much
    /// as the multiplication of a narrow row.
    mean_row_length: f64,
}

// From the widest rows on; narrower ones than the last are never prefetched.
const PREFETCHING: [Prefetching; 3] = [
    Prefetching { row_bytes: 128, times_l2: 2, near_next: 1.0, mean_row_length: f64::INFINITY },
    Prefetching { row_bytes: 64, times_l2: 4, near_next: 0.7, mean_row_length: f64::INFINITY },
    Prefetching { row_bytes: 32, times_l2: 4, near_next: 0.5, mean_row_length: 8.0 },
];

/// How many nonzeros before their use rows of B are prefetched, of which there are `rows` of `row_bytes`; 0 where that
/// does not pay. `stats` are those of the matrix that is walked.
fn prefetch_distance(
    stats: &RowStats,
    (rows, row_bytes): (usize, usize),
    l2_bytes: usize,
) -> usize {
    let rule = PREFETCHING.iter().find(|rule| row_bytes >= rule.row_bytes);
    let pays = rule.is_some_and(|rule| {
        rows.saturating_mul(row_bytes) > rule.times_l2 * l2_bytes
            && stats.near_next <= rule.near_next
            && stats.mean_row_length < rule.mean_row_length
    });
    if !pays {
        return 0;
    }
    (PREFETCH_DISTANCE_BYTES / row_bytes).clamp(FEWEST_AHEAD, MOST_AHEAD)
}

/// A planned product, whatever the types of its indices.
pub(super) trait Method<T: CpuScalar>: Send {
    /// Bytes that it holds.
    fn bytes(&self) -> usize;

    /// C = scale(α, op(A)·B) ⊕ scale(β, C): as many values as the pattern has nonzeros, B and C of
    /// the planned shapes and layouts, C not empty; `output` is for max and min, and has as many
    /// winners as C has elements.
    fn execute(
        &mut self,
        values: &[T],
        b: DenseView<'_, T>,
        c: DenseViewMut<'_, T>,
        factors: (T::Accum, T::Accum),
        output: Output<'_, T::Accum>,
    ) -> Result<()>;
}

impl<'a, T: CpuScalar> SpmmPlan<'a, T> {
    /// Plans `problem` for `pattern`: a [`Pattern`](gustav_core::Pattern), of which the plan holds
    /// a clone, or a view, which it borrows.
    ///
    /// # Errors
    /// [`gustav_core::Error::Unsupported`] when the problem is not an SpMM or the requested algorithm does not support
    /// it, [`gustav_core::Error::Pattern`] when the problem was made for a matrix of another size,
    /// [`gustav_core::Error::Argument`] for an instruction set that this machine lacks,
    /// [`gustav_core::Error::OutOfMemory`] for the workspace. [`Chooser::Autotune`] is unsupported here.
    pub fn new<I: Index, O: Index>(
        pattern: impl Into<PatternRef<'a, I, O>>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        T::plan_spmm(pattern.into().into(), problem, options)
    }

    pub(crate) fn of_any(
        pattern: AnyPattern<'a>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let problem = problem.bound::<T>(&pattern)?;
        problem.check_dense()?;
        problem.check_batch("SpMM on the CPU")?;
        let id = pattern.id();
        let (choice, method): (_, Box<dyn Method<T> + 'a>) = if problem.columns == 1
            && options.chooser == Chooser::Auto
            && problem.reduction() == Reduce::Sum
        {
            (catalog::find(Algorithm::RowSplit, &problem)?.supports)(&problem)?;
            let vector = Vector::new(pattern, &problem, options)?;
            (vector.choice(), Box::new(vector))
        } else {
            with_pattern!(pattern, |p| {
                let (choice, rows) = Rows::<T, _, _>::new(p, &problem, options)?;
                (choice, Box::new(rows))
            })
        };
        Ok(SpmmPlan { problem, choice, pattern: id, method })
    }

    /// The algorithm, its configuration, and why it was chosen.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds for [`SpmmPlan::execute`].
    pub fn workspace_bytes(&self) -> usize {
        self.method.bytes()
    }

    /// C = scale(α, op(A)·B) ⊕ scale(β, C) with `values` of A: a matrix of the plan's pattern, or a
    /// slice in the order of its nonzeros. B has as many rows as op(A) has columns. With max or
    /// min, C is α times the winning product.
    ///
    /// # Errors
    /// [`gustav_core::Error::Pattern`] for values of another pattern, [`gustav_core::Error::Length`] for another
    /// number of them or of winners, [`gustav_core::Error::Shape`] when B or C has another shape or layout than
    /// planned, [`gustav_core::Error::Argument`] as [`Problem::check_reduction`].
    pub fn execute<'v>(
        &mut self,
        values: impl Into<Values<'v, T>>,
        b: impl Into<DenseView<'v, T>>,
        c: impl Into<DenseViewMut<'v, T>>,
        call: impl Into<SpmmCall<'v, T>>,
    ) -> Result<()> {
        let (b, mut c) = (b.into(), c.into());
        let SpmmCall { scale, empty, mut winners } = call.into();
        let p = &self.problem;
        let values = values.into().fit_batch("A", self.pattern, p.nnz, p.batch)?;
        let (batch_b, batch_c) = (p.batch_b("B"), p.batch_c("C"));
        batch_b.strides((b.nrows(), b.ncols()), b.layout(), b.leading_dimension())?;
        batch_c.strides((c.nrows(), c.ncols()), c.layout(), c.leading_dimension())?;
        let factors = scale.over(p.semiring);
        let reads_c = factors.1 != p.semiring.zero();
        let described = winners.as_ref().map(WinnersMut::description);
        p.check_reduction(reads_c, empty.is_some(), described)?;
        if c.nrows() == 0 || c.ncols() == 0 {
            return Ok(());
        }
        let each = if values.len() == p.nnz { 0 } else { p.nnz };
        for index in 0..p.batch {
            let values = &values[index * each..][..p.nnz];
            let (b, c) = (batch_b.matrix(&b, index)?, batch_c.matrix_mut(&mut c, index)?);
            // Max and min have no batches.
            let winners = winners.take();
            let output = Output { empty: empty.unwrap_or(T::Accum::zero()), winners };
            self.method.execute(values, b, c, factors, output)?;
        }
        Ok(())
    }
}

/// Algorithms that sum rows of B.
struct Rows<'a, T: CpuScalar, I: Index, O: Index> {
    problem: Problem,
    config: Config,
    threads: Threads,
    pattern: PatternRef<'a, I, O>,
    transposed: Option<Transposed<T, I, O>>,
    state: State<T::Accum, O>,
    workspace: Workspace<T>,
}

/// The state of each algorithm.
enum State<A, O: Index> {
    RowSplit(RowSplit),
    Extremum(Split, Extremum),
    Cuts(Cuts<A>),
    Csb(Blocks<A, O>),
    ColumnPanel(ColumnPanel<A, O>),
    RowBlock(RowBlock),
}

impl<'a, T: CpuScalar, I: Index, O: Index> Rows<'a, T, I, O> {
    fn new(
        pattern: PatternRef<'a, I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<(Choice<Config>, Self)> {
        let isa = options.isa()?;
        let device = profile(options.threads.count(), isa);
        let by_row = options.chooser != Chooser::Named(Algorithm::Csb);
        let transposed =
            (problem.transpose_a && by_row).then(|| Transposed::new(&pattern)).transpose()?;
        let a = pattern.view();
        let op_a = transposed.as_ref().map_or(a, |t| t.view().pattern());
        let stats = RowStats::new(&op_a);
        let (algorithm, reason) = choose(&stats, problem, options, &device)?;
        (catalog::find(algorithm, problem)?.supports)(problem)?;

        let threads = options.threads.clone();
        let count = threads.count();
        let parts = if problem.deterministic { FIXED_PARTS } else { count };
        let workspace = Workspace::new(problem)?;
        let offsets = op_a.offsets();
        let columns = workspace.panel(problem);
        let row_bytes = columns * problem.dtype.bytes();
        let sums_bytes = device.l2_bytes / 4;
        let mut tile = None;
        let state = match algorithm {
            Algorithm::NonzeroSplit => State::Cuts(nonzero_split::new(offsets, parts, columns)?),
            Algorithm::MergePath => State::Cuts(merge_path::new(offsets, parts, columns)?),
            Algorithm::Csb => {
                let transposed = problem.transpose_a;
                let block = options.tile.map(|t| t.max(1));
                let blocks = Blocks::new(&a, transposed, columns, sums_bytes, block, count)?;
                tile = Some(blocks.block());
                State::Csb(blocks)
            }
            Algorithm::ColumnPanel => {
                let panel = problem.clone().columns(columns);
                let fit = heuristics::cpu_spmm::tile_rows(&panel, &device);
                let rows = options.tile.map_or(fit, |t| t.max(1));
                let panel = ColumnPanel::new(&op_a, columns, rows, sums_bytes, count)?;
                tile = Some(panel.tile());
                State::ColumnPanel(panel)
            }
            Algorithm::RowBlock => State::RowBlock(RowBlock::new(&op_a, columns, count)?),
            _ => match problem.extremum {
                Some(extremum) => State::Extremum(Split::new(offsets, columns, count), extremum),
                None => State::RowSplit(RowSplit::new(
                    &op_a,
                    (columns, row_bytes),
                    device.l2_bytes,
                    count,
                )),
            },
        };
        // A C larger than the caches is out of them before anyone reads it.
        let c_bytes = problem.output_rows() * problem.columns * problem.dtype.bytes();
        let caches = device.l2_bytes * count;
        let rows_of_b = if problem.transpose_a { problem.rows } else { problem.cols };
        let prefetch_distance = options
            .prefetch_distance
            .unwrap_or_else(|| prefetch_distance(&stats, (rows_of_b, row_bytes), device.l2_bytes));
        // A part of a cache line is cheaper to write through the caches, and the loop for short rows, which is the
        // fastest for such, does nothing but that. With prefetching there is no such loop to win.
        let whole_lines = row_bytes >= LINE_BYTES || prefetch_distance > 0;
        let past_caches = c_bytes > caches && whole_lines;
        let large = options.streaming.unwrap_or(past_caches);
        let streaming = problem.layout_c == Layout::RowMajor && large;
        let config = Config { isa, threads: count, tile, streaming, prefetch_distance };
        let choice = Choice { algorithm, config: config.clone(), reason };
        let problem = problem.clone();
        Ok((choice, Rows { problem, config, threads, pattern, transposed, state, workspace }))
    }
}

impl<T: CpuScalar, I: Index, O: Index> Method<T> for Rows<'_, T, I, O> {
    fn bytes(&self) -> usize {
        let state = match &self.state {
            State::RowSplit(m) => m.bytes(),
            State::Extremum(m, _) => m.bytes(),
            State::Cuts(m) => m.bytes(),
            State::Csb(m) => m.bytes(),
            State::ColumnPanel(m) => m.bytes(),
            State::RowBlock(m) => m.bytes(),
        };
        self.transposed.as_ref().map_or(0, Transposed::bytes) + state + self.workspace.bytes()
    }

    fn execute(
        &mut self,
        values: &[T],
        b: DenseView<'_, T>,
        mut c: DenseViewMut<'_, T>,
        (alpha, beta): (T::Accum, T::Accum),
        mut output: Output<'_, T::Accum>,
    ) -> Result<()> {
        let (pattern, values, permutation) = match &mut self.transposed {
            None => (self.pattern.view(), values, None),
            Some(t) => {
                t.gather(&self.threads, values);
                let a = t.view();
                (a.pattern(), a.values().as_slice(), Some(IndexSlice::new(t.permutation())))
            }
        };
        let (semiring, mean) = (self.problem.semiring, self.problem.epilogue.mean);
        let (one, zero) = (semiring.one::<T::Accum>(), semiring.zero());
        let (ldb, ldc) = (b.leading_dimension(), c.leading_dimension());
        let op = Operands {
            offsets: Offsets::new(pattern.offsets()),
            indices: pattern.indices(),
            values,
            rows: c.nrows(),
            columns: c.ncols(),
            b: b.as_ptr(),
            ldb,
            c: c.as_mut_ptr(),
            ldc,
            alpha,
            beta,
            semiring,
            zero,
            reads_c: beta != zero,
            mean,
            plain: alpha == one && beta == zero && !mean,
            streaming: Streaming::No,
            prefetch_distance: self.config.prefetch_distance,
        };
        let isa = match self.config.isa {
            // Rows of at most 32 bytes fit AVX2 vectors: no masks, and fewer loads that cross cache
            // lines.
            Isa::Avx512 if c.ncols() * size_of::<T::Accum>() <= 32 => Isa::Avx2,
            isa => isa,
        };
        // A multiple of the vector size of every type; only vectors of an instruction set have
        // streaming stores.
        let bytes = if isa == Isa::Avx512 { 64 } else { (8 * size_of::<T>()).max(32) };
        let streaming = match self.config.streaming && T::has_vectors(isa, semiring) {
            true => op.streaming(bytes),
            false => Streaming::No,
        };
        let op = Operands { streaming, ..op };
        let (threads, state, inner) = (&self.threads, &mut self.state, self.problem.inner());
        let layouts = (b.layout(), c.layout());
        // The first column of a panel, and those of C.
        let (mut first, columns) = (0, op.columns);
        self.workspace.for_each_panel(threads, inner, &op, layouts, |op| match state {
            State::RowSplit(m) => m.execute::<T, I>(threads, isa, op),
            State::Extremum(m, extremum) => {
                let of = (first, columns);
                m.execute(threads, isa, (op, *extremum), &mut output, of, permutation);
                first += op.columns;
            }
            State::Cuts(m) => m.execute::<T, I>(threads, isa, op),
            State::Csb(m) => m.execute::<T, I>(threads, isa, op),
            State::ColumnPanel(m) => m.execute::<T, I>(threads, isa, op),
            State::RowBlock(m) => m.execute::<T, I>(threads, isa, op),
        });
        Ok(())
    }
}

/// The algorithm and the reason for it.
fn choose(
    stats: &RowStats,
    problem: &Problem,
    options: &Options,
    device: &DeviceProfile,
) -> Result<(Algorithm, String)> {
    match options.chooser {
        Chooser::Named(algorithm) => Ok((algorithm, "asked for by name".into())),
        Chooser::MeanRowLength => Ok(heuristics::mean_row_length::choose(stats)),
        Chooser::Autotune | Chooser::Predictor => Err(autotune_elsewhere(problem)),
        _ if problem.extremum.is_some() => {
            Ok((Algorithm::RowSplit, format!("{} takes whole rows", problem.reduction())))
        }
        _ => Ok(heuristics::cpu_spmm::choose(stats, problem, device)),
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::Pattern;

    use super::*;

    const L2: usize = 1 << 20;
    const ROWS: usize = 100_000;

    /// Statistics of 100,000 rows of `length` columns, that read on or elsewhere than the row before.
    fn stats(length: usize, reads_on: bool) -> RowStats {
        let stride = if reads_on { 1 } else { 7919 };
        let row = |i: usize| {
            let columns = (0..length).map(move |k| ((i * stride + k * 9_973) % ROWS) as u32);
            let mut columns: Vec<_> = columns.collect();
            columns.sort_unstable();
            columns
        };
        let indices: Vec<u32> = (0..ROWS).flat_map(row).collect();
        let offsets: Vec<u32> = (0..=ROWS).map(|i| (i * length) as u32).collect();
        RowStats::new(&Pattern::new(ROWS, ROWS, offsets, indices).unwrap().view())
    }

    #[test]
    fn rows_of_b_are_prefetched_where_that_pays() {
        let (scattered, near, long) = (stats(3, false), stats(3, true), stats(12, false));
        // 8 KiB ahead, between 8 and 64 nonzeros.
        let distances =
            [64, 128, 256, 512, 1024, 4096].map(|b| prefetch_distance(&scattered, (ROWS, b), L2));
        assert_eq!(distances, [64, 64, 32, 16, 8, 8]);
        // The processor reads on by itself, but not fast enough for wide rows.
        assert_eq!([64, 128].map(|b| prefetch_distance(&near, (ROWS, b), L2)), [0, 64]);
        // Half a line: for short rows of A that lie in much more than L2.
        assert_eq!(prefetch_distance(&scattered, (ROWS, 32), L2 / 2), 64);
        assert_eq!(prefetch_distance(&scattered, (ROWS, 32), L2), 0);
        assert_eq!(prefetch_distance(&long, (ROWS, 32), L2 / 2), 0);
        assert_eq!(prefetch_distance(&scattered, (ROWS, 16), 1), 0);
        // In L2 there is nothing to wait for.
        assert_eq!(prefetch_distance(&scattered, (ROWS, 256), 16 * L2), 0);
        assert_eq!(prefetch_distance(&scattered, (ROWS, 0), L2), 0);
    }
}
