//! A message and its memory.

use std::any::Any;
use std::ops::Range;

use gustav_core::{Buffer, Result};

use crate::communicator::Tag;

/// A message that is sent or received again and again, of a length that is known.
pub struct Message {
    pub peer: usize,
    pub tag: Tag,
    pub memory: Memory,
    /// Number of its chunks that are in flight or not yet sent; `None` before it is started.
    pub open: Option<usize>,
    /// Bytes, from the first on, whose chunks were sent in this execution; of outgoing messages.
    pub sent: usize,
    /// Whether this rank sends something once it has arrived; of incoming messages.
    pub is_urgent: bool,
}

/// Where the bytes of a message are.
pub enum Memory {
    Own(Buffer<u8>),
    External(External),
}

/// Bytes of a message in memory of another kind, such as that of a device.
pub struct External {
    /// The first byte, aligned for the type of its values.
    pub first: *mut u8,
    /// Their number.
    pub len: usize,
    /// Whether they are in memory of the host.
    pub host: bool,
    /// Their owner.
    pub _owner: Box<dyn Any + Send>,
}

// SAFETY: the bytes are the exchange's as long as the holder is there, which may be sent.
unsafe impl Send for External {}

impl Memory {
    /// Number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Memory::Own(bytes) => bytes.len(),
            Memory::External(external) => external.len,
        }
    }

    /// Some of them.
    pub fn chunk(&mut self, range: &Range<usize>) -> *mut [u8] {
        match self {
            Memory::Own(bytes) => &raw mut bytes[range.clone()],
            Memory::External(external) => {
                assert!(range.end <= external.len, "bytes of the message");
                let first = external.first.wrapping_add(range.start);
                std::ptr::slice_from_raw_parts_mut(first, range.len())
            }
        }
    }

    /// The values in bytes `range`, and how many are before them.
    pub fn values_of<T>(&mut self, range: &Range<usize>) -> (*mut [T], usize) {
        let size = size_of::<T>();
        let whole = range.start.is_multiple_of(size) && range.end.is_multiple_of(size);
        assert!(whole, "chunks are of whole values");
        let first = self.chunk(range).cast::<T>();
        (std::ptr::slice_from_raw_parts_mut(first, range.len() / size), range.start / size)
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Own(bytes) => bytes,
            Memory::External(external) => {
                assert!(external.host, "the message is in memory of the host");
                // SAFETY: initialised, as promised, and written by nobody while they are borrowed.
                unsafe { std::slice::from_raw_parts(external.first, external.len) }
            }
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Own(bytes) => bytes,
            Memory::External(external) => {
                assert!(external.host, "the message is in memory of the host");
                // SAFETY: as above, and read by nobody.
                unsafe { std::slice::from_raw_parts_mut(external.first, external.len) }
            }
        }
    }
}

impl Message {
    /// One of `len` values, in memory of its own.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn new<T>(peer: usize, tag: Tag, len: usize) -> Result<Self> {
        let bytes = len.saturating_mul(size_of::<T>());
        let memory = Memory::Own(Buffer::zeroed(bytes, "messages")?);
        Ok(Message { peer, tag, memory, open: None, sent: 0, is_urgent: false })
    }

    /// The values of a message that has arrived.
    pub fn values<T: bytemuck::Pod>(&self) -> &[T] {
        assert_eq!(self.open, Some(0), "the message is under way");
        match self.memory.len() {
            0 => &[],
            _ => bytemuck::cast_slice(self.memory.bytes()),
        }
    }

    /// The values of a message that is to be sent.
    pub fn values_mut<T: bytemuck::Pod>(&mut self) -> &mut [T] {
        assert!(self.open.is_none_or(|open| open == 0), "the message is under way");
        match self.memory.len() {
            0 => &mut [],
            _ => bytemuck::cast_slice_mut(self.memory.bytes_mut()),
        }
    }
}
