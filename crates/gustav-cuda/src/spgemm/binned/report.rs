//! Reports of kernels to the host, written to page-locked memory: the host needs neither a copy nor
//! a stream synchronisation.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use gustav_core::{Error, Result};

use super::bins::{Counters, REPORTED};
use crate::device::{Device, PinnedBuffer, Stream};

// Polls between two checks of whether the stream still has work.
const POLLS: u32 = 1 << 14;

/// Memory for the reports of one set of kernels.
pub(super) struct Report(Mutex<Memory>);

struct Memory {
    /// The counters, then the number of the report that they belong to.
    words: PinnedBuffer<u64>,
    /// Number of the last report.
    number: u32,
}

impl Report {
    pub(super) fn new(device: &Device) -> Result<Self> {
        let words = PinnedBuffer::zeroed(device, REPORTED + 1, "counters of an SpGEMM")?;
        Ok(Report(Mutex::new(Memory { words, number: 0 })))
    }

    /// Calls `launch` with the address and the number of the report that a kernel on `stream` must
    /// write, and waits for the report.
    pub(super) fn after(
        &self,
        stream: &Stream,
        launch: impl FnOnce(u64, u32) -> Result<()>,
    ) -> Result<Counters> {
        // One report at a time, because all use the same memory.
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = memory.number.wrapping_add(1);
        memory.number = number;
        launch(memory.words.address(), number)?;
        let (words, last) = memory.words.atomics().split_at(REPORTED);
        let is_written = || last.iter().all(|t| t.load(Ordering::Acquire) == u64::from(number));
        let mut polls = 0u32;
        while !is_written() {
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(POLLS) {
                // A kernel that failed writes no report.
                if stream.is_done()? && !is_written() {
                    let reason = "the kernel ended without a report".into();
                    return Err(Error::Device { action: "counting rows of C", reason });
                }
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        let mut counters = [0; REPORTED];
        for (counter, word) in counters.iter_mut().zip(words) {
            *counter = word.load(Ordering::Relaxed);
        }
        Ok(Counters(counters))
    }
}
