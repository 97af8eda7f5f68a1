//! Handles: numbers in the shape of pointers, each of which was given out once.
//!
//! C programs free a handle twice, use it afterwards, or pass one of another kind. A handle is looked up
//! instead of followed, so that each of these is an error, and what a running call uses lives until it ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use gustav::{Error, Result};

/// Objects of one kind by their handles.
pub(crate) struct Table<T> {
    kind: &'static str,
    objects: RwLock<BTreeMap<usize, Arc<T>>>,
}

// Of all tables, so that a handle is of one kind.
static NEXT: AtomicUsize = AtomicUsize::new(1);

impl<T> Table<T> {
    /// A table of what `kind` names in errors.
    pub(crate) const fn new(kind: &'static str) -> Self {
        Table { kind, objects: RwLock::new(BTreeMap::new()) }
    }

    /// The handle of a new object.
    pub(crate) fn insert<H>(&self, object: T) -> *mut H {
        let handle = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.insert(handle, Arc::new(object));
        std::ptr::without_provenance_mut(handle)
    }

    /// The object of a handle.
    ///
    /// # Errors
    /// [`Error::Argument`] for a handle that was freed, of another kind, or none.
    pub(crate) fn get<H>(&self, handle: *const H) -> Result<Arc<T>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.get(&handle.addr()).cloned().ok_or_else(|| self.unknown(handle.is_null()))
    }

    /// Forgets a handle; its object lives as long as a call uses it. NULL is nothing.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub(crate) fn remove<H>(&self, handle: *mut H) -> Result<()> {
        if handle.is_null() {
            return Ok(());
        }
        let found =
            self.objects.write().unwrap_or_else(PoisonError::into_inner).remove(&handle.addr());
        // Dropped here, after the table is free for others.
        found.map(drop).ok_or_else(|| self.unknown(false))
    }

    fn unknown(&self, is_null: bool) -> Error {
        let found = if is_null { "NULL" } else { "a handle that was freed, or is of another kind" };
        Error::Argument { name: self.kind, found: found.into(), expected: "a live handle".into() }
    }
}
