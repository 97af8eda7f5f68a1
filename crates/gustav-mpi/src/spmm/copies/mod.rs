//! SpMM over ranks with copies of B's rows on fewer ranks: teams of ranks that divide the work of their rows.

mod choice;
mod team;

use gustav_core::{
    Dense, DenseView, DenseViewMut, Error, Index, IndexType, Layout, Operation, PatternId, Plans,
    Problem, Result, Scale, SpmmRequest, Values,
};

use super::{SpmmPlan, call, rows_of_b, rows_of_c};
use crate::device::{arguments, supports};
use crate::exchange::Exchange;
use crate::local::{DistScalar, add_rows, is_widened, store};
use crate::positions::Positions;
use crate::volume::Counted;
use crate::{Device, DistPattern, Explanation, Ranks, Volume};
pub use choice::{Copies, CopiesCandidate};
use team::{Member, TeamPart};

/// The CPU of a rank that is one of a team of consecutive ranks, after the 1.5D algorithms (Koanantakool et al. 2016):
/// every nonzero whose column another team has is multiplied by that member of the team that receives all rows of B from
/// the team of the column, so that a row of B is sent to each team once. For that, values of A are sent to the member in
/// every execution and partial rows of C are sent back, between ranks that may share a host; and a rank has memory for the
/// rows of C of its team in which it multiplies.
#[derive(Clone, Debug)]
pub struct Replicated {
    device: Device,
    /// `None` for the number that sends the fewest bytes.
    copies: Option<usize>,
    memory: Option<u64>,
}

impl Replicated {
    /// Ranks in teams of `copies`, which divides their number.
    pub fn new(device: Device, copies: usize) -> Self {
        Replicated { device, copies: Some(copies), memory: None }
    }

    /// Ranks in teams of the size with which the fewest bytes are sent, of those whose plans fit into memory on every
    /// rank; alone where no team saves bytes. Bytes are counted when a plan is made, for every divisor of the number of
    /// ranks whose plan would fit, and [`Explanation::copies`] lists them.
    pub fn automatic(device: Device) -> Self {
        Replicated { device, copies: None, memory: None }
    }

    /// Sets the bytes that a plan with copies may take on this rank, while it is made too, if their number is chosen
    /// automatically; else it is the memory that this rank's host has available, divided by the ranks on it. Ranks may differ
    /// in it.
    #[must_use]
    pub fn memory(self, bytes: u64) -> Self {
        Replicated { memory: Some(bytes), ..self }
    }
}

/// A plan for sparse × dense products by teams of ranks, made by `pattern.spmm(columns).plan(&replicated)`.
///
/// Making and executing it are collective, as those of an [`SpmmPlan`].
pub struct ReplicatedSpmmPlan<T: DistScalar> {
    method: Method<T>,
    explanation: Explanation,
}

/// How a plan multiplies.
enum Method<T: DistScalar> {
    /// One copy: every rank alone.
    Single(Box<SpmmPlan<T>>),
    Team(Box<TeamPlan<T>>),
}

/// A plan of a member of a team of several ranks.
struct TeamPlan<T: DistScalar> {
    ranks: Ranks,
    number: u64,
    problem: Problem,
    pattern: PatternId,
    nnz: usize,
    rows_of_b: usize,
    rows_of_c: usize,
    /// The product with this member's nonzeros: those of its rows, then those of others' rows.
    part: SpmmPlan<T>,
    /// The values of these.
    values: Vec<T>,
    /// Of the values of this rank's own nonzeros.
    own: Positions,
    members: Vec<Member>,
    exchange: Exchange,
    /// What this member multiplies: its rows, then those of others.
    sums: Dense<T>,
}

impl<T: DistScalar> ReplicatedSpmmPlan<T> {
    /// Plans `problem` for `pattern`. Collective.
    ///
    /// # Errors
    /// As [`SpmmPlan::new`], [`Error::Argument`] when the number of copies does not divide that of ranks, and
    /// [`Error::Unsupported`] for Aᵀ and for f16 and bf16 with a number of copies, even of one.
    pub fn new<I: Index, O: Index>(
        pattern: &DistPattern<I, O>,
        problem: &Problem,
        replicated: &Replicated,
    ) -> Result<Self> {
        let Replicated { device, copies, memory } = replicated;
        let ranks = pattern.ranks();
        let checked = copies
            .map_or(Ok(()), |copies| check::<T>(problem, ranks.size(), copies))
            .and_then(|()| supports(problem, ranks.size()))
            .and_then(|()| problem.check_a(pattern.nrows(), pattern.ncols(), pattern.nnz()));
        let (dtype, index_type, offset_type) = (T::DTYPE, I::TYPE, O::TYPE);
        let typed = Problem { dtype, index_type, offset_type, ..problem.clone() };
        let chosen = {
            let _lock = ranks.lock();
            let mut arguments = arguments(ranks.next_plan(), &typed, pattern, device);
            let of_copies = copies.map_or_else(|| "automatic".into(), |copies| copies.to_string());
            // Before what every plan has: a plan without copies gives no such argument.
            arguments.insert(0, ("copies", of_copies));
            ranks.agree_on(arguments, checked)?;
            match copies {
                Some(copies) => Copies { chosen: *copies, candidates: Vec::new() },
                None => choice::choose::<T, I, O>(pattern, problem, device.communication, *memory)?,
            }
        };
        let (method, mut explanation) = match chosen.chosen {
            1 => {
                let plan = SpmmPlan::new(pattern, problem, device)?;
                let explanation = plan.explain().clone();
                (Method::Single(Box::new(plan)), explanation)
            }
            copies => {
                let (plan, explanation) = TeamPlan::new(pattern, problem, device, copies)?;
                (Method::Team(Box::new(plan)), explanation)
            }
        };
        explanation.copies = Some(chosen);
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
        let (ranks, n) = (pattern.ranks(), problem.columns);
        let TeamPart { pattern: local, own, mut members } = {
            let _lock = ranks.lock();
            ranks.together(TeamPart::new(pattern, copies))?
        };
        let (rows, nnz) = (local.nrows(), local.nnz());
        let part = DistPattern::new(ranks, pattern.columns(), local)?;
        let problem_of_part = Problem {
            rows: part.nrows(),
            nnz: part.nnz(),
            offset_type: IndexType::U64,
            layout_c: Layout::RowMajor,
            ..problem.clone()
        };
        let part = SpmmPlan::new(&part, &problem_of_part, device)?;

        let _lock = ranks.lock();
        let number = ranks.next_plan();
        ranks.count_plan();
        let mut exchange = Exchange::default();
        let mut allocate = || {
            for (q, member) in members.iter_mut().enumerate() {
                member.add::<T>(q, n, &mut exchange)?;
            }
            let mut values = gustav_core::buffer::try_vec::<T>(nnz, "values of a team")?;
            values.resize(nnz, T::zero());
            Ok::<_, Error>((values, Dense::zeros(rows, n, Layout::RowMajor)?))
        };
        let allocated = allocate();
        let (values, sums) = ranks.together(allocated)?;
        let mut counted = Counted::default();
        counted.add_messages(&exchange, ranks.rank(), ranks.hosts()?);
        let volume = Volume::gather(ranks, counted, 0)?;
        let mut explanation = part.explain().clone();
        explanation.problem = Problem {
            dtype: T::DTYPE,
            output: T::DTYPE,
            index_type: I::TYPE,
            offset_type: O::TYPE,
            ..problem.clone()
        };
        explanation.volume.add(&volume);
        // Values come first.
        explanation.early = 0;
        explanation.workspace_bytes +=
            exchange.bytes() + size_of_val(&values[..]) + size_of_val(sums.data());
        let plan = TeamPlan {
            ranks: ranks.clone(),
            number,
            problem: problem.clone(),
            pattern: pattern.local().id(),
            nnz: pattern.local().nnz(),
            rows_of_b: pattern.columns().count(ranks.rank()),
            rows_of_c: pattern.local().nrows(),
            part,
            values,
            own: Positions::new(own),
            members,
            exchange,
            sums,
        };
        Ok((plan, explanation))
    }

    fn execute(
        &mut self,
        values: Values<'_, T>,
        b: DenseView<'_, T>,
        mut c: DenseViewMut<'_, T>,
        scale: Scale<T::Accum>,
    ) -> Result<()> {
        let ranks = self.ranks.clone();
        let _lock = ranks.lock();
        let factors = scale.over(self.problem.semiring);
        let (key, arguments) = call(&self.problem, self.number, factors);
        let ready = self.prepare(values, &b, &mut c);
        let (values, b, mut c) = ranks.agree(&key, arguments, ready)?;
        let multiplied = self.multiply(values, b, &mut c, factors);
        self.exchange.complete(ranks.communicator(), multiplied)
    }

    /// The operands, if they fit.
    fn prepare<'v, 'c>(
        &self,
        values: Values<'v, T>,
        b: &DenseView<'v, T>,
        c: &'c mut DenseViewMut<'_, T>,
    ) -> Result<(&'v [T], DenseView<'v, T>, DenseViewMut<'c, T>)> {
        let values = values.fit("A", self.pattern, self.nnz)?;
        let b = rows_of_b(&self.problem, self.rows_of_b).matrix(b, 0)?;
        let c = rows_of_c(&self.problem, self.rows_of_c).matrix_mut(c, 0)?;
        self.exchange.check_idle(self.ranks.rank())?;
        Ok((values, b, c))
    }

    /// The product, once all ranks have agreed on it; this rank's lock is held.
    fn multiply(
        &mut self,
        values: &[T],
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, T>,
        factors: (T::Accum, T::Accum),
    ) -> Result<()> {
        let ranks = self.ranks.clone();
        let (communicator, n) = (ranks.communicator(), self.problem.columns);
        self.exchange.receive(communicator)?;
        for (message, positions) in self.members.iter().filter_map(|m| m.send_values.as_ref()) {
            let to: &mut [T::Accum] = self.exchange.outgoing(*message);
            positions.gather(values, to);
            self.exchange.send(communicator, *message)?;
        }
        let own: &mut [T::Accum] = bytemuck::cast_slice_mut(&mut self.values);
        self.own.gather(values, &mut own[..self.own.len()]);
        for (message, range) in self.members.iter().filter_map(|m| m.receive_values.as_ref()) {
            self.exchange.wait(communicator, *message)?;
            self.values[range.clone()].copy_from_slice(self.exchange.incoming(*message));
        }
        let of_part = Values::from(&self.values[..]);
        self.part.execute_locked(of_part, b, self.sums.view_mut(), Scale::new())?;
        for (message, rows) in self.members.iter().filter_map(|m| m.send_sums.as_ref()) {
            let from = &self.sums.data()[rows.start * n..rows.end * n];
            self.exchange.outgoing(*message).copy_from_slice(from);
            self.exchange.send(communicator, *message)?;
        }
        let sums: &mut [T::Accum] = bytemuck::cast_slice_mut(self.sums.data_mut());
        let own = &mut sums[..self.rows_of_c * n];
        let mut sums = DenseViewMut::new(self.rows_of_c, n, Layout::RowMajor, n, own)?;
        for (message, rows) in self.members.iter().filter_map(|m| m.receive_sums.as_ref()) {
            self.exchange.wait(communicator, *message)?;
            add_rows(self.problem.semiring, &mut sums, rows, self.exchange.incoming(*message));
        }
        self.exchange.finish(communicator)?;
        store(self.problem.semiring, factors, &sums.as_view(), c);
        Ok(())
    }
}

fn check<T: DistScalar>(problem: &Problem, ranks: usize, copies: usize) -> Result<()> {
    let refuse = |reason: &str, nearest: &str| {
        Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: "products over ranks with copies".into(),
            reason: reason.into(),
            nearest: nearest.into(),
        })
    };
    if copies == 0 || !ranks.is_multiple_of(copies) {
        return Err(Error::Argument {
            name: "copies",
            found: copies.to_string(),
            expected: format!("a divisor of the number of ranks, {ranks}"),
        });
    }
    if problem.transpose_a {
        return refuse("rows of B are what they save", "one copy");
    }
    if is_widened(T::DTYPE) {
        return refuse("partial rows of C would be rounded", "one copy, or f32");
    }
    match problem.operation {
        Operation::Spmm | Operation::Spmv => Ok(()),
        _ => refuse("they multiply a sparse and a dense matrix", "one copy"),
    }
}

impl<T: DistScalar, I: Index, O: Index> Plans<SpmmRequest<DistPattern<I, O>>, T> for Replicated {
    type Plan = ReplicatedSpmmPlan<T>;

    fn plan(&self, request: SpmmRequest<DistPattern<I, O>>) -> Result<ReplicatedSpmmPlan<T>> {
        ReplicatedSpmmPlan::new(&request.pattern, &request.problem, self)
    }
}
