//! The plan of an attention: one pass over the rows.

use gustav_core::{Error, HeadValues, Index, Problem, Result, Scalar, ScoreOptions};
use gustav_plan::{Algorithm, Choice, Chooser};

use super::catalog::Config;
use super::operands::{AttentionCall, Checked, Range, read_all};
use super::segmented::{self, Matrix, Operands, Pass, Prepared};
use crate::device::Device;
use crate::device::graph::{self, SharedCore};
use crate::device::order::{Access, PlanOrder, Uses};
use crate::jit::source::bits;
use crate::matrix::{DeviceDense, DevicePattern, HeldPattern};
use crate::product::catalog;
use crate::product::op_a::typed;
use crate::schedule::pattern::Pattern;

/// What the caller of a plan decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Who chooses the algorithm.
    pub chooser: Chooser,
    /// The configuration, in place of the algorithm's own choice.
    pub config: Option<Config>,
}

/// A plan for O = softmax(leaky(scale·Q·Kᵀ + bias))·V over the rows of one pattern, which it holds.
///
/// Results are the same to the bit from run to run for operands of the same alignment. A plan may
/// be sent to another thread. Several plans may be executed at once, on one stream or on several.
pub struct AttentionPlan<T: Scalar> {
    device: Device,
    problem: Problem,
    choice: Choice<Config>,
    work: SharedCore<Work>,
    values: std::marker::PhantomData<fn(T)>,
}

struct Work {
    pattern: HeldPattern,
    pass: Prepared,
}

impl<T: Scalar> AttentionPlan<T> {
    /// Prepares the product at `pattern`. The plan sets the types of `problem`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for integers, no columns, more than 256 of a head and other
    /// algorithms, [`Error::Pattern`] when `problem` was made for another shape or number of
    /// nonzeros, [`Error::OutOfMemory`], [`Error::NoDevice`] when the run-time compiler is missing,
    /// [`Error::Device`].
    pub fn new<I: Index, O: Index>(
        pattern: &DevicePattern<I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let (device, problem, choice) = chosen::<T, I, O>(pattern, problem, options)?;
        let Config::Segmented(config) = choice.config;
        let schedule = Pattern::new(pattern)?;
        let mut pass = Prepared::new(&schedule, &problem, Pass::Forward, config)?;
        let held = pattern.held();
        pass.compile(&device, &packed::<T>(&problem, &held, &ScoreOptions::default()))?;
        let order = PlanOrder::new(&device, problem.calls)?;
        let work = graph::core(order, Work { pattern: held, pass });
        Ok(AttentionPlan { device, problem, choice, work, values: std::marker::PhantomData })
    }

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds on the device beside the caller's arrays and the pattern.
    pub fn workspace_bytes(&self) -> usize {
        graph::lock(&self.work).method.pass.bytes()
    }

    /// Queues O, as `call` says; neither allocates nor waits, except that operands less aligned
    /// than packed ones, and the first bias, compile their kernel at first sight.
    ///
    /// The work is ordered after earlier work of other streams on the operands, and after earlier
    /// executions of this plan.
    ///
    /// # Errors
    /// [`Error::Shape`] when a matrix does not fit, [`Error::Length`] when elements or values are
    /// missing, [`Error::Pattern`] for a bias of another pattern, [`Error::Argument`] when a result
    /// overlaps an operand or an operand is on another device, [`Error::Device`].
    pub fn execute<'v>(
        &mut self,
        q: &DeviceDense<T>,
        k: &DeviceDense<T>,
        v: &DeviceDense<T>,
        o: &mut DeviceDense<T>,
        call: impl Into<AttentionCall<'v, T>>,
    ) -> Result<()> {
        let (p, device) = (&self.problem, &self.device);
        let AttentionCall { options, lse } = call.into();
        let stream = options.stream.unwrap_or_else(|| device.stream());
        let mut core = graph::lock(&self.work);
        let pattern = &core.method.pattern;
        let check = Checked { device, pattern, problem: p };
        let mut operands = Operands {
            own_left: check.matrix("Q", (p.rows, p.columns), q)?,
            left: check.matrix("K", (p.cols, p.columns), k)?,
            right: check.matrix("V", (p.cols, p.value_columns), v)?,
            right_result: check.matrix("O", (p.rows, p.value_columns), o)?,
            ..packed::<T>(p, pattern, &options.scores)
        };
        let mut results = vec![Range::of("O", o.data())];
        let mut inputs =
            vec![Range::of("Q", q.data()), Range::of("K", k.data()), Range::of("V", v.data())];
        if let Some(lse) = &lse {
            operands.lse = check.of_rows("lse", lse)?;
            results.push(Range::of("lse", lse));
        }
        if let Some(bias) = options.bias {
            let place = check.of_nonzeros("bias", bias.values, bias.order)?;
            (operands.bias, operands.bias_strides) = place;
            inputs.push(Range::of("the bias", bias.values.buffer()));
        }
        check.apart(&results, &inputs)?;
        if p.rows == 0 {
            return Ok(());
        }
        core.order.next(stream)?;
        let Work { pattern, pass } = &mut core.method;
        let mut uses = Uses::on(stream).ordered(options.ordered);
        uses.access(&pattern.offsets, Access::Read)?;
        uses.access(&pattern.indices, Access::Read)?;
        read_all(&mut uses, &[q.data(), k.data(), v.data()])?;
        if let Some(bias) = options.bias {
            uses.read(bias.values.buffer())?;
        }
        uses.write(o.data())?;
        if let Some(lse) = &lse {
            uses.write(lse)?;
        }
        // SAFETY: shapes, distances and lengths were checked against the buffers, which wait for
        // the stream when they are freed; the pattern is the plan's own.
        unsafe { pass.launch(device, stream, &operands) }
    }
}

/// The problem with its types, and the algorithm with its configuration.
pub(super) fn chosen<T: Scalar, I: Index, O: Index>(
    pattern: &DevicePattern<I, O>,
    problem: &Problem,
    options: &Options,
) -> Result<(Device, Problem, Choice<Config>)> {
    let (device, problem) = (pattern.device().clone(), typed::<T, I, O>(problem));
    problem.check_a(pattern.nrows(), pattern.ncols(), pattern.nnz())?;
    problem.check_dense()?;
    let configured = options.config.map(|c| c.algorithm());
    let named = catalog::named(&problem, options.chooser, configured)?;
    let algorithm = named.unwrap_or(Algorithm::Segmented);
    catalog::check(super::catalog(), &problem, algorithm)?;
    pattern.join(&device)?;
    let (config, reason) = match options.config {
        Some(config) => (config, "configured by the caller".into()),
        None => {
            let (config, reason) = fitting(&device, &problem, &Pattern::new(pattern)?)?;
            (Config::Segmented(config), reason)
        }
    };
    Ok((device, problem, Choice { algorithm, config, reason }))
}

/// The configuration for a pass over the rows of `pattern`, and why.
pub(super) fn fitting(
    device: &Device,
    problem: &Problem,
    pattern: &Pattern<'_>,
) -> Result<(segmented::Config, String)> {
    let multiprocessors = device.profile().multiprocessors;
    Ok(segmented::Config::choose(multiprocessors, problem, pattern.lengths()?))
}

/// The operands of `pattern`, with packed matrices at no address yet.
pub(super) fn packed<T: Scalar>(
    p: &Problem,
    pattern: &HeldPattern,
    scores: &ScoreOptions<T::Accum>,
) -> Operands {
    let of = |columns: usize| {
        let row = columns.saturating_mul(p.batch) as u64;
        Matrix { address: 0, row, head: columns as u64 }
    };
    let (narrow, wide) = (of(p.columns), of(p.value_columns));
    Operands {
        indices: pattern.indices.address(),
        positions: 0,
        index_type: p.index_type,
        offset_type: p.offset_type,
        dtype: T::DTYPE,
        first_head: 0,
        end_head: p.batch,
        rows: p.rows,
        nnz: p.nnz,
        depth: p.columns,
        value_depth: p.value_columns,
        own_left: narrow,
        own_right: wide,
        left: narrow,
        right: wide,
        result: wide,
        left_result: narrow,
        right_result: wide,
        bias: 0,
        bias_strides: (0, 0),
        bias_gradient: 0,
        gradient_strides: (0, 0),
        lse: 0,
        weights: 0,
        scale: bits(scores.scale(p.columns)),
        negative_slope: bits(scores.negative_slope()),
    }
}

/// Refuses sums of gradients over heads in 16 bits.
pub(super) fn check_gradient(problem: &Problem, order: HeadValues) -> Result<()> {
    if order != HeadValues::Shared || problem.batch == 1 || problem.dtype.bytes() > 2 {
        return Ok(());
    }
    Err(Error::Unsupported {
        problem: problem.to_string(),
        backend: "the gradient of a bias that heads share, on CUDA".into(),
        reason: format!(
            "it adds heads up in {}, and would round after each of them",
            problem.dtype
        ),
        nearest: "HeadValues::HeadMajor, whose heads the caller adds up, or f32".into(),
    })
}
