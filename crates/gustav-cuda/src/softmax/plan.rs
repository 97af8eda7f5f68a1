//! The plan of a softmax over the rows of a pattern.

use std::marker::PhantomData;

use gustav_core::{Error, HeadValues, Index, Problem, Result, Scalar, validate};
use gustav_plan::{Algorithm, Choice, Chooser};

use super::catalog::Config;
use super::segmented::{self, Operands, Prepared};
use crate::device::graph::{self, SharedCore};
use crate::device::order::{Access, PlanOrder, Uses};
use crate::device::{Device, DeviceBuffer, Stream};
use crate::matrix::{DevicePattern, DeviceValues, HeldPattern};
use crate::product::op_a::typed;
use crate::product::{catalog, checks};
use crate::schedule::pattern::Pattern;

/// What the caller of a plan decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Who chooses the algorithm.
    pub chooser: Chooser,
    /// The configuration, in place of the algorithm's own choice.
    pub config: Option<Config>,
}

/// Options of one execution of a softmax.
#[derive(Clone, Copy, Debug)]
pub struct SoftmaxCall<'a> {
    order: HeadValues,
    stream: Option<&'a Stream>,
    ordered: bool,
}

impl Default for SoftmaxCall<'_> {
    fn default() -> Self {
        SoftmaxCall { order: HeadValues::HeadMajor, stream: None, ordered: true }
    }
}

impl From<()> for SoftmaxCall<'_> {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl<'a> SoftmaxCall<'a> {
    /// As [`SoftmaxCall::default`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the values of nonzeros and heads are, else head after head.
    #[must_use]
    pub fn order(mut self, order: HeadValues) -> Self {
        self.order = order;
        self
    }

    /// Queues the work on `stream`.
    #[must_use]
    pub fn on(mut self, stream: &'a Stream) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Leaves the order with work of other streams on the operands to the caller.
    ///
    /// # Safety
    /// No work of another stream writes an operand, or uses the result, while this work runs.
    #[must_use]
    pub unsafe fn unordered(mut self) -> Self {
        self.ordered = false;
        self
    }
}

/// A plan for the softmax of values over every row of one pattern, which it holds, and for its
/// gradient.
///
/// Results are the same to the bit from run to run.
pub struct SoftmaxPlan<T: Scalar> {
    device: Device,
    problem: Problem,
    choice: Choice<Config>,
    work: SharedCore<Work>,
    values: PhantomData<fn(T)>,
}

struct Work {
    pattern: HeldPattern,
    method: Prepared,
}

impl<T: Scalar> SoftmaxPlan<T> {
    /// Prepares the product at `pattern`. The plan sets the types of `problem`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for integers and other algorithms, [`Error::Pattern`] when `problem`
    /// was made for another shape or number of nonzeros, [`Error::OutOfMemory`],
    /// [`Error::NoDevice`] when the run-time compiler is missing, [`Error::Device`].
    pub fn new<I: Index, O: Index>(
        pattern: &DevicePattern<I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let (device, problem) = (pattern.device().clone(), typed::<T, I, O>(problem));
        problem.check_a(pattern.nrows(), pattern.ncols(), pattern.nnz())?;
        let configured = options.config.map(|c| c.algorithm());
        let named = catalog::named(&problem, options.chooser, configured)?;
        let algorithm = named.unwrap_or(Algorithm::Segmented);
        catalog::check(super::catalog(), &problem, algorithm)?;
        let (config, reason) = match options.config {
            Some(config) => (config, "configured by the caller".to_string()),
            None => {
                let config = segmented::Config::new(&problem);
                let reason =
                    format!("{} lanes for a row, by the mean length of rows", config.lanes);
                (Config::Segmented(config), reason)
            }
        };
        pattern.join(&device)?;
        let Config::Segmented(segments) = config;
        let schedule = Pattern::new(pattern)?;
        let mut method = Prepared::new(&schedule, &problem, segments)?;
        method.compile(&device, false)?;
        let order = PlanOrder::new(&device, problem.calls)?;
        let work = graph::core(order, Work { pattern: pattern.held(), method });
        let choice = Choice { algorithm, config, reason };
        Ok(SoftmaxPlan { device, problem, choice, work, values: PhantomData })
    }

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds on the device beside the caller's arrays and the pattern.
    pub fn workspace_bytes(&self) -> usize {
        graph::lock(&self.work).method.method.bytes()
    }

    /// Queues `weights[p] = exp(scores[p]) / Σ exp(scores)` over the nonzeros of p's row, for every
    /// head. Neither allocates nor waits.
    ///
    /// # Errors
    /// [`Error::Length`] for another number of values, [`Error::Pattern`] for scores of another
    /// pattern, [`Error::Argument`] when the result overlaps an operand, an operand is on another
    /// device or heads share values, [`Error::Device`].
    pub fn execute<'v>(
        &mut self,
        scores: impl Into<DeviceValues<'v, T>>,
        weights: &mut DeviceBuffer<T>,
        call: impl Into<SoftmaxCall<'v>>,
    ) -> Result<()> {
        self.launch(("the scores", scores.into()), None, weights, call.into())
    }

    /// Queues the gradient with respect to the scores, given the weights and the gradient with
    /// respect to them: `to[p] = weights[p]·(of_weights[p] − Σ weights·of_weights)`. Neither
    /// allocates nor waits, but for compiling the kernel at the first call.
    ///
    /// # Errors
    /// As [`SoftmaxPlan::execute`].
    pub fn gradient<'v>(
        &mut self,
        weights: impl Into<DeviceValues<'v, T>>,
        of_weights: impl Into<DeviceValues<'v, T>>,
        to: &mut DeviceBuffer<T>,
        call: impl Into<SoftmaxCall<'v>>,
    ) -> Result<()> {
        let of_weights = Some(of_weights.into());
        self.launch(("the weights", weights.into()), of_weights, to, call.into())
    }

    fn launch(
        &mut self,
        (name, values): (&'static str, DeviceValues<'_, T>),
        of_weights: Option<DeviceValues<'_, T>>,
        result: &mut DeviceBuffer<T>,
        call: SoftmaxCall<'_>,
    ) -> Result<()> {
        let (p, device) = (&self.problem, &self.device);
        let stream = call.stream.unwrap_or_else(|| device.stream());
        if call.order == HeadValues::Shared && p.batch > 1 {
            return Err(Error::Argument {
                name: "order",
                found: "values that heads share".into(),
                expected: "HeadMajor or NonzeroMajor for several heads".into(),
            });
        }
        let mut core = graph::lock(&self.work);
        let pattern = &core.method.pattern;
        let second = of_weights.map(|values| ("the gradient of the weights", values));
        let inputs: Vec<_> = [(name, values)].into_iter().chain(second).collect();
        let expected = call.order.len(p.batch, p.nnz);
        for (name, values) in &inputs {
            pattern.id.check(name, values.pattern_id())?;
            validate::length(name, expected, values.len())?;
        }
        validate::length("the result", expected, result.len())?;
        let buffers: Vec<_> = inputs.iter().map(|(name, v)| (*name, v.buffer())).collect();
        checks::apart(device, pattern, ("the result", result), &buffers)?;
        if p.nnz == 0 {
            return Ok(());
        }
        core.order.next(stream)?;
        let Work { pattern, method } = &mut core.method;
        let mut uses = Uses::on(stream).ordered(call.ordered);
        uses.access(&pattern.offsets, Access::Read)?;
        for (_, buffer) in &buffers {
            uses.read(buffer)?;
        }
        uses.write(result)?;
        let operands = Operands {
            heads: p.batch,
            strides: call.order.strides(p.batch, p.nnz),
            values: values.address(),
            of_weights: of_weights.map_or(0, |values| values.address()),
            result: result.address(),
        };
        // SAFETY: lengths were checked against the buffers, which wait for the stream when they are
        // freed; the pattern is the plan's own.
        unsafe { method.launch(device, stream, &operands) }
    }
}
