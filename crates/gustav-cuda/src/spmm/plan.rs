//! A plan: one algorithm prepared for one pattern, and the workspaces around it.

use gustav_core::{Epilogue, Error, Index, Layout, Problem, Result, Scalar, validate};
use gustav_plan::heuristics::mean_row_length;
use gustav_plan::{Algorithm, Choice, Chooser, RowOrder};

use super::auto;
use super::catalog::Config;
use crate::device::graph::{self, SharedCore};
use crate::device::order::{PlanOrder, Uses};
use crate::device::{Device, DeviceBuffer};
use crate::jit::source::bits;
use crate::matrix::layout::{Move, Transpose};
use crate::matrix::{DeviceDense, DevicePattern, DeviceValues};
use crate::product::method::Method;
use crate::product::op_a::{OpA, Planned, typed};
use crate::product::operands::{self, Batch, Operands};
use crate::product::winners::{DeviceWinners, DeviceWinnersMut};
use crate::product::{Call, catalog, checks, orders};

/// The caller's options for a plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Who chooses the algorithm.
    pub chooser: Chooser,
    /// The configuration; `None` to let the rules choose.
    pub config: Option<Config>,
    /// A row order of op(A), for `output-stationary` and `segmented`; C is in the caller's order.
    /// With a row order the rules choose `segmented`.
    pub order: Option<&'a RowOrder>,
}

/// A plan for C = α·op(A)·B ⊕ β·C, for one pattern of A, which it holds, and any values.
///
/// A plan may be sent to another thread. Several plans, also of one pattern, may be executed
/// concurrently, on one stream or on several.
pub struct SpmmPlan<T: Scalar> {
    device: Device,
    problem: Problem,
    choice: Choice<Config>,
    converts: bool,
    work: SharedCore<Work<T>>,
}

/// The state that an execution uses besides its operands.
struct Work<T: Scalar> {
    op_a: OpA<T>,
    method: Box<dyn Method>,
    layouts: Layouts<T>,
    /// Whether the method holds converted values of an A.
    converted: bool,
}

/// How an execution uses winners.
enum Winners<'v> {
    None,
    /// Max and min write them.
    Written(DeviceWinnersMut<'v>),
    /// A gradient reads those of its product.
    Filter(DeviceWinners<'v>),
}

/// Row-major workspaces of column-major operands.
struct Layouts<T: Scalar> {
    b: Option<(DeviceBuffer<T>, Transpose)>,
    c: Option<(DeviceBuffer<T::Accum>, Transpose)>,
}

impl<T: Scalar> SpmmPlan<T> {
    /// Analyses `pattern` on the device and chooses the algorithm. The plan sets the types of
    /// `problem`. For a problem of one call the pattern is not analysed, and this returns before
    /// the device is ready.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when the algorithm named in `options` cannot compute `problem`,
    /// [`Error::Pattern`] when `problem` was made for another shape or number of nonzeros,
    /// [`Error::OutOfMemory`], [`Error::NoDevice`] when the run-time compiler is missing,
    /// [`Error::Device`].
    pub fn new<I: Index, O: Index>(
        pattern: &DevicePattern<I, O>,
        problem: &Problem,
        options: &Options<'_>,
    ) -> Result<Self> {
        let (device, problem) = (pattern.device().clone(), &typed::<T, I, O>(problem));
        problem.check_a(pattern.nrows(), pattern.ncols(), pattern.nnz())?;
        problem.check_dense()?;
        let named = named(problem, options)?;
        let planned = Planned::new(&device, pattern, problem.transpose_a)?;
        let op_a = OpA::new(&device, pattern, &planned, problem.batch)?;
        let facts = planned.pattern()?.ordered(options.order);
        let (config, mut reason) = match (options.config, named) {
            (Some(config), _) => (config, "configured by the caller".into()),
            (None, Some(algorithm)) => Config::choose(algorithm, &facts, problem)?,
            (None, None) => auto::choose(&facts, problem)?,
        };
        if let Some(order) = options.order {
            let search = match order.bound() {
                None => "as it is defined".into(),
                Some(bound) => format!("searched among {bound} candidates a neighbourhood"),
            };
            reason += &format!("; rows in the order {}, {search}", order.order());
        }
        let algorithm = config.algorithm();
        let mut method = config.prepare(&facts, problem)?;
        drop(facts);
        let order = PlanOrder::new(&device, problem.calls)?;
        let layouts = Layouts::new(&device, problem, !config.any_layout())?;
        let choice = Choice { algorithm, config, reason };
        let converts = method.converts();
        // Compiles the kernels for packed, fully aligned operands.
        method.compile(&device, &operands(problem, &op_a, &layouts, 0))?;
        let work = Work { op_a, method, layouts, converted: false };
        let problem = problem.clone();
        Ok(SpmmPlan { device, problem, choice, converts, work: graph::core(order, work) })
    }

    /// The chosen algorithm and configuration, and the reason.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds on the device beside the caller's arrays and the pattern.
    pub fn workspace_bytes(&self) -> usize {
        let work = &graph::lock(&self.work).method;
        let b = work.layouts.b.as_ref().map_or(0, |(w, _)| w.bytes());
        let c = work.layouts.c.as_ref().map_or(0, |(w, _)| w.bytes());
        work.method.bytes() + work.op_a.bytes() + b + c
    }

    /// Queues C = α·op(A)·B ⊕ β·C with the options of `call` and the operations of
    /// [`Problem::epilogue`]; neither allocates nor waits, except that the first execution with
    /// less aligned operands compiles their kernel, and the first execution of `vendor` initialises
    /// it. `values` are those of A: a matrix of the plan's pattern, or a buffer in the order of its
    /// nonzeros. β equal to the semiring's zero leaves C unread.
    ///
    /// The work is ordered after earlier work of other streams on the operands, and after earlier
    /// executions of this plan.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `values` belong to another pattern, [`Error::Length`] for another
    /// number of values, or when `b` or `c` has too few, [`Error::Shape`] when `b` or `c` does not
    /// fit, [`Error::Argument`] when C overlaps another operand, an operand is on another device,
    /// or there is a bias and the problem has none, or the other way round, or as
    /// [`Problem::check_reduction`], [`Error::Device`].
    pub fn execute<'v>(
        &mut self,
        values: impl Into<DeviceValues<'v, T>>,
        b: &DeviceDense<T>,
        c: &mut DeviceDense<T>,
        call: Call<'_, T>,
    ) -> Result<()> {
        self.run(values.into(), b, c, Winners::None, call)
    }

    /// The same with max or min; also writes to `winners`, for every element of C, the position of
    /// its winner among the values of A: row-major and packed, the largest number of the type for
    /// empty rows. The first execution with winners of a type compiles the kernel for it.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`], and [`Error::Argument`] when the problem has neither max nor min
    /// or `winners` overlap an operand, [`Error::Length`] for another number of them than C has
    /// elements.
    pub fn execute_with_winners<'v>(
        &mut self,
        values: impl Into<DeviceValues<'v, T>>,
        b: &DeviceDense<T>,
        c: &mut DeviceDense<T>,
        winners: impl Into<DeviceWinnersMut<'v>>,
        call: Call<'_, T>,
    ) -> Result<()> {
        self.run(values.into(), b, c, Winners::Written(winners.into()), call)
    }

    /// The product in which a nonzero contributes only in columns where it is the winner, for a
    /// plan of sums by `segmented`: `winners` has the position in A of a nonzero for every element
    /// of B, row-major and packed.
    pub(super) fn execute_filtered(
        &mut self,
        values: DeviceValues<'_, T>,
        b: &DeviceDense<T>,
        c: &mut DeviceDense<T>,
        winners: DeviceWinners<'_>,
        call: Call<'_, T>,
    ) -> Result<()> {
        self.run(values, b, c, Winners::Filter(winners), call)
    }

    /// Computes C = α·op(A)·B as a new packed matrix in the layout of the problem; the matrices of
    /// a batch one above the other.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`], and [`Error::Argument`] for a β that would read C.
    pub fn execute_new<'v>(
        &mut self,
        values: impl Into<DeviceValues<'v, T>>,
        b: &DeviceDense<T>,
        call: Call<'_, T>,
    ) -> Result<DeviceDense<T>> {
        let p = &self.problem;
        if call.common.beta(p.semiring) != p.semiring.zero() {
            return Err(Error::Argument {
                name: "beta",
                found: "a factor of C".into(),
                expected: "the semiring's zero for a new C".into(),
            });
        }
        // Every value of C is written.
        let rows = p.output_rows().saturating_mul(p.batch);
        let mut c = DeviceDense::queued(&self.device, rows, p.columns, p.layout_c)?;
        self.run(values.into(), b, &mut c, Winners::None, call)?;
        Ok(c)
    }

    fn run(
        &mut self,
        values: DeviceValues<'_, T>,
        b: &DeviceDense<T>,
        c: &mut DeviceDense<T>,
        winners: Winners<'_>,
        call: Call<'_, T>,
    ) -> Result<()> {
        let (p, device) = (&self.problem, &self.device);
        let stream = call.common.stream(device);
        let mut core = graph::lock(&self.work);
        let values = core.method.op_a.fit(values)?;
        let (batch, ldb, ldc) = checks::dense(p, device, &core.method.op_a.pattern, values, b, c)?;
        checks::bias(p, device, call.bias, c.data())?;
        let (alpha, beta) = (call.common.alpha(p.semiring), call.common.beta(p.semiring));
        let written = match &winners {
            Winners::Written(winners) => Some(winners.description()),
            Winners::None | Winners::Filter(_) => None,
        };
        p.check_reduction(call.reads(p.semiring), call.empty.is_some(), written)?;
        match &winners {
            Winners::None => {}
            Winners::Written(winners) => {
                let operands = [("the values of A", values), ("B", b.data()), ("C", c.data())];
                winners.check(device, &core.method.op_a.pattern, &operands)?;
            }
            Winners::Filter(winners) => {
                let elements = p.inner().saturating_mul(p.columns);
                validate::length("winners", elements, winners.description().1)?;
                winners.check(device, ("C", c.data()))?;
            }
        }
        if p.output_rows() == 0 || p.columns == 0 {
            return Ok(());
        }
        core.order.next(stream)?;
        let Work { op_a, method, layouts, converted } = &mut core.method;
        let mut uses = Uses::on(stream).ordered(call.common.ordered);
        op_a.read(&mut uses, values)?;
        uses.read(b.data())?;
        uses.write(c.data())?;
        let mut operands = operands(p, op_a, layouts, values.address());
        if let Some(bias) = call.bias {
            uses.read(bias)?;
            operands.bias = bias.address();
        }
        operands.batch = batch;
        (operands.b, operands.ldb) = (b.data().address(), ldb);
        (operands.c, operands.ldc) = (c.data().address(), ldc);
        (operands.alpha, operands.beta) = (bits(alpha), bits(beta));
        if p.extremum.is_some() {
            operands.beta = bits(call.empty.unwrap_or(T::Accum::zero()));
        }
        match &winners {
            Winners::None => {}
            Winners::Written(winners) => {
                operands.winner = Some(winners.description().0);
                operands.winners = winners.write(&mut uses)?;
            }
            Winners::Filter(winners) => {
                operands.winner = Some(winners.description().0);
                operands.winners = winners.read(&mut uses)?;
                operands.filtered = true;
            }
        }
        operands.permutation = op_a.permutation();
        op_a.refresh(&mut uses, stream, values)?;
        // SAFETY: shapes, leading dimensions and numbers of values were checked against the
        // buffers, which wait for the stream when they are freed; the pattern is the plan's own.
        unsafe {
            if let Some((workspace, transpose)) = &layouts.b {
                workspace.used_on(stream);
                let (lines, length) = (p.columns, p.inner());
                let m = Move {
                    from: operands.b,
                    to: workspace.address(),
                    lines,
                    length,
                    ld_from: operands.ldb,
                    ld_to: lines,
                };
                transpose.copy::<T>(stream, &m)?;
                (operands.b, operands.ldb) = (m.to, m.ld_to);
            }
            let c_final = (operands.c, operands.ldc);
            if let Some((workspace, _)) = &layouts.c {
                workspace.used_on(stream);
                (operands.c, operands.ldc) = (workspace.address(), p.columns);
                // The workspace holds sums without α and β, or finished extrema.
                if p.extremum.is_none() {
                    operands.alpha = bits(p.semiring.one::<T::Accum>());
                    operands.beta = bits(p.semiring.zero::<T::Accum>());
                }
            }
            if !call.reuse_conversion || !*converted {
                method.convert(stream, &operands)?;
                *converted = true;
            }
            method.launch(device, stream, &operands)?;
            if let Some((workspace, transpose)) = &layouts.c {
                let m = Move {
                    from: workspace.address(),
                    to: c_final.0,
                    lines: p.output_rows(),
                    length: p.columns,
                    ld_from: p.columns,
                    ld_to: c_final.1,
                };
                let alpha = if p.extremum.is_some() { p.semiring.one() } else { alpha };
                transpose.launch(stream, &m, alpha, beta, operands.bias)?;
            }
        }
        Ok(())
    }

    /// Whether executions first convert the values of A to a format of the algorithm's own.
    pub fn converts(&self) -> bool {
        self.converts
    }

    /// Queues only this conversion, to be timed; does nothing for algorithms without one.
    ///
    /// # Errors
    /// [`Error::Pattern`] and [`Error::Length`] as [`SpmmPlan::execute`], [`Error::Device`].
    pub fn convert<'v>(
        &mut self,
        values: impl Into<DeviceValues<'v, T>>,
        call: Call<'_, T>,
    ) -> Result<()> {
        let stream = call.common.stream(&self.device);
        let mut core = graph::lock(&self.work);
        let values = core.method.op_a.fit(values.into())?;
        core.order.next(stream)?;
        let Work { op_a, method, layouts, converted } = &mut core.method;
        let mut uses = Uses::on(stream).ordered(call.common.ordered);
        op_a.read(&mut uses, values)?;
        if self.converts {
            op_a.refresh(&mut uses, stream, values)?;
        }
        let operands = operands(&self.problem, op_a, layouts, values.address());
        // SAFETY: the pattern is the plan's own, with as many values; A waits for the stream when
        // freed.
        unsafe { method.convert(stream, &operands)? };
        *converted = true;
        Ok(())
    }
}

/// The operands with `values` of A, and packed, fully aligned B and C without addresses.
fn operands<T: Scalar>(p: &Problem, op_a: &OpA<T>, layouts: &Layouts<T>, values: u64) -> Operands {
    let a = op_a.addresses(values);
    let through = layouts.c.is_some();
    Operands {
        offsets: a.offsets,
        indices: a.indices,
        values: a.values,
        rows: p.output_rows(),
        inner: p.inner(),
        nnz: p.nnz,
        b: 0,
        ldb: p.columns,
        c: 0,
        ldc: p.columns,
        layouts: (p.layout_b, p.layout_c),
        columns: p.columns,
        // Matrices of a batch one above the other.
        batch: Batch {
            count: p.batch,
            values: 0,
            b: p.inner().saturating_mul(p.columns),
            c: p.output_rows().saturating_mul(p.columns),
        },
        alpha: 0,
        beta: 0,
        dtype: T::DTYPE,
        dtype_c: if through { T::Accum::DTYPE } else { T::DTYPE },
        index_type: p.index_type,
        offset_type: p.offset_type,
        semiring: p.semiring,
        steps: steps(p, through).0,
        bias: 0,
        extremum: p.extremum,
        winner: None,
        winners: 0,
        permutation: 0,
        filtered: false,
    }
}

impl<T: Scalar> Layouts<T> {
    fn new(device: &Device, p: &Problem, row_major_only: bool) -> Result<Self> {
        let needs = |layout| row_major_only && layout == Layout::ColumnMajor;
        let elements = |rows: usize| rows.saturating_mul(p.columns);
        let b = needs(p.layout_b)
            .then(|| {
                let workspace = DeviceBuffer::uninit(device, elements(p.inner()), "row-major B")?;
                let plain = gustav_core::Semiring::PlusTimes;
                Ok::<_, Error>((workspace, Transpose::new(device, T::DTYPE, T::DTYPE, plain, 0)?))
            })
            .transpose()?;
        let c = needs(p.layout_c)
            .then(|| {
                let workspace =
                    DeviceBuffer::uninit(device, elements(p.output_rows()), "row-major C")?;
                let (sums, values) = (T::Accum::DTYPE, T::DTYPE);
                let transpose = Transpose::new(device, sums, values, p.semiring, steps(p, true).1)?;
                Ok::<_, Error>((workspace, transpose))
            })
            .transpose()?;
        Ok(Layouts { b, c })
    }
}

/// The algorithm that the caller names, checked against the problem; `None` if the rules choose.
fn named(problem: &Problem, options: &Options<'_>) -> Result<Option<Algorithm>> {
    let configured = options.config.map(|c| c.algorithm());
    let chooser = match options.chooser {
        Chooser::MeanRowLength => {
            let mean = problem.nnz as f64 / problem.output_rows().max(1) as f64;
            Chooser::Named(mean_row_length::of_mean(mean).0)
        }
        Chooser::Auto if options.order.is_some() && configured.is_none() => {
            Chooser::Named(Algorithm::Segmented)
        }
        chooser => chooser,
    };
    let named = crate::product::catalog::named(problem, chooser, configured)?;
    catalog::check(super::catalog(), problem, named.unwrap_or(Algorithm::Segmented))?;
    if let (Some(algorithm), Some(order)) = (named, options.order) {
        orders::check(problem, algorithm, order)?;
    }
    Ok(named)
}

/// The operations of the epilogue for the kernel, and those for the copy from a workspace to C.
fn steps(problem: &Problem, workspace: bool) -> (u8, u8) {
    let all = problem.epilogue;
    if problem.extremum.is_some() {
        return (operands::EXTREMUM, 0);
    }
    if !workspace {
        return (all.bits(), 0);
    }
    // Bias and ReLU follow α and β, so they are applied in the copy.
    let mean = Epilogue { bias: false, relu: false, ..all };
    (mean.bits(), Epilogue { mean: false, ..all }.bits())
}
