//! What kernels tell the host, in its own memory: no copy is queued for it and no stream waited for.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use gustav_core::{Error, Result};

use super::bins::{Counters, TOLD};
use crate::stream::Stream;
use crate::{Device, PinnedBuffer};

// Looks between questions whether the stream still works.
const LOOKS: u32 = 1 << 14;

/// Memory for counters, and behind them the turn that they are of.
pub(super) struct Told(Mutex<(PinnedBuffer<u64>, u32)>);

impl Told {
    pub(super) fn new(device: &Device) -> Result<Self> {
        let words = PinnedBuffer::zeroed(device, TOLD + 1, "counters of an SpGEMM")?;
        Ok(Told(Mutex::new((words, 0))))
    }

    /// Calls `launch` with the address and the turn that a kernel on `stream` has to tell, and waits
    /// until it has.
    pub(super) fn after(
        &self,
        stream: &Stream,
        launch: impl FnOnce(u64, u32) -> Result<()>,
    ) -> Result<Counters> {
        // One at a time: all have the same memory.
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = own.1.wrapping_add(1);
        own.1 = turn;
        launch(own.0.address(), turn)?;
        let (words, told) = own.0.atomics().split_at(TOLD);
        let is_told = || told.iter().all(|t| t.load(Ordering::Acquire) == u64::from(turn));
        let mut looks = 0u32;
        while !is_told() {
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS) {
                // A kernel that failed tells nothing.
                if stream.is_done()? && !is_told() {
                    let reason = "the kernel ended and told nothing".into();
                    return Err(Error::Device { action: "counting rows of C", reason });
                }
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        let mut counters = [0; TOLD];
        for (counter, word) in counters.iter_mut().zip(words) {
            *counter = word.load(Ordering::Relaxed);
        }
        Ok(Counters(counters))
    }
}
