//! Softmax of values over the rows of a pattern, and its gradient.

pub(crate) mod segmented;

use gustav_core::parallel::Shared;
use gustav_core::{
    AnyPattern, Buffer, Error, HeadValues, Index, Operation, PatternId, PatternRef, Problem,
    Result, Values, with_pattern,
};
use gustav_plan::{Algorithm, Choice};

use crate::attention::operands::Checked;
use crate::attention::schedule::{Schedule, Step};
use crate::attention::segmented::OfNonzeros;
use crate::attention::{check, choose};
use crate::catalog::Entry;
use crate::offsets::Offsets;
use crate::types::CpuScalar;
use crate::{Config, Options, Threads};
use segmented::{NUMBERS, Operands, Task};

/// The softmax algorithms of this backend.
pub fn catalog() -> &'static [Entry] {
    &CATALOG
}

static CATALOG: [Entry; 1] = [Entry { algorithm: Algorithm::Segmented, supports }];

fn supports(problem: &Problem) -> Result<()> {
    check(problem, Operation::Softmax)
}

/// A plan for the softmax of values over every row of one pattern, which it holds or borrows, for
/// every head, and for its gradient. A row of −∞ alone gives zeros; NaN or +∞ makes a row NaN.
///
/// Results are the same to the bit from run to run and for any number of threads.
pub struct SoftmaxPlan<'a, T: CpuScalar> {
    problem: Problem,
    choice: Choice<Config>,
    pattern: AnyPattern<'a>,
    threads: Threads,
    schedule: Schedule,
    /// What parts of cut rows put aside.
    aside: Buffer<T::Accum>,
}

impl<'a, T: CpuScalar> SoftmaxPlan<'a, T> {
    /// Prepares the softmax at `pattern`: a [`Pattern`](gustav_core::Pattern), of which the plan
    /// holds a clone, or a view, which it borrows.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for integers, other products and other algorithms, [`Error::Pattern`]
    /// when `problem` was made for a pattern of another size, [`Error::Argument`] for an
    /// instruction set that the machine lacks, [`Error::OutOfMemory`].
    pub fn new<I: Index, O: Index>(
        pattern: impl Into<PatternRef<'a, I, O>>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        T::plan_softmax(pattern.into().into(), problem, options)
    }

    pub(crate) fn of_any(
        pattern: AnyPattern<'a>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let problem = problem.bound::<T>(&pattern)?;
        supports(&problem)?;
        let choice = choose(&problem, options, 0)?;
        let schedule = with_pattern!(&pattern, |pattern| {
            let offsets = Offsets::new(pattern.view().offsets());
            Schedule::new(problem.rows, offsets, problem.batch, choice.config.threads)
        });
        let numbers = schedule.slots().saturating_mul(NUMBERS);
        let aside = Buffer::zeroed(numbers, "sums of parts of rows")?;
        let threads = options.threads.clone();
        Ok(SoftmaxPlan { problem, choice, pattern, threads, schedule, aside })
    }

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds beside the caller's arrays.
    pub fn workspace_bytes(&self) -> usize {
        self.schedule.bytes() + size_of_val(&self.aside[..])
    }

    /// The identity of the pattern.
    pub fn pattern_id(&self) -> PatternId {
        self.pattern.id()
    }

    /// Writes the softmax of `values` to `out`, both in `order`.
    ///
    /// # Errors
    /// [`Error::Length`] for another number of values, [`Error::Pattern`] for those of another
    /// pattern, [`Error::Argument`] when several heads share them.
    pub fn execute<'v>(
        &mut self,
        values: impl Into<Values<'v, T>>,
        out: &mut [T],
        order: HeadValues,
    ) -> Result<()> {
        let (check, values) = (self.check(order)?, values.into());
        let values = check.of_nonzeros("values", (values, order))?;
        let out = check.strided("softmax", out.len(), order, Shared::new(out))?;
        self.run(values, None, out);
        Ok(())
    }

    /// Writes the gradient with respect to the values to `out`, given the softmax `weights` and the
    /// gradient `of_weights` with respect to it, all in `order`: y(g − Σ y g), the sum over the
    /// row, for a weight y of gradient g.
    ///
    /// # Errors
    /// As [`SoftmaxPlan::execute`].
    pub fn gradient<'v>(
        &mut self,
        weights: impl Into<Values<'v, T>>,
        of_weights: impl Into<Values<'v, T>>,
        out: &mut [T],
        order: HeadValues,
    ) -> Result<()> {
        let (check, weights, of_weights) = (self.check(order)?, weights.into(), of_weights.into());
        let weights = check.of_nonzeros("softmax", (weights, order))?;
        let of_weights = check.of_nonzeros("the gradient of the softmax", (of_weights, order))?;
        let out = check.strided("the gradient", out.len(), order, Shared::new(out))?;
        self.run(weights, Some(of_weights), out);
        Ok(())
    }

    fn check(&self, order: HeadValues) -> Result<Checked<'_>> {
        if order == HeadValues::Shared && self.problem.batch != 1 {
            return Err(Error::Argument {
                name: "order",
                found: format!("values that {} heads share", self.problem.batch),
                expected: "HeadValues::HeadMajor or HeadValues::NonzeroMajor".into(),
            });
        }
        Ok(Checked { problem: &self.problem, pattern: self.pattern.id() })
    }

    fn run(
        &mut self,
        values: OfNonzeros<&[T]>,
        of_values: Option<OfNonzeros<&[T]>>,
        out: OfNonzeros<Shared<'_, T>>,
    ) {
        let isa = self.choice.config.isa;
        let (schedule, threads) = (&mut self.schedule, &self.threads);
        let slots = schedule.slots_of_head();
        with_pattern!(&self.pattern, |pattern| {
            let offsets = Offsets::new(pattern.view().offsets());
            let aside = Shared::new(&mut self.aside);
            let operands = &Operands { offsets, values, of_values, out, aside, slots };
            schedule.run(threads, |head, step| {
                // SAFETY: the instruction set was checked when the plan was made, and the values
                // were found to fit the pattern, which the schedule is of.
                unsafe { T::soften(isa, Task { operands, head, step, merged: None }) }
            });
            let (merged, aside) = (Some(&self.aside[..]), Shared::new(&mut []));
            let operands = &Operands { offsets, values, of_values, out, aside, slots };
            schedule.run_cut(threads, |head, part| {
                let step = Step::Part(part);
                // SAFETY: as above.
                unsafe { T::soften(isa, Task { operands, head, step, merged }) }
            });
        });
    }
}
