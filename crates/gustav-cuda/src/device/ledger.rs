//! For tests: tracks the memory that a thread allocates, with a limit that simulates a full device.

use std::cell::RefCell;
use std::collections::HashMap;

use gustav_core::{Error, Result};

#[derive(Default)]
struct Ledger {
    held: HashMap<u64, usize>,
    most: Option<usize>,
    peak: usize,
    allocations: usize,
    /// How often an allocation of page-locked memory was refused.
    refused: Option<usize>,
}

impl Ledger {
    fn bytes(&self) -> usize {
        self.held.values().sum()
    }
}

thread_local! {
    static LEDGER: RefCell<Ledger> = RefCell::default();
}

fn with<R>(work: impl FnOnce(&mut Ledger) -> R) -> R {
    LEDGER.with_borrow_mut(work)
}

pub(crate) fn allow(what: &'static str, needed: u128) -> Result<()> {
    let available = with(|l| l.most.map(|most| most.saturating_sub(l.bytes()) as u64));
    match available {
        Some(available) if needed > u128::from(available) => {
            Err(Error::OutOfMemory { what, needed, available: Some(available) })
        }
        _ => Ok(()),
    }
}

pub(crate) fn allow_locked(what: &'static str, needed: u128) -> Result<()> {
    match with(|l| l.refused.as_mut().map(|refused| *refused += 1)) {
        Some(()) => Err(Error::OutOfMemory { what, needed, available: Some(0) }),
        None => Ok(()),
    }
}

pub(crate) fn take(address: u64, bytes: usize) {
    with(|l| {
        l.held.insert(address, bytes);
        l.allocations += 1;
        l.peak = l.peak.max(l.bytes());
    });
}

pub(crate) fn free(address: u64) {
    with(|l| l.held.remove(&address));
}

/// Runs `work` as on a device with only `bytes` bytes of free memory.
pub(crate) fn with_free_memory<R>(bytes: usize, work: impl FnOnce() -> R) -> R {
    with(|l| l.most = Some(l.bytes() + bytes));
    let result = work();
    with(|l| l.most = None);
    result
}

/// Runs `work` as on a host without page-locked memory; also returns how often it was
/// requested.
pub(crate) fn without_locked<R>(work: impl FnOnce() -> R) -> (R, usize) {
    with(|l| l.refused = Some(0));
    let result = work();
    (result, with(|l| l.refused.take()).unwrap_or(0))
}

/// Bytes of all buffers.
pub(crate) fn held() -> usize {
    with(|l| l.bytes())
}

/// The result of `work`, the number of buffers that it allocated, and the peak of the bytes of
/// all buffers.
pub(crate) fn watched<R>(work: impl FnOnce() -> R) -> (R, usize, usize) {
    with(|l| (l.allocations, l.peak) = (0, l.bytes()));
    let result = work();
    with(|l| (result, l.allocations, l.peak))
}
