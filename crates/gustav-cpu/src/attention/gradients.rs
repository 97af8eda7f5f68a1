//! The plan of the gradients of an attention: a pass over the rows, and one over the columns.

use std::sync::Arc;

use gustav_core::parallel::Shared;
use gustav_core::{
    AnyPattern, Buffer, HeadValues, Index, IndexSlice, PatternId, PatternRef, Problem, Result,
    Scalar, TransposedPattern, with_pattern,
};
use gustav_plan::Choice;

use super::operands::{AttentionGradients, AttentionGradientsCall, AttentionInputs, Checked};
use super::plan::{Prepared, prefetch_distance, run};
use super::schedule::{LARGEST_PART, Schedule, Step};
use super::segmented::{OfNonzeros, Operands, Pass, Task};
use super::{choose, supports};
use crate::arch::Isa;
use crate::offsets::Offsets;
use crate::types::CpuScalar;
use crate::{Config, Options, Threads};

/// A plan for the gradients of [`AttentionPlan`](super::AttentionPlan), given that of O. It makes
/// the weights again from the scores, and holds one number for every head and row, nothing of the
/// size of the nonzeros but the transposed pattern, which all plans of a
/// [`Pattern`](gustav_core::Pattern) share.
///
/// Results are the same to the bit from run to run and for any number of threads.
pub struct AttentionGradientsPlan<'a, T: CpuScalar> {
    problem: Problem,
    choice: Choice<Config>,
    pattern: AnyPattern<'a>,
    transposed: Arc<dyn Transposed>,
    threads: Threads,
    rows: Prepared<T>,
    columns: Prepared<T>,
    /// ⟨dO, O⟩ of every head and row.
    delta: Buffer<T::Accum>,
    /// ds of the nonzeros of a part, for every thread, summed over heads that share a bias.
    slopes: Buffer<T::Accum>,
}

/// A transposed pattern of any index types.
trait Transposed: Send + Sync {
    fn offsets(&self) -> Offsets<'_>;
    fn indices(&self) -> IndexSlice<'_>;
    fn permutation(&self) -> IndexSlice<'_>;
    fn bytes(&self) -> usize;
}

impl<I: Index, O: Index> Transposed for TransposedPattern<I, O> {
    fn offsets(&self) -> Offsets<'_> {
        Offsets::new(self.pattern().offsets())
    }
    fn indices(&self) -> IndexSlice<'_> {
        IndexSlice::new(self.pattern().indices())
    }
    fn permutation(&self) -> IndexSlice<'_> {
        IndexSlice::new(TransposedPattern::permutation(self))
    }
    fn bytes(&self) -> usize {
        TransposedPattern::bytes(self)
    }
}

impl<'a, T: CpuScalar> AttentionGradientsPlan<'a, T> {
    /// Prepares the gradients at `pattern`.
    ///
    /// # Errors
    /// As [`AttentionPlan::new`](super::AttentionPlan::new), and
    /// [`Error::Overflow`](gustav_core::Error::Overflow) when a row of the pattern is no column
    /// index.
    pub fn new<I: Index, O: Index>(
        pattern: impl Into<PatternRef<'a, I, O>>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        T::plan_attention_gradients(pattern.into().into(), problem, options)
    }

    pub(crate) fn of_any(
        pattern: AnyPattern<'a>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let problem = problem.bound::<T>(&pattern)?;
        supports(&problem)?;
        problem.check_dense()?;
        let choice = choose(&problem, options, prefetch_distance(&problem, options)?)?;
        let threads = options.threads.clone();
        let transposed = with_pattern!(&pattern, |pattern| {
            let transposed: Arc<dyn Transposed> = threads.run(|| pattern.transposed())?;
            transposed
        });
        let config = &choice.config;
        let rows = with_pattern!(&pattern, |pattern| {
            let offsets = Offsets::new(pattern.view().offsets());
            Prepared::new(Pass::Rows, &problem, problem.rows, offsets, config)?
        });
        let offsets = transposed.offsets();
        let columns = Prepared::new(Pass::Columns, &problem, problem.cols, offsets, config)?;
        let numbers = problem.rows.saturating_mul(problem.batch);
        let delta = Buffer::zeroed(numbers, "inner products of gradients and results")?;
        let slopes = Buffer::zeroed(LARGEST_PART * config.threads, "gradients of a bias")?;
        Ok(AttentionGradientsPlan {
            problem,
            choice,
            pattern,
            transposed,
            threads,
            rows,
            columns,
            delta,
            slopes,
        })
    }

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds beside the caller's arrays.
    pub fn workspace_bytes(&self) -> usize {
        self.rows.bytes()
            + self.columns.bytes()
            + self.transposed.bytes()
            + size_of_val(&self.delta[..])
            + size_of_val(&self.slopes[..])
    }

    /// The identity of the pattern.
    pub fn pattern_id(&self) -> PatternId {
        self.pattern.id()
    }

    /// Computes the gradients, as `call` says, whose scores and bias are those of the product.
    ///
    /// # Errors
    /// As [`AttentionPlan::execute`](super::AttentionPlan::execute).
    pub fn execute<'v>(
        &mut self,
        inputs: AttentionInputs<'v, T>,
        gradients: AttentionGradients<'v, T>,
        call: impl Into<AttentionGradientsCall<'v, T>>,
    ) -> Result<()> {
        let AttentionInputs { q, k, v, o, lse, of_o } = inputs;
        let AttentionGradients { mut of_q, mut of_k, mut of_v } = gradients;
        let AttentionGradientsCall { scores, bias, of_bias } = call.into();
        let p = &self.problem;
        let check = Checked { problem: p, pattern: self.pattern.id() };
        let (left, right) = (p.columns, p.value_columns);
        let at_q = check.matrix("Q", (p.rows, left), &q)?;
        let at_k = check.matrix("K", (p.cols, left), &k)?;
        let at_v = check.matrix("V", (p.cols, right), &v)?;
        let result = check.matrix("O", (p.rows, right), &o)?;
        let at_of_o = check.matrix("the gradient of O", (p.rows, right), &of_o)?;
        let to_q = check.result("the gradient of Q", (p.rows, left), &mut of_q)?;
        let to_k = check.result("the gradient of K", (p.cols, left), &mut of_k)?;
        let to_v = check.result("the gradient of V", (p.cols, right), &mut of_v)?;
        check.of_rows("lse", lse.len())?;
        let bias = bias.map(|bias| check.of_nonzeros("bias", bias)).transpose()?;
        let shared = of_bias.as_ref().is_some_and(|(_, order)| *order == HeadValues::Shared);
        let strided = |(to, order): (&'v mut [T], HeadValues)| {
            check.strided("the gradient of the bias", to.len(), order, Shared::new(to))
        };
        let of_bias = of_bias.map(strided).transpose()?;
        let (isa, threads) = (self.choice.config.isa, &self.threads);
        with_pattern!(&self.pattern, |pattern| {
            let view = pattern.view();
            let (offsets, indices) =
                (Offsets::new(view.offsets()), IndexSlice::new(view.indices()));
            let (operands, schedule) = self.rows.operands(p, offsets, indices, &scores);
            let operands = Operands {
                own_left: at_q,
                own_right: at_of_o,
                left: at_k,
                right: at_v,
                result,
                left_result: to_q,
                bias,
                of_bias,
                lse,
                to_delta: Some(Shared::new(&mut self.delta)),
                ..operands
            };
            // SAFETY: the instruction set was checked when the plan was made, and the operands were
            // found to fit the pattern, which the schedule is of.
            unsafe {
                match of_bias.filter(|_| shared && p.batch > 1) {
                    None => run(isa, threads, &operands, schedule),
                    Some(to) => {
                        let slopes = Shared::new(&mut self.slopes);
                        run_shared(isa, threads, &operands, schedule, p.batch, to, slopes);
                    }
                }
            }
        });
        let (offsets, indices) = (self.transposed.offsets(), self.transposed.indices());
        let (operands, schedule) = self.columns.operands(p, offsets, indices, &scores);
        let operands = Operands {
            positions: Some(self.transposed.permutation()),
            own_left: at_k,
            own_right: at_v,
            left: at_q,
            right: at_of_o,
            left_result: to_k,
            right_result: to_v,
            bias,
            lse,
            deltas: &self.delta,
            ..operands
        };
        // SAFETY: as above, with the transposed pattern.
        unsafe { run(isa, threads, &operands, schedule) }
        Ok(())
    }
}

/// The pass over the rows, where heads share a bias: all heads of a part follow one another, so
/// that their gradients are added in one order.
///
/// # Safety
/// As [`run`]; `slopes` has [`LARGEST_PART`] numbers for every thread, and `to` a value for every
/// nonzero.
unsafe fn run_shared<T: CpuScalar>(
    isa: Isa,
    threads: &Threads,
    operands: &Operands<'_, T>,
    schedule: &mut Schedule,
    heads: usize,
    to: OfNonzeros<Shared<'_, T>>,
    slopes: Shared<'_, T::Accum>,
) {
    schedule.run_whole(
        threads,
        |thread, part| {
            let start = thread * LARGEST_PART;
            // SAFETY: a part has no more nonzeros, and one thread has this number at a time; the
            // rest is promised by the caller.
            unsafe {
                let sums = slopes.slice(start..start + part.nonzeros.len());
                sums.fill(T::Accum::zero());
                for head in 0..heads {
                    let (step, slopes) = (Step::Part(part), Some(&mut *sums));
                    T::attend(isa, Task { operands, head, step, slopes });
                }
                for (at, sum) in part.nonzeros.clone().zip(sums) {
                    to.values.put(at, T::from_accum(*sum));
                }
            }
        },
        |head, step| {
            // SAFETY: promised by the caller.
            unsafe { T::attend(isa, Task { operands, head, step, slopes: None }) }
        },
    );
}
