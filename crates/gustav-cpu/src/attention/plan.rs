//! The plan of an attention: one pass over the rows.

use gustav_core::parallel::Shared;
use gustav_core::{
    AnyPattern, Buffer, DenseView, DenseViewMut, Index, IndexSlice, PatternId, PatternRef, Problem,
    Result, Scalar, ScoreOptions, with_pattern,
};
use gustav_plan::Choice;

use super::operands::{AttentionCall, Checked};
use super::schedule::Schedule;
use super::segmented::{Operands, Pass, Rows, Task, stride};
use super::{choose, supports};
use crate::arch::Isa;
use crate::offsets::Offsets;
use crate::profile::profile;
use crate::types::CpuScalar;
use crate::{Config, Options, Threads};

/// A plan for O = softmax(leaky(scale·Q·Kᵀ + bias))·V over the rows of one pattern, which it holds or
/// borrows.
///
/// Results are the same to the bit from run to run and for any number of threads.
pub struct AttentionPlan<'a, T: CpuScalar> {
    problem: Problem,
    choice: Choice<Config>,
    pattern: AnyPattern<'a>,
    threads: Threads,
    pass: Prepared<T>,
}

/// A pass over the rows of a pattern.
pub(super) struct Prepared<T: Scalar> {
    pass: Pass,
    schedule: Schedule,
    /// What parts of cut rows put aside.
    aside: Buffer<T::Accum>,
    stride: usize,
    prefetches: bool,
}

impl<T: CpuScalar> Prepared<T> {
    pub(super) fn new(
        pass: Pass,
        problem: &Problem,
        rows: usize,
        offsets: Offsets<'_>,
        config: &Config,
    ) -> Result<Self> {
        let schedule = Schedule::new(rows, offsets, problem.batch, config.threads);
        let stride = match pass {
            Pass::Forward => stride(0, problem.value_columns),
            Pass::Rows => stride(problem.columns, 0),
            Pass::Columns => stride(problem.columns, problem.value_columns),
        };
        let numbers = schedule.slots().saturating_mul(stride);
        let aside = Buffer::zeroed(numbers, "sums of parts of rows")?;
        Ok(Prepared { pass, schedule, aside, stride, prefetches: config.prefetch_distance > 0 })
    }

    pub(super) fn bytes(&self) -> usize {
        self.schedule.bytes() + size_of_val(&self.aside[..])
    }

    /// The operands of this pass, without those that are not the pattern's, and the schedule.
    pub(super) fn operands<'v>(
        &'v mut self,
        problem: &Problem,
        offsets: Offsets<'v>,
        indices: IndexSlice<'v>,
        scores: &ScoreOptions<T::Accum>,
    ) -> (Operands<'v, T>, &'v mut Schedule) {
        let read = Rows { start: std::ptr::null(), head: 0, ld: 0 };
        let written = Rows { start: std::ptr::null_mut(), head: 0, ld: 0 };
        let operands = Operands {
            pass: self.pass,
            rows: problem.rows,
            offsets,
            indices,
            positions: None,
            depth: problem.columns,
            value_depth: problem.value_columns,
            own_left: read,
            own_right: read,
            left: read,
            right: read,
            result: read,
            left_result: written,
            right_result: written,
            bias: None,
            of_bias: None,
            lse: &[],
            keeps: None,
            to_delta: None,
            deltas: &[],
            scale: scores.scale(problem.columns),
            negative_slope: scores.negative_slope(),
            aside: Shared::new(&mut self.aside),
            stride: self.stride,
            slots: self.schedule.slots_of_head(),
            prefetches: self.prefetches,
        };
        (operands, &mut self.schedule)
    }
}

/// Computes `operands` step by step.
///
/// # Safety
/// As [`AttentionKernels::attend`](super::compiled::AttentionKernels::attend), for all parts of
/// `schedule`.
pub(super) unsafe fn run<T: CpuScalar>(
    isa: Isa,
    threads: &Threads,
    operands: &Operands<'_, T>,
    schedule: &mut Schedule,
) {
    schedule.run(threads, |head, step| {
        // SAFETY: promised by the caller.
        unsafe { T::attend(isa, Task { operands, head, step, slopes: None }) }
    });
}

/// Nonzeros ahead of their use for which rows are prefetched, when the larger of the matrices that
/// rows are gathered from does not fit L2.
pub(super) fn prefetch_distance(problem: &Problem, options: &Options) -> Result<usize> {
    let widest = problem.columns.max(problem.value_columns);
    let bytes = problem.cols.saturating_mul(widest).saturating_mul(problem.dtype.bytes());
    let l2 = profile(options.threads.count(), options.isa()?).l2_bytes;
    Ok(if bytes > l2 { super::segmented::PREFETCH_DISTANCE } else { 0 })
}

impl<'a, T: CpuScalar> AttentionPlan<'a, T> {
    /// Prepares the product at `pattern`: a [`Pattern`](gustav_core::Pattern), of which the plan
    /// holds a clone, or a view, which it borrows.
    ///
    /// # Errors
    /// [`Error::Unsupported`](gustav_core::Error::Unsupported) for integers, no columns, more than
    /// 256 of a head, other products and other algorithms,
    /// [`Error::Pattern`](gustav_core::Error::Pattern) when `problem` was made for a pattern of
    /// another size, [`Error::Argument`](gustav_core::Error::Argument) for an instruction set that
    /// the machine lacks, [`Error::OutOfMemory`](gustav_core::Error::OutOfMemory).
    pub fn new<I: Index, O: Index>(
        pattern: impl Into<PatternRef<'a, I, O>>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        T::plan_attention(pattern.into().into(), problem, options)
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
        let pass = with_pattern!(&pattern, |pattern| {
            let offsets = Offsets::new(pattern.view().offsets());
            Prepared::new(Pass::Forward, &problem, problem.rows, offsets, &choice.config)?
        });
        Ok(AttentionPlan { problem, choice, pattern, threads: options.threads.clone(), pass })
    }

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds beside the caller's arrays.
    pub fn workspace_bytes(&self) -> usize {
        self.pass.bytes()
    }

    /// The identity of the pattern.
    pub fn pattern_id(&self) -> PatternId {
        self.pattern.id()
    }

    /// Computes O, as `call` says. Q and O have as many rows as the pattern, K and V as the pattern
    /// has columns; heads are side by side in the columns of a matrix or one above the other in its
    /// rows, see [`Batch`](gustav_core::Batch).
    ///
    /// # Errors
    /// [`Error::Shape`](gustav_core::Error::Shape) when a matrix has another shape or layout,
    /// [`Error::Length`](gustav_core::Error::Length) when values are missing,
    /// [`Error::Pattern`](gustav_core::Error::Pattern) for a bias of another pattern. Then nothing
    /// is written.
    pub fn execute<'v>(
        &mut self,
        q: impl Into<DenseView<'v, T>>,
        k: impl Into<DenseView<'v, T>>,
        v: impl Into<DenseView<'v, T>>,
        o: impl Into<DenseViewMut<'v, T>>,
        call: impl Into<AttentionCall<'v, T>>,
    ) -> Result<()> {
        let (q, k, v, mut o) = (q.into(), k.into(), v.into(), o.into());
        let AttentionCall { scores, bias, lse } = call.into();
        let p = &self.problem;
        let check = Checked { problem: p, pattern: self.pattern.id() };
        let own_left = check.matrix("Q", (p.rows, p.columns), &q)?;
        let left = check.matrix("K", (p.cols, p.columns), &k)?;
        let right = check.matrix("V", (p.cols, p.value_columns), &v)?;
        let right_result = check.result("O", (p.rows, p.value_columns), &mut o)?;
        let bias = bias.map(|bias| check.of_nonzeros("bias", bias)).transpose()?;
        if let Some(lse) = &lse {
            check.of_rows("lse", lse.len())?;
        }
        let (isa, keeps) = (self.choice.config.isa, lse.map(Shared::new));
        with_pattern!(&self.pattern, |pattern| {
            let view = pattern.view();
            let (offsets, indices) =
                (Offsets::new(view.offsets()), IndexSlice::new(view.indices()));
            let (operands, schedule) = self.pass.operands(p, offsets, indices, &scores);
            let operands =
                Operands { own_left, left, right, right_result, bias, keeps, ..operands };
            // SAFETY: the instruction set was checked when the plan was made, and the operands were
            // found to fit the pattern, which the schedule is of.
            unsafe { run(isa, &self.threads, &operands, schedule) }
        });
        Ok(())
    }
}
