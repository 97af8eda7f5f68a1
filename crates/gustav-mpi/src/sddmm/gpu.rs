//! SDDMM over ranks, of which this one computes on a GPU.

use gustav_core::{
    Batch, Index, Layout, Operation, Pattern, PatternId, Plans, Problem, Result, Scale,
    SddmmRequest, Semiring, validate,
};
use gustav_cuda::{DeviceBuffer, DeviceDense, DevicePattern, DeviceValues, RowList};

use super::described::{Described, Messages, execution};
use super::{rows_of_x, rows_of_y};
use crate::blocks::fits;
use crate::gpu::{Gpu, GpuMessages, Joined, check_dense, check_device, rows_of};
use crate::local::DistScalar;
use crate::volume::Counted;
use crate::{DistPattern, Explanation, Ranks};

/// A plan for dense products at the nonzeros of a pattern over ranks, of which this one computes on a GPU, made by
/// `pattern.sddmm(depth).plan(&gpu)`.
///
/// What ranks send is as of an [`SddmmPlan`](crate::SddmmPlan), of which other ranks may have one. Rows of Y that are
/// received are put beside the rank's own in the GPU's memory, and one product of all its nonzeros follows. Results are
/// the same to the bit from run to run, for operands of the same alignment and leading dimensions.
pub struct GpuSddmmPlan<T: DistScalar> {
    ranks: Ranks,
    number: u64,
    problem: Problem,
    pattern: PatternId,
    nnz: usize,
    rows_of_x: Batch,
    rows_of_y: Batch,
    device: gustav_cuda::Device,
    plan: gustav_cuda::SddmmPlan<T>,
    /// Where other ranks' rows of Y are needed as well.
    beside: Option<Beside<T>>,
    /// Messages, and the rows of Y that go out with them.
    sends: Vec<(usize, RowList<T>)>,
    messages: GpuMessages<T>,
    explanation: Explanation,
}

/// How this rank's rows of Y are put beside ghost rows.
struct Beside<T: DistScalar> {
    /// All rows of this rank.
    own: RowList<T>,
    /// The first of them among all rows.
    first: usize,
    /// Number of all rows.
    rows: usize,
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
        let ranks = pattern.ranks();
        let _lock = ranks.lock();
        let described = Described::new::<T, I, O>(pattern, problem, &gpu.options, true)?;
        let all = described.oblivious(pattern);
        let built = Self::build(pattern, described, gpu);
        Explanation::complete(ranks, built, all, |plan: &mut Self| &mut plan.explanation)
    }

    fn build<I: Index, O: Index>(
        pattern: &DistPattern<I, O>,
        described: Described,
        gpu: &Gpu,
    ) -> Result<(Self, Counted)> {
        let (ranks, local) = (pattern.ranks(), pattern.local());
        let device = &gpu.device;
        let Messages { exchange, sends, counted } = described.messages::<T, I, O>(pattern)?;
        let Described { number, problem, shape, ghosts, .. } = described;
        let (n, own) = (problem.columns, pattern.columns().count(ranks.rank()));
        let count = ghosts.count();
        let rows = own + count;
        fits("rows and ghost rows of Y", rows)?;
        let first_row = |q: usize| ghosts.first_row(q, ranks.rank(), own);
        let indices = ghosts.rows_of_nonzeros(local.nnz(), ranks.rank(), first_row)?;
        let offsets: Vec<u64> = local.offsets().iter().map(|o| o.to_usize() as u64).collect();
        let numbered = Pattern::<u32, u64>::new(local.nrows(), rows, offsets, indices)?;
        let layout_y = if count == 0 { problem.layout_b } else { Layout::RowMajor };
        let planned = Problem::of_pattern(Operation::Sddmm, local.nrows(), rows, local.nnz())
            .columns(n)
            .layouts(layout_y, problem.layout_c)
            .deterministic(problem.deterministic)
            .calls(problem.calls);
        let uploaded = DevicePattern::upload(device, &numbered)?;
        let options = gustav_cuda::sddmm::Options::default();
        let plan = gustav_cuda::SddmmPlan::new(&uploaded, &planned, &options)?;

        let list = |rows: &[u32]| RowList::<T>::new(device, rows, Semiring::PlusTimes);
        let beside = match count {
            0 => None,
            _ => {
                let own = list(&(0..own as u32).collect::<Vec<_>>())?;
                Some(Beside { own, first: first_row(ranks.rank()), rows })
            }
        };
        let sends = sends.into_iter().map(|(message, rows)| Ok((message, list(&rows)?)));
        let sends = sends.collect::<Result<Vec<_>>>()?;
        let peers = ghosts.blocks.others.iter().filter(|_| n > 0);
        let firsts: Vec<usize> = peers.map(|block| first_row(block.peer) * n).collect();
        let joined = beside.as_ref().map(|_| Joined { len: rows * n, firsts: &firsts });
        let messages = GpuMessages::new(ranks, device, exchange, joined, false)?;
        let lists = beside.iter().map(|beside| &beside.own);
        let lists = lists.chain(sends.iter().map(|(_, rows)| rows)).map(RowList::bytes);
        let held = plan.workspace_bytes() + lists.sum::<usize>() + messages.bytes();
        let explained = (&problem, pattern);
        let explanation = Explanation::new(explained, shape.communication, plan.choice(), held);
        let plan = GpuSddmmPlan {
            ranks: ranks.clone(),
            number,
            pattern: local.id(),
            nnz: local.nnz(),
            rows_of_x: rows_of_x(&problem, local.nrows()),
            rows_of_y: rows_of_y(&problem, own),
            problem,
            device: device.clone(),
            plan,
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

    /// `values[p] = α·⟨X[row p], Y[column p]⟩·factors[p] + β·values[p]` for the nonzeros of this rank, with its rows of X
    /// and of Y, all on the GPU; factors are 1 unless the call has some. Values are finished when it returns. Collective.
    ///
    /// # Errors
    /// As [`SddmmPlan::execute`](crate::SddmmPlan::execute); [`Error::Device`](gustav_core::Error::Device), of which other ranks get an
    /// [`Error::OtherRank`](gustav_core::Error::OtherRank); the values are undefined then.
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
        let mut transport = self.messages.begin()?;
        let stream = transport.stream;
        for (message, rows) in &self.sends {
            rows.pack(y, &mut transport.staging.outgoing[*message], 0, stream)?;
            transport.queue_send(*message)?;
        }
        if let (Some(beside), Some(all)) = (&self.beside, &mut transport.staging.joined) {
            beside.own.pack(y, all, beside.first * n, stream)?;
        }
        transport.send_pending()?;
        transport.receive_all()?;
        let joined = self.beside.as_ref().zip(transport.staging.joined.as_ref());
        let all = joined.map(|(beside, all)| {
            // SAFETY: the plan has the memory, and the stream waits for what is put there.
            unsafe { rows_of(all, 0, (beside.rows, n)) }
        });
        let all = all.transpose()?;
        let of = gustav_cuda::SddmmCall::from(Scale::new().alpha(alpha).beta(beta)).on(stream);
        let of = factors.map_or(of, |factors| of.factors(factors));
        self.plan.execute(x, all.as_ref().unwrap_or(y), values, of)?;
        transport.finish()
    }
}

impl<T: DistScalar, I: Index, O: Index> Plans<SddmmRequest<DistPattern<I, O>>, T> for Gpu {
    type Plan = GpuSddmmPlan<T>;

    fn plan(&self, request: SddmmRequest<DistPattern<I, O>>) -> Result<GpuSddmmPlan<T>> {
        GpuSddmmPlan::new(&request.pattern, &request.problem, self)
    }
}
