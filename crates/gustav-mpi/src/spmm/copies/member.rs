//! What a team adds to the product of a member's part, wherever the member computes: its messages, and what is checked.

use std::ops::Range;

use gustav_core::{Error, Index, IndexType, Layout, PatternId, Problem, Result};

use super::team::{Member, TeamPart};
use crate::communicator::Tag;
use crate::exchange::Exchange;
use crate::gpu::chunks;
use crate::local::DistScalar;
use crate::volume::Counted;
use crate::{DistPattern, Explanation, Ranks, Volume};

/// The part that a member of a team multiplies, before it is planned.
pub(super) struct Team<'p, I: Index, O: Index> {
    pattern: &'p DistPattern<I, O>,
    problem: &'p Problem,
    /// The members' parts together.
    pub part: DistPattern<I, u64>,
    /// Their product, into sums.
    pub problem_of_part: Problem,
    own: Vec<usize>,
    members: Vec<Member>,
}

/// What a plan has besides that of its part.
pub(super) struct Around {
    pub call: Arguments,
    pub messages: Messages,
    /// Positions of the values of this rank's own nonzeros, which are the first of the part.
    pub own: Vec<usize>,
}

/// What the arguments of an execution have to fit.
pub(super) struct Arguments {
    pub ranks: Ranks,
    pub number: u64,
    pub problem: Problem,
    pub pattern: PatternId,
    pub nnz: usize,
    pub rows_of_b: usize,
    pub rows_of_c: usize,
    /// Whether a product of some rank can fail while others communicate: on a GPU.
    pub fallible: bool,
}

/// The messages of a member within its team, by rank; a message has the number in its exchange that it has in the list.
pub(super) struct Messages {
    /// Of values of A, which are sent before the product of the part.
    pub values: Exchange,
    /// Of partial rows of C, which are sent after it.
    pub sums: Exchange,
    /// Positions of the values that are sent.
    pub send_values: Vec<Vec<usize>>,
    /// Where received values are among those of the part.
    pub receive_values: Vec<Range<usize>>,
    /// Where rows that are sent are among those of the part.
    pub send_sums: Vec<Range<usize>>,
    /// The rows of C that received ones are added to.
    pub receive_sums: Vec<Vec<u32>>,
}

impl Messages {
    /// Those between this rank and `members`, by rank, of `n` columns and in chunks of `limit` bytes.
    fn new<T: DistScalar>(members: Vec<Member>, n: usize, limit: usize) -> Result<Self> {
        let mut values = Exchange::with_limit(limit);
        let mut sums = Exchange::with_limit(limit);
        let (mut send_values, mut receive_values) = (Vec::new(), Vec::new());
        let (mut send_sums, mut receive_sums) = (Vec::new(), Vec::new());
        for (q, member) in members.into_iter().enumerate() {
            if !member.send_values.is_empty() {
                values.add_outgoing::<T>(q, Tag::Values, member.send_values.len())?;
                send_values.push(member.send_values);
            }
            if !member.receive_values.is_empty() {
                values.add_incoming::<T>(q, Tag::Values, member.receive_values.len())?;
                receive_values.push(member.receive_values);
            }
            if !member.send_sums.is_empty() && n > 0 {
                sums.add_outgoing::<T>(q, Tag::Sums, member.send_sums.len() * n)?;
                send_sums.push(member.send_sums);
            }
            if !member.receive_sums.is_empty() && n > 0 {
                sums.add_incoming::<T>(q, Tag::Sums, member.receive_sums.len() * n)?;
                receive_sums.push(member.receive_sums);
            }
        }
        Ok(Messages { values, sums, send_values, receive_values, send_sums, receive_sums })
    }
}

impl<'p, I: Index, O: Index> Team<'p, I, O> {
    /// The part of this rank in its team of `copies` ranks. Collective; ranks have agreed on the arguments.
    ///
    /// # Errors
    /// On every rank, as [`TeamPart::new`].
    pub fn new(
        pattern: &'p DistPattern<I, O>,
        problem: &'p Problem,
        copies: usize,
    ) -> Result<Self> {
        let ranks = pattern.ranks();
        let TeamPart { pattern: local, own, members } = {
            let _lock = ranks.lock();
            ranks.together(TeamPart::new(pattern, copies))?
        };
        let part = DistPattern::new(ranks, pattern.columns(), local)?;
        let problem_of_part = Problem {
            rows: part.nrows(),
            nnz: part.nnz(),
            offset_type: IndexType::U64,
            layout_c: Layout::RowMajor,
            ..problem.clone()
        };
        Ok(Team { pattern, problem, part, problem_of_part, own, members })
    }

    /// The plan that `build` makes around that of the part, which explains itself as `explanation`, and of which this
    /// rank computes on a GPU if `on_gpu`; and what the whole says of itself. `build` gives the bytes as well that its
    /// plan holds besides that of the part. Collective.
    ///
    /// # Errors
    /// Those of `build`, on every rank, and [`Error::OutOfMemory`].
    pub fn plan<T: DistScalar, P>(
        self,
        on_gpu: bool,
        mut explanation: Explanation,
        build: impl FnOnce(Around) -> Result<(P, usize)>,
    ) -> Result<(P, Explanation)> {
        let Team { pattern, problem, own, members, .. } = self;
        let ranks = pattern.ranks();
        let _lock = ranks.lock();
        let number = ranks.next_plan();
        ranks.count_plan();
        let hosts = ranks.hosts()?;
        let (fallible, limit) = chunks(ranks, on_gpu, problem)?;
        let call = Arguments {
            ranks: ranks.clone(),
            number,
            problem: problem.clone(),
            pattern: pattern.local().id(),
            nnz: pattern.local().nnz(),
            rows_of_b: pattern.columns().count(ranks.rank()),
            rows_of_c: pattern.local().nrows(),
            fallible,
        };
        let mut counted = Counted::default();
        let built = Messages::new::<T>(members, problem.columns, limit).and_then(|messages| {
            counted.add_messages(&messages.values, ranks.rank(), hosts);
            counted.add_messages(&messages.sums, ranks.rank(), hosts);
            build(Around { call, messages, own })
        });
        let (plan, bytes) = ranks.together::<_, Error>(built)?;
        explanation.volume.add(&Volume::gather(ranks, counted, 0)?);
        explanation.problem = Problem {
            dtype: T::DTYPE,
            output: T::DTYPE,
            index_type: I::TYPE,
            offset_type: O::TYPE,
            ..problem.clone()
        };
        // Values come first.
        explanation.early = 0;
        explanation.workspace_bytes += bytes;
        Ok((plan, explanation))
    }
}
