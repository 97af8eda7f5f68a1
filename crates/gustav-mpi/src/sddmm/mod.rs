//! SDDMM over ranks: `values[p] = α·⟨X[row p], Y[column p]⟩ + β·values[p]`.

mod described;
mod gpu;

use gustav_core::buffer::try_vec;
use gustav_core::{
    Batch, Dense, DenseView, Error, Index, Layout, PatternId, Problem, Result, Scalar, Scale,
    Semiring, Values, parallel, validate,
};
use gustav_cpu::sddmm::RowsOfX;
use gustav_cpu::{SddmmCall, Threads};

use crate::any_pattern::AnyDistPattern;
use crate::blocks::{Block, Part};
use crate::exchange::Exchange;
use crate::fetch::Forwards;
use crate::local::{DistScalar, Nonzeros, local_rows, pack};
use crate::volume::Counted;
use crate::waiting::ByMessage;
use crate::{Device, DistPattern, Explanation, Ranks};

use described::{Described, Messages, execution};
pub use gpu::{GpuSddmmCall, GpuSddmmPlan};

// Values that one task moves.
const TASK: usize = 1 << 14;

/// A plan for dense products at the nonzeros of a pattern over ranks, made by `pattern.sddmm(depth).plan(&device)`.
///
/// X is spread as the pattern's rows, Y as its columns. An execution sends the rows of Y that other ranks need,
/// multiplies at the rank's own block meanwhile, and then with what arrives, in the order of arrival. Making and
/// executing it are collective, as those of an [`SpmmPlan`](crate::SpmmPlan). Results are the same to the bit from run
/// to run.
pub struct SddmmPlan<T: DistScalar> {
    ranks: Ranks,
    number: u64,
    problem: Problem,
    pattern: PatternId,
    nnz: usize,
    rows_of_x: usize,
    rows_of_y: usize,
    own: Product<T>,
    /// Products with the rows of Y of another rank each, by the message that brings them.
    others: ByMessage<Other<T>>,
    /// Those without messages, of depth 0.
    without_rows: Vec<Other<T>>,
    /// This rank's rows of X row by row, where they are given column by column: all products read them.
    x: Option<Dense<T>>,
    threads: Threads,
    /// Messages, and the rows of Y that go out with them.
    sends: Vec<(usize, Vec<u32>)>,
    /// Messages of rows of Y that this rank forwards.
    forwards: Forwards,
    exchange: Exchange,
    /// Whether the product of some rank can fail while others communicate: on a GPU.
    fallible: bool,
    explanation: Explanation,
}

/// A product with rows of Y of another rank.
struct Other<T: DistScalar> {
    /// The first of them in their message.
    first: usize,
    /// Their number.
    rows: usize,
    product: Product<T>,
}

/// Some nonzeros.
struct Product<T: DistScalar> {
    plan: gustav_cpu::SddmmPlan<'static, T>,
    /// Where the values are among those of the rank, and memory to gather them in; all in order when there are none.
    positions: Option<(Vec<usize>, Vec<T>)>,
    /// Memory for factors, once there are some and they are not all in order.
    factors: Vec<T>,
}

impl<T: DistScalar> Product<T> {
    fn new(
        nonzeros: Nonzeros,
        rows: Option<RowsOfX>,
        layout_y: Layout,
        problem: &Problem,
        device: &Device,
    ) -> Result<Self> {
        let Nonzeros { pattern, positions } = nonzeros;
        let request = pattern.sddmm(problem.columns).layouts(Layout::RowMajor, layout_y);
        let planned = request.problem.calls(problem.calls);
        let plan = gustav_cpu::SddmmPlan::of_rows(&pattern, rows, &planned, &device.options)?;
        let with_memory = |p: Vec<usize>| {
            let mut gathered = try_vec(p.len(), "values of a block")?;
            gathered.resize(p.len(), T::zero());
            Ok::<_, Error>((p, gathered))
        };
        Ok(Product {
            plan,
            positions: positions.map(with_memory).transpose()?,
            factors: Vec::new(),
        })
    }

    /// Allocates memory for factors.
    fn reserve(&mut self) -> Result<()> {
        let len = self.positions.as_ref().map_or(0, |(positions, _)| positions.len());
        if self.factors.len() < len {
            self.factors = try_vec(len, "factors of a block")?;
            self.factors.resize(len, T::zero());
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        let held = self
            .positions
            .iter()
            .map(|(p, gathered)| size_of_val(&p[..]) + size_of_val(&gathered[..]));
        self.plan.workspace_bytes() + held.sum::<usize>()
    }

    fn execute(
        &mut self,
        x: DenseView<'_, T>,
        y: DenseView<'_, T>,
        values: &mut [T],
        factors: Option<&[T]>,
        (alpha, beta): (T::Accum, T::Accum),
    ) -> Result<()> {
        let scale = Scale::new().alpha(alpha).beta(beta);
        let Some((positions, gathered)) = &mut self.positions else {
            let factors = factors.map(Values::from);
            return self.plan.execute(x, y, values, SddmmCall { scale, factors });
        };
        let gather = |from: &[T], to: &mut [T]| {
            parallel::each_mut(to, TASK, |k, to| *to = from[positions[k]]);
        };
        if !beta.is_zero() {
            gather(values, gathered);
        }
        if let Some(factors) = factors {
            gather(factors, &mut self.factors);
        }
        let factors = factors.map(|_| Values::from(&self.factors));
        self.plan.execute(x, y, gathered, SddmmCall { scale, factors })?;
        positions.iter().zip(gathered).for_each(|(at, value)| values[*at] = *value);
        Ok(())
    }
}

impl<T: DistScalar> Other<T> {
    /// The product with the rows of Y in `message`.
    fn execute(
        &mut self,
        x: DenseView<'_, T>,
        message: &[T],
        values: &mut [T],
        factors: Option<&[T]>,
        scale: (T::Accum, T::Accum),
    ) -> Result<()> {
        let n = x.ncols();
        let y = DenseView::row_major(self.rows, n, &message[self.first * n..][..self.rows * n])?;
        self.product.execute(x, y, values, factors, scale)
    }
}

impl<T: DistScalar> SddmmPlan<T> {
    /// Plans `problem` for `pattern`. Collective.
    ///
    /// # Errors
    /// As [`SpmmPlan::new`](crate::SpmmPlan::new).
    pub fn new<I: Index, O: Index>(
        pattern: &DistPattern<I, O>,
        problem: &Problem,
        device: &Device,
    ) -> Result<Self> {
        Self::of_any(&pattern.into(), problem, device)
    }

    fn of_any(pattern: &AnyDistPattern<'_>, problem: &Problem, device: &Device) -> Result<Self> {
        let ranks = pattern.ranks;
        let _lock = ranks.lock();
        let described = Described::new(pattern, T::DTYPE, problem, device, false)?;
        let all = described.oblivious(pattern);
        let built = Self::build(pattern, described, device);
        Explanation::complete(ranks, built, all, |plan: &mut Self| &mut plan.explanation)
    }

    fn build(
        pattern: &AnyDistPattern<'_>,
        described: Described,
        device: &Device,
    ) -> Result<(Self, Counted)> {
        let Messages { exchange, fetch, counted } = described.messages::<T>(pattern)?;
        let Described { number, problem, shape, ghosts, any_gpu, .. } = described;
        let (ranks, nnz) = (pattern.ranks, pattern.local.nnz());
        let rows_of_x = pattern.local.nrows();
        let rows_of_y = pattern.columns.count(ranks.rank());
        let blocks = ghosts.blocks;
        let own_nonzeros = blocks.own.columns.len() as u64;
        let own = Nonzeros::new(blocks.own, rows_of_y, false)?.simplified(nnz);
        let own = Product::new(own, None, problem.layout_b, &problem, device)?;
        let (mut others, mut without_rows) = (Vec::new(), Vec::new());
        let mut arrivals = fetch.arrivals.into_iter().peekable();
        for Block { peer, columns, here, .. } in blocks.others {
            let arrival = arrivals.next_if(|(from, _)| *from == peer).map(|(_, arrival)| arrival);
            let section = arrival.as_ref().map(|arrival| arrival.section);
            let positions = arrival.and_then(|arrival| arrival.positions);
            let of_section = |column: &u32| {
                let ghost = columns.partition_point(|c| c < column);
                positions.as_ref().map_or(ghost as u32, |positions| positions[ghost])
            };
            let part = Part {
                rows: (0..here.rows.len() as u32).collect(),
                offsets: here.offsets,
                columns: here.columns.iter().map(of_section).collect(),
                positions: here.positions,
            };
            let count = section.map_or(columns.len(), |section| section.rows);
            let nonzeros = Nonzeros::new(part, count, false)?;
            let rows = Some(RowsOfX { rows: here.rows, of: rows_of_x });
            let product = Product::new(nonzeros, rows, Layout::RowMajor, &problem, device)?;
            let first = section.map_or(0, |section| section.first);
            let other = Other { first, rows: count, product };
            match section {
                Some(section) => others.push((section.message, other)),
                None => without_rows.push(other),
            }
        }
        let of_others = others.iter().map(|(_, other)| other).chain(&without_rows);
        let of_others = of_others.map(|other| other.product.bytes()).sum::<usize>();
        let x = match problem.layout_c {
            Layout::RowMajor => None,
            Layout::ColumnMajor => {
                Some(Dense::zeros(rows_of_x, problem.columns, Layout::RowMajor)?)
            }
        };
        let of_x = x.as_ref().map_or(0, |x| size_of_val(x.data()));
        let held = own.bytes() + of_others + of_x + exchange.bytes();
        let explained = (&problem, pattern);
        let choice = own.plan.choice();
        let explanation =
            Explanation::new(explained, shape.communication, choice, (own_nonzeros, held));
        let ranks = ranks.clone();
        let plan = SddmmPlan {
            ranks,
            number,
            problem,
            pattern: pattern.local.id(),
            nnz,
            rows_of_x,
            rows_of_y,
            own,
            others: ByMessage::new(others),
            without_rows,
            x,
            threads: device.options.threads.clone(),
            sends: fetch.sends,
            forwards: fetch.forwards,
            exchange,
            fallible: any_gpu,
            explanation,
        };
        Ok((plan, counted))
    }

    /// What is computed, what ranks send, and how work is balanced.
    pub fn explain(&self) -> &Explanation {
        &self.explanation
    }

    /// `values[p] = α·⟨X[row p], Y[column p]⟩·factors[p] + β·values[p]` for the nonzeros of this rank, with its rows
    /// of X and of Y; factors are 1 unless the call has some. Collective.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`](crate::SpmmPlan::execute).
    pub fn execute<'v>(
        &mut self,
        x: impl Into<DenseView<'v, T>>,
        y: impl Into<DenseView<'v, T>>,
        values: &mut [T],
        call: impl Into<SddmmCall<'v, T>>,
    ) -> Result<()> {
        let (x, y, SddmmCall { scale, factors }) = (x.into(), y.into(), call.into());
        let ranks = self.ranks.clone();
        let _lock = ranks.lock();
        let scale = scale.over(Semiring::PlusTimes);
        let ready = self.prepare(&x, &y, values, factors);
        let (key, arguments) = execution::<T>(self.number, scale, factors.is_some());
        let (x, y, factors) = ranks.agree(&key, arguments, ready)?;
        let multiplied = self.multiply((x, y), values, factors, scale);
        let multiplied = self.exchange.complete(ranks.communicator(), multiplied);
        if self.fallible { ranks.together(multiplied) } else { multiplied }
    }

    /// The product, once all ranks have agreed on it.
    fn multiply(
        &mut self,
        (x, y): (DenseView<'_, T>, DenseView<'_, T>),
        values: &mut [T],
        factors: Option<&[T]>,
        (alpha, beta): (T::Accum, T::Accum),
    ) -> Result<()> {
        let ranks = self.ranks.clone();
        let communicator = ranks.communicator();
        self.exchange.receive(communicator)?;
        self.forwards.begin();
        for (message, rows) in &self.sends {
            pack(&y, rows, self.exchange.outgoing(*message));
            self.exchange.send(communicator, *message)?;
        }
        let x = match &mut self.x {
            None => x,
            Some(copy) => {
                self.threads.run(|| x.copy_to(copy))?;
                copy.view()
            }
        };
        self.own.execute(x, y, values, factors, (alpha, beta))?;
        for other in &mut self.without_rows {
            other.execute(x, &[], values, factors, (alpha, beta))?;
        }
        for _ in 0..self.exchange.incoming_count() {
            let message = self.exchange.next(communicator)?;
            self.forwards.arrived(&mut self.exchange, communicator, message)?;
            for (_, other) in self.others.of_mut(message) {
                let y = self.exchange.incoming::<T>(message);
                other.execute(x, y, values, factors, (alpha, beta))?;
            }
        }
        self.exchange.finish(communicator)
    }

    /// X and Y in the planned layouts and the factors, if the operands fit.
    fn prepare<'v>(
        &mut self,
        x: &DenseView<'v, T>,
        y: &DenseView<'v, T>,
        values: &[T],
        factors: Option<Values<'v, T>>,
    ) -> Result<(DenseView<'v, T>, DenseView<'v, T>, Option<&'v [T]>)> {
        let p = &self.problem;
        let x = rows_of_x(p, self.rows_of_x).matrix(x, 0)?;
        let y = rows_of_y(p, self.rows_of_y).matrix(y, 0)?;
        validate::length("values", self.nnz, values.len())?;
        self.exchange.check_idle(self.ranks.rank())?;
        let factors = factors.map(|f| f.fit("factors", self.pattern, self.nnz)).transpose()?;
        if factors.is_some() {
            self.own.reserve()?;
            let others = self.others.values_mut().chain(&mut self.without_rows);
            others.map(|other| &mut other.product).try_for_each(Product::reserve)?;
        }
        Ok((x, y, factors))
    }
}

/// This rank's rows of X.
fn rows_of_x(problem: &Problem, rows: usize) -> Batch {
    local_rows(problem, "X on this rank", rows, problem.layout_c)
}

/// This rank's rows of Y.
fn rows_of_y(problem: &Problem, rows: usize) -> Batch {
    local_rows(problem, "Y on this rank", rows, problem.layout_b)
}
