//! The plan of the gradients of an attention: a pass over the rows, and one over the columns.

use gustav_core::{Index, Problem, Result, Scalar, ScoreOptions};
use gustav_plan::Choice;

use std::sync::Arc;

use super::catalog::Config;
use super::operands::{AttentionGradientsCall, Checked, Range, read_all};
use super::plan::{Options, check_gradient, chosen, fitting, packed};
use super::segmented::{Operands, Pass, Prepared, heads_at_once};
use crate::device::graph::{self, SharedCore};
use crate::device::memory::Memory;
use crate::device::order::{Access, PlanOrder, Uses};
use crate::device::{Device, DeviceBuffer};
use crate::matrix::{DeviceDense, DevicePattern, DeviceValues, HeldPattern};
use crate::schedule::pattern::Pattern;

/// A plan for the gradients of [`AttentionPlan`](super::AttentionPlan), given that of O. It makes
/// the weights again from the scores. It holds two values for every nonzero and head in the type of
/// sums, which its first pass leaves for its second, of as many heads at a time as 256 MiB hold, one
/// at least; and the transposed pattern, which all plans of the pattern share.
pub struct AttentionGradientsPlan<T: Scalar> {
    device: Device,
    problem: Problem,
    choice: Choice<Config>,
    work: SharedCore<Work<T>>,
}

struct Work<T: Scalar> {
    pattern: HeldPattern,
    transposed: Transposed,
    rows: Prepared,
    columns: Prepared,
    /// Weight and slope of every nonzero, of as many heads as go together, for the pass over the
    /// columns.
    weights: DeviceBuffer<T::Accum>,
    heads_at_once: usize,
}

/// Aᵀ: where its rows begin, its column indices, and the position in A of every nonzero.
struct Transposed {
    arrays: [Arc<Memory>; 3],
    bytes: usize,
}

/// What an execution reads.
#[derive(Clone, Copy, Debug)]
pub struct AttentionInputs<'a, T: Scalar> {
    /// Q.
    pub q: &'a DeviceDense<T>,
    /// K.
    pub k: &'a DeviceDense<T>,
    /// V.
    pub v: &'a DeviceDense<T>,
    /// O, as the product left it.
    pub o: &'a DeviceDense<T>,
    /// What [`AttentionCall::lse`](super::AttentionCall::lse) stored.
    pub lse: &'a DeviceBuffer<T::Accum>,
    /// The gradient with respect to O.
    pub of_o: &'a DeviceDense<T>,
}

/// What an execution writes.
#[derive(Debug)]
pub struct AttentionGradients<'a, T: Scalar> {
    /// The gradient with respect to Q.
    pub of_q: &'a mut DeviceDense<T>,
    /// With respect to K.
    pub of_k: &'a mut DeviceDense<T>,
    /// With respect to V.
    pub of_v: &'a mut DeviceDense<T>,
}

impl<T: Scalar> AttentionGradientsPlan<T> {
    /// Prepares the gradients at `pattern`.
    ///
    /// # Errors
    /// As [`AttentionPlan::new`](super::AttentionPlan::new), and
    /// [`Error::Overflow`](gustav_core::Error::Overflow) when a row of the pattern is no column
    /// index.
    pub fn new<I: Index, O: Index>(
        pattern: &DevicePattern<I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let (device, problem, mut choice) = chosen::<T, I, O>(pattern, problem, options)?;
        let Config::Segmented(config) = choice.config;
        let schedule = Pattern::new(pattern)?;
        let mut rows = Prepared::new(&schedule, &problem, Pass::Rows, config)?;
        let transposed = pattern.transposed(&device)?;
        let schedule = Pattern::transposed(&transposed)?;
        let by_columns = problem.clone().transpose_a(true);
        let of_columns = match options.config {
            Some(_) => config,
            None => {
                let (of_columns, reason) = fitting(&device, &by_columns, &schedule)?;
                if of_columns != config {
                    choice.reason += &format!("; in the pass over columns: {reason}");
                }
                of_columns
            }
        };
        let mut columns = Prepared::new(&schedule, &by_columns, Pass::Columns, of_columns)?;
        let held = pattern.held();
        let operands = packed::<T>(&problem, &held, &ScoreOptions::default());
        rows.compile(&device, &operands)?;
        columns.compile(&device, &operands)?;
        let heads_at_once = heads_at_once(&problem);
        let count = problem.nnz.saturating_mul(heads_at_once).saturating_mul(2);
        let weights = DeviceBuffer::queued(&device, count, "weights of nonzeros and their slopes")?;
        let order = PlanOrder::new(&device, problem.calls)?;
        let bytes = transposed.offsets.bytes()
            + transposed.indices.bytes()
            + transposed.positions().bytes();
        let [offsets, positions] =
            [&transposed.offsets, transposed.positions()].map(|array| array.memory().clone());
        let arrays = [offsets, transposed.indices.memory().clone(), positions];
        let transposed = Transposed { arrays, bytes };
        let work = Work { pattern: held, transposed, rows, columns, weights, heads_at_once };
        Ok(AttentionGradientsPlan { device, problem, choice, work: graph::core(order, work) })
    }

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds on the device beside the caller's arrays and the pattern.
    pub fn workspace_bytes(&self) -> usize {
        let core = graph::lock(&self.work);
        let Work { rows, columns, weights, transposed, .. } = &core.method;
        rows.bytes() + columns.bytes() + weights.bytes() + transposed.bytes
    }

    /// Queues the gradients, as `call` says, whose scores and bias are those of the product; neither
    /// allocates nor waits, except that operands less aligned than packed ones, and the first bias,
    /// compile their kernels at first sight.
    ///
    /// # Errors
    /// As [`AttentionPlan::execute`](super::AttentionPlan::execute), and
    /// [`Error::Unsupported`](gustav_core::Error::Unsupported) for the gradient of a bias that
    /// several heads share in 16 bits.
    pub fn execute<'v>(
        &mut self,
        inputs: AttentionInputs<'_, T>,
        gradients: AttentionGradients<'_, T>,
        call: impl Into<AttentionGradientsCall<'v, T>>,
    ) -> Result<()> {
        let (p, device) = (&self.problem, &self.device);
        let AttentionGradientsCall { options, of_bias } = call.into();
        let AttentionInputs { q, k, v, o, lse, of_o } = inputs;
        let AttentionGradients { of_q, of_k, of_v } = gradients;
        let stream = options.stream.unwrap_or_else(|| device.stream());
        let mut core = graph::lock(&self.work);
        let pattern = &core.method.pattern;
        let check = Checked { device, pattern, problem: p };
        let (left, right) = ((p.columns), (p.value_columns));
        let [at_q, at_k] = [("Q", p.rows, q), ("K", p.cols, k)]
            .map(|(name, rows, m)| check.matrix(name, (rows, left), m));
        let [at_v, at_o, at_of_o] =
            [("V", p.cols, v), ("O", p.rows, o), ("the gradient of O", p.rows, of_o)]
                .map(|(name, rows, m)| check.matrix(name, (rows, right), m));
        let (at_q, at_k, at_v, at_o, at_of_o) = (at_q?, at_k?, at_v?, at_o?, at_of_o?);
        let to_q = check.matrix("the gradient of Q", (p.rows, left), of_q)?;
        let to_k = check.matrix("the gradient of K", (p.cols, left), of_k)?;
        let to_v = check.matrix("the gradient of V", (p.cols, right), of_v)?;
        let mut results = vec![
            Range::of("the gradient of Q", of_q.data()),
            Range::of("the gradient of K", of_k.data()),
            Range::of("the gradient of V", of_v.data()),
        ];
        let mut inputs = vec![
            Range::of("Q", q.data()),
            Range::of("K", k.data()),
            Range::of("V", v.data()),
            Range::of("O", o.data()),
            Range::of("the gradient of O", of_o.data()),
            Range::of("lse", lse),
        ];
        let both = Operands {
            weights: core.method.weights.address(),
            ..packed::<T>(p, pattern, &options.scores)
        };
        let mut by_rows = Operands {
            lse: check.of_rows("lse", lse)?,
            own_left: at_q,
            own_right: at_of_o,
            left: at_k,
            right: at_v,
            result: at_o,
            left_result: to_q,
            ..both
        };
        if let Some(bias) = options.bias {
            (by_rows.bias, by_rows.bias_strides) =
                check.of_nonzeros("bias", bias.values, bias.order)?;
            inputs.push(Range::of("the bias", bias.values.buffer()));
        }
        if let Some((to, order)) = &of_bias {
            check_gradient(p, *order)?;
            let place =
                check.of_nonzeros("the gradient of the bias", DeviceValues::from(&**to), *order)?;
            (by_rows.bias_gradient, by_rows.gradient_strides) = place;
            results.push(Range::of("the gradient of the bias", to));
        }
        let [_, indices, positions] = &core.method.transposed.arrays;
        let by_columns = Operands {
            left: at_q,
            right: at_of_o,
            left_result: to_k,
            right_result: to_v,
            indices: indices.address(),
            positions: positions.address(),
            ..both
        };
        check.apart(&results, &inputs)?;
        core.order.next(stream)?;
        let Work { pattern, transposed, rows, columns, weights, heads_at_once } = &mut core.method;
        weights.used_on(stream);
        let mut uses = Uses::on(stream).ordered(options.ordered);
        let arrays = [&pattern.offsets, &pattern.indices].into_iter().chain(&transposed.arrays);
        for array in arrays {
            uses.access(array, Access::Read)?;
        }
        read_all(&mut uses, &[q.data(), k.data(), v.data(), o.data(), of_o.data()])?;
        uses.read(lse)?;
        if let Some(bias) = options.bias {
            uses.read(bias.values.buffer())?;
        }
        for result in [of_q.data(), of_k.data(), of_v.data()] {
            uses.write(result)?;
        }
        if let Some((to, _)) = &of_bias {
            uses.write(to)?;
        }
        // SAFETY: shapes, distances and lengths were checked against the buffers, which wait for
        // the stream when they are freed; the patterns are the plan's own. A launch waits for the
        // one before it: a pass over the columns finds the weights of its heads, no more than
        // there is room for, and they are not written over before it has read them.
        unsafe {
            for first_head in (0..p.batch).step_by(*heads_at_once) {
                let end_head = p.batch.min(first_head + *heads_at_once);
                if p.rows > 0 {
                    rows.launch(device, stream, &Operands { first_head, end_head, ..by_rows })?;
                }
                if p.cols > 0 {
                    let heads = Operands { first_head, end_head, ..by_columns };
                    columns.launch(device, stream, &heads)?;
                }
            }
        }
        Ok(())
    }
}
