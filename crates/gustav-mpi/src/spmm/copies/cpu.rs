//! SpMM by teams of ranks, of which this one computes on its CPU.

use std::ops::Range;

use gustav_core::{
    Dense, DenseView, DenseViewMut, Index, Layout, Plans, Problem, Result, Scale, SpmmRequest,
    Values,
};

use super::member::{Arguments, Around, Messages, Team};
use super::{Method, Replicated, choose, plan_by};
use crate::communicator::Communicator;
use crate::exchange::Exchange;
use crate::local::{DistScalar, add_rows, store};
use crate::positions::Positions;
use crate::spmm::{SpmmPlan, call, rows_of_b, rows_of_c};
use crate::{Device, DistPattern, Explanation};

/// A plan for sparse × dense products by teams of ranks, made by `pattern.spmm(columns).plan(&replicated)`.
///
/// Making and executing it are collective, as those of an [`SpmmPlan`].
pub struct ReplicatedSpmmPlan<T: DistScalar> {
    method: Method<SpmmPlan<T>, TeamPlan<T>>,
    explanation: Explanation,
}

/// A plan of a member of a team of several ranks.
struct TeamPlan<T: DistScalar> {
    call: Arguments,
    /// The product with this member's nonzeros: those of its rows, then those of others' rows.
    part: SpmmPlan<T>,
    /// The values of these.
    values: Vec<T>,
    /// Of the values of this rank's own nonzeros.
    own: Positions,
    of_values: Exchange,
    of_sums: Exchange,
    /// By message, as of [`Messages`].
    send_values: Vec<Positions>,
    receive_values: Vec<Range<usize>>,
    send_sums: Vec<Range<usize>>,
    receive_sums: Vec<Vec<u32>>,
    /// What this member multiplies: its rows, then those of others.
    sums: Dense<T>,
}

impl<T: DistScalar> ReplicatedSpmmPlan<T> {
    /// Plans `problem` for `pattern`. Collective.
    ///
    /// # Errors
    /// As [`SpmmPlan::new`], [`Error::Argument`](gustav_core::Error::Argument) when the number of copies does not
    /// divide that of ranks, and [`Error::Unsupported`](gustav_core::Error::Unsupported) for Aᵀ and for f16 and bf16
    /// with a number of copies, even of one.
    pub fn new<I: Index, O: Index>(
        pattern: &DistPattern<I, O>,
        problem: &Problem,
        replicated: &Replicated,
    ) -> Result<Self> {
        let device = &replicated.device;
        let copies = choose::<T, I, O, _>(pattern, problem, replicated, (device, None))?;
        let single = || {
            let plan = SpmmPlan::new(pattern, problem, device)?;
            let explanation = plan.explain().clone();
            Ok((plan, explanation))
        };
        let team = |copies| TeamPlan::new(pattern, problem, device, copies);
        let (method, explanation) = plan_by(copies, single, team)?;
        Ok(ReplicatedSpmmPlan { method, explanation })
    }

    /// What is computed, what ranks send, how many copies there are, and how work is balanced.
    pub fn explain(&self) -> &Explanation {
        &self.explanation
    }

    /// As [`SpmmPlan::execute`].
    ///
    /// # Errors
    /// As there.
    pub fn execute<'v>(
        &mut self,
        values: impl Into<Values<'v, T>>,
        b: impl Into<DenseView<'v, T>>,
        c: impl Into<DenseViewMut<'v, T>>,
        scale: impl Into<Scale<T::Accum>>,
    ) -> Result<()> {
        match &mut self.method {
            Method::Single(plan) => plan.execute(values, b, c, scale),
            Method::Team(plan) => plan.execute(values.into(), b.into(), c.into(), scale.into()),
        }
    }
}

impl<T: DistScalar> TeamPlan<T> {
    /// The plan and what it says of itself. Collective; ranks have agreed on the arguments.
    fn new<I: Index, O: Index>(
        pattern: &DistPattern<I, O>,
        problem: &Problem,
        device: &Device,
        copies: usize,
    ) -> Result<(Self, Explanation)> {
        let team = Team::new(pattern, problem, copies)?;
        let part = SpmmPlan::new(&team.part, &team.problem_of_part, device)?;
        let (rows, nnz) = (team.part.local().nrows(), team.part.local().nnz());
        let explanation = part.explain().clone();
        team.plan::<T, _>(false, explanation, |Around { call, messages, own }| {
            let Messages { values: of_values, sums: of_sums, .. } = messages;
            let mut values = gustav_core::buffer::try_vec::<T>(nnz, "values of a team")?;
            values.resize(nnz, T::zero());
            let sums = Dense::zeros(rows, problem.columns, Layout::RowMajor)?;
            let bytes = of_values.bytes() + of_sums.bytes();
            let bytes = bytes + size_of_val(&values[..]) + size_of_val(sums.data());
            let plan = TeamPlan {
                call,
                part,
                values,
                own: Positions::new(own),
                of_values,
                of_sums,
                send_values: messages.send_values.into_iter().map(Positions::new).collect(),
                receive_values: messages.receive_values,
                send_sums: messages.send_sums,
                receive_sums: messages.receive_sums,
                sums,
            };
            Ok((plan, bytes))
        })
    }

    fn execute(
        &mut self,
        values: Values<'_, T>,
        b: DenseView<'_, T>,
        mut c: DenseViewMut<'_, T>,
        scale: Scale<T::Accum>,
    ) -> Result<()> {
        let ranks = self.call.ranks.clone();
        let _lock = ranks.lock();
        let factors = scale.over(self.call.problem.semiring);
        let (key, arguments) = call(&self.call.problem, self.call.number, factors);
        let ready = self.prepare(values, &b, &mut c);
        let (values, b, mut c) = ranks.agree(&key, arguments, ready)?;
        let multiplied = self.multiply(ranks.communicator(), values, b, &mut c, factors);
        let multiplied = self.of_sums.complete(ranks.communicator(), multiplied);
        if self.call.fallible { ranks.together(multiplied) } else { multiplied }
    }

    /// The operands, if they fit.
    fn prepare<'v, 'c>(
        &self,
        values: Values<'v, T>,
        b: &DenseView<'v, T>,
        c: &'c mut DenseViewMut<'_, T>,
    ) -> Result<(&'v [T], DenseView<'v, T>, DenseViewMut<'c, T>)> {
        let Arguments { ranks, problem, pattern, nnz, rows_of_b: of_b, rows_of_c: of_c, .. } =
            &self.call;
        let values = values.fit("A", *pattern, *nnz)?;
        let b = rows_of_b(problem, *of_b).matrix(b, 0)?;
        let c = rows_of_c(problem, *of_c).matrix_mut(c, 0)?;
        self.of_values.check_idle(ranks.rank())?;
        self.of_sums.check_idle(ranks.rank())?;
        Ok((values, b, c))
    }

    /// The product, once all ranks have agreed on it; this rank's lock is held.
    fn multiply(
        &mut self,
        communicator: &dyn Communicator,
        values: &[T],
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, T>,
        factors: (T::Accum, T::Accum),
    ) -> Result<()> {
        let (n, semiring) = (self.call.problem.columns, self.call.problem.semiring);
        let exchanged = self.exchange_values(communicator, values);
        let exchanged = self.of_values.complete(communicator, exchanged);
        self.of_sums.receive(communicator)?;
        let of_part = exchanged.map(|()| Values::from(&self.values[..]));
        self.part.execute_locked(of_part, b, self.sums.view_mut(), Scale::new())?;
        for (message, rows) in self.send_sums.iter().enumerate() {
            let from = &self.sums.data()[rows.start * n..rows.end * n];
            self.of_sums.outgoing(message).copy_from_slice(from);
            self.of_sums.send(communicator, message)?;
        }
        let rows = self.call.rows_of_c;
        let sums: &mut [T::Accum] = bytemuck::cast_slice_mut(self.sums.data_mut());
        let own = &mut sums[..rows * n];
        let mut sums = DenseViewMut::new(rows, n, Layout::RowMajor, n, own)?;
        for (message, rows) in self.receive_sums.iter().enumerate() {
            self.of_sums.wait(communicator, message)?;
            add_rows(semiring, &mut sums, rows, self.of_sums.incoming(message));
        }
        self.of_sums.finish(communicator)?;
        store(semiring, factors, &sums.as_view(), c);
        Ok(())
    }

    /// Sends values of this rank's nonzeros to those who multiply them, and receives others'.
    fn exchange_values(&mut self, communicator: &dyn Communicator, values: &[T]) -> Result<()> {
        self.of_values.receive(communicator)?;
        for (message, positions) in self.send_values.iter().enumerate() {
            let to: &mut [T::Accum] = self.of_values.outgoing(message);
            positions.gather(values, to);
            self.of_values.send(communicator, message)?;
        }
        let own: &mut [T::Accum] = bytemuck::cast_slice_mut(&mut self.values);
        self.own.gather(values, &mut own[..self.own.len()]);
        for (message, range) in self.receive_values.iter().enumerate() {
            self.of_values.wait(communicator, message)?;
            self.values[range.clone()].copy_from_slice(self.of_values.incoming(message));
        }
        self.of_values.finish(communicator)
    }
}

impl<T: DistScalar, I: Index, O: Index> Plans<SpmmRequest<DistPattern<I, O>>, T> for Replicated {
    type Plan = ReplicatedSpmmPlan<T>;

    fn plan(&self, request: SpmmRequest<DistPattern<I, O>>) -> Result<ReplicatedSpmmPlan<T>> {
        ReplicatedSpmmPlan::new(&request.pattern, &request.problem, self)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use gustav_core::{Dense, Error, Layout, Pattern, Result};
    use gustav_cpu::{Options, Threads};

    use super::TeamPlan;
    use crate::testing::on_ranks;
    use crate::{Device, DistPattern, Partition, Ranks};

    pub const RANKS: usize = 4;
    pub const N: usize = 3;
    /// The sum of a row of ones.
    pub const SUM: f32 = 2.0 * RANKS as f32;

    /// This rank's two rows of a matrix without zeros.
    pub fn pattern(ranks: &Ranks) -> DistPattern {
        let size = 2 * RANKS as u32;
        let indices = (0..2).flat_map(|_| 0..size).collect::<Vec<_>>();
        let local = Pattern::new(2, size as usize, vec![0, size, 2 * size], indices).unwrap();
        DistPattern::new(ranks, &Partition::even(size as usize, RANKS), local).unwrap()
    }

    /// A plan of a rank in a team of two.
    pub struct OnCpu {
        plan: TeamPlan<f32>,
    }

    impl OnCpu {
        pub fn new(ranks: &Ranks) -> Self {
            let threads = Threads::new(1, false).unwrap();
            let device = Device::cpu(Options { threads, ..Options::default() });
            let pattern = pattern(ranks);
            let planned = TeamPlan::new(&pattern, &pattern.spmm(N).problem, &device, 2);
            OnCpu { plan: planned.unwrap().0 }
        }

        /// C of an execution on ones.
        pub fn execute(&mut self) -> Result<Vec<f32>> {
            let b = Dense::from_row_major(2, N, vec![1.0; 2 * N])?;
            let mut c = Dense::zeros(2, N, Layout::RowMajor)?;
            let values = [1.0; 4 * RANKS];
            self.plan.execute((&values[..]).into(), (&b).into(), (&mut c).into(), ().into())?;
            Ok(c.data().to_vec())
        }
    }

    /// Checks the first execution, in which rank `failing` fails, and the next, in which none does.
    pub fn check((rank, failing): (usize, usize), found: [Result<Vec<f32>>; 2]) {
        match &found[0] {
            Err(Error::Shape { .. }) => assert_eq!(rank, failing),
            Err(Error::OtherRank { rank: other, .. }) => assert_eq!(*other, failing),
            other => panic!("rank {rank}: {other:?}"),
        }
        assert_eq!(found[1].as_deref().expect("all is well"), [SUM; 2 * N]);
    }

    /// All messages are completed when the product of a member's part fails: the plan is as good as before.
    #[test]
    fn an_error_of_a_part_is_on_every_rank() {
        for failing in 0..RANKS {
            on_ranks(Ranks::in_process(RANKS), |ranks| {
                let mut member = OnCpu::new(&ranks);
                let rows = member.plan.sums.nrows();
                if ranks.rank() == failing {
                    member.plan.sums = Dense::zeros(rows, N + 1, Layout::RowMajor).unwrap();
                }
                let failed = member.execute();
                member.plan.sums = Dense::zeros(rows, N, Layout::RowMajor).unwrap();
                check((ranks.rank(), failing), [failed, member.execute()]);
            });
        }
    }
}
