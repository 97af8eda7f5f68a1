//! Patterns.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gustav::interop::dlpack::{DLManagedTensorVersioned, DLTensor, Tensor, TensorMut};
use gustav::{Error, Index, IndexType, Pattern, PatternView, Result, index};

use crate::dispatch::with_indices;
use crate::export::{Exported, export};
use crate::handle::Table;
use crate::pointer::{managed_tensor, optional, tensor, written};
use crate::status::{guard, gustav_status};

/// Where the nonzeros of a sparse matrix are: row offsets and column indices of CSR, validated once and
/// never written. Threads may share one.
#[allow(non_camel_case_types)]
pub struct gustav_pattern {
    _opaque: (),
}

static PATTERNS: Table<Indices> = Table::new("pattern");

/// A pattern by the widths of its indices; also a request or a view of one.
#[derive(Clone)]
pub(crate) enum Indices<S = Pattern<u32, u32>, L = Pattern<u32, u64>, W = Pattern<u64, u64>> {
    /// 32 bits each.
    Small(S),
    /// Column indices of 32 bits, row offsets of 64.
    Long(L),
    /// 64 bits each.
    Large(W),
}

type Views<'a> =
    Indices<PatternView<'a, u32, u32>, PatternView<'a, u32, u64>, PatternView<'a, u64, u64>>;

impl Indices {
    /// The pattern of a handle.
    pub(crate) fn of(handle: *const gustav_pattern) -> Result<Arc<Indices>> {
        PATTERNS.get(handle)
    }

    /// The handle of a new pattern.
    pub(crate) fn into_handle(self) -> *mut gustav_pattern {
        PATTERNS.insert(self)
    }

    /// Where the arrays are, which may be the caller's and are read unchecked: no result may overlap them.
    pub(crate) fn extents(&self) -> [(&'static str, Range<usize>); 2] {
        fn of<T>(array: &[T]) -> Range<usize> {
            let start = array.as_ptr().addr();
            start..start + size_of_val(array)
        }
        with_indices!(self, |p| [
            ("row offsets of the pattern", of(p.offsets())),
            ("column indices of the pattern", of(p.indices())),
        ])
    }
}

/// Arrays of a call, not validated.
pub(crate) struct Arrays<'a> {
    offsets: Tensor<'a>,
    indices: Tensor<'a>,
    columns: usize,
    widths: (IndexType, IndexType),
}

impl<'a> Arrays<'a> {
    /// # Safety
    /// As for [`tensor`], for `'a`.
    ///
    /// # Errors
    /// As there, [`Error::Argument`] for what are no indices, and [`Error::Unsupported`] for row offsets of
    /// 32 bits beside column indices of 64.
    pub(crate) unsafe fn new(
        offsets: *const DLTensor,
        indices: *const DLTensor,
        columns: usize,
    ) -> Result<Self> {
        // SAFETY: promised by the caller.
        let (offsets, indices) =
            unsafe { (tensor("row offsets", offsets)?, tensor("column indices", indices)?) };
        let width = |tensor: &Tensor<'_>| {
            tensor.dtype().index().ok_or_else(|| Error::Argument {
                name: tensor.name(),
                found: tensor.dtype().to_string(),
                expected: "int32, int64, uint32 or uint64".into(),
            })
        };
        let (of_offsets, of_indices) = (width(&offsets)?, width(&indices)?);
        if (of_offsets.0, of_indices.0) == (IndexType::U32, IndexType::U64) {
            return Err(Error::Unsupported {
                problem: "row offsets of 32 bits beside column indices of 64".into(),
                backend: "the C interface".into(),
                reason: "no kernel is compiled for it".into(),
                nearest: "both of 32 bits, or row offsets of 64".into(),
            });
        }
        // A negative number, read without its sign, would pass as one that the type lacks.
        for (tensor, found, limit) in
            [(&offsets, of_offsets, indices.matrix()[0]), (&indices, of_indices, columns)]
        {
            if found == (IndexType::U32, true) && limit > i32::MAX as usize {
                return Err(Error::Argument {
                    name: tensor.name(),
                    found: format!("int32, for numbers of up to {limit}"),
                    expected: "uint32, or integers of 64 bits".into(),
                });
            }
        }
        Ok(Arrays { offsets, indices, columns, widths: (of_offsets.0, of_indices.0) })
    }

    fn rows(&self) -> usize {
        // Without an offset, validation finds one missing.
        self.offsets.matrix()[0].saturating_sub(1)
    }

    /// Refuses to write `result` over the arrays.
    ///
    /// # Errors
    /// [`Error::Argument`].
    pub(crate) fn refuse_overlap(&self, result: &TensorMut<'_>) -> Result<()> {
        result.refuse_overlap(&self.offsets)?;
        result.refuse_overlap(&self.indices)
    }

    /// The arrays as a pattern, validated.
    ///
    /// # Errors
    /// What is wrong in them, with its place.
    pub(crate) fn view(&self) -> Result<Views<'a>> {
        Ok(match self.widths {
            (IndexType::U32, _) => Indices::Small(self.checked()?),
            (_, IndexType::U32) => Indices::Long(self.checked()?),
            (_, IndexType::U64) => Indices::Large(self.checked()?),
        })
    }

    fn checked<I: Index, O: Index>(&self) -> Result<PatternView<'a, I, O>> {
        let (offsets, indices) = (self.offsets.indices::<O>()?, self.indices.indices::<I>()?);
        PatternView::new(self.rows(), self.columns, offsets, indices)
            .map_err(|error| self.negative().unwrap_or(error))
    }

    /// The error of the first negative number in arrays of signed integers.
    fn negative(&self) -> Option<Error> {
        [&self.offsets, &self.indices].into_iter().find_map(|tensor| {
            let found = match tensor.dtype().index()? {
                (IndexType::U32, true) => {
                    let numbers = tensor.indices::<u32>().ok()?;
                    index::unsigned(signed::<_, i32>(numbers)).err()
                }
                (IndexType::U64, true) => {
                    let numbers = tensor.indices::<u64>().ok()?;
                    index::unsigned(signed::<_, i64>(numbers)).err()
                }
                _ => None,
            };
            Some(found?.at(tensor.name()))
        })
    }

    /// A pattern over the arrays where they are, which are given back when it and its last user are gone.
    ///
    /// # Safety
    /// They are the arrays of the managed tensors, and stay as they are until they are given back.
    unsafe fn keep(self, managed: [*mut DLManagedTensorVersioned; 2]) -> Result<Indices> {
        // Not before the pattern is made: after an error, the tensors are still the caller's.
        let taken = Arc::new(AtomicBool::new(false));
        let [offsets, indices] = managed.map(|managed| Owner { managed, taken: taken.clone() });
        let made = match self.widths {
            (IndexType::U32, _) => Indices::Small(self.held(offsets, indices)?),
            (_, IndexType::U32) => Indices::Long(self.held(offsets, indices)?),
            (_, IndexType::U64) => Indices::Large(self.held(offsets, indices)?),
        };
        taken.store(true, Ordering::Release);
        Ok(made)
    }

    fn held<I: Index, O: Index>(&self, offsets: Owner, indices: Owner) -> Result<Pattern<I, O>> {
        let offsets = Held { owner: offsets, array: self.offsets.indices::<O>()? as *const [O] };
        let indices = Held { owner: indices, array: self.indices.indices::<I>()? as *const [I] };
        Pattern::from_owners(self.rows(), self.columns, offsets, indices)
            .map_err(|error| self.negative().unwrap_or(error))
    }
}

/// Unsigned integers as the signed ones that they were.
fn signed<U: Index, S>(numbers: &[U]) -> &[S] {
    const { assert!(size_of::<U>() == size_of::<S>() && align_of::<U>() == align_of::<S>()) };
    // SAFETY: integers of one width; every pattern of bits is one.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), numbers.len()) }
}

/// A managed tensor that is given back when it is dropped, if it was taken.
struct Owner {
    managed: *mut DLManagedTensorVersioned,
    taken: Arc<AtomicBool>,
}

// SAFETY: it is used once, to give the tensor back, which the header says may happen on any thread.
unsafe impl Send for Owner {}
// SAFETY: a shared owner does nothing.
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        if !self.taken.load(Ordering::Acquire) {
            return;
        }
        // SAFETY: the tensor was given to this owner alone.
        unsafe {
            if let Some(deleter) = (*self.managed).deleter {
                deleter(self.managed);
            }
        }
    }
}

struct Held<T> {
    array: *const [T],
    /// Dropped with the array.
    #[expect(dead_code, reason = "it owns the array")]
    owner: Owner,
}

// SAFETY: the array is read alone, and lives as long as its owner.
unsafe impl<T: Sync> Send for Held<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Held<T> {}

impl<T> AsRef<[T]> for Held<T> {
    fn as_ref(&self) -> &[T] {
        // SAFETY: see `Arrays::keep`.
        unsafe { &*self.array }
    }
}

/// A pattern with a copy of its arrays.
///
/// `offsets` has one number more than A has rows and begins with 0; `indices` are the column indices, in
/// any order within a row. Both are packed vectors in host memory, of int32, int64, uint32 or uint64, and
/// of one width, or offsets of 64 bits beside indices of 32.
///
/// # Safety
/// `offsets` and `indices` are NULL or tensors whose memory is as they say, which nobody writes during the
/// call; `pattern` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_pattern_new(
    offsets: *const DLTensor,
    indices: *const DLTensor,
    columns: usize,
    pattern: *mut *mut gustav_pattern,
) -> gustav_status {
    guard(|| {
        // SAFETY: promised by the caller.
        let (pattern, arrays) =
            unsafe { (written("pattern", pattern)?, Arrays::new(offsets, indices, columns)?) };
        let made = match arrays.view()? {
            Indices::Small(view) => Indices::Small(view.to_owned()?),
            Indices::Long(view) => Indices::Long(view.to_owned()?),
            Indices::Large(view) => Indices::Large(view.to_owned()?),
        };
        *pattern = made.into_handle();
        Ok(())
    })
}

/// The same without a copy: the pattern takes both managed tensors. Their deleters are called when the
/// pattern was freed and no plan or exported array uses it any more, on whichever thread that happens.
/// After an error both are still the caller's.
///
/// # Safety
/// As for `gustav_pattern_new`; the tensors are the caller's to give away, and nobody writes their memory
/// until their deleters are called, which any thread may do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_pattern_take(
    offsets: *mut DLManagedTensorVersioned,
    indices: *mut DLManagedTensorVersioned,
    columns: usize,
    pattern: *mut *mut gustav_pattern,
) -> gustav_status {
    guard(|| {
        if offsets == indices && !offsets.is_null() {
            return Err(Error::Argument {
                name: "column indices",
                found: "the managed tensor of the row offsets".into(),
                expected: "one of their own".into(),
            });
        }
        // SAFETY: promised by the caller.
        let (of_offsets, of_indices, pattern) = unsafe {
            (
                &managed_tensor("row offsets", offsets)?.dl_tensor,
                &managed_tensor("column indices", indices)?.dl_tensor,
                written("pattern", pattern)?,
            )
        };
        // SAFETY: promised by the caller.
        let made =
            unsafe { Arrays::new(of_offsets, of_indices, columns)?.keep([offsets, indices])? };
        *pattern = made.into_handle();
        Ok(())
    })
}

/// Rows, columns and number of nonzeros; each of the three may be NULL.
///
/// # Safety
/// Each of the three is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_pattern_shape(
    pattern: *const gustav_pattern,
    rows: *mut usize,
    columns: *mut usize,
    nonzeros: *mut usize,
) -> gustav_status {
    guard(|| {
        let found = with_indices!(&*Indices::of(pattern)?, |p| [p.nrows(), p.ncols(), p.nnz()]);
        let names = ["rows", "columns", "nonzeros"];
        for (k, to) in [rows, columns, nonzeros].into_iter().enumerate() {
            // SAFETY: promised by the caller.
            if let Some(to) = unsafe { optional(names[k], to)? } {
                *to = found[k];
            }
        }
        Ok(())
    })
}

/// Row offsets and column indices as read-only tensors of uint32 or uint64, without a copy; either may be
/// NULL. They live until their deleters are called, the pattern freed or not.
///
/// # Safety
/// `offsets` and `indices` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_pattern_arrays(
    pattern: *const gustav_pattern,
    offsets: *mut *mut DLManagedTensorVersioned,
    indices: *mut *mut DLManagedTensorVersioned,
) -> gustav_status {
    guard(|| {
        with_indices!(&*Indices::of(pattern)?, |p| {
            // SAFETY: promised by the caller.
            let (offsets, indices) = unsafe {
                (optional("row offsets", offsets)?, optional("column indices", indices)?)
            };
            if let Some(to) = offsets {
                *to = export(Exported::indices(p.offsets(), p.clone()));
            }
            if let Some(to) = indices {
                *to = export(Exported::indices(p.indices(), p.clone()));
            }
        });
        Ok(())
    })
}

/// Frees the handle; plans that were made of the pattern keep it. NULL is nothing, a handle that was freed
/// before is `GUSTAV_INVALID`.
#[unsafe(no_mangle)]
pub extern "C" fn gustav_pattern_free(pattern: *mut gustav_pattern) -> gustav_status {
    guard(|| PATTERNS.remove(pattern))
}
