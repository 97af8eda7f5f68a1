//! SDDMM over ranks: `values[p] = α·⟨X[row p], Y[column p]⟩ + β·values[p]`.

mod described;
mod gpu;

use gustav_core::buffer::try_vec;
use gustav_core::{
    Batch, Dense, DenseView, Error, Index, Layout, Problem, Result, Scale, Semiring, parallel,
    validate,
};
use gustav_core::{Pattern, PatternId, Scalar, Values};
use gustav_cpu::SddmmCall;

use crate::blocks::{Part, fits};
use crate::exchange::Exchange;
use crate::local::{DistScalar, Nonzeros, local_rows, pack};
use crate::volume::Counted;
use crate::{Device, DistPattern, Explanation, Ranks};

use described::{Described, Messages, execution};
pub use gpu::{GpuSddmmCall, GpuSddmmPlan};

// Values that one task moves.
const TASK: usize = 1 << 14;

/// A plan for dense products at the nonzeros of a pattern over ranks, made by `pattern.sddmm(depth).plan(&device)`.
///
/// X is spread as the pattern's rows, Y as its columns. An execution sends the rows of Y that other ranks need, and
/// multiplies at the rank's own block meanwhile. Making and executing it are collective, as those of an
/// [`SpmmPlan`](crate::SpmmPlan). Results are the same to the bit from run to run.
pub struct SddmmPlan<T: DistScalar> {
    ranks: Ranks,
    number: u64,
    problem: Problem,
    pattern: PatternId,
    nnz: usize,
    rows_of_x: usize,
    rows_of_y: usize,
    own: Product<T>,
    /// Nonzeros whose rows of Y are received from other ranks, and these rows.
    others: Option<(Product<T>, Dense<T>)>,
    /// Messages, and the rows of Y that go out with them.
    sends: Vec<(usize, Vec<u32>)>,
    exchange: Exchange,
    /// The first ghost row of each incoming message.
    firsts: Vec<usize>,
    /// Whether the product of some rank can fail while others communicate: on a GPU.
    fallible: bool,
    explanation: Explanation,
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
        layout_y: Layout,
        problem: &Problem,
        device: &Device,
    ) -> Result<Self> {
        let Nonzeros { pattern, positions } = nonzeros;
        let request = pattern.sddmm(problem.columns).layouts(problem.layout_c, layout_y);
        let planned = request.problem.calls(problem.calls);
        let plan = gustav_cpu::SddmmPlan::new(&pattern, &planned, &device.options)?;
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
        let ranks = pattern.ranks();
        let _lock = ranks.lock();
        let described = Described::new::<T, I, O>(pattern, problem, device, false)?;
        let all = described.oblivious(pattern);
        let built = Self::build(pattern, described, device);
        Explanation::complete(ranks, built, all, |plan: &mut Self| &mut plan.explanation)
    }

    fn build<I: Index, O: Index>(
        pattern: &DistPattern<I, O>,
        described: Described,
        device: &Device,
    ) -> Result<(Self, Counted)> {
        let Messages { exchange, sends, counted } = described.messages::<T, I, O>(pattern)?;
        let Described { number, problem, shape, ghosts, any_gpu, .. } = described;
        let (ranks, n, nnz) = (pattern.ranks(), problem.columns, pattern.local().nnz());
        let rows_of_x = pattern.local().nrows();
        let rows_of_y = pattern.columns().count(ranks.rank());
        let count = ghosts.count();
        fits("ghost rows", count)?;
        let blocks = ghosts.blocks;
        let (mut firsts, mut first) = (Vec::new(), 0);
        let mut entries = Vec::new();
        for block in &blocks.others {
            if n > 0 {
                firsts.push(first);
            }
            for (k, row) in block.here.rows.iter().enumerate() {
                for at in block.here.offsets[k] as usize..block.here.offsets[k + 1] as usize {
                    let column = block.here.columns[at];
                    let ghost = first + block.columns.partition_point(|c| *c < column);
                    entries.push((*row, ghost as u32, block.here.positions[at]));
                }
            }
            first += block.columns.len();
        }
        entries.sort_by_key(|(row, _, position)| (*row, *position));

        let own_nonzeros = blocks.own.columns.len() as u64;
        let own = Nonzeros::new(blocks.own, rows_of_y, false)?.simplified(nnz);
        let own = Product::new(own, problem.layout_b, &problem, device)?;
        let others = match count {
            0 => None,
            count => {
                let nonzeros = ghost_nonzeros(&entries, rows_of_x, count)?;
                let product = Product::new(nonzeros, Layout::RowMajor, &problem, device)?;
                Some((product, Dense::zeros(count, n, Layout::RowMajor)?))
            }
        };
        let of_others = others.iter().map(|(p, y)| p.bytes() + size_of_val(y.data()));
        let held = own.bytes() + of_others.sum::<usize>() + exchange.bytes();
        let explained = (&problem, pattern);
        let choice = own.plan.choice();
        let explanation =
            Explanation::new(explained, shape.communication, choice, (own_nonzeros, held));
        let ranks = ranks.clone();
        let plan = SddmmPlan {
            ranks,
            number,
            problem,
            pattern: pattern.local().id(),
            nnz,
            rows_of_x,
            rows_of_y,
            own,
            others,
            sends,
            exchange,
            firsts,
            fallible: any_gpu,
            explanation,
        };
        Ok((plan, counted))
    }

    /// What is computed, what ranks send, and how work is balanced.
    pub fn explain(&self) -> &Explanation {
        &self.explanation
    }

    /// `values[p] = α·⟨X[row p], Y[column p]⟩·factors[p] + β·values[p]` for the nonzeros of this rank, with its rows of X
    /// and of Y; factors are 1 unless the call has some. Collective.
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
        let (ranks, n) = (self.ranks.clone(), self.problem.columns);
        let communicator = ranks.communicator();
        self.exchange.receive(communicator)?;
        for (message, rows) in &self.sends {
            pack(&y, rows, self.exchange.outgoing(*message));
            self.exchange.send(communicator, *message)?;
        }
        self.own.execute(x, y, values, factors, (alpha, beta))?;
        self.exchange.finish(communicator)?;
        if let Some((product, ghosts)) = &mut self.others {
            for (message, first) in self.firsts.iter().enumerate() {
                let rows = self.exchange.incoming::<T>(message);
                ghosts.data_mut()[first * n..][..rows.len()].copy_from_slice(rows);
            }
            product.execute(x, ghosts.view(), values, factors, (alpha, beta))?;
        }
        Ok(())
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
            self.others.as_mut().map_or(Ok(()), |(product, _)| product.reserve())?;
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

/// The nonzeros with ghost rows of Y: (row, ghost row, position), row by row.
fn ghost_nonzeros(entries: &[(u32, u32, usize)], rows: usize, ghosts: usize) -> Result<Nonzeros> {
    let mut offsets = vec![0_u64; rows + 1];
    entries.iter().for_each(|(row, ..)| offsets[*row as usize + 1] += 1);
    (0..rows).for_each(|row| offsets[row + 1] += offsets[row]);
    let part = Part {
        rows: (0..rows as u32).collect(),
        offsets,
        columns: entries.iter().map(|(_, ghost, _)| *ghost).collect(),
        positions: entries.iter().map(|(.., position)| *position).collect(),
    };
    let pattern: Pattern<u32, u64> = part.pattern(ghosts)?;
    Ok(Nonzeros { pattern, positions: Some(part.positions) })
}
