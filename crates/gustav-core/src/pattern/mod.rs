//! Patterns: the positions of the nonzeros of sparse matrices.
//!
//! A pattern is validated once, never changes, and has an identity, so that a plan can check in
//! O(1) whether values belong to the pattern that it was made for.

mod array;
mod transposed;
mod view;

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::{Buffer, Error, Index, Result, validate};
use array::Array;
pub use transposed::TransposedPattern;
pub use view::{AnyPattern, PatternRef, PatternView};

/// The identity of a pattern: unique in a process, shared by clones and views of one pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PatternId(NonZeroU64);

impl PatternId {
    /// An identity that no other pattern of this process has.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // The counter cannot wrap in practice; the fallback avoids a panic.
        PatternId(NonZeroU64::new(NEXT.fetch_add(1, Ordering::Relaxed)).unwrap_or(NonZeroU64::MAX))
    }

    /// Checks that values of the pattern `found` belong to this pattern. For values without an
    /// identity (a plain slice) the caller guarantees it.
    ///
    /// # Errors
    /// [`Error::Pattern`] naming `operand`.
    pub fn check(self, operand: &'static str, found: Option<PatternId>) -> Result<()> {
        if found.is_none_or(|found| found == self) {
            return Ok(());
        }
        Err(Error::Pattern {
            expected: format!("the pattern of {operand} that it holds"),
            found: "of another pattern".into(),
        })
    }
}

/// The shape, row offsets and column indices of a sparse matrix in CSR form.
///
/// `I` is the column-index type, `O` the row-offset type. The columns of row `i` are
/// `indices[offsets[i]..offsets[i + 1]]`. They may be unsorted and may repeat.
///
/// Every pattern satisfies: `offsets[0] == 0`, offsets never decrease, `offsets[nrows] ==
/// indices.len()`, every index is below `ncols`. A clone shares the arrays and the identity, and
/// costs the increment of a reference count.
#[derive(Clone, Debug)]
pub struct Pattern<I: Index = u32, O: Index = u32> {
    shared: Arc<Shared<I, O>>,
}

#[derive(Debug)]
struct Shared<I: Index, O: Index> {
    id: PatternId,
    nrows: usize,
    ncols: usize,
    offsets: Array<O>,
    indices: Array<I>,
    /// Computed on first use; holds no reference to this pattern.
    transposed: OnceLock<Arc<TransposedPattern<I, O>>>,
}

impl<I: Index, O: Index> Pattern<I, O> {
    /// A pattern that owns its arrays (`Vec` or [`Buffer`]), checked.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Offsets`] or [`Error::Index`] with the first place where an
    /// invariant fails.
    pub fn new(
        nrows: usize,
        ncols: usize,
        offsets: impl Into<Buffer<O>>,
        indices: impl Into<Buffer<I>>,
    ) -> Result<Self> {
        let (offsets, indices) = (offsets.into(), indices.into());
        validate::pattern(nrows, ncols, &offsets, &indices)?;
        Ok(Self::of(nrows, ncols, Array::owned(offsets), Array::owned(indices)))
    }

    /// A pattern over arrays that other owners hold (an `Arc<[u32]>`, a file mapping), read in
    /// place and checked. The owners are dropped with the last clone of the pattern.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub fn from_owners(
        nrows: usize,
        ncols: usize,
        offsets: impl AsRef<[O]> + Send + Sync + 'static,
        indices: impl AsRef<[I]> + Send + Sync + 'static,
    ) -> Result<Self> {
        let (offsets, indices) = (Array::held(offsets), Array::held(indices));
        validate::pattern(nrows, ncols, &offsets, &indices)?;
        Ok(Self::of(nrows, ncols, offsets, indices))
    }

    /// A pattern from its two arrays, not checked in release builds.
    ///
    /// # Safety
    /// The invariants listed at [`Pattern`] hold; kernels read through the indices unchecked.
    pub unsafe fn new_unchecked(
        nrows: usize,
        ncols: usize,
        offsets: impl Into<Buffer<O>>,
        indices: impl Into<Buffer<I>>,
    ) -> Self {
        let (offsets, indices) = (offsets.into(), indices.into());
        debug_assert!(validate::pattern(nrows, ncols, &offsets, &indices).is_ok());
        Self::of(nrows, ncols, Array::owned(offsets), Array::owned(indices))
    }

    fn of(nrows: usize, ncols: usize, offsets: Array<O>, indices: Array<I>) -> Self {
        let (id, transposed) = (PatternId::fresh(), OnceLock::new());
        Pattern { shared: Arc::new(Shared { id, nrows, ncols, offsets, indices, transposed }) }
    }

    /// The pattern as a view with the same identity.
    pub fn view(&self) -> PatternView<'_, I, O> {
        let Shared { id, nrows, ncols, offsets, indices, .. } = &*self.shared;
        PatternView { id: *id, nrows: *nrows, ncols: *ncols, offsets, indices }
    }

    /// The identity that clones and views share.
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

    /// Row offsets, `nrows + 1` of them.
    pub fn offsets(&self) -> &[O] {
        &self.shared.offsets
    }

    /// Column indices.
    pub fn indices(&self) -> &[I] {
        &self.shared.indices
    }

    /// The transposed pattern with the permutation of values, computed once and shared by all
    /// clones.
    ///
    /// # Errors
    /// As [`PatternView::transpose`].
    pub fn transposed(&self) -> Result<Arc<TransposedPattern<I, O>>> {
        if let Some(transposed) = self.shared.transposed.get() {
            return Ok(transposed.clone());
        }
        let made = Arc::new(self.view().transpose()?);
        // If another thread was faster, its result is shared.
        Ok(self.shared.transposed.get_or_init(|| made).clone())
    }

    /// Row offsets and column indices, owned: without a copy if this is the only clone and the
    /// pattern owns its arrays.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for the copy.
    pub fn into_parts(self) -> Result<(Buffer<O>, Buffer<I>)> {
        match Arc::try_unwrap(self.shared) {
            Ok(Shared { offsets, indices, .. }) => {
                Ok((offsets.into_buffer("row offsets")?, indices.into_buffer("column indices")?))
            }
            Err(shared) => {
                let copy = Pattern { shared }.view().to_owned()?;
                // The copy has one owner.
                copy.into_parts()
            }
        }
    }
}

impl<I: Index, O: Index> PartialEq for Pattern<I, O> {
    /// Whether both are the same pattern, or hold the same shape, offsets and indices.
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id() || self.view().same_arrays(&other.view())
    }
}

impl<I: Index, O: Index> From<&Pattern<I, O>> for Pattern<I, O> {
    fn from(pattern: &Pattern<I, O>) -> Self {
        pattern.clone()
    }
}
