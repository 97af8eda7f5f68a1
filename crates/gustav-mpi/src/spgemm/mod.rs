//! SpGEMM over ranks: C = scale(α, A·B), all three sparse.

mod gathered;
mod gpu;
mod gpu_parts;
mod parts;

use gustav_core::buffer::try_vec;
use gustav_core::{Csr, Index, Pattern, PatternId, Problem, Result, Scalar, Values};

use crate::blocks::fits;
use crate::exchange::Exchange;
use crate::fetch::{Arrival, Fetch, Forwards};
use crate::local::DistScalar;
use crate::ranks::Arguments;
use crate::row_parts::RowPart;
use crate::volume::Counted;
use crate::waiting::{ByMessage, Waiting};
use crate::{Communication, Device, DistCsr, DistPattern, Explanation, Partition, Ranks};

use gathered::Gathered;
pub use gathered::is_relayed;
pub use gpu::{DistDeviceCsr, GpuSpgemmPlan};
use parts::{Known, Part, Unfinished};

/// A plan for sparse × sparse products with patterns of A and B over ranks, made by `a.spgemm(&b).plan(&device)`.
///
/// B's rows are spread as A's columns; C's rows are spread as A's, its columns as B's. When the plan is made, every
/// rank fetches the patterns of the ghost rows of B that its nonzeros need. An execution fetches their values,
/// multiplies consecutive rows of A that need none of them meanwhile, if there are enough, and others once what they
/// need has arrived. Making and executing it are collective, as those of an [`SpmmPlan`](crate::SpmmPlan). Results are
/// the same to the bit from run to run.
pub struct SpgemmPlan<T: DistScalar, I: Index = u32, O: Index = u32> {
    ranks: Ranks,
    number: u64,
    patterns: [(PatternId, usize); 2],
    columns: Partition,
    parts: Vec<Part<T>>,
    /// The parts that wait for messages.
    waiting: Waiting,
    /// The columns of C that this rank can have, increasing: those of parts are numbered by them.
    of_c: Vec<I>,
    /// The pattern of the last product.
    last: Option<Known<I, O>>,
    /// Values of B: those of ranks before this one, its own, those of ranks after it.
    values: Vec<T>,
    own_at: usize,
    /// Messages, and the positions of the values that go out with them.
    sends: Vec<(usize, Vec<u64>)>,
    /// Messages of values that this rank forwards.
    forwards: Forwards,
    exchange: Exchange,
    /// Values that are received, and where they go.
    arrivals: ByMessage<(usize, Arrival)>,
    explanation: Explanation,
}

impl<T: DistScalar, I: Index, O: Index> SpgemmPlan<T, I, O> {
    /// Plans `problem` for `a` and `b`. Collective.
    ///
    /// # Errors
    /// As [`SpmmPlan::new`](crate::SpmmPlan::new), and [`Error::Shape`](gustav_core::Error::Shape) when rows of B are
    /// not spread as columns of A.
    pub fn new(
        a: &DistPattern<I, O>,
        b: &DistPattern<I, O>,
        problem: &Problem,
        device: &Device,
    ) -> Result<Self> {
        let ranks = a.ranks();
        let _lock = ranks.lock();
        let gathered = Gathered::new::<T, O>([a, b], problem, device, false)?;
        let all = gathered.oblivious::<T, O>(b);
        let built = Self::build([a, b], gathered, device);
        Explanation::complete(ranks, built, all, |plan: &mut Self| &mut plan.explanation)
    }

    fn build(
        [a, b]: [&DistPattern<I, O>; 2],
        gathered: Gathered<I>,
        device: &Device,
    ) -> Result<(Self, Counted)> {
        let ranks = a.ranks();
        let (counted, early) = gathered.count::<T, O>(a)?;
        let Gathered {
            number,
            problem,
            of_a,
            parts,
            largest,
            offsets,
            columns: of_b,
            own_at,
            exchange,
            fetch,
            firsts,
            waiting,
            ..
        } = gathered;
        let Fetch { sends, forwards, arrivals } = fetch;
        let place =
            |(q, arrival): (usize, Arrival)| (arrival.section.message, (firsts[q], arrival));
        let arrivals = ByMessage::new(arrivals.into_iter().map(place).collect());
        let rows = offsets.len() - 1;
        // Columns that occur, so that accumulators are as large as what this rank has, not as all of B.
        let mut of_c = try_vec::<I>(of_b.len(), "columns of C")?;
        of_c.extend_from_slice(&of_b);
        of_c.sort_unstable();
        of_c.dedup();
        fits("columns of C", of_c.len())?;
        let number_of = |c: &I| of_c.partition_point(|k| k < c) as u32;
        let indices: Vec<u32> = of_b.iter().map(number_of).collect();
        let pattern_b = Pattern::<u32, u64>::new(rows, of_c.len(), offsets, indices)?;
        let part = |of: RowPart| {
            let of_rows = a.local().offsets();
            let pattern_a: Pattern<u32, u64> = of.pattern(of_rows, rows, |at| Ok(of_a[at]))?;
            let request = pattern_a.spgemm(&pattern_b);
            let request = request.semiring(problem.semiring).deterministic(problem.deterministic);
            let planned =
                request.sorted(problem.sorted).calls(problem.calls).problem.typed::<T, u32, u64>();
            let plan =
                gustav_cpu::SpgemmPlan::new(&pattern_a, &pattern_b, &planned, &device.options)?;
            Ok(Part { values: of.nonzeros(of_rows), plan })
        };
        let parts = parts.into_iter().map(part).collect::<Result<Vec<_>>>()?;
        let mut values = try_vec::<T>(of_b.len(), "values of rows of B")?;
        values.resize(of_b.len(), T::zero());
        let held = size_of_val(&values[..]) + size_of_val(&of_c[..]) + exchange.bytes();
        let held = parts.iter().map(|part| part.plan.workspace_bytes()).sum::<usize>() + held;
        let choice = parts[largest].plan.choice();
        let explained = (&problem, &a.into());
        let explanation =
            Explanation::new(explained, Communication::RowsOfB, choice, (early, held));
        let patterns = [a, b].map(|p| (p.local().id(), p.local().nnz()));
        let plan = SpgemmPlan {
            ranks: ranks.clone(),
            number,
            patterns,
            columns: b.columns().clone(),
            parts,
            waiting,
            of_c,
            last: None,
            values,
            own_at,
            sends,
            forwards,
            exchange,
            arrivals,
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
    /// As [`SpmmPlan::execute`](crate::SpmmPlan::execute), and on every rank
    /// [`Error::Overflow`](gustav_core::Error::Overflow) when the entries of C on one outnumber the offset type.
    pub fn execute<'v>(
        &mut self,
        a: impl Into<Values<'v, T>>,
        b: impl Into<Values<'v, T>>,
        alpha: Option<T::Accum>,
    ) -> Result<DistCsr<T, I, O>> {
        let (a, b) = (a.into(), b.into());
        let ranks = self.ranks.clone();
        let _lock = ranks.lock();
        let [of_a, of_b] = self.patterns;
        let ready = self
            .exchange
            .check_idle(ranks.rank())
            .and_then(|()| Ok((a.fit("A", of_a.0, of_a.1)?, b.fit("B", of_b.0, of_b.1)?)));
        let (key, arguments) = call::<T>(self.number, alpha);
        let (a, b) = ranks.agree(&key, arguments, ready)?;
        let multiplied = self.multiply(a, b, alpha);
        let multiplied = self.exchange.complete(ranks.communicator(), multiplied);
        let local = ranks.together(multiplied)?;
        DistCsr::joined(&ranks, &self.columns, local)
    }

    /// The product, once all ranks have agreed on it.
    fn multiply(&mut self, a: &[T], b: &[T], alpha: Option<T::Accum>) -> Result<Csr<T, I, O>> {
        let ranks = self.ranks.clone();
        let communicator = ranks.communicator();
        self.exchange.receive(communicator)?;
        self.forwards.begin();
        for (message, positions) in &self.sends {
            let to = self.exchange.outgoing::<T>(*message);
            to.iter_mut().zip(positions).for_each(|(to, from)| *to = b[*from as usize]);
            self.exchange.send(communicator, *message)?;
        }
        self.values[self.own_at..][..b.len()].copy_from_slice(b);
        let mut c = Unfinished::new(&self.parts, self.last.take())?;
        self.waiting.begin();
        let parts = &mut self.parts;
        self.waiting
            .early()
            .try_for_each(|part| c.execute(parts, part, (a, &self.values, alpha)))?;
        for _ in 0..self.exchange.incoming_count() {
            let message = self.exchange.next(communicator)?;
            self.forwards.arrived(&mut self.exchange, communicator, message)?;
            for (_, (first, arrival)) in self.arrivals.of(message) {
                let section = &self.exchange.incoming::<T>(message)[arrival.range(1)];
                arrival.copy(section, &mut self.values[*first..], 1);
            }
            self.waiting
                .arrived(message)
                .try_for_each(|part| c.execute(parts, part, (a, &self.values, alpha)))?;
        }
        self.exchange.finish(communicator)?;
        let (known, c) = c.finish(&self.of_c, self.columns.rows())?;
        self.last = Some(known);
        Ok(c)
    }
}

/// What has to be the same on every rank for an execution by plan `number`: as a key, and in words.
fn call<T: DistScalar>(number: u64, alpha: Option<T::Accum>) -> ([u64; 3], impl Fn() -> Arguments) {
    let bits = alpha.map_or(0, |f| f.to_f64().to_bits() ^ (f.to_i64() as u64).rotate_left(32));
    let arguments = move || {
        let given = alpha.map_or_else(|| "one".into(), |alpha| alpha.to_string());
        vec![("call", format!("spgemm by plan {number}")), ("alpha", given)]
    };
    ([number, u64::from(alpha.is_some()), bits], arguments)
}
