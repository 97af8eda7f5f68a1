//! What counting found of C's parts, in page-locked memory of the host: executions to come copy it to
//! the device, a part at a time, and count nothing.
//!
//! ```text
//! copy       0 1   2   3          room t mod 2
//! numeric      0   1   2   3
//! ```

use std::ops::Range;

use gustav_core::{Error, Result};

use super::kernels::Kernels;
use super::part::Part;
use crate::stream::{Event, Stream};
use crate::{Device, DeviceBuffer, PinnedBuffer};

const WHAT: &str = "what was counted of a product in parts";

/// Parts of C from top to bottom, and room for one or two of them on the device.
pub(super) struct Kept {
    /// What the numeric phase needs, part after part.
    needed: PinnedBuffer<u8>,
    /// C's offsets, in halves of a word.
    offsets: PinnedBuffer<u32>,
    parts: Vec<Saved>,
    rooms: Vec<Room>,
    copy: Stream,
    /// Where one of the two streams begins, or ends, what the other waits for.
    turn: Event,
}

/// A part without memory of its own.
struct Saved {
    rows: Range<usize>,
    part: Part,
    /// Bytes on the host, and where they go in the part's memory.
    needed: Vec<(Range<usize>, usize)>,
}

// Bytes on the host that everything is aligned to.
const ALIGNED: usize = 64;

/// Bytes on the host of what is kept of a part.
pub(super) fn bytes_of(part: &Part, kernels: &Kernels) -> usize {
    part.needed(kernels).map(|(_, bytes)| bytes.len().next_multiple_of(ALIGNED)).sum()
}

/// Memory for a part, when it has been filled, and when it is free again.
struct Room {
    memory: DeviceBuffer<u8>,
    filled: Event,
    free: Event,
}

/// C's offsets on the device.
#[derive(Clone, Copy)]
pub(super) struct Offsets {
    pub address: u64,
    /// Bytes of one.
    pub bytes: usize,
    /// Whether they are there.
    pub known: bool,
}

impl Kept {
    /// Room on the host for so many bytes of parts, and for C's offsets, of so many bytes together.
    pub(super) fn new(device: &Device, parts: usize, offsets: usize) -> Result<Self> {
        Ok(Kept {
            needed: PinnedBuffer::zeroed(device, parts, WHAT)?,
            offsets: PinnedBuffer::zeroed(device, offsets / 4, WHAT)?,
            parts: Vec::new(),
            rooms: Vec::new(),
            copy: device.new_stream()?,
            turn: Event::untimed(device)?,
        })
    }

    /// Queues copying what was found of the next part, whose memory is then free.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when there is no room for it, [`Error::Device`].
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
        for (from, place) in part.needed(kernels) {
            let begin = end.next_multiple_of(ALIGNED);
            end = begin + place.len();
            if end > self.needed.len() {
                let (needed, available) = (end as u128, Some(self.needed.len() as u64));
                return Err(Error::OutOfMemory { what: WHAT, needed, available });
            }
            // SAFETY: both sides have the bytes; nobody reads them on the host. What the device has
            // is freed on the stream.
            unsafe { self.needed.download(begin..end, from, device.stream())? };
            needed.push((begin..end, place.start));
        }
        // SAFETY: nothing is computed before `load` gives it memory.
        unsafe { part.place(device, 0, 0) };
        self.parts.push(Saved { rows, part, needed });
        Ok(())
    }

    /// Queues copying C's offsets, and takes room for so many parts at once, or for one if there is not
    /// more.
    pub(super) fn complete(&mut self, device: &Device, offsets: u64, rooms: usize) -> Result<()> {
        // SAFETY: both sides have the offsets; nobody reads them on the host.
        unsafe { self.offsets.download(0..self.offsets.len(), offsets, device.stream())? };
        let most = self.parts.iter().map(|saved| saved.part.held()).max().unwrap_or(0);
        for _ in 0..rooms {
            match Room::new(device, most) {
                Err(Error::OutOfMemory { .. }) if !self.rooms.is_empty() => break,
                room => self.rooms.push(room?),
            }
        }
        Ok(())
    }

    /// Queues `compute` with every part in turn, its rows and its number, while the next one comes to
    /// the device.
    pub(super) fn each(
        &mut self,
        device: &Device,
        offsets: Offsets,
        mut compute: impl FnMut(&Part, &Range<usize>, usize) -> Result<()>,
    ) -> Result<()> {
        let main = device.stream();
        main.mark(&self.turn)?;
        self.copy.wait(&self.turn)?;
        let done = (0..self.parts.len()).try_for_each(|number| {
            self.load(device, number, offsets)?;
            let (saved, room) = (&self.parts[number], &self.rooms[number % self.rooms.len()]);
            main.wait(&room.filled)?;
            compute(&saved.part, &saved.rows, number)?;
            main.mark(&room.free)
        });
        // After an error too, and for a copy that came to no mark: C is freed on the device's own stream.
        self.copy.mark(&self.turn)?;
        main.wait(&self.turn)?;
        done
    }

    /// Queues bringing a part to its room, after what was computed there before.
    fn load(&mut self, device: &Device, number: usize, offsets: Offsets) -> Result<()> {
        let count = self.rooms.len();
        let (room, copy) = (&self.rooms[number % count], &self.copy);
        let Saved { rows, part, needed } = &mut self.parts[number];
        if number >= count {
            copy.wait(&room.free)?;
        }
        let memory = room.memory.address();
        let at = |row: usize| offsets.address + (row * offsets.bytes) as u64;
        // SAFETY: there is room for the largest part, which lives as long as this; what was computed
        // there is done.
        unsafe {
            for (bytes, place) in needed.iter() {
                self.needed.upload(bytes.clone(), memory + *place as u64, copy)?;
            }
            if !offsets.known {
                // The first of them came with the part before.
                let first = if number == 0 { 0 } else { rows.start + 1 };
                let halves = offsets.bytes / 4;
                let own = halves * first..halves * (rows.end + 1);
                self.offsets.upload(own, at(first), copy)?;
            }
            part.place(device, memory, at(rows.start));
        }
        copy.mark(&room.filled)
    }
}

impl Room {
    fn new(device: &Device, bytes: usize) -> Result<Self> {
        Ok(Room {
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
    fn copies_without_a_mark_are_waited_for() {
        let device = Device::cuda(0).expect("a CUDA device");
        // Milliseconds of copying, as an error between two copies of a part leaves them.
        let bytes = 1 << 28;
        let mut kept = Kept::new(&device, bytes, 4).expect("room on the host");
        let room = DeviceBuffer::<u8>::uninit(&device, bytes, "a part").expect("room");
        // SAFETY: both sides have the bytes, and live until the end.
        unsafe { kept.needed.upload(0..bytes, room.address(), &kept.copy) }.expect("a copy");
        let offsets = Offsets { address: 0, bytes: 4, known: true };
        kept.each(&device, offsets, |_, _, _| Ok(())).expect("no parts");
        device.stream().synchronize().expect("the device's own stream");
        assert!(kept.copy.is_done().expect("the copies"), "C may be freed under copies");
    }
}
