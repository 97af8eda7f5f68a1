//! The SpMM plan: made once for a pattern, executed any number of times.

use gustav_core::{
    CsrView, DenseView, DenseViewMut, Error, Index, Layout, PlusTimes, Problem, Result, Semiring,
};
use gustav_plan::{Algorithm, Choice, Chooser, DeviceProfile, RowStats, heuristics};

use super::carry::Cuts;
use super::column_panel::ColumnPanel;
use super::csb::Blocks;
use super::operands::{Offsets, Operands, Streaming};
use super::row_block::RowBlock;
use super::row_split::RowSplit;
use super::transposed::Transposed;
use super::vector::Vector;
use super::workspace::Workspace;
use super::{CpuScalar, catalog, merge_path, nonzero_split};
use crate::arch::Isa;
use crate::catalog::autotune_elsewhere;
use crate::fingerprint::Fingerprint;
use crate::profile::profile;
use crate::{Config, Options, Threads};

// Parts that cut rows when the result must not depend on the number of threads.
const FIXED_PARTS: usize = 64;
// Bytes of a row of B from which fetching rows ahead pays: shorter ones overlap by themselves.
const FETCHED_BYTES: usize = 96;
// Bytes of B that are fetched ahead.
const AHEAD_BYTES: usize = 4096;

/// A planned SpMM: C = scale(α, op(A)·B) ⊕ scale(β, C).
///
/// Belongs to the pattern of the matrix it was made for, and to the columns, layouts and
/// transposition of its [`Problem`]; values, α, β and the semiring may change from call to call.
/// Nothing is allocated by [`SpmmPlan::execute`].
pub struct SpmmPlan<T: CpuScalar, I: Index = u32, O: Index = u32> {
    problem: Problem,
    choice: Choice<Config>,
    threads: Threads,
    /// That of A; none where the SpMV plan has it.
    fingerprint: Option<Fingerprint>,
    transposed: Option<Transposed<T, I, O>>,
    method: Method<T, I, O>,
    workspace: Workspace<T>,
}

/// What each algorithm keeps.
enum Method<T: CpuScalar, I: Index, O: Index> {
    RowSplit(RowSplit),
    Cuts(Cuts<T::Accum>),
    Csb(Blocks<T::Accum, O>),
    ColumnPanel(ColumnPanel<T::Accum, O>),
    RowBlock(RowBlock),
    /// One column, chosen by the planner.
    Vector(Box<Vector<T, I, O>>),
}

impl<T: CpuScalar, I: Index, O: Index> SpmmPlan<T, I, O> {
    /// Plans `problem` for the pattern of `a`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when the problem is not an SpMM or the algorithm asked for does
    /// not do it, [`Error::Pattern`] when the problem was made from another matrix,
    /// [`Error::Argument`] for an instruction set that this machine lacks,
    /// [`Error::OutOfMemory`] for the workspace. [`Chooser::Autotune`] is unsupported here.
    pub fn new(a: CsrView<'_, T, I, O>, problem: &Problem, options: &Options) -> Result<Self> {
        problem.check_a(a.nrows(), a.ncols(), a.nnz())?;
        problem.check_dense()?;
        let isa = options.isa()?;
        let device = profile(options.threads.count(), isa);
        if problem.columns == 1 && options.chooser == Chooser::Auto {
            return Self::one_column(a, problem, options);
        }
        let by_row = options.chooser != Chooser::Named(Algorithm::Csb);
        let transposed =
            if problem.transpose_a && by_row { Some(Transposed::new(&a)?) } else { None };
        let op_a = transposed.as_ref().map_or(a, |t| t.view());
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
        let method = match algorithm {
            Algorithm::NonzeroSplit => Method::Cuts(nonzero_split::new(offsets, parts, columns)?),
            Algorithm::MergePath => Method::Cuts(merge_path::new(offsets, parts, columns)?),
            Algorithm::Csb => {
                let transposed = problem.transpose_a;
                let block = options.tile.map(|t| t.max(1));
                let blocks = Blocks::new(&a, transposed, columns, sums_bytes, block, count)?;
                tile = Some(blocks.block());
                Method::Csb(blocks)
            }
            Algorithm::ColumnPanel => {
                let panel = problem.clone().columns(columns);
                let fit = heuristics::cpu_spmm::tile_rows(&panel, &device);
                let rows = options.tile.map_or(fit, |t| t.max(1));
                let panel = ColumnPanel::new(&op_a, columns, rows, sums_bytes, count)?;
                tile = Some(panel.tile());
                Method::ColumnPanel(panel)
            }
            Algorithm::RowBlock => Method::RowBlock(RowBlock::new(&op_a, columns, count)?),
            _ => {
                Method::RowSplit(RowSplit::new(&op_a, (columns, row_bytes), device.l2_bytes, count))
            }
        };
        // Nobody finds C in the caches of the threads when it is larger than they are.
        let c_bytes = problem.output_rows() * problem.columns * problem.dtype.bytes();
        let caches = device.l2_bytes * count;
        let large = options.streaming.unwrap_or(c_bytes > caches);
        let streaming = problem.layout_c == Layout::RowMajor && large;
        // Rows of B that neighbouring rows of A meet again are in L2 already.
        let scattered = stats.mean_row_span * row_bytes as f64 > device.l2_bytes as f64 / 2.0;
        let fetched = scattered && row_bytes >= FETCHED_BYTES;
        let ahead = if fetched { (AHEAD_BYTES / row_bytes).clamp(8, 16) } else { 0 };
        let ahead = options.ahead.unwrap_or(ahead);
        let config = Config { isa, threads: count, tile, streaming, ahead };
        let choice = Choice { algorithm, config, reason };
        let fingerprint = Some(Fingerprint::new(&a, options.one_call, &threads));
        let problem = problem.clone();
        Ok(SpmmPlan { problem, choice, threads, fingerprint, transposed, method, workspace })
    }

    /// The product with one column: an SpMV, whatever the layouts.
    fn one_column(a: CsrView<'_, T, I, O>, problem: &Problem, options: &Options) -> Result<Self> {
        (catalog::find(Algorithm::RowSplit, problem)?.supports)(problem)?;
        let vector = Vector::new(a, problem, options)?;
        let mut choice = vector.plan.choice().clone();
        choice.reason = format!("one column: an SpMV; {}", choice.reason);
        Ok(SpmmPlan {
            problem: problem.clone(),
            choice,
            threads: options.threads.clone(),
            fingerprint: None,
            transposed: None,
            method: Method::Vector(Box::new(vector)),
            workspace: Workspace::none()?,
        })
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
            Method::Csb(m) => m.bytes(),
            Method::ColumnPanel(m) => m.bytes(),
            Method::RowBlock(m) => m.bytes(),
            Method::Vector(m) => m.bytes(),
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
    /// [`Error::Pattern`] when `a` has another pattern than the plan's matrix, [`Error::Shape`]
    /// when B or C does not fit it or lies in another layout than planned.
    ///
    /// Arrays at the addresses of the last call are only sampled for this: a program that writes
    /// another pattern over the old one makes a new plan, or it may get a wrong product.
    pub fn execute<S: Semiring<T::Accum>>(
        &mut self,
        _semiring: S,
        a: CsrView<'_, T, I, O>,
        alpha: T::Accum,
        b: DenseView<'_, T>,
        beta: T::Accum,
        mut c: DenseViewMut<'_, T>,
    ) -> Result<()> {
        if let Some(fingerprint) = &mut self.fingerprint {
            fingerprint.check("A", &a, &self.threads)?;
        }
        let p = &self.problem;
        check_dense("B", (p.inner(), p.columns, p.layout_b), (b.nrows(), b.ncols(), b.layout()))?;
        let found = (c.nrows(), c.ncols(), c.layout());
        check_dense("C", (p.output_rows(), p.columns, p.layout_c), found)?;
        if c.nrows() == 0 || c.ncols() == 0 {
            return Ok(());
        }
        if let Method::Vector(m) = &mut self.method {
            return m.execute::<S>(a, alpha, b, beta, c);
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
            rows: p.output_rows(),
            columns: c.ncols(),
            b: b.data().as_ptr(),
            ldb,
            c: c.data().as_mut_ptr(),
            ldc,
            alpha,
            beta,
            zero: S::zero(),
            reads_c: beta != S::zero(),
            plain: alpha == S::one() && beta == S::zero(),
            streaming: Streaming::No,
            ahead: self.choice.config.ahead,
        };
        let isa = match self.choice.config.isa {
            // Half a register holds a whole row: no masks, and fewer loads that cross lines.
            Isa::Avx512 if c.ncols() * size_of::<T::Accum>() <= 32 => Isa::Avx2,
            isa => isa,
        };
        let vector = if isa == Isa::Avx512 { 64 } else { (8 * size_of::<T>()).max(32) };
        let wanted = self.choice.config.streaming;
        let streaming = if wanted { op.streaming(vector) } else { Streaming::No };
        let op = Operands { streaming, ..op };
        let (threads, method, inner) = (&self.threads, &mut self.method, self.problem.inner());
        self.workspace.for_each_panel(threads, inner, &op, (b.layout(), c.layout()), |op| {
            match method {
                Method::RowSplit(m) => m.execute::<T, I, S>(threads, isa, op),
                Method::Cuts(m) => m.execute::<T, I, S>(threads, isa, op),
                Method::Csb(m) => m.execute::<T, I, S>(threads, isa, op),
                Method::ColumnPanel(m) => m.execute::<T, I, S>(threads, isa, op),
                Method::RowBlock(m) => m.execute::<T, I, S>(threads, isa, op),
                // Executed above.
                Method::Vector(_) => {}
            }
        });
        Ok(())
    }
}

/// Who chooses, and what.
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
        _ => Ok(heuristics::cpu_spmm::choose(stats, problem, device)),
    }
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
