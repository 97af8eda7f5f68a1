//! SpMM over ranks, of which this one computes on a GPU.

mod build;
mod run;

use gustav_core::{
    DType, Error, Index, Operation, PatternId, Plans, Problem, Result, Scale, Semiring,
    SpmmRequest, SpmvRequest,
};
use gustav_cuda::{DeviceBuffer, DeviceDense, DeviceValues, RowList};

use super::build::Builder;
use super::partial_rows::PartialRows;
use super::{Contents, Described, ReceivedValues, rows_of_b, rows_of_c};
use crate::any_pattern::AnyDistPattern;
use crate::fetch::Section;
use crate::gpu::{BACKEND, Gpu, GpuMessages, check_dense, check_device};
use crate::local::{DistScalar, is_widened};
use crate::waiting::Waiting;
use crate::{DistPattern, Explanation, Ranks};

/// A plan for sparse × dense products over ranks, of which this one computes on a GPU, made by
/// `pattern.spmm(columns).plan(&gpu)` or `pattern.spmv().plan(&gpu)`.
///
/// What ranks do and send is as of an [`SpmmPlan`](crate::SpmmPlan), of which other ranks may have one.
pub struct GpuSpmmPlan<T: DistScalar> {
    ranks: Ranks,
    number: u64,
    problem: Problem,
    pattern: PatternId,
    nnz: usize,
    rows_of_b: usize,
    rows_of_c: usize,
    device: gustav_cuda::Device,
    own: Product<T>,
    peers: Vec<Peer<T>>,
    messages: GpuMessages<T>,
    incoming: Vec<Contents>,
    products: Waiting,
    relays: Vec<Send<T>>,
    partial_rows: PartialRows<RowList<T>>,
    explanation: Explanation,
}

/// Some nonzeros of op(A).
struct Product<T: DistScalar> {
    plan: gustav_cuda::SpmmPlan<T>,
    nnz: usize,
    /// Where the values are among those of the rank or of a message, and memory for them; in order when there are none.
    gathered: Option<(RowList<T>, DeviceBuffer<T>)>,
}

/// Operands that go to another rank: rows of B, then values.
struct Send<T: DistScalar> {
    message: usize,
    rows: RowList<T>,
    values: RowList<T>,
}

/// What passes between this rank and another.
struct Peer<T: DistScalar> {
    send: Option<Send<T>>,
    received: Option<Received<T>>,
    served: Option<Served<T>>,
    /// Partial rows of C that are received: the message, and the rows.
    partial: Option<(usize, RowList<T>)>,
}

/// A product with rows of B that are received.
struct Received<T: DistScalar> {
    product: Product<T>,
    of_b: Section,
    /// Rows of C that it adds to, and memory for as many; `None` for all of them, to which it adds directly.
    rows: Option<(RowList<T>, DeviceDense<T>)>,
    values: Option<ReceivedValues>,
}

/// A product with this rank's B that gives partial rows of another rank's C.
struct Served<T: DistScalar> {
    product: Product<T>,
    /// Where these are in an outgoing message.
    to: Section,
    values: Option<ReceivedValues>,
}

impl<T: DistScalar> GpuSpmmPlan<T> {
    /// Plans `problem` for `pattern`, of whose [`Explanation`] the products are those on the GPU. Collective.
    ///
    /// # Errors
    /// As [`SpmmPlan::new`](crate::SpmmPlan::new), [`Error::Unsupported`] for f16 and bf16 on several ranks, as C would
    /// be rounded once for every rank, and those of the GPU.
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
        let here = match is_widened(T::DTYPE) && ranks.size() > 1 {
            true => Err(refuse(problem, T::DTYPE)),
            false => Ok(true),
        };
        let described = Described::new(pattern, T::DTYPE, problem, &gpu.options, here)?;
        let all = described.oblivious(pattern);
        let built = ranks.hosts().and_then(|hosts| {
            build::build(Builder::new(pattern, &described), &gpu.device, described, hosts)
        });
        Explanation::complete(ranks, built, all, |plan: &mut Self| &mut plan.explanation)
    }

    /// What is computed, what ranks send, and how work is balanced.
    pub fn explain(&self) -> &Explanation {
        &self.explanation
    }

    /// Bytes that the plan holds on the GPU and in page-locked memory, besides its pattern.
    pub fn workspace_bytes(&self) -> usize {
        self.explanation.workspace_bytes
    }

    /// C = scale(α, op(A)·B) ⊕ scale(β, C), with this rank's values of A, rows of B and rows of C on the GPU; for a
    /// vector, matrices of one column. C is finished when it returns. Collective.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`](crate::SpmmPlan::execute); [`Error::Unsupported`] for an α of max-times that is not
    /// one, [`Error::Device`], of which other ranks get an [`Error::OtherRank`]; C is undefined then.
    pub fn execute<'v>(
        &mut self,
        values: impl Into<DeviceValues<'v, T>>,
        b: &DeviceDense<T>,
        c: &mut DeviceDense<T>,
        scale: impl Into<Scale<T::Accum>>,
    ) -> Result<()> {
        let ranks = self.ranks.clone();
        let _lock = ranks.lock();
        self.execute_locked(Ok(values.into()), b, c, scale.into())
    }

    /// The same, as the method of this name of an [`SpmmPlan`](crate::SpmmPlan).
    pub(super) fn execute_locked(
        &mut self,
        values: Result<DeviceValues<'_, T>>,
        b: &DeviceDense<T>,
        c: &mut DeviceDense<T>,
        scale: Scale<T::Accum>,
    ) -> Result<()> {
        let ranks = self.ranks.clone();
        let factors = scale.over(self.problem.semiring);
        let ready = values.and_then(|values| self.prepare(values, b, c, factors.0));
        let (key, arguments) = super::call(&self.problem, self.number, factors);
        let values = ranks.agree(&key, arguments, ready)?;
        let multiplied = self.multiply(values, b, c, factors);
        self.messages.conclude(multiplied)
    }

    /// The values, if the operands fit.
    fn prepare<'v>(
        &self,
        values: DeviceValues<'v, T>,
        b: &DeviceDense<T>,
        c: &DeviceDense<T>,
        alpha: T::Accum,
    ) -> Result<&'v DeviceBuffer<T>> {
        let p = &self.problem;
        let values = values.fit("A", self.pattern, self.nnz)?;
        check_dense(&rows_of_b(p, self.rows_of_b), b)?;
        check_dense(&rows_of_c(p, self.rows_of_c), c)?;
        check_device(&self.device, &[("A", values), ("B", b.data()), ("C", c.data())])?;
        // Parts of a sum are scaled before they are added.
        if p.semiring == Semiring::MaxTimes && alpha != p.semiring.one() {
            return Err(Error::Unsupported {
                problem: p.to_string(),
                backend: BACKEND.into(),
                reason: "a negative factor turns a maximum around".into(),
                nearest: "alpha of one, and C scaled afterwards".into(),
            });
        }
        self.messages.check_idle()?;
        Ok(values)
    }
}

fn refuse(problem: &Problem, dtype: DType) -> Error {
    Error::Unsupported {
        problem: Problem { dtype, ..problem.clone() }.to_string(),
        backend: BACKEND.into(),
        reason: format!("sums in {dtype} would be rounded once for every rank"),
        nearest: "f32, or the ranks' CPUs".into(),
    }
}

impl<T: DistScalar, I: Index, O: Index> Plans<SpmmRequest<DistPattern<I, O>>, T> for Gpu {
    type Plan = GpuSpmmPlan<T>;

    fn plan(&self, request: SpmmRequest<DistPattern<I, O>>) -> Result<GpuSpmmPlan<T>> {
        GpuSpmmPlan::new(&request.pattern, &request.problem, self)
    }
}

impl<T: DistScalar, I: Index, O: Index> Plans<SpmvRequest<DistPattern<I, O>>, T> for Gpu {
    type Plan = GpuSpmmPlan<T>;

    fn plan(&self, request: SpmvRequest<DistPattern<I, O>>) -> Result<GpuSpmmPlan<T>> {
        let problem = Problem { operation: Operation::Spmv, columns: 1, ..request.problem };
        GpuSpmmPlan::new(&request.pattern, &problem, self)
    }
}
