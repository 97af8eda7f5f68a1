//! Messages of a plan with a GPU: their memory, and what an execution does with them.

use std::collections::VecDeque;
use std::ops::Range;

use gustav_core::{Error, Result};
use gustav_cuda::{Device, DeviceBuffer, Event, Stream};

use super::forwarding::Forwarding;
use super::{Joined, Staging};
use crate::communicator::Communicator;
use crate::exchange::{Arrived, Exchange};
use crate::fetch::Forwards;
use crate::local::DistScalar;
use crate::{MessageMemory, Ranks};

/// The messages of a plan, and their memory.
pub struct GpuMessages<T: DistScalar> {
    ranks: Ranks,
    device: Device,
    /// For copies from and to the host beside other work.
    copies: Stream,
    exchange: Exchange,
    forwarding: Forwarding<T>,
    staging: Staging<T>,
}

impl<T: DistScalar> GpuMessages<T> {
    /// Memory for the messages of `exchange`, as [`Staging::new`], of which this rank forwards `forwards`.
    ///
    /// # Errors
    /// As there.
    pub fn new(
        ranks: &Ranks,
        device: &Device,
        mut exchange: Exchange,
        forwards: Forwards,
        joined: Option<Joined<'_>>,
    ) -> Result<Self> {
        let direct = ranks.communicator().takes_device_memory();
        let staging = Staging::new(device, &mut exchange, joined, direct)?;
        let forwarding = Forwarding::new(device, forwards, direct)?;
        let (ranks, device, copies) = (ranks.clone(), device.clone(), device.new_stream()?);
        Ok(GpuMessages { ranks, copies, device, exchange, forwarding, staging })
    }

    /// Where messages are.
    pub fn memory(&self) -> MessageMemory {
        if self.staging.host { MessageMemory::PageLocked } else { MessageMemory::Device }
    }

    /// Bytes on the GPU and in page-locked memory.
    pub fn bytes(&self) -> usize {
        let on_host = if self.staging.host { self.exchange.bytes() } else { 0 };
        self.staging.bytes() + self.forwarding.bytes() + on_host
    }

    /// As [`Exchange::check_idle`].
    ///
    /// # Errors
    /// As there.
    pub fn check_idle(&self) -> Result<()> {
        self.exchange.check_idle(self.ranks.rank())
    }

    /// Begins an execution: starts to receive.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`].
    pub fn begin(&mut self) -> Result<Transport<'_, T>> {
        let communicator = self.ranks.communicator();
        self.exchange.receive(communicator)?;
        self.forwarding.forwards.begin();
        Ok(Transport {
            communicator,
            exchange: &mut self.exchange,
            forwarding: &mut self.forwarding,
            staging: &mut self.staging,
            stream: self.device.stream(),
            copies: &self.copies,
            pending: VecDeque::new(),
        })
    }

    /// The array that messages are joined in.
    ///
    /// # Errors
    /// [`Error::Device`] where there is none.
    pub fn joined(&self) -> Result<&DeviceBuffer<T>> {
        self.staging.joined.as_ref().ok_or_else(|| Error::Device {
            action: "reading what messages brought",
            reason: "each is in memory of its own".into(),
        })
    }

    /// `result` of an execution, once no rank waits for this one.
    ///
    /// # Errors
    /// That of `result`, and as all calls of a [`Communicator`].
    pub fn complete<R>(&mut self, result: Result<R>) -> Result<R> {
        if result.is_err() {
            // Nothing is sent while the GPU still writes it. A GPU that fails here as well writes nothing any more.
            let _ = self.copies.synchronize().and(self.device.stream().synchronize());
        }
        self.exchange.complete(self.ranks.communicator(), result)
    }

    /// The same, if no rank failed. Collective.
    ///
    /// # Errors
    /// As there, and [`Error::OtherRank`].
    pub fn conclude<R>(&mut self, result: Result<R>) -> Result<R> {
        let result = self.complete(result);
        self.ranks.together(result)
    }
}

impl<T: DistScalar> Drop for GpuMessages<T> {
    fn drop(&mut self) {
        if self.check_idle().is_err() {
            self.staging.leak();
        }
    }
}

/// The messages of one execution.
pub struct Transport<'e, T: DistScalar> {
    pub communicator: &'e dyn Communicator,
    pub exchange: &'e mut Exchange,
    forwarding: &'e mut Forwarding<T>,
    pub staging: &'e mut Staging<T>,
    /// Of products and packing: the device's own.
    pub stream: &'e Stream,
    copies: &'e Stream,
    /// Parts of messages that are sent once the copy to the host, or what computes them, is done.
    pending: VecDeque<(usize, Range<usize>, Event)>,
}

impl<T: DistScalar> Transport<'_, T> {
    /// Has an outgoing message sent, part by part, once the work on it that is queued so far is done.
    ///
    /// # Errors
    /// [`Error::Device`](gustav_core::Error::Device).
    pub fn queue_send(&mut self, message: usize) -> Result<()> {
        let from = &self.staging.outgoing[message];
        let computed = self.stream.record()?;
        for range in self.exchange.send_chunks(self.communicator, message) {
            if !self.staging.host {
                self.pending.push_back((message, range, self.stream.record()?));
                continue;
            }
            self.copies.wait(&computed)?;
            let (values, first) = self.exchange.outgoing_chunk::<T>(message, &range);
            // SAFETY: the part is sent after the event, and nothing else touches it before.
            unsafe { from.start_read(first, values, self.copies)? };
            self.pending.push_back((message, range, self.copies.record()?));
        }
        Ok(())
    }

    /// Sends what is pending, in order, each part once it is there.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`], [`Error::Device`](gustav_core::Error::Device).
    pub fn send_pending(&mut self) -> Result<()> {
        while let Some((message, range, event)) = self.pending.pop_front() {
            event.synchronize()?;
            self.exchange.send_chunk(self.communicator, message, range)?;
        }
        Ok(())
    }

    /// Waits until another incoming message is complete, and returns its number: work that is queued from now on finds
    /// it on the GPU. Chunks of messages are copied there as they arrive.
    ///
    /// # Errors
    /// As [`Transport::send_pending`].
    pub fn next_message(&mut self) -> Result<usize> {
        let Transport { communicator, exchange, staging, stream, copies, .. } = self;
        exchange.next_with(*communicator, |exchange, chunk| {
            upload(exchange, staging, chunk, (*stream, *copies))
        })
    }

    /// Sends on what waited for `message` alone.
    ///
    /// # Errors
    /// As [`Transport::send_pending`].
    pub fn forward(&mut self, message: usize) -> Result<()> {
        let Transport { communicator, exchange, forwarding, staging, copies, pending, .. } = self;
        if staging.host {
            return forwarding.forwards.arrived(exchange, *communicator, message);
        }
        // Beside products, which may take longer.
        for message in forwarding.pack(message, staging, copies)? {
            for range in exchange.send_chunks(*communicator, message) {
                pending.push_back((message, range, copies.record()?));
            }
        }
        self.send_pending()
    }

    /// Waits until all messages and all work are done.
    ///
    /// # Errors
    /// As [`Transport::send_pending`].
    pub fn finish(self) -> Result<()> {
        self.exchange.finish(self.communicator)?;
        // The next execution receives into memory that copies read.
        self.copies.synchronize()?;
        self.stream.synchronize()
    }
}

/// Copies a chunk that has arrived to the GPU, where its memory is the host's: by the second of the streams, which the
/// first waits for.
fn upload<T: DistScalar>(
    exchange: &mut Exchange,
    staging: &mut Staging<T>,
    Arrived { number, range, .. }: &Arrived,
    (stream, copies): (&Stream, &Stream),
) -> Result<()> {
    if !staging.host {
        return Ok(());
    }
    let (values, first) = exchange.incoming_chunk::<T>(*number, range);
    // SAFETY: the chunk has arrived, and is received again only after the copies were waited for.
    unsafe { staging.incoming[*number].start_write(first, values, copies)? };
    // Products read the memory by other buffers.
    stream.wait(&copies.record()?)
}
