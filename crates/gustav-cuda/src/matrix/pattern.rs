//! Patterns on a device.

use std::sync::{Arc, OnceLock, Weak};

use gustav_core::{
    AttentionRequest, Error, Index, IndexType, Operation, Pattern, PatternId, PatternView, Problem,
    Result, SddmmRequest, SoftmaxRequest, SpgemmRequest, SpmmRequest, SpmvRequest,
};

use super::facts::PatternFacts;
use super::transpose::TransposedPattern;
use super::validate;
use crate::device::memory::Memory;
use crate::device::{Device, DeviceBuffer};

/// The shape, row offsets and column indices of a sparse matrix in CSR form on a device: a
/// [`Pattern`] in device memory, with the same invariants.
///
/// It never changes. A clone shares the arrays and the identity, and costs the increment of a
/// reference count. Plans are made for patterns and hold them.
#[derive(Clone, Debug)]
pub struct DevicePattern<I: Index = u32, O: Index = u32> {
    shared: Arc<Shared<I, O>>,
}

#[derive(Debug)]
struct Shared<I, O> {
    id: PatternId,
    nrows: usize,
    ncols: usize,
    offsets: DeviceBuffer<O>,
    indices: DeviceBuffer<I>,
    /// Computed when a plan first needs it; holds no reference to this pattern.
    transposed: OnceLock<Arc<TransposedPattern<I, O>>>,
    facts: PatternFacts,
}

impl<I: Index, O: Index> DevicePattern<I, O> {
    /// A copy of `pattern` on `device`, with the same identity.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn upload<'a>(device: &Device, pattern: impl Into<PatternView<'a, I, O>>) -> Result<Self> {
        let view = pattern.into();
        let offsets =
            DeviceBuffer::from_slice(device, view.offsets(), "row offsets on the device")?;
        let what = "column indices on the device";
        let indices = DeviceBuffer::from_slice(device, view.indices(), what)?;
        Ok(Self::of(view.id(), view.nrows(), view.ncols(), offsets, indices))
    }

    /// A pattern over two arrays on one device, owned or borrowed, checked on the device. Waits for
    /// the result.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Offsets`] or [`Error::Index`] with the first row or position
    /// where an invariant of [`Pattern`] fails; [`Error::Argument`] for arrays on two devices, or
    /// that a [`Graph`](crate::Graph) uses; [`Error::NoDevice`] when the run-time compiler is
    /// missing, [`Error::Device`].
    pub fn new(
        nrows: usize,
        ncols: usize,
        offsets: DeviceBuffer<O>,
        indices: DeviceBuffer<I>,
    ) -> Result<Self> {
        validate::pattern(nrows, ncols, &offsets, &indices)?;
        Ok(Self::of(PatternId::fresh(), nrows, ncols, offsets, indices))
    }

    /// A pattern over two arrays on one device, not checked.
    ///
    /// # Safety
    /// The invariants of [`Pattern`] hold when the work queued on the arrays is done, and nobody
    /// writes them afterwards; kernels rely on the indices without checks. Both arrays are on one
    /// device.
    pub unsafe fn new_unchecked(
        nrows: usize,
        ncols: usize,
        offsets: DeviceBuffer<O>,
        indices: DeviceBuffer<I>,
    ) -> Self {
        debug_assert_eq!(offsets.len(), nrows.saturating_add(1));
        Self::of(PatternId::fresh(), nrows, ncols, offsets, indices)
    }

    fn of(
        id: PatternId,
        nrows: usize,
        ncols: usize,
        offsets: DeviceBuffer<O>,
        indices: DeviceBuffer<I>,
    ) -> Self {
        let (transposed, facts) = Default::default();
        let shared = Shared { id, nrows, ncols, offsets, indices, transposed, facts };
        DevicePattern { shared: Arc::new(shared) }
    }

    /// The identity, shared by clones, by matrices of this pattern, and by the host pattern that it
    /// was copied from.
    pub fn id(&self) -> PatternId {
        self.shared.id
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.shared.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.shared.ncols
    }

    /// Number of nonzeros: stored entries, explicit zeros included.
    pub fn nnz(&self) -> usize {
        self.shared.indices.len()
    }

    /// The device it is on.
    pub fn device(&self) -> &Device {
        self.shared.offsets.device()
    }

    /// Row offsets, `nrows + 1` of them.
    pub fn offsets(&self) -> &DeviceBuffer<O> {
        &self.shared.offsets
    }

    /// Column indices.
    pub fn indices(&self) -> &DeviceBuffer<I> {
        &self.shared.indices
    }

    /// Bytes of the arrays.
    pub fn bytes(&self) -> usize {
        self.offsets().bytes() + self.indices().bytes()
    }

    /// A copy on the host, with an identity of its own.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`], and those of [`Pattern::new`].
    pub fn download(&self) -> Result<Pattern<I, O>> {
        let (offsets, indices) = (self.offsets().to_host()?, self.indices().to_host()?);
        Pattern::new(self.nrows(), self.ncols(), offsets, indices)
    }

    /// Describes the product with a dense matrix of `columns` columns.
    pub fn spmm(&self, columns: usize) -> SpmmRequest<Self> {
        let problem = self.problem(Operation::Spmm).columns(columns);
        SpmmRequest { pattern: self.clone(), problem }
    }

    /// Describes the product with a vector.
    pub fn spmv(&self) -> SpmvRequest<Self> {
        SpmvRequest { pattern: self.clone(), problem: self.problem(Operation::Spmv) }
    }

    /// Describes X·Yᵀ at the nonzeros, for X of `nrows` × `depth` and Y of `ncols` × `depth`.
    pub fn sddmm(&self, depth: usize) -> SddmmRequest<Self> {
        let problem = self.problem(Operation::Sddmm).columns(depth);
        SddmmRequest { pattern: self.clone(), problem }
    }

    /// Describes attention over the nonzeros of every row, Q and K of `columns` columns for each
    /// head.
    pub fn attention(&self, columns: usize) -> AttentionRequest<Self> {
        let problem = self.problem(Operation::Attention).attention(columns);
        AttentionRequest { pattern: self.clone(), problem }
    }

    /// Describes the softmax of values over every row.
    pub fn softmax(&self) -> SoftmaxRequest<Self> {
        SoftmaxRequest { pattern: self.clone(), problem: self.problem(Operation::Softmax) }
    }

    /// Describes the product with the sparse matrices of pattern `b`.
    pub fn spgemm(&self, b: impl Into<Self>) -> SpgemmRequest<Self> {
        let (a, b) = (self.clone(), b.into());
        let (columns, nnz_b) = (b.ncols(), Some(b.nnz()));
        let problem = Problem { columns, nnz_b, ..self.problem(Operation::Spgemm) };
        SpgemmRequest { a, b, mask: None, problem }
    }

    fn problem(&self, operation: Operation) -> Problem {
        let problem = Problem::of_pattern(operation, self.nrows(), self.ncols(), self.nnz());
        Problem { index_type: I::TYPE, offset_type: O::TYPE, ..problem }
    }

    /// The pattern of Aᵀ with the permutation of values, computed for the first plan that needs it.
    /// Work on the stream of `device`, a handle of the same GPU, may not be done yet.
    ///
    /// # Errors
    /// As [`TransposedPattern::new`].
    pub(crate) fn transposed(&self, device: &Device) -> Result<Arc<TransposedPattern<I, O>>> {
        if let Some(transposed) = self.shared.transposed.get() {
            return Ok(transposed.clone());
        }
        let made = Arc::new(TransposedPattern::new(device, self)?);
        // If another thread was faster, its result is shared.
        Ok(self.shared.transposed.get_or_init(|| made).clone())
    }

    /// The facts that plans counted.
    pub(crate) fn facts(&self) -> &PatternFacts {
        &self.shared.facts
    }

    /// A pattern with the same arrays and another identity, without the facts and the transpose that plans left with
    /// this one: for measuring what a first plan takes.
    pub fn without_facts(&self) -> Self {
        let (offsets, indices) = (self.offsets(), self.indices());
        // SAFETY: nobody writes the arrays of a pattern.
        let (offsets, indices) =
            unsafe { (offsets.part(0, offsets.len()), indices.part(0, indices.len())) };
        Self::of(PatternId::fresh(), self.nrows(), self.ncols(), offsets, indices)
    }

    /// Forgets the transpose and the facts, because the entries of rows are about to get another order. Returns whether
    /// that is possible: nothing else refers to the arrays, no matrix, plan or graph.
    pub(crate) fn forget_order(&mut self) -> bool {
        match Arc::get_mut(&mut self.shared) {
            Some(own) if own.offsets.is_alone() && own.indices.is_alone() => {
                (own.transposed, own.facts) = Default::default();
                true
            }
            _ => false,
        }
    }

    /// Whether the arrays are freed with the pattern.
    pub(crate) fn is_owned(&self) -> bool {
        self.offsets().is_owned() && self.indices().is_owned()
    }

    /// Orders the own stream of `device`, a handle of the same GPU, after earlier writes of the
    /// arrays.
    pub(crate) fn join(&self, device: &Device) -> Result<()> {
        self.offsets().join_on(device.stream())?;
        self.indices().join_on(device.stream())
    }

    /// A weak reference to the arrays.
    pub(crate) fn downgrade(&self) -> WeakPattern<I, O> {
        WeakPattern { id: Some(self.id()), shared: Arc::downgrade(&self.shared) }
    }

    /// The arrays without their types.
    pub(crate) fn held(&self) -> HeldPattern {
        HeldPattern {
            id: self.id(),
            nrows: self.nrows(),
            ncols: self.ncols(),
            nnz: self.nnz(),
            index_type: I::TYPE,
            offset_type: O::TYPE,
            offsets: self.offsets().memory().clone(),
            indices: self.indices().memory().clone(),
        }
    }
}

impl<I: Index, O: Index> PartialEq for DevicePattern<I, O> {
    /// Whether both are the same pattern.
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl<I: Index, O: Index> From<&DevicePattern<I, O>> for DevicePattern<I, O> {
    fn from(pattern: &DevicePattern<I, O>) -> Self {
        pattern.clone()
    }
}

/// A weak reference to a pattern.
#[derive(Debug)]
pub(crate) struct WeakPattern<I, O> {
    id: Option<PatternId>,
    shared: Weak<Shared<I, O>>,
}

impl<I, O> Default for WeakPattern<I, O> {
    fn default() -> Self {
        WeakPattern { id: None, shared: Weak::new() }
    }
}

impl<I: Index, O: Index> WeakPattern<I, O> {
    /// The pattern, if it still exists.
    pub(crate) fn upgrade(&self) -> Option<DevicePattern<I, O>> {
        self.shared.upgrade().map(|shared| DevicePattern { shared })
    }

    /// Checks that `found` is this pattern.
    ///
    /// # Errors
    /// [`Error::Pattern`].
    pub(crate) fn check(&self, found: PatternId) -> Result<()> {
        match self.id {
            Some(id) => id.check("C", Some(found)),
            None => Err(Error::Pattern {
                expected: "a pattern of C that it has not computed yet".into(),
                found: "of another pattern".into(),
            }),
        }
    }
}

/// The arrays of a pattern as plans hold them, with their types known at run time.
#[derive(Clone, Debug)]
pub(crate) struct HeldPattern {
    pub id: PatternId,
    pub nrows: usize,
    pub ncols: usize,
    pub nnz: usize,
    pub index_type: IndexType,
    pub offset_type: IndexType,
    pub offsets: Arc<Memory>,
    pub indices: Arc<Memory>,
}
