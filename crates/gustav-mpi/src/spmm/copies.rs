//! SpMM over ranks with copies of B's rows on fewer ranks: teams of ranks that share the work of their rows.

use std::ops::Range;

use gustav_core::{
    Dense, DenseView, DenseViewMut, Error, Index, Layout, Operation, Pattern, PatternId, Plans,
    Problem, Result, Scale, SpmmRequest, Values,
};

use super::{SpmmPlan, call, check_dense};
use crate::communicator::Tag;
use crate::exchange::{Exchange, all_to_all};
use crate::local::{DistScalar, add_rows, is_widened, store};
use crate::positions::Positions;
use crate::volume::Counted;
use crate::{Device, DistPattern, Explanation, Ranks, Volume};

/// The CPU of a rank that is one of a team of consecutive ranks, after the 1.5D algorithms (Koanantakool et al. 2016):
/// every nonzero whose column another team has is multiplied by that member of the team that gets all rows of B from the
/// team of the column, so that a row of B goes to each team once. For that, values of A go to the member in every
/// execution and partial rows of C are sent back, between ranks that may share a host; and a rank has memory for the rows of
/// C of its team in which it multiplies. Whether this sends fewer bytes than one copy, plans say.
#[derive(Clone, Debug)]
pub struct Replicated {
    device: Device,
    copies: usize,
}

impl Replicated {
    /// Ranks in teams of `copies`, which divides their number.
    pub fn new(device: Device, copies: usize) -> Self {
        Replicated { device, copies }
    }
}

/// A plan for sparse × dense products by teams of ranks, made by `pattern.spmm(columns).plan(&replicated)`.
///
/// Making and executing it are collective, as those of an [`SpmmPlan`].
pub struct ReplicatedSpmmPlan<T: DistScalar> {
    ranks: Ranks,
    number: u64,
    problem: Problem,
    pattern: PatternId,
    nnz: usize,
    rows_of_b: usize,
    rows_of_c: usize,
    /// The product with this member's nonzeros: those of its rows, then those of others' rows.
    inner: SpmmPlan<T>,
    /// The values of these.
    values: Vec<T>,
    own_values: Positions,
    members: Vec<Member>,
    exchange: Exchange,
    /// What this member multiplies: its rows, then those of others.
    sums: Dense<T>,
    explanation: Explanation,
}

/// What passes between two members of a team.
#[derive(Default)]
struct Member {
    /// Values of A that go there, and their message.
    send_values: Option<(usize, Positions)>,
    /// Rows of C that are sent back for them, and their message.
    receive_sums: Option<(usize, Vec<u32>)>,
    /// Values of A that are received from there, and their message.
    receive_values: Option<(usize, Range<usize>)>,
    /// Rows of the sums that go back for them, and their message.
    send_sums: Option<(usize, Range<usize>)>,
}

/// Nonzeros of this rank's rows, of which another member multiplies some.
struct TeamSplit<I> {
    /// Lengths of this rank's rows without the others' nonzeros, the columns, and positions of the values.
    lengths: Vec<usize>,
    columns: Vec<I>,
    own: Vec<usize>,
    /// By rank: rows of which it multiplies nonzeros, as (row, their number) and columns, and positions.
    sent: Vec<(Vec<u64>, Vec<u64>, Vec<usize>)>,
}

impl<I: Index> TeamSplit<I> {
    fn of<O: Index>(pattern: &DistPattern<I, O>, copies: usize) -> Self {
        let (ranks, local) = (pattern.ranks(), pattern.local().view());
        let team = ranks.rank() / copies;
        let (mut lengths, mut columns, mut own) = (Vec::new(), Vec::new(), Vec::new());
        let mut sent = vec![(Vec::new(), Vec::new(), Vec::new()); ranks.size()];
        for row in 0..local.nrows() {
            let first = own.len();
            for at in local.row_range(row) {
                let column = local.indices()[at];
                let other = pattern.columns().owner(column.to_usize()) / copies;
                let member = team * copies + other % copies;
                if other == team || member == ranks.rank() {
                    columns.push(column);
                    own.push(at);
                    continue;
                }
                let (rows, of_columns, positions) = &mut sent[member];
                match rows.len().checked_sub(2) {
                    Some(last) if rows[last] == row as u64 => rows[last + 1] += 1,
                    _ => rows.extend([row as u64, 1]),
                }
                of_columns.push(column.to_usize() as u64);
                positions.push(at);
            }
            lengths.push(own.len() - first);
        }
        TeamSplit { lengths, columns, own, sent }
    }
}

impl<T: DistScalar> ReplicatedSpmmPlan<T> {
    /// Plans `problem` for `pattern`. Collective.
    ///
    /// # Errors
    /// As [`SpmmPlan::new`], [`Error::Argument`] when the number of copies does not divide that of ranks, and
    /// [`Error::Unsupported`] for Aᵀ and for f16 and bf16.
    pub fn new<I: Index, O: Index>(
        pattern: &DistPattern<I, O>,
        problem: &Problem,
        replicated: &Replicated,
    ) -> Result<Self> {
        let (ranks, copies) = (pattern.ranks(), replicated.copies);
        let checked = check::<T>(problem, ranks.size(), copies)
            .and_then(|()| problem.check_a(pattern.nrows(), pattern.ncols(), pattern.nnz()));
        let arguments = vec![
            ("call", "a plan with copies".to_owned()),
            ("copies", copies.to_string()),
            ("columns of the dense matrix", problem.columns.to_string()),
            ("partition of rows", pattern.rows().description()),
            ("partition of columns", pattern.columns().description()),
        ];
        ranks.agree_on(arguments, checked)?;
        let TeamSplit { lengths, mut columns, own: own_positions, sent } =
            TeamSplit::of(pattern, copies);
        let rows: Vec<&[u64]> = sent.iter().map(|(rows, ..)| &rows[..]).collect();
        let of_columns: Vec<&[u64]> = sent.iter().map(|(_, columns, _)| &columns[..]).collect();
        let rows = all_to_all(ranks, &rows)?;
        let of_columns = all_to_all(ranks, &of_columns)?;

        let (own, n) = (lengths.len(), problem.columns);
        let (mut nonzeros, mut offsets) = (0_u64, vec![0_u64]);
        let row = |len: usize, nonzeros: &mut u64, offsets: &mut Vec<u64>| {
            *nonzeros += len as u64;
            offsets.push(*nonzeros);
        };
        lengths.iter().for_each(|len| row(*len, &mut nonzeros, &mut offsets));
        let mut exchange = Exchange::default();
        let mut members: Vec<Member> = rows.iter().map(|_| Member::default()).collect();
        for (q, (rows, of_columns)) in rows.iter().zip(&of_columns).enumerate() {
            let values = columns.len()..columns.len() + of_columns.len();
            let first = offsets.len() - 1;
            rows.chunks_exact(2).for_each(|r| row(r[1] as usize, &mut nonzeros, &mut offsets));
            columns.extend(of_columns.iter().map(|column| I::truncate(*column as usize)));
            if !values.is_empty() {
                members[q].receive_values = Some((0, values));
                members[q].send_sums = Some((0, first..offsets.len() - 1));
            }
        }
        for ((rows, _, positions), member) in sent.into_iter().zip(&mut members) {
            if !positions.is_empty() {
                member.send_values = Some((0, Positions::new(positions)));
                let rows = rows.chunks_exact(2).map(|row| row[0] as u32);
                member.receive_sums = Some((0, rows.collect()));
            }
        }
        let sizes = (nonzeros as usize, offsets.len() - 1);
        let made = Pattern::<I, u64>::new(sizes.1, pattern.ncols(), offsets, columns);
        let local = ranks.together(made)?;
        let part = DistPattern::new(ranks, pattern.columns(), local)?;
        let problem_of_part = Problem {
            rows: part.nrows(),
            nnz: part.nnz(),
            offset_type: gustav_core::IndexType::U64,
            layout_c: Layout::RowMajor,
            ..problem.clone()
        };
        let inner = SpmmPlan::new(&part, &problem_of_part, &replicated.device)?;

        let number = ranks.next_plan();
        ranks.count_plan();
        let mut allocate = || {
            for (q, member) in members.iter_mut().enumerate() {
                member.add::<T>(q, n, &mut exchange)?;
            }
            let mut values = gustav_core::buffer::try_vec::<T>(sizes.0, "values of a team")?;
            values.resize(sizes.0, T::zero());
            Ok::<_, Error>((values, Dense::zeros(sizes.1, n, Layout::RowMajor)?))
        };
        let allocated = allocate();
        let (values, sums) = ranks.together(allocated)?;
        let mut counted = Counted::default();
        counted.add_messages(&exchange, ranks.rank(), ranks.hosts()?);
        let volume = Volume::gather(ranks, counted, 0)?;
        let mut explanation = inner.explain().clone();
        explanation.problem = problem.clone();
        explanation.volume.add(&volume);
        explanation.workspace_bytes +=
            exchange.bytes() + size_of_val(&values[..]) + size_of_val(sums.data());
        Ok(ReplicatedSpmmPlan {
            ranks: ranks.clone(),
            number,
            problem: problem.clone(),
            pattern: pattern.local().id(),
            nnz: pattern.local().nnz(),
            rows_of_b: pattern.columns().count(ranks.rank()),
            rows_of_c: own,
            inner,
            values,
            own_values: Positions::new(own_positions),
            members,
            exchange,
            sums,
            explanation,
        })
    }

    /// What is computed, what ranks send, and how work is balanced.
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
        let (b, mut c) = (b.into(), c.into());
        let ranks = self.ranks.clone();
        let (communicator, n) = (ranks.communicator(), self.problem.columns);
        let factors = scale.into().over(self.problem.semiring);
        let ready = self.check(values.into(), &b, &c);
        let (key, arguments) = call(&self.problem, self.number, factors);
        let values = ranks.agree(&key, arguments, ready)?;
        self.exchange.receive(communicator)?;
        for (message, positions) in
            self.members.iter().filter_map(|member| member.send_values.as_ref())
        {
            let to: &mut [T::Accum] = self.exchange.outgoing(*message);
            positions.gather(values, to);
            self.exchange.send(communicator, *message)?;
        }
        let own_len = self.own_values.len();
        let own: &mut [T::Accum] = bytemuck::cast_slice_mut(&mut self.values);
        self.own_values.gather(values, &mut own[..own_len]);
        for (message, range) in
            self.members.iter().filter_map(|member| member.receive_values.as_ref())
        {
            self.exchange.wait(communicator, *message)?;
            self.values[range.clone()].copy_from_slice(self.exchange.incoming(*message));
        }
        self.inner.execute(&self.values[..], b, &mut self.sums, ())?;
        for (message, rows) in self.members.iter().filter_map(|member| member.send_sums.as_ref()) {
            let from = &self.sums.data()[rows.start * n..rows.end * n];
            self.exchange.outgoing(*message).copy_from_slice(from);
            self.exchange.send(communicator, *message)?;
        }
        let sums: &mut [T::Accum] = bytemuck::cast_slice_mut(self.sums.data_mut());
        let own = &mut sums[..self.rows_of_c * n];
        let mut sums = DenseViewMut::new(self.rows_of_c, n, Layout::RowMajor, n, own)?;
        for (message, rows) in self.members.iter().filter_map(|member| member.receive_sums.as_ref())
        {
            self.exchange.wait(communicator, *message)?;
            add_rows(self.problem.semiring, &mut sums, rows, self.exchange.incoming(*message));
        }
        self.exchange.finish(communicator)?;
        let (semiring, sums) = (self.problem.semiring, sums.as_view());
        match c.layout() {
            Layout::RowMajor => store(semiring, factors, &sums, &mut c),
            other => store(semiring, factors, &sums.to_layout(other)?.view(), &mut c),
        }
        Ok(())
    }

    /// The values, if the operands fit.
    fn check<'v>(
        &self,
        values: Values<'v, T>,
        b: &DenseView<'_, T>,
        c: &DenseViewMut<'_, T>,
    ) -> Result<&'v [T]> {
        let p = &self.problem;
        let values = values.fit("A", self.pattern, self.nnz)?;
        check_dense(p, "B", (self.rows_of_b, p.layout_b), (b.nrows(), b.ncols(), b.layout()))?;
        check_dense(p, "C", (self.rows_of_c, p.layout_c), (c.nrows(), c.ncols(), c.layout()))?;
        self.exchange.check_idle(self.ranks.rank())?;
        Ok(values)
    }
}

impl Member {
    /// Adds the messages to and from member `q`.
    fn add<T: DistScalar>(&mut self, q: usize, n: usize, exchange: &mut Exchange) -> Result<()> {
        if let Some((message, positions)) = &mut self.send_values {
            *message = exchange.add_outgoing::<T>(q, Tag::Values, positions.len())?;
        }
        if let Some((message, range)) = &mut self.receive_values {
            *message = exchange.add_incoming::<T>(q, Tag::Values, range.len())?;
        }
        if n == 0 {
            (self.send_sums, self.receive_sums) = (None, None);
        }
        if let Some((message, rows)) = &mut self.send_sums {
            *message = exchange.add_outgoing::<T>(q, Tag::Sums, rows.len() * n)?;
        }
        if let Some((message, rows)) = &mut self.receive_sums {
            *message = exchange.add_incoming::<T>(q, Tag::Sums, rows.len() * n)?;
        }
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
