//! An immutable array and its owner.

use std::ops::Deref;

use crate::csr::copy;
use crate::{Buffer, Result};

/// An array that is never written: owned, or in the memory of another owner.
#[derive(Debug)]
pub(super) enum Array<T> {
    Owned(Buffer<T>),
    Held(Held<T>),
}

/// An array in the memory of `owner`.
pub(super) struct Held<T> {
    ptr: *const T,
    len: usize,
    _owner: Box<dyn Send + Sync>,
}

// SAFETY: the memory is only read, and its owner may be sent and shared.
unsafe impl<T: Sync> Send for Held<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Held<T> {}

impl<T> std::fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} values of another owner", self.len)
    }
}

impl<T: bytemuck::Pod> Array<T> {
    pub(super) fn owned(values: Buffer<T>) -> Self {
        Array::Owned(values)
    }

    pub(super) fn held(owner: impl AsRef<[T]> + Send + Sync + 'static) -> Self {
        let owner = Box::new(owner);
        // Called once, after the owner has reached its final address.
        let values: &[T] = (*owner).as_ref();
        let (ptr, len) = (values.as_ptr(), values.len());
        Array::Held(Held { ptr, len, _owner: owner })
    }

    /// The values, owned; copied if they are in another owner's memory.
    pub(super) fn into_buffer(self, what: &'static str) -> Result<Buffer<T>> {
        match self {
            Array::Owned(values) => Ok(values),
            held => copy(&held, what),
        }
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Array::Owned(values) => values,
            // SAFETY: `as_ref` of the owner gave this slice; the owner lives as long as `self`,
            // nothing else can reach it, and it is never borrowed mutably.
            Array::Held(held) => unsafe { std::slice::from_raw_parts(held.ptr, held.len) },
        }
    }
}
