//! Memory of messages: on the GPU, and page-locked on the host.

use gustav_core::{Error, Result};
use gustav_cuda::{Device, DeviceBuffer, PinnedBuffer};

use super::part;
use crate::exchange::Exchange;
use crate::local::DistScalar;
use crate::message::External;

/// Memory of all messages of a plan on the GPU, by their numbers.
pub struct Staging<T: DistScalar> {
    pub incoming: Vec<DeviceBuffer<T>>,
    pub outgoing: Vec<DeviceBuffer<T>>,
    /// What products read received rows from, if it is one array: incoming messages may be parts of it.
    pub joined: Option<DeviceBuffer<T>>,
    /// Bytes of messages that are no part of it.
    own_bytes: usize,
    /// Their page-locked memory, as long as a plan's exchange has it; none where messages go to MPI from the GPU.
    pub host: bool,
}

/// Where incoming messages are to be in one array on the GPU.
pub struct Joined<'j> {
    /// Values of the array.
    pub len: usize,
    /// The position of the first value of every incoming message that is to be there, none of which overlap.
    pub in_place: &'j [Option<usize>],
}

impl<T: DistScalar> Staging<T> {
    /// Memory for the messages of `exchange`, which has that on the host, or with `direct` that on the GPU.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn new(
        device: &Device,
        exchange: &mut Exchange,
        joined: Option<Joined<'_>>,
        direct: bool,
    ) -> Result<Self> {
        let (mut incoming, mut outgoing, mut own_bytes) = (Vec::new(), Vec::new(), 0);
        // An MPI that takes pointers copies from one process's memory to another's only if it can map it.
        let zeros = match direct {
            true => DeviceBuffer::<T>::exportable,
            false => DeviceBuffer::<T>::zeros,
        };
        let zeros = |len| zeros(device, len, "messages on the device");
        let whole = joined.as_ref().map(|joined| zeros(joined.len)).transpose()?;
        let external = |is_incoming: bool, number: usize, bytes: usize| {
            if !bytes.is_multiple_of(size_of::<T>()) {
                return Err(Error::Device {
                    action: "taking memory for messages",
                    reason: "a message is not of whole values".into(),
                });
            }
            let len = bytes / size_of::<T>();
            let joined = joined.as_ref().zip(whole.as_ref()).filter(|_| is_incoming);
            let buffer = match joined.and_then(|(j, whole)| Some((whole, j.in_place[number]?))) {
                // SAFETY: the array is dropped together with its parts. Work on both is on a plan's stream, but for
                // copies to parts, which that stream waits for, and which are done when an execution ends.
                Some((whole, first)) => unsafe { part(whole, first, len) },
                None => {
                    own_bytes += bytes;
                    zeros(len)?
                }
            };
            // Whoever uses the memory next is not of this stream.
            device.stream().synchronize()?;
            let external = match direct {
                true => External {
                    first: std::ptr::with_exposed_provenance_mut(buffer.address() as usize),
                    len: bytes,
                    host: false,
                    _owner: Box::new(()),
                },
                false => {
                    let mut pinned = PinnedBuffer::<u8>::zeroed(
                        device,
                        bytes,
                        "messages in page-locked memory",
                    )?;
                    let first = pinned.as_mut_ptr();
                    External { first, len: bytes, host: true, _owner: Box::new(pinned) }
                }
            };
            if is_incoming { &mut incoming } else { &mut outgoing }.push(buffer);
            Ok(external)
        };
        // SAFETY: a plan leaks the memory on the GPU if something is in flight when it is dropped; the owner has that
        // on the host. The plan touches both as an exchange requires.
        unsafe { exchange.use_external(external)? };
        Ok(Staging { incoming, outgoing, joined: whole, own_bytes, host: !direct })
    }

    /// Bytes on the GPU.
    pub fn bytes(&self) -> usize {
        self.own_bytes + self.joined.as_ref().map_or(0, DeviceBuffer::bytes)
    }

    /// Leaves the memory to messages that are still in flight.
    pub fn leak(&mut self) {
        std::mem::forget(std::mem::take(&mut self.incoming));
        std::mem::forget(std::mem::take(&mut self.outgoing));
        std::mem::forget(self.joined.take());
    }
}
