//! SpGEMM over ranks, of which this one computes on a GPU.

use gustav_core::{Index, Pattern, PatternId, Plans, Problem, Result, SpgemmRequest};
use gustav_cuda::{DeviceBuffer, DeviceCsr, DeviceValues, RowList};

use super::gpu_parts::{Numbered, Parts};
use super::{Gathered, call};
use crate::device::unmasked;
use crate::fetch::Fetch;
use crate::gpu::{Gpu, GpuMessages, Joined, Placing, check_device, part, positions};
use crate::local::DistScalar;
use crate::matrix::over_ranks;
use crate::volume::Counted;
use crate::waiting::Waiting;
use crate::{Communication, DistPattern, Explanation, Partition, Ranks};

/// A sparse matrix whose rows are spread over ranks, of which this one has its rows on a GPU. Products are planned of
/// patterns in host memory: [`GpuSpgemmPlan::execute_with_pattern`] gives that of a product.
#[derive(Debug)]
pub struct DistDeviceCsr<T: DistScalar, I: Index = u32, O: Index = u32> {
    rows: Partition,
    columns: Partition,
    nnz: usize,
    local: DeviceCsr<T, I, O>,
}

impl<T: DistScalar, I: Index, O: Index> DistDeviceCsr<T, I, O> {
    /// Which rows each rank has.
    pub fn rows(&self) -> &Partition {
        &self.rows
    }

    /// Which columns each rank has.
    pub fn columns(&self) -> &Partition {
        &self.columns
    }

    /// Nonzeros of all ranks.
    pub fn nnz(&self) -> usize {
        self.nnz
    }

    /// This rank's rows, over all columns.
    pub fn local(&self) -> &DeviceCsr<T, I, O> {
        &self.local
    }

    /// The same, owned.
    pub fn into_local(self) -> DeviceCsr<T, I, O> {
        self.local
    }
}

/// A plan for sparse × sparse products with patterns of A and B over ranks, of which this one computes on a GPU, made
/// by `a.spgemm(&b).plan(&gpu)`.
///
/// What ranks send is as of an [`SpgemmPlan`](crate::SpgemmPlan), of which other ranks may have one. Results are those
/// of [`gustav_cuda::SpgemmPlan`] for this rank's rows of A and the rows of B that they need.
pub struct GpuSpgemmPlan<T: DistScalar, I: Index = u32, O: Index = u32> {
    ranks: Ranks,
    number: u64,
    patterns: [(PatternId, usize); 2],
    columns: Partition,
    device: gustav_cuda::Device,
    parts: Parts<T, I, O>,
    /// The parts that wait for messages.
    waiting: Waiting,
    /// The first of this rank's values of B among all that it multiplies with, where there are values of other ranks.
    own_at: Option<usize>,
    /// Messages, and the positions of the values that go out with them.
    sends: Vec<(usize, RowList<T>)>,
    /// How received values get to where products read them.
    received: Placing<T>,
    messages: GpuMessages<T>,
    explanation: Explanation,
}

impl<T: DistScalar, I: Index, O: Index> GpuSpgemmPlan<T, I, O> {
    /// Plans `problem` for `a` and `b`. Collective.
    ///
    /// # Errors
    /// As [`SpgemmPlan::new`](crate::SpgemmPlan::new), [`Error::Overflow`](gustav_core::Error::Overflow) when the rows
    /// of B that a rank multiplies with have more nonzeros than the offset type, and those of the GPU.
    pub fn new(
        a: &DistPattern<I, O>,
        b: &DistPattern<I, O>,
        problem: &Problem,
        gpu: &Gpu,
    ) -> Result<Self> {
        let ranks = a.ranks();
        let _lock = ranks.lock();
        let gathered = Gathered::new::<T, O>([a, b], problem, &gpu.options, true)?;
        let all = gathered.oblivious::<T, O>(b);
        let built = Self::build([a, b], gathered, gpu);
        Explanation::complete(ranks, built, all, |plan: &mut Self| &mut plan.explanation)
    }

    fn build(
        [a, b]: [&DistPattern<I, O>; 2],
        gathered: Gathered<I>,
        gpu: &Gpu,
    ) -> Result<(Self, Counted)> {
        let (ranks, device) = (a.ranks(), &gpu.device);
        let (counted, early) = gathered.count::<T, O>(a)?;
        let Gathered {
            number,
            problem,
            of_a,
            parts,
            largest,
            offsets,
            columns,
            own_row,
            own_at,
            exchange,
            fetch,
            firsts,
            waiting,
        } = gathered;
        let (rows, nnz_of_b) = (offsets.len() - 1, columns.len());
        let narrow = |o: &u64| O::try_from_usize(*o as usize, "row offsets of B");
        let offsets = offsets.iter().map(narrow).collect::<Result<Vec<O>>>()?;
        let pattern_b = Pattern::<I, O>::new(rows, b.ncols(), offsets, columns)?;
        let numbered = Numbered { of_a: &of_a, largest, own_row, own_at };
        let parts =
            Parts::new(device, [a.local(), b.local()], &pattern_b, (parts, numbered), &problem)?;

        let sizes = (exchange.incoming_count(), 1);
        let received = Placing::new(device, &fetch, sizes, |q| firsts[q])?;
        let Fetch { sends, forwards, arrivals } = fetch;
        let list = |(message, at): (usize, Vec<u64>)| {
            let at = positions(at.into_iter().map(|at| at as usize))?;
            Ok((message, RowList::new(device, &at, problem.semiring)?))
        };
        let sends = sends.into_iter().map(list).collect::<Result<Vec<_>>>()?;
        // Without values of other ranks, the product reads the rank's own where they are.
        let in_place = &received.in_place;
        let joined = (!arrivals.is_empty()).then_some(Joined { len: nnz_of_b, in_place });
        let own_at = joined.as_ref().map(|_| own_at);
        let messages = GpuMessages::new(ranks, device, exchange, forwards, joined)?;
        let lists = sends.iter().map(|(_, at)| at.bytes()).sum::<usize>();
        let held = parts.bytes() + lists + received.bytes() + messages.bytes();
        let explained = (&problem, &a.into());
        let mut explanation =
            Explanation::new(explained, Communication::RowsOfB, parts.choice(), (early, held));
        explanation.messages = messages.memory();
        let plan = GpuSpgemmPlan {
            ranks: ranks.clone(),
            number,
            patterns: [a, b].map(|p| (p.local().id(), p.local().nnz())),
            columns: b.columns().clone(),
            device: device.clone(),
            parts,
            waiting,
            own_at,
            sends,
            received,
            messages,
            explanation,
        };
        Ok((plan, counted))
    }

    /// What is computed, what ranks send, and how work is balanced: here the nonzeros of a rank are its intermediate
    /// products.
    pub fn explain(&self) -> &Explanation {
        &self.explanation
    }

    /// Bytes that the plan holds on the GPU and in page-locked memory, besides its patterns and, where rows are
    /// multiplied in several parts, that of the last product.
    pub fn workspace_bytes(&self) -> usize {
        self.explanation.workspace_bytes
    }

    /// C from this rank's values of A and of B on the GPU; `alpha` is the semiring's one unless given. Collective.
    ///
    /// Values are a buffer with one for each nonzero of this rank, in the order of the patterns that the plan was made
    /// for; those of a [`DeviceCsr`] are taken only if it has that pattern. C is finished when the call returns.
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute`](crate::SpgemmPlan::execute); [`Error::Device`](gustav_core::Error::Device), of which
    /// other ranks get an [`Error::OtherRank`](gustav_core::Error::OtherRank).
    pub fn execute<'v>(
        &mut self,
        a: impl Into<DeviceValues<'v, T>>,
        b: impl Into<DeviceValues<'v, T>>,
        alpha: Option<T::Accum>,
    ) -> Result<DistDeviceCsr<T, I, O>> {
        let ranks = self.ranks.clone();
        let _lock = ranks.lock();
        let local = self.product(a.into(), b.into(), alpha, Ok)?;
        let shape = (local.nrows(), local.ncols(), local.nnz());
        let (rows, nnz) = over_ranks(&ranks, &self.columns, shape)?;
        Ok(DistDeviceCsr { rows, columns: self.columns.clone(), nnz, local })
    }

    /// The same as a pattern over ranks, which is in host memory and of which other products can be planned, and this
    /// rank's values on the GPU. Collective; other ranks may call either.
    ///
    /// # Errors
    /// As [`GpuSpgemmPlan::execute`].
    pub fn execute_with_pattern<'v>(
        &mut self,
        a: impl Into<DeviceValues<'v, T>>,
        b: impl Into<DeviceValues<'v, T>>,
        alpha: Option<T::Accum>,
    ) -> Result<(DistPattern<I, O>, DeviceBuffer<T>)> {
        let ranks = self.ranks.clone();
        let _lock = ranks.lock();
        let on_host = |c: DeviceCsr<T, I, O>| {
            let (pattern, values) = c.into_parts();
            Ok((pattern.download()?, values))
        };
        let (local, values) = self.product(a.into(), b.into(), alpha, on_host)?;
        Ok((DistPattern::joined(&ranks, &self.columns, local)?, values))
    }

    /// This rank's rows of C as `convert` makes them, if no rank failed.
    fn product<R>(
        &mut self,
        a: DeviceValues<'_, T>,
        b: DeviceValues<'_, T>,
        alpha: Option<T::Accum>,
        convert: impl FnOnce(DeviceCsr<T, I, O>) -> Result<R>,
    ) -> Result<R> {
        let ranks = self.ranks.clone();
        let ready = self.prepare(a, b);
        let (key, arguments) = call::<T>(self.number, alpha);
        let (a, b) = ranks.agree(&key, arguments, ready)?;
        let product = self.multiply(a, b, alpha).and_then(convert);
        self.messages.conclude(product)
    }

    /// The values, if they fit.
    fn prepare<'v>(
        &self,
        a: DeviceValues<'v, T>,
        b: DeviceValues<'v, T>,
    ) -> Result<(&'v DeviceBuffer<T>, &'v DeviceBuffer<T>)> {
        let [of_a, of_b] = self.patterns;
        let (a, b) = (a.fit("A", of_a.0, of_a.1)?, b.fit("B", of_b.0, of_b.1)?);
        check_device(&self.device, &[("A", a), ("B", b)])?;
        self.messages.check_idle()?;
        Ok((a, b))
    }

    /// The product, once all ranks have agreed on it.
    fn multiply(
        &mut self,
        a: &DeviceBuffer<T>,
        b: &DeviceBuffer<T>,
        alpha: Option<T::Accum>,
    ) -> Result<DeviceCsr<T, I, O>> {
        self.waiting.begin();
        let mut transport = self.messages.begin()?;
        let stream = transport.stream;
        for (message, at) in &self.sends {
            at.pack_values(b, &mut transport.staging.outgoing[*message], 0, stream)?;
            transport.queue_send(*message)?;
        }
        let joined = self.own_at.zip(transport.staging.joined.as_ref());
        let all = joined.map(|(first, all)| {
            // SAFETY: the plan has the memory, which is used on this stream.
            let (mut own, all) = unsafe { (part(all, first, b.len()), part(all, 0, all.len())) };
            own.copy_from(b, stream).map(|()| all)
        });
        let all = all.transpose()?;
        let b = [b, all.as_ref().unwrap_or(b)];
        // Products wait for the GPU to count: what others need is sent before.
        transport.send_pending()?;
        let mut products = self.parts.begin();
        let parts = &mut self.parts;
        let mut execute = |part: usize| parts.execute(&mut products, part, (a, b, alpha), stream);
        self.waiting.early().try_for_each(&mut execute)?;
        for _ in 0..transport.staging.incoming.len() {
            let message = transport.next_message()?;
            transport.forward(message)?;
            self.received.copy(message, transport.staging, stream)?;
            self.waiting.arrived(message).try_for_each(&mut execute)?;
        }
        let c = self.parts.join(products, stream)?;
        transport.finish()?;
        Ok(c)
    }
}

impl<T: DistScalar, I: Index, O: Index> Plans<SpgemmRequest<DistPattern<I, O>>, T> for Gpu {
    type Plan = GpuSpgemmPlan<T, I, O>;

    fn plan(&self, request: SpgemmRequest<DistPattern<I, O>>) -> Result<GpuSpgemmPlan<T, I, O>> {
        unmasked(&request)?;
        let SpgemmRequest { a, b, problem, .. } = &request;
        GpuSpgemmPlan::new(a, b, problem, self)
    }
}
