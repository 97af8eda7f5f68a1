//! A plan: one algorithm prepared for one pattern.

use gustav_core::{Index, Layout, Problem, Result, Scalar, Semiring, validate};
use gustav_plan::{Algorithm, Choice, Chooser};

use super::auto;
use super::catalog::Config;
use crate::device::graph::{self, SharedCore};
use crate::device::order::{Access, PlanOrder, Uses};
use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::source::bits;
use crate::matrix::layout::{Move, Transpose};
use crate::matrix::{DeviceDense, DevicePattern, DeviceValues, HeldPattern};
use crate::product::op_a::typed;
use crate::product::operands::Batch;
use crate::product::sampled::{Method, Operands};
use crate::product::{SddmmCall, catalog, checks};
use crate::schedule::pattern::Pattern;

/// What the caller of a plan decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Who chooses the algorithm.
    pub chooser: Chooser,
    /// The configuration, in place of the algorithm's own choice.
    pub config: Option<Config>,
}

/// A plan for `values[p] = α·⟨X[row p], Y[column p]⟩ + β·values[p]`, for one pattern, which it
/// holds.
///
/// Results of our algorithms are the same to the bit from run to run for operands of the same
/// alignment and leading dimension. A plan may be sent to another thread. Several plans may be
/// executed at once, on one stream or on several.
pub struct SddmmPlan<T: Scalar> {
    device: Device,
    problem: Problem,
    choice: Choice<Config>,
    work: SharedCore<Work<T>>,
}

/// What an execution uses beside its operands.
struct Work<T> {
    pattern: HeldPattern,
    method: Box<dyn Method>,
    x: Option<RowMajor<T>>,
    y: Option<RowMajor<T>>,
}

impl<T: Scalar> SddmmPlan<T> {
    /// Prepares the product at `pattern`. The plan sets the types of `problem`.
    ///
    /// # Errors
    /// [`Error::Unsupported`](gustav_core::Error::Unsupported) when `problem` is not an SDDMM over
    /// plus-times or the algorithm named in `options` cannot compute it,
    /// [`Error::Pattern`](gustav_core::Error::Pattern) when `problem` was made for another shape or
    /// number of nonzeros, [`Error::OutOfMemory`](gustav_core::Error::OutOfMemory),
    /// [`Error::NoDevice`](gustav_core::Error::NoDevice) when the run-time compiler is missing,
    /// [`Error::Device`](gustav_core::Error::Device).
    pub fn new<I: Index, O: Index>(
        pattern: &DevicePattern<I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let (device, problem) = (pattern.device().clone(), typed::<T, I, O>(problem));
        problem.check_a(pattern.nrows(), pattern.ncols(), pattern.nnz())?;
        problem.check_dense()?;
        let configured = options.config.map(|c| c.algorithm());
        let named = catalog::named(&problem, options.chooser, configured)?;
        catalog::check(super::catalog(), &problem, named.unwrap_or(Algorithm::NonzeroSplit))?;
        pattern.join(&device)?;
        let facts = Pattern::new(pattern)?;
        let (config, reason) = match (options.config, named) {
            (Some(config), _) => (config, "configured by the caller".into()),
            (None, Some(algorithm)) => Config::choose(algorithm, &facts, &problem)?,
            (None, None) => auto::choose(&facts, &problem)?,
        };
        let algorithm = config.algorithm();
        let held = pattern.held();
        let method = config.prepare(&facts, &held, &problem)?;
        drop(facts);
        let row_major = |rows: usize, layout, what| {
            (layout == Layout::ColumnMajor)
                .then(|| RowMajor::new(&device, rows, problem.columns, what))
                .transpose()
        };
        let x = row_major(problem.rows, problem.layout_c, "row-major X")?;
        let y = row_major(problem.cols, problem.layout_b, "row-major Y")?;
        let order = PlanOrder::new(&device, problem.calls)?;
        let choice = Choice { algorithm, config, reason };
        let work = graph::core(order, Work { pattern: held, method, x, y });
        Ok(SddmmPlan { device, problem, choice, work })
    }

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds on the device beside the caller's arrays and the pattern.
    pub fn workspace_bytes(&self) -> usize {
        let work = &graph::lock(&self.work).method;
        let copies = [&work.x, &work.y].into_iter().flatten().map(|m| m.values.bytes());
        work.method.bytes() + copies.sum::<usize>()
    }

    /// Queues the values in the order of the pattern's nonzeros, as `call` says; neither allocates
    /// nor waits, except that operands less aligned than packed ones compile their kernel at first
    /// sight and that `vendor` sets itself up. β = 0 leaves the values unread.
    ///
    /// The work is ordered after earlier work of other streams on the operands, and after earlier
    /// executions of this plan.
    ///
    /// # Errors
    /// [`Error::Shape`](gustav_core::Error::Shape) when `x` or `y` does not fit,
    /// [`Error::Length`](gustav_core::Error::Length) when values, factors or elements are missing,
    /// [`Error::Pattern`](gustav_core::Error::Pattern) for factors of another pattern,
    /// [`Error::Argument`](gustav_core::Error::Argument) when the values overlap an operand or an
    /// operand is on another device, [`Error::Unsupported`](gustav_core::Error::Unsupported) for
    /// factors in `vendor`, [`Error::Device`](gustav_core::Error::Device).
    pub fn execute<'v>(
        &mut self,
        x: &DeviceDense<T>,
        y: &DeviceDense<T>,
        values: &mut DeviceBuffer<T>,
        call: impl Into<SddmmCall<'v, T>>,
    ) -> Result<()> {
        let (p, device, call) = (&self.problem, &self.device, call.into());
        let stream = call.common.stream(device);
        let mut core = graph::lock(&self.work);
        let pattern = &core.method.pattern;
        let of_x = checks::strides(&p.batch_c("X"), x)?;
        let of_y = checks::strides(&p.batch_b("Y"), y)?;
        validate::length("values", p.nnz.saturating_mul(p.batch), values.len())?;
        let fit = |f: DeviceValues<'v, T>| f.fit_batch("factors", pattern.id, p.nnz, p.batch);
        let factors = call.factors.map(fit).transpose()?;
        let each = factors.map_or(0, |f| if f.len() == p.nnz { 0 } else { p.nnz });
        let batch = Batch { count: p.batch, values: each, b: of_y.matrix, c: of_x.matrix };
        checks::apart(device, pattern, ("values", values), &[("X", x.data()), ("Y", y.data())])?;
        if let Some(factors) = factors {
            checks::apart(device, pattern, ("values", values), &[("the factors", factors)])?;
        }
        if p.nnz == 0 {
            return Ok(());
        }
        core.order.next(stream)?;
        let Work { pattern, method, x: copy_x, y: copy_y } = &mut core.method;
        let mut uses = Uses::on(stream).ordered(call.common.ordered);
        uses.access(&pattern.offsets, Access::Read)?;
        uses.access(&pattern.indices, Access::Read)?;
        uses.read(x.data())?;
        uses.read(y.data())?;
        if let Some(factors) = factors {
            uses.read(factors)?;
        }
        uses.write(values)?;
        // SAFETY: shapes, leading dimensions and lengths were checked against the buffers, which
        // wait for the stream when they are freed; the pattern is the plan's own.
        unsafe {
            let (x, ldx) = row_major(copy_x, stream, x, of_x.line)?;
            let (y, ldy) = row_major(copy_y, stream, y, of_y.line)?;
            let operands = Operands {
                offsets: pattern.offsets.address(),
                indices: pattern.indices.address(),
                rows: p.rows,
                cols: p.cols,
                nnz: p.nnz,
                index_type: p.index_type,
                offset_type: p.offset_type,
                dtype: T::DTYPE,
                x,
                ldx,
                y,
                ldy,
                depth: p.columns,
                batch,
                values: values.address(),
                factors: factors.map_or(0, DeviceBuffer::address),
                alpha: bits(call.common.alpha(Semiring::PlusTimes)),
                beta: bits(call.common.beta(Semiring::PlusTimes)),
            };
            method.launch(device, stream, &operands)
        }
    }
}

/// Where a column-major operand is brought to.
struct RowMajor<T> {
    values: DeviceBuffer<T>,
    transpose: Transpose,
}

impl<T: Scalar> RowMajor<T> {
    fn new(device: &Device, rows: usize, columns: usize, what: &'static str) -> Result<Self> {
        let values = DeviceBuffer::uninit(device, rows.saturating_mul(columns), what)?;
        let transpose = Transpose::new(device, T::DTYPE, T::DTYPE, Semiring::PlusTimes, 0)?;
        Ok(RowMajor { values, transpose })
    }
}

/// Address and leading dimension of `m` row-major: of the copy, which is queued, or of itself,
/// where it is `ld_from`.
///
/// # Safety
/// `m` lives until the stream has done the work; the copy was made for its shape.
unsafe fn row_major<T: Scalar>(
    copy: &Option<RowMajor<T>>,
    stream: &Stream,
    m: &DeviceDense<T>,
    ld_from: usize,
) -> Result<(u64, usize)> {
    let from = m.data().address();
    let Some(RowMajor { values, transpose }) = copy else { return Ok((from, ld_from)) };
    values.used_on(stream);
    let (lines, length) = (m.ncols(), m.nrows());
    let m = Move { from, to: values.address(), lines, length, ld_from, ld_to: lines };
    // SAFETY: promised by the caller.
    unsafe { transpose.copy::<T>(stream, &m)? };
    Ok((m.to, m.ld_to))
}
