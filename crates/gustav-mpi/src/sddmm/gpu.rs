//! SDDMM over ranks, of which this one computes on a GPU.

use std::ops::Range;

use gustav_core::{
    Batch, Index, Layout, Operation, Pattern, PatternId, Plans, Problem, Result, Scale,
    SddmmRequest, Semiring, validate,
};
use gustav_cuda::{DeviceBuffer, DeviceDense, DevicePattern, DeviceValues, RowList, Stream};

use super::described::{Described, Messages, execution};
use super::{rows_of_x, rows_of_y};
use crate::any_pattern::AnyDistPattern;
use crate::blocks::{self, fits};
use crate::fetch::Fetch;
use crate::gpu::{Gpu, GpuMessages, Joined, Placing, check_dense, check_device, rows_in, rows_of};
use crate::local::DistScalar;
use crate::row_parts::{RowPart, largest, nonzeros_of, row_parts};
use crate::volume::Counted;
use crate::waiting::Waiting;
use crate::{DistPattern, Explanation, Ranks};

// Fewest nonzeros that are worth a product of their own while messages are in flight.
const LEAST_EARLY: u64 = 1 << 16;

/// A plan for dense products at the nonzeros of a pattern over ranks, of which this one computes on a GPU, made by
/// `pattern.sddmm(depth).plan(&gpu)`.
///
/// What ranks send is as of an [`SddmmPlan`](crate::SddmmPlan), of which other ranks may have one. Consecutive rows of
/// the pattern that need no rows of Y of other ranks are multiplied while messages are in flight, if they have enough
/// nonzeros, and the others once what they need has arrived: it is put beside the rank's rows of Y that they need as
/// well. Results are the same to the bit from run to run, for operands of the same alignment and leading dimensions.
pub struct GpuSddmmPlan<T: DistScalar> {
    ranks: Ranks,
    number: u64,
    problem: Problem,
    pattern: PatternId,
    nnz: usize,
    rows_of_x: Batch,
    rows_of_y: Batch,
    device: gustav_cuda::Device,
    parts: Vec<Part<T>>,
    /// The parts that wait for messages.
    waiting: Waiting,
    /// Where other ranks' rows of Y are needed as well.
    beside: Option<Beside<T>>,
    /// Messages, and the rows of Y that go out with them.
    sends: Vec<(usize, RowList<T>)>,
    messages: GpuMessages<T>,
    explanation: Explanation,
}

/// The product at consecutive rows of the pattern.
struct Part<T: DistScalar> {
    of: RowPart,
    /// Where their values are.
    values: Range<usize>,
    /// Rows that need nothing of others have the columns of this rank's Y, others those of the rows that are put beside
    /// each other.
    plan: gustav_cuda::SddmmPlan<T>,
}

/// Which of this rank's rows of Y are put beside ghost rows.
struct Beside<T: DistScalar> {
    /// Those that rows need which need some of others.
    own: RowList<T>,
    /// The first of them among all rows.
    first: usize,
    /// Number of all rows.
    rows: usize,
    /// How received ones get there.
    received: Placing<T>,
}

/// Options of one execution of a [`GpuSddmmPlan`].
#[derive(Clone, Copy, Debug)]
pub struct GpuSddmmCall<'v, T: DistScalar> {
    /// α and β.
    pub scale: Scale<T::Accum>,
    /// Values at the nonzeros that results are multiplied by.
    pub factors: Option<DeviceValues<'v, T>>,
}

impl<T: DistScalar> From<()> for GpuSddmmCall<'_, T> {
    fn from((): ()) -> Self {
        Scale::new().into()
    }
}

impl<T: DistScalar> From<Scale<T::Accum>> for GpuSddmmCall<'_, T> {
    fn from(scale: Scale<T::Accum>) -> Self {
        GpuSddmmCall { scale, factors: None }
    }
}

/// Operands that fit.
struct Operands<'o, T: DistScalar> {
    x: &'o DeviceDense<T>,
    y: &'o DeviceDense<T>,
    factors: Option<&'o DeviceBuffer<T>>,
}

impl<T: DistScalar> GpuSddmmPlan<T> {
    /// Plans `problem` for `pattern`. Collective.
    ///
    /// # Errors
    /// As [`SddmmPlan::new`](crate::SddmmPlan::new), and those of the GPU.
    pub fn new<I: Index, O: Index>(
        pattern: &DistPattern<I, O>,
        problem: &Problem,
        gpu: &Gpu,
    ) -> Result<Self> {
        Self::of_any(&pattern.into(), problem, gpu)
    }

    fn of_any(pattern: &AnyDistPattern<'_>, problem: &Problem, gpu: &Gpu) -> Result<Self> {
        let ranks = pattern.ranks;
        let _lock = ranks.lock();
        let described = Described::new(pattern, T::DTYPE, problem, &gpu.options, true)?;
        let all = described.oblivious(pattern);
        let built = Self::build(pattern, described, gpu);
        Explanation::complete(ranks, built, all, |plan: &mut Self| &mut plan.explanation)
    }

    fn build(
        pattern: &AnyDistPattern<'_>,
        described: Described,
        gpu: &Gpu,
    ) -> Result<(Self, Counted)> {
        let (ranks, local, offsets) = (pattern.ranks, &pattern.local, &pattern.offsets()?[..]);
        let device = &gpu.device;
        let Messages { exchange, fetch, counted } = described.messages::<T>(pattern)?;
        let Described { number, problem, shape, ghosts, .. } = described;
        let (n, own) = (problem.columns, pattern.columns.count(ranks.rank()));
        let count = ghosts.count();
        fits("rows and ghost rows of Y", own + count)?;
        let nonzeros = |part: &RowPart| part.nonzeros(offsets);
        let work = |rows: &Range<usize>| nonzeros_of(rows, offsets).len() as u64;
        let parts = row_parts(&ghosts.blocks, local.nrows(), LEAST_EARLY, &work);
        let messages_of =
            |part: &RowPart| part.needs.iter().filter_map(|q| fetch.message_of(*q)).collect();
        let waiting = Waiting::new(parts.iter().map(messages_of));
        let early = parts.iter().find(|part| part.needs.is_empty()).map_or(0..0, nonzeros);
        let beside_ghosts = match count {
            0 => (0..own as u32).collect(),
            _ => rows_outside(&ghosts.blocks.own, &early, own),
        };
        let rows = beside_ghosts.len() + count;
        let first_row = |q: usize| ghosts.first_row(q, ranks.rank(), beside_ghosts.len());
        let own_at = first_row(ranks.rank());
        let mut numbers = vec![0; own];
        for (number, row) in (own_at..).zip(&beside_ghosts) {
            numbers[*row as usize] = number as u32;
        }
        let mut indices = ghosts.rows_of_nonzeros(local.nnz(), ranks.rank(), first_row)?;
        for (at, row) in ghosts.blocks.own.positions.iter().zip(&ghosts.blocks.own.columns) {
            indices[*at] = match early.contains(at) {
                true => *row,
                false => numbers[*row as usize],
            };
        }
        let part = |of: RowPart| {
            let (columns, layout_y) = match of.needs.is_empty() {
                true => (own, problem.layout_b),
                false => (rows, Layout::RowMajor),
            };
            let numbered: Pattern<u32, u64> = of.pattern(offsets, columns, |at| Ok(indices[at]))?;
            let (nrows, ncols, nnz) = (numbered.nrows(), numbered.ncols(), numbered.nnz());
            let planned = Problem::of_pattern(Operation::Sddmm, nrows, ncols, nnz)
                .columns(n)
                .layouts(layout_y, problem.layout_c)
                .deterministic(problem.deterministic)
                .calls(problem.calls);
            let uploaded = DevicePattern::upload(device, &numbered)?;
            let options = gustav_cuda::sddmm::Options::default();
            let plan = gustav_cuda::SddmmPlan::new(&uploaded, &planned, &options)?;
            Ok(Part { values: nonzeros(&of), of, plan })
        };
        let parts = parts.into_iter().map(part).collect::<Result<Vec<_>>>()?;

        let list = |rows: &[u32]| RowList::<T>::new(device, rows, Semiring::PlusTimes);
        let beside = match count {
            0 => None,
            _ => {
                let sizes = (exchange.incoming_count(), n);
                let received = Placing::new(device, &fetch, sizes, first_row)?;
                Some(Beside { own: list(&beside_ghosts)?, first: own_at, rows, received })
            }
        };
        let Fetch { sends, forwards, .. } = fetch;
        let sends = sends.into_iter().map(|(message, rows)| Ok((message, list(&rows)?)));
        let sends = sends.collect::<Result<Vec<_>>>()?;
        let joined = beside
            .as_ref()
            .map(|beside| Joined { len: rows * n, in_place: &beside.received.in_place });
        let messages = GpuMessages::new(ranks, device, exchange, forwards, joined)?;
        let received = beside.iter().map(|beside| beside.received.bytes()).sum::<usize>();
        let lists = beside.iter().map(|beside| &beside.own);
        let lists = lists.chain(sends.iter().map(|(_, rows)| rows)).map(RowList::bytes);
        let of_parts = parts.iter().map(|part| part.plan.workspace_bytes()).sum::<usize>();
        let held = of_parts + received + lists.sum::<usize>() + messages.bytes();
        let choice = parts[largest(parts.iter().map(|part| part.values.len()))].plan.choice();
        let early = waiting.early().map(|part| parts[part].values.len() as u64).sum();
        let explained = (&problem, pattern);
        let mut explanation =
            Explanation::new(explained, shape.communication, choice, (early, held));
        explanation.messages = messages.memory();
        let plan = GpuSddmmPlan {
            ranks: ranks.clone(),
            number,
            pattern: local.id(),
            nnz: local.nnz(),
            rows_of_x: rows_of_x(&problem, local.nrows()),
            rows_of_y: rows_of_y(&problem, own),
            problem,
            device: device.clone(),
            parts,
            waiting,
            beside,
            sends,
            messages,
            explanation,
        };
        Ok((plan, counted))
    }

    /// What is computed, what ranks send, and how work is balanced.
    pub fn explain(&self) -> &Explanation {
        &self.explanation
    }

    /// Bytes that the plan holds on the GPU and in page-locked memory, besides its pattern.
    pub fn workspace_bytes(&self) -> usize {
        self.explanation.workspace_bytes
    }

    /// `values[p] = α·⟨X[row p], Y[column p]⟩·factors[p] + β·values[p]` for the nonzeros of this rank, with its rows
    /// of X and of Y, all on the GPU; factors are 1 unless the call has some. Values are finished when it returns.
    /// Collective.
    ///
    /// # Errors
    /// As [`SddmmPlan::execute`](crate::SddmmPlan::execute); [`Error::Device`](gustav_core::Error::Device), of which
    /// other ranks get an [`Error::OtherRank`](gustav_core::Error::OtherRank); the values are undefined then.
    pub fn execute<'v>(
        &mut self,
        x: &'v DeviceDense<T>,
        y: &'v DeviceDense<T>,
        values: &mut DeviceBuffer<T>,
        options: impl Into<GpuSddmmCall<'v, T>>,
    ) -> Result<()> {
        let GpuSddmmCall { scale, factors } = options.into();
        let ranks = self.ranks.clone();
        let _lock = ranks.lock();
        let scale = scale.over(Semiring::PlusTimes);
        let (key, arguments) = execution::<T>(self.number, scale, factors.is_some());
        let ready = self.prepare((x, y), values, factors);
        let operands = ranks.agree(&key, arguments, ready)?;
        let multiplied = self.multiply(operands, values, scale);
        self.messages.conclude(multiplied)
    }

    /// The operands, if they fit.
    fn prepare<'v>(
        &self,
        (x, y): (&'v DeviceDense<T>, &'v DeviceDense<T>),
        values: &DeviceBuffer<T>,
        factors: Option<DeviceValues<'v, T>>,
    ) -> Result<Operands<'v, T>> {
        check_dense(&self.rows_of_x, x)?;
        check_dense(&self.rows_of_y, y)?;
        validate::length("values", self.nnz, values.len())?;
        let factors = factors.map(|f| f.fit("factors", self.pattern, self.nnz)).transpose()?;
        let operands = [("X", x.data()), ("Y", y.data()), ("values", values)];
        check_device(&self.device, &operands)?;
        if let Some(factors) = factors {
            check_device(&self.device, &[("factors", factors)])?;
        }
        self.messages.check_idle()?;
        Ok(Operands { x, y, factors })
    }

    /// The product, once all ranks have agreed on it.
    fn multiply(
        &mut self,
        Operands { x, y, factors }: Operands<'_, T>,
        values: &mut DeviceBuffer<T>,
        (alpha, beta): (T::Accum, T::Accum),
    ) -> Result<()> {
        let n = self.problem.columns;
        self.waiting.begin();
        let mut transport = self.messages.begin()?;
        let stream = transport.stream;
        for (message, rows) in &self.sends {
            rows.pack(y, &mut transport.staging.outgoing[*message], 0, stream)?;
            transport.queue_send(*message)?;
        }
        if let (Some(beside), Some(all)) = (&self.beside, &mut transport.staging.joined) {
            beside.own.pack(y, all, beside.first * n, stream)?;
        }
        let joined = self.beside.as_ref().zip(transport.staging.joined.as_ref());
        let all = joined.map(|(beside, all)| {
            // SAFETY: the plan has the memory, and the stream waits for what is put there.
            unsafe { rows_of(all, 0, (beside.rows, n)) }
        });
        let all = all.transpose()?;
        let all = all.as_ref().unwrap_or(y);
        let scale = Scale::new().alpha(alpha).beta(beta);
        let parts = &mut self.parts;
        let mut execute = |part: usize| {
            let part = &mut parts[part];
            let y = if part.of.needs.is_empty() { y } else { all };
            part.execute(x, y, values, factors, (scale, stream))
        };
        // Copies and messages run while the GPU multiplies.
        self.waiting.early().try_for_each(&mut execute)?;
        transport.send_pending()?;
        for _ in 0..transport.staging.incoming.len() {
            let message = transport.next_message()?;
            transport.forward(message)?;
            if let Some(beside) = &self.beside {
                beside.received.copy(message, transport.staging, stream)?;
            }
            self.waiting.arrived(message).try_for_each(&mut execute)?;
        }
        transport.finish()
    }
}

impl<T: DistScalar> Part<T> {
    /// The values of these rows, among those of the rank, with its rows of X.
    fn execute(
        &mut self,
        x: &DeviceDense<T>,
        y: &DeviceDense<T>,
        values: &mut DeviceBuffer<T>,
        factors: Option<&DeviceBuffer<T>>,
        (scale, stream): (Scale<T::Accum>, &Stream),
    ) -> Result<()> {
        let Range { start, end } = self.values;
        // SAFETY: parts of the values do not overlap; nobody writes the others.
        let (x, mut values, factors) = unsafe {
            let factors = factors.map(|factors| factors.part(start, end - start));
            (rows_in(x, self.of.rows.clone())?, values.part(start, end - start), factors)
        };
        let of = gustav_cuda::SddmmCall::from(scale).on(stream);
        let of = factors.iter().fold(of, |of, factors| of.factors(factors));
        self.plan.execute(&x, y, &mut values, of)
    }
}

/// The columns of `own`, whose nonzeros have columns of this rank's `columns`, outside of the nonzeros `early`,
/// increasing.
fn rows_outside(own: &blocks::Part, early: &Range<usize>, columns: usize) -> Vec<u32> {
    let mut is_needed = vec![false; columns];
    for (at, column) in own.positions.iter().zip(&own.columns) {
        is_needed[*column as usize] |= !early.contains(at);
    }
    (0..columns as u32).filter(|column| is_needed[*column as usize]).collect()
}

impl<T: DistScalar, I: Index, O: Index> Plans<SddmmRequest<DistPattern<I, O>>, T> for Gpu {
    type Plan = GpuSddmmPlan<T>;

    fn plan(&self, request: SddmmRequest<DistPattern<I, O>>) -> Result<GpuSddmmPlan<T>> {
        GpuSddmmPlan::new(&request.pattern, &request.problem, self)
    }
}
