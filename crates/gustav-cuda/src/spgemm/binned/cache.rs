//! A cache of the symbolic phase of a C in parts, in page-locked host memory: later executions copy
//! it to the device, a part at a time, instead of computing it.
//!
//! ```text
//! copy       0 1   2   3          slot t mod 2
//! numeric      0   1   2   3
//! ```

use std::ops::Range;

use gustav_core::{Error, Result};

use super::kernels::Kernels;
use super::part::Part;
use crate::device::{Device, DeviceBuffer, Event, PinnedBuffer, Stream};

const WHAT: &str = "the cached symbolic phase of a product in parts";

/// The parts of C from top to bottom, and one or two slots for them on the device.
pub(super) struct PartCache {
    /// The data that the numeric phase reads, part by part.
    needed: PinnedBuffer<u8>,
    /// C's offsets, in units of 4 bytes.
    offsets: PinnedBuffer<u32>,
    parts: Vec<Saved>,
    slots: Vec<Slot>,
    copy: Stream,
    /// The event on one stream that the other waits for.
    handover: Event,
}

/// A part whose memory is in the cache.
struct Saved {
    rows: Range<usize>,
    part: Part,
    /// Its ranges on the host, in bytes, and the offset of each in the part's device memory.
    needed: Vec<(Range<usize>, usize)>,
}

// Alignment of the ranges on the host, in bytes.
const ALIGNED: usize = 64;

/// Bytes of a part on the host.
pub(super) fn bytes_of(part: &Part, kernels: &Kernels) -> usize {
    part.needed(kernels).map(|(_, bytes)| bytes.len().next_multiple_of(ALIGNED)).sum()
}

/// Device memory for one part, with the events after its copy and after its last use.
struct Slot {
    memory: DeviceBuffer<u8>,
    filled: Event,
    free: Event,
}

/// C's offsets on the device.
#[derive(Clone, Copy)]
pub(super) struct Offsets {
    pub address: u64,
    /// Bytes of an offset.
    pub bytes: usize,
    /// Whether the offsets have been written already.
    pub known: bool,
}

impl PartCache {
    /// An empty cache with `parts` bytes for the parts and `offsets` bytes for C's offsets.
    pub(super) fn new(device: &Device, parts: usize, offsets: usize) -> Result<Self> {
        Ok(PartCache {
            needed: PinnedBuffer::zeroed(device, parts, WHAT)?,
            offsets: PinnedBuffer::zeroed(device, offsets / 4, WHAT)?,
            parts: Vec::new(),
            slots: Vec::new(),
            copy: device.new_stream()?,
            handover: Event::untimed(device)?,
        })
    }

    /// Queues the copy of the next part to the host and frees its device memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when the cache is full, [`Error::Device`].
    pub(super) fn save(
        &mut self,
        device: &Device,
        kernels: &Kernels,
        rows: Range<usize>,
        mut part: Part,
    ) -> Result<()> {
        let last = self.parts.last().and_then(|saved| saved.needed.last());
        let mut end = last.map_or(0, |(bytes, _)| bytes.end);
        let mut needed = Vec::new();
        for (from, range) in part.needed(kernels) {
            let begin = end.next_multiple_of(ALIGNED);
            end = begin + range.len();
            if end > self.needed.len() {
                let (needed, available) = (end as u128, Some(self.needed.len() as u64));
                return Err(Error::OutOfMemory { what: WHAT, needed, available });
            }
            // SAFETY: both sides have the bytes; nobody reads them on the host. The device memory
            // is freed in stream order.
            unsafe { self.needed.download(begin..end, from, device.stream())? };
            needed.push((begin..end, range.start));
        }
        // SAFETY: nothing is computed before `load` gives it memory.
        unsafe { part.move_to(device, 0, 0) };
        self.parts.push(Saved { rows, part, needed });
        Ok(())
    }

    /// Queues the copy of C's offsets to the host, and allocates up to `slots` slots, at least one.
    pub(super) fn complete(&mut self, device: &Device, offsets: u64, slots: usize) -> Result<()> {
        // SAFETY: both sides have the offsets; nobody reads them on the host.
        unsafe { self.offsets.download(0..self.offsets.len(), offsets, device.stream())? };
        let most = self.parts.iter().map(|saved| saved.part.held()).max().unwrap_or(0);
        for _ in 0..slots {
            match Slot::new(device, most) {
                Err(Error::OutOfMemory { .. }) if !self.slots.is_empty() => break,
                slot => self.slots.push(slot?),
            }
        }
        Ok(())
    }

    /// Calls `compute` for every part with its rows and number; the next part is copied to the
    /// device at the same time.
    pub(super) fn each(
        &mut self,
        device: &Device,
        offsets: Offsets,
        mut compute: impl FnMut(&Part, &Range<usize>, usize) -> Result<()>,
    ) -> Result<()> {
        let main = device.stream();
        main.mark(&self.handover)?;
        self.copy.wait(&self.handover)?;
        let done = (0..self.parts.len()).try_for_each(|number| {
            self.load(device, number, offsets)?;
            let (saved, slot) = (&self.parts[number], &self.slots[number % self.slots.len()]);
            main.wait(&slot.filled)?;
            compute(&saved.part, &saved.rows, number)?;
            main.mark(&slot.free)
        });
        // Also after an error, and for copies without an event: C is freed on the device's own
        // stream, which must wait for all copies.
        self.copy.mark(&self.handover)?;
        main.wait(&self.handover)?;
        done
    }

    /// Queues the copy of a part to its slot, after the last use of the slot.
    fn load(&mut self, device: &Device, number: usize, offsets: Offsets) -> Result<()> {
        let count = self.slots.len();
        let (slot, copy) = (&self.slots[number % count], &self.copy);
        let Saved { rows, part, needed } = &mut self.parts[number];
        if number >= count {
            copy.wait(&slot.free)?;
        }
        let memory = slot.memory.address();
        let at = |row: usize| offsets.address + (row * offsets.bytes) as u64;
        // SAFETY: a slot holds the largest part and lives as long as the cache; the slot's earlier
        // part is no longer used.
        unsafe {
            for (bytes, offset) in needed.iter() {
                self.needed.upload(bytes.clone(), memory + *offset as u64, copy)?;
            }
            if !offsets.known {
                // The first offset was copied with the previous part.
                let first = if number == 0 { 0 } else { rows.start + 1 };
                let halves = offsets.bytes / 4;
                let own = halves * first..halves * (rows.end + 1);
                self.offsets.upload(own, at(first), copy)?;
            }
            part.move_to(device, memory, at(rows.start));
        }
        copy.mark(&slot.filled)
    }
}

impl Slot {
    fn new(device: &Device, bytes: usize) -> Result<Self> {
        Ok(Slot {
            memory: DeviceBuffer::queued(device, bytes, "workspace of an SpGEMM")?,
            filled: Event::untimed(device)?,
            free: Event::untimed(device)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs a CUDA device"]
    fn copies_without_an_event_are_waited_for() {
        let device = Device::cuda(0).expect("a CUDA device");
        // A copy of some milliseconds, as it may still run after an error between two copies of a
        // part.
        let bytes = 1 << 28;
        let mut cache = PartCache::new(&device, bytes, 4).expect("host memory");
        let slot = DeviceBuffer::<u8>::uninit(&device, bytes, "a part").expect("device memory");
        // SAFETY: both sides have the bytes, and live until the end.
        unsafe { cache.needed.upload(0..bytes, slot.address(), &cache.copy) }.expect("a copy");
        let offsets = Offsets { address: 0, bytes: 4, known: true };
        cache.each(&device, offsets, |_, _, _| Ok(())).expect("no parts");
        device.stream().synchronize().expect("the device's own stream");
        assert!(cache.copy.is_done().expect("the copies"), "C may be freed under copies");
    }
}
