//! SpGEMM over ranks: C = scale(α, A·B), all three sparse.

use gustav_core::buffer::try_vec;
use gustav_core::{
    Csr, Error, Index, Operation, Pattern, PatternId, Problem, Result, Scalar, Values,
};
use gustav_cpu::spgemm::SpgemmCall;

use crate::blocks::fits;
use crate::communicator::Tag;
use crate::device::{arguments, supports};
use crate::exchange::{Exchange, all_to_all};
use crate::explain::unconfigured;
use crate::ghosts::Ghosts;
use crate::local::DistScalar;
use crate::volume::Counted;
use crate::{Communication, Device, DistCsr, DistPattern, Explanation, Partition, Ranks, Volume};

/// A plan for sparse × sparse products with patterns of A and B over ranks, made by `a.spgemm(&b).plan(&device)`.
///
/// B's rows are spread as A's columns; C's rows are spread as A's, its columns as B's. When the plan is made,
/// every rank fetches the patterns of the ghost rows of B that its nonzeros need; an execution fetches their values,
/// and multiplies. Making and executing it are collective, as those of an [`SpmmPlan`](crate::SpmmPlan). Results are
/// the same to the bit from run to run.
pub struct SpgemmPlan<T: DistScalar, I: Index = u32, O: Index = u32> {
    ranks: Ranks,
    number: u64,
    patterns: [(PatternId, usize); 2],
    columns: Partition,
    plan: gustav_cpu::SpgemmPlan<'static, T, u32, u64>,
    /// The columns of C that this rank can have, increasing: the plan's are numbered by them.
    of_c: Vec<I>,
    /// The pattern of the last product, as the plan numbers it and over all columns.
    last: Option<(PatternId, Pattern<I, O>)>,
    /// Values of B: those of ranks before this one, its own, those of ranks after it.
    values: Vec<T>,
    own_at: usize,
    /// Messages, and the positions of the values that go out with them.
    sends: Vec<(usize, Vec<usize>)>,
    exchange: Exchange,
    /// Where the values of each incoming message go.
    firsts: Vec<usize>,
    explanation: Explanation,
}

impl<T: DistScalar, I: Index, O: Index> SpgemmPlan<T, I, O> {
    /// Plans `problem` for `a` and `b`. Collective.
    ///
    /// # Errors
    /// As [`SpmmPlan::new`](crate::SpmmPlan::new), and [`Error::Shape`] when rows of B are not spread as columns of A.
    pub fn new(
        a: &DistPattern<I, O>,
        b: &DistPattern<I, O>,
        problem: &Problem,
        device: &Device,
    ) -> Result<Self> {
        let ranks = a.ranks();
        let _lock = ranks.lock();
        let number = ranks.next_plan();
        let (dtype, index_type, offset_type) = (T::DTYPE, I::TYPE, O::TYPE);
        let problem = Problem { dtype, output: dtype, index_type, offset_type, ..problem.clone() };
        let device = &device.clone().communication(Communication::RowsOfB);
        let mut agreed = arguments(number, &problem, a, device);
        agreed.push(("partition of rows of B", b.rows().description()));
        agreed.push(("partition of columns of B", b.columns().description()));
        ranks.agree_on(agreed, check(a, b, &problem))?;
        ranks.count_plan();

        ranks.hosts()?;
        let ghosts = Ghosts::new(a)?;
        let local = b.local().view();
        // Lengths of rows, then their columns.
        let lengths: Vec<Vec<u64>> = of_rows(&ghosts.requested, |row| [local.row_len(row) as u64]);
        let columns: Vec<Vec<I>> = of_rows(&ghosts.requested, |row| local.row(row).iter().copied());
        let lengths = all_to_all(ranks, &lengths.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let columns = all_to_all(ranks, &columns.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let built = Self::build([a, b], problem, device, number, ghosts, (lengths, columns));
        let (mut plan, counted) = ranks.together(built)?;
        let all = (b.nnz() * (ranks.size() - 1) * size_of::<T>()) as u64;
        plan.explanation.volume = Volume::gather(ranks, counted, all)?;
        Ok(plan)
    }

    fn build(
        [a, b]: [&DistPattern<I, O>; 2],
        problem: Problem,
        device: &Device,
        number: u64,
        ghosts: Ghosts,
        (lengths, columns): (Vec<Vec<u64>>, Vec<Vec<I>>),
    ) -> Result<(Self, Counted)> {
        let ranks = a.ranks();
        let (rank, local) = (ranks.rank(), b.local().view());
        let own = local.nrows();
        let rows = own + ghosts.count();
        fits("rows and ghost rows of B", rows)?;
        // Rows of B in the order of all rows: ghosts of ranks before this one, its own, ghosts of those after it.
        let before = |q: usize| ghosts.blocks.others.iter().filter(move |block| block.peer < q);
        let first_row = |q: usize| {
            before(q).map(|block| block.columns.len()).sum::<usize>()
                + if q > rank { own } else { 0 }
        };
        let remote = columns.iter().map(Vec::len).sum::<usize>();
        let mut of_b = try_vec::<I>(local.nnz() + remote, "columns of rows of B")?;
        let mut offsets = try_vec::<u64>(rows + 1, "row offsets of B")?;
        offsets.push(0);
        let mut own_at = 0;
        let mut exchange = Exchange::default();
        let mut firsts = Vec::new();
        for q in 0..ranks.size() {
            let ends = |lengths: &mut dyn Iterator<Item = u64>, offsets: &mut Vec<u64>| {
                for len in lengths {
                    offsets.push(offsets[offsets.len() - 1] + len);
                }
            };
            if q == rank {
                own_at = of_b.len();
                ends(&mut (0..own).map(|r| local.row_len(r) as u64), &mut offsets);
                of_b.extend_from_slice(local.indices());
            } else {
                if !columns[q].is_empty() {
                    exchange.add_incoming::<T>(q, Tag::Operands, columns[q].len())?;
                    firsts.push(of_b.len());
                }
                ends(&mut lengths[q].iter().copied(), &mut offsets);
                of_b.extend_from_slice(&columns[q]);
            }
        }
        if offsets.len() != rows + 1 || offsets[rows] != of_b.len() as u64 {
            return Err(Error::Communication {
                rank,
                peer: None,
                action: "reading rows of B",
                reason: "they are not those that were requested".into(),
            });
        }
        // Columns that occur, so that accumulators are as large as what this rank has, not as all of B.
        let mut of_c = try_vec::<I>(of_b.len(), "columns of C")?;
        of_c.extend_from_slice(&of_b);
        of_c.sort_unstable();
        of_c.dedup();
        fits("columns of C", of_c.len())?;
        let number_of = |c: &I| of_c.partition_point(|k| k < c) as u32;
        let indices: Vec<u32> = of_b.iter().map(number_of).collect();
        let pattern_b = Pattern::<u32, u64>::new(rows, of_c.len(), offsets, indices)?;

        let mut in_order = try_vec::<u32>(a.local().nnz(), "columns of A")?;
        in_order.resize(a.local().nnz(), 0);
        let own_columns = ghosts.blocks.own.columns.iter().zip(&ghosts.blocks.own.positions);
        let first = first_row(rank);
        own_columns.for_each(|(c, at)| in_order[*at] = first as u32 + c);
        for block in &ghosts.blocks.others {
            let first = first_row(block.peer) as u32;
            for (c, at) in block.here.columns.iter().zip(&block.here.positions) {
                in_order[*at] = first + block.columns.partition_point(|k| k < c) as u32;
            }
        }
        let offsets = a.local().offsets().iter().map(|o| o.to_usize() as u64).collect::<Vec<_>>();
        let pattern_a = Pattern::<u32, u64>::new(a.local().nrows(), rows, offsets, in_order)?;

        let mut sends = Vec::new();
        for (q, requested) in ghosts.requested.iter().enumerate() {
            let positions: Vec<usize> =
                requested.iter().flat_map(|r| local.row_range(*r as usize)).collect();
            if !positions.is_empty() {
                sends.push((
                    exchange.add_outgoing::<T>(q, Tag::Operands, positions.len())?,
                    positions,
                ));
            }
        }
        let request = pattern_a.spgemm(&pattern_b);
        let request = request.semiring(problem.semiring).deterministic(problem.deterministic);
        let planned =
            request.sorted(problem.sorted).calls(problem.calls).problem.typed::<T, u32, u64>();
        let plan = gustav_cpu::SpgemmPlan::new(&pattern_a, &pattern_b, &planned, &device.options)?;
        let mut values = try_vec::<T>(of_b.len(), "values of rows of B")?;
        values.resize(of_b.len(), T::zero());
        let mut counted = Counted { nonzeros: plan.products(), ..Counted::default() };
        counted.add_messages(&exchange, rank, ranks.hosts()?);
        counted.rows_of_b_bytes = counted.sent_bytes;
        counted.direct_network_bytes = counted.network_bytes;
        let held = size_of_val(&values[..]) + size_of_val(&of_c[..]) + exchange.bytes();
        let explanation = Explanation {
            problem,
            ranks: ranks.communicator().description(),
            communication: device.communication,
            volume: Volume::default(),
            order: a.order().copied(),
            copies: None,
            choice: unconfigured(plan.choice()),
            workspace_bytes: plan.workspace_bytes() + held,
        };
        let patterns = [a, b].map(|p| (p.local().id(), p.local().nnz()));
        let plan = SpgemmPlan {
            ranks: ranks.clone(),
            number,
            patterns,
            columns: b.columns().clone(),
            plan,
            of_c,
            last: None,
            values,
            own_at,
            sends,
            exchange,
            firsts,
            explanation,
        };
        Ok((plan, counted))
    }

    /// What is computed, what ranks send, and how work is balanced: here the nonzeros of a rank are its intermediate
    /// products.
    pub fn explain(&self) -> &Explanation {
        &self.explanation
    }

    /// C from this rank's values of A and of B; `alpha` is the semiring's one unless given. Collective.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`](crate::SpmmPlan::execute), and on every rank [`Error::Overflow`] when the entries of C
    /// on one outnumber the offset type.
    pub fn execute<'v>(
        &mut self,
        a: impl Into<Values<'v, T>>,
        b: impl Into<Values<'v, T>>,
        alpha: Option<T::Accum>,
    ) -> Result<DistCsr<T, I, O>> {
        let (a, b) = (a.into(), b.into());
        let ranks = self.ranks.clone();
        let local = {
            let _lock = ranks.lock();
            let [of_a, of_b] = self.patterns;
            let ready = self
                .exchange
                .check_idle(ranks.rank())
                .and_then(|()| Ok((a.fit("A", of_a.0, of_a.1)?, b.fit("B", of_b.0, of_b.1)?)));
            let given = alpha.map_or_else(|| "one".into(), |alpha| alpha.to_string());
            let number = self.number;
            let bits =
                alpha.map_or(0, |f| f.to_f64().to_bits() ^ (f.to_i64() as u64).rotate_left(32));
            let arguments = || vec![("call", format!("spgemm by plan {number}")), ("alpha", given)];
            let key = [number, u64::from(alpha.is_some()), bits];
            let (a, b) = ranks.agree(&key, arguments, ready)?;
            let multiplied = self.exchange_values(b).and_then(|()| self.multiply(a, alpha));
            ranks.together(multiplied)?
        };
        DistCsr::new(&ranks, &self.columns, local)
    }

    /// Sends values of B to the ranks that need them, and gathers those that this one needs.
    fn exchange_values(&mut self, b: &[T]) -> Result<()> {
        let communicator = self.ranks.communicator();
        self.exchange.receive(communicator)?;
        for (message, positions) in &self.sends {
            let to = self.exchange.outgoing::<T>(*message);
            to.iter_mut().zip(positions).for_each(|(to, from)| *to = b[*from]);
            self.exchange.send(communicator, *message)?;
        }
        self.values[self.own_at..][..b.len()].copy_from_slice(b);
        self.exchange.finish(communicator)?;
        for (message, first) in self.firsts.iter().enumerate() {
            let values = self.exchange.incoming::<T>(message);
            self.values[*first..][..values.len()].copy_from_slice(values);
        }
        Ok(())
    }

    fn multiply(&mut self, a: &[T], alpha: Option<T::Accum>) -> Result<Csr<T, I, O>> {
        let call = SpgemmCall { alpha, ..SpgemmCall::default() };
        let c: Csr<T, u32, u64> = self.plan.execute(a, &self.values, call)?;
        let id = c.pattern().id();
        let known = self.last.take().filter(|(of, _)| *of == id);
        let pattern = match known {
            Some((_, pattern)) => pattern,
            None => {
                let offset = |o: &u64| O::try_from_usize(*o as usize, "row offsets of C");
                let offsets = c.offsets().iter().map(offset).collect::<Result<Vec<O>>>()?;
                let mut indices = try_vec::<I>(c.nnz(), "column indices of C")?;
                indices.extend(c.indices().iter().map(|k| self.of_c[*k as usize]));
                Pattern::new(c.nrows(), self.columns.rows(), offsets, indices)?
            }
        };
        self.last = Some((id, pattern.clone()));
        Csr::from_pattern(&pattern, c.into_values())
    }
}

/// What `of` gives for the rows that each rank needs.
fn of_rows<W, Ws: IntoIterator<Item = W>>(
    requested: &[Vec<u32>],
    of: impl Fn(usize) -> Ws,
) -> Vec<Vec<W>> {
    requested.iter().map(|rows| rows.iter().flat_map(|r| of(*r as usize)).collect()).collect()
}

fn check<I: Index, O: Index>(
    a: &DistPattern<I, O>,
    b: &DistPattern<I, O>,
    problem: &Problem,
) -> Result<()> {
    supports(problem)?;
    if problem.operation != Operation::Spgemm
        || problem.transpose_a
        || problem.output != problem.dtype
    {
        return Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: "the SpGEMM over ranks".into(),
            reason: "it computes A*B in the type of the operands".into(),
            nearest: "DistPattern::spgemm without transposition".into(),
        });
    }
    if !a.ranks().same(b.ranks()) {
        return Err(Error::Argument {
            name: "B",
            found: format!("a pattern over {:?}", b.ranks()),
            expected: "one over the ranks of A".into(),
        });
    }
    if a.columns() != b.rows() {
        return Err(Error::Shape {
            op: "spgemm",
            expected: format!("rows of B spread as columns of A: {}", a.columns().description()),
            found: b.rows().description(),
        });
    }
    Ok(())
}
