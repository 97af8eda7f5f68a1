//! What counting found of C's parts, in page-locked memory of the host: executions to come copy it to
//! the device, a part at a time, and count nothing.

use std::ops::Range;

use gustav_core::Result;

use super::arguments::Layout;
use super::kernels::Kernels;
use super::part::Part;
use crate::{Device, DeviceBuffer, PinnedBuffer};

const WHAT: &str = "what was counted of a product in parts";

/// Parts of C from top to bottom, and room for one of them on the device.
pub(super) struct Kept {
    /// Lists, columns and products of the rows, part after part.
    words: PinnedBuffer<u64>,
    /// C's offsets, in halves of a word.
    offsets: PinnedBuffer<u32>,
    parts: Vec<Saved>,
    workspace: DeviceBuffer<u64>,
    pieces: DeviceBuffer<u64>,
}

/// A part without memory of its own.
struct Saved {
    rows: Range<usize>,
    part: Part,
    /// Its words on the host, and where they go in the workspace.
    words: Range<usize>,
    place: usize,
    pieces: Option<PinnedBuffer<u64>>,
}

impl Kept {
    /// Room on the host for parts of these rows and C's offsets of so many bytes.
    pub(super) fn new(
        device: &Device,
        parts: impl Iterator<Item = Range<usize>>,
        offset_bytes: usize,
    ) -> Result<Self> {
        let (mut words, mut rows) = (0, 0);
        for part in parts {
            words += Layout::new(part.len()).found().len();
            rows = part.end;
        }
        Ok(Kept {
            words: PinnedBuffer::zeroed(device, words, WHAT)?,
            offsets: PinnedBuffer::zeroed(device, (rows + 1) * offset_bytes / 4, WHAT)?,
            parts: Vec::new(),
            workspace: DeviceBuffer::queued(device, 0, WHAT)?,
            pieces: DeviceBuffer::queued(device, 0, WHAT)?,
        })
    }

    /// Queues copying what was found of the next part, whose memory is then free.
    pub(super) fn save(
        &mut self,
        device: &Device,
        kernels: &Kernels,
        rows: Range<usize>,
        mut part: Part,
    ) -> Result<()> {
        let (found, stream) = (part.found(kernels), device.stream());
        let begin = self.parts.last().map_or(0, |last| last.words.end);
        let words = begin..begin + found.len();
        let (workspace, of_pieces) = part.memory();
        let mut pieces = None;
        // SAFETY: both sides have the words; nobody reads them on the host. What the device has is
        // freed on the stream.
        unsafe {
            let from = workspace.address() + 8 * found.start as u64;
            self.words.download(words.clone(), from, stream)?;
            if let Some(found) = of_pieces {
                let mut host = PinnedBuffer::zeroed(device, found.len(), WHAT)?;
                host.download(0..found.len(), found.address(), stream)?;
                pieces = Some(host);
            }
            // Nothing is computed before `load` gives it memory.
            part.place(device, [0; 3]);
        }
        self.parts.push(Saved { rows, part, words, place: found.start, pieces });
        Ok(())
    }

    /// Queues copying C's offsets from `offsets`, and takes room for the largest part.
    pub(super) fn complete(&mut self, device: &Device, offsets: u64) -> Result<()> {
        // SAFETY: both sides have the offsets; nobody reads them on the host.
        unsafe { self.offsets.download(0..self.offsets.len(), offsets, device.stream())? };
        let sizes = |s: &Saved| {
            let (workspace, pieces) = s.part.memory();
            (workspace.len(), pieces.map_or(0, DeviceBuffer::len))
        };
        let most = self.parts.iter().map(sizes);
        let (workspace, pieces) = most.fold((0, 0), |l, r| (l.0.max(r.0), l.1.max(r.1)));
        self.workspace = DeviceBuffer::queued(device, workspace, "workspace of an SpGEMM")?;
        self.pieces = DeviceBuffer::queued(device, pieces, "sums of rows in pieces")?;
        Ok(())
    }

    /// Queues copying C's offsets to `to`.
    ///
    /// # Safety
    /// There is room for them until the device's stream has done it.
    pub(super) unsafe fn put_offsets(&self, device: &Device, to: u64) -> Result<()> {
        // SAFETY: the caller's promise; nobody writes the host's.
        unsafe { self.offsets.upload(0..self.offsets.len(), to, device.stream()) }
    }

    /// Parts.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Queues bringing part `number` to the device, where C's offsets are at `offsets`; its rows. It is
    /// to be computed before the next is loaded.
    pub(super) fn load(
        &mut self,
        device: &Device,
        number: usize,
        offsets: u64,
        offset_bytes: usize,
    ) -> Result<(Range<usize>, &Part)> {
        let Saved { rows, part, words, place, pieces } = &mut self.parts[number];
        let (workspace, of_pieces) = (self.workspace.address(), self.pieces.address());
        // SAFETY: there is room for the largest part, which lives as long as this; the stream has
        // done the part before.
        unsafe {
            self.words.upload(words.clone(), workspace + 8 * *place as u64, device.stream())?;
            if let Some(pieces) = pieces {
                pieces.upload(0..pieces.len(), of_pieces, device.stream())?;
            }
            let offsets = offsets + (rows.start * offset_bytes) as u64;
            part.place(device, [workspace, of_pieces, offsets]);
        }
        Ok((rows.clone(), part))
    }
}
