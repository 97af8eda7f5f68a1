//! Messages between this rank and others, whose buffers live as long as they are under way.

use gustav_core::buffer::try_vec;
use gustav_core::{Buffer, Error, Result};

use crate::Ranks;
use crate::communicator::{Communicator, Request, Tag};

/// A message that is sent or received again and again, of a length that is known.
struct Message {
    peer: usize,
    tag: Tag,
    bytes: Buffer<u8>,
    /// Parts of it that are under way; `None` before it is started.
    open: Option<usize>,
}

/// Messages to and from other ranks. Buffers are allocated once.
///
/// A message longer than the communicator's limit goes in several parts.
#[derive(Default)]
pub struct Exchange {
    incoming: Vec<Message>,
    outgoing: Vec<Message>,
    /// What is under way, with the message: incoming ones first.
    requests: Vec<Request>,
    messages: Vec<usize>,
}

impl Exchange {
    /// Adds a message of `len` values to `peer` and returns its number.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn add_outgoing<T>(&mut self, peer: usize, tag: Tag, len: usize) -> Result<usize> {
        self.outgoing.push(Message::new::<T>(peer, tag, len)?);
        Ok(self.outgoing.len() - 1)
    }

    /// Adds a message of `len` values from `peer` and returns its number.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn add_incoming<T>(&mut self, peer: usize, tag: Tag, len: usize) -> Result<usize> {
        self.incoming.push(Message::new::<T>(peer, tag, len)?);
        Ok(self.incoming.len() - 1)
    }

    /// Bytes of all buffers.
    pub fn bytes(&self) -> usize {
        self.incoming.iter().chain(&self.outgoing).map(|m| m.bytes.len()).sum()
    }

    /// Refuses to begin anew while something is under way, which it is only after an error.
    ///
    /// # Errors
    /// [`Error::Communication`] of `rank`.
    pub fn check_idle(&self, rank: usize) -> Result<()> {
        if self.requests.is_empty() {
            return Ok(());
        }
        Err(Error::Communication {
            rank,
            peer: None,
            action: "an earlier execution of this plan",
            reason: "its messages may still be under way; make a new plan".into(),
        })
    }

    /// Bytes and number of all outgoing messages.
    pub fn outgoing_bytes(&self) -> (u64, u64) {
        let bytes = self.outgoing.iter().map(|m| m.bytes.len() as u64);
        (bytes.sum(), self.outgoing.len() as u64)
    }

    /// Bytes of outgoing messages to the ranks that `is` accepts.
    pub fn bytes_to(&self, is: impl Fn(usize) -> bool) -> u64 {
        self.outgoing.iter().filter(|m| is(m.peer)).map(|m| m.bytes.len() as u64).sum()
    }

    /// Bytes of all incoming messages.
    pub fn incoming_bytes(&self) -> u64 {
        self.incoming.iter().map(|m| m.bytes.len() as u64).sum()
    }

    /// An incoming message that is complete, where one is given, and an outgoing one to be written.
    pub fn pair<T: bytemuck::Pod, U: bytemuck::Pod>(
        &mut self,
        incoming: Option<usize>,
        outgoing: usize,
    ) -> (&[T], &mut [U]) {
        let come = incoming.map_or(&[][..], |number| self.incoming[number].values());
        (come, self.outgoing[outgoing].values_mut())
    }

    /// Starts to receive all incoming messages.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`].
    pub fn receive(&mut self, communicator: &dyn Communicator) -> Result<()> {
        let limit = communicator.message_limit();
        for (number, message) in self.incoming.iter_mut().enumerate() {
            message.open = Some(0);
            for part in message.bytes.chunks_mut(limit) {
                // SAFETY: the buffer is read and dropped only when `open` is 0, and `Drop` leaks it otherwise.
                let request =
                    unsafe { communicator.start_receive(part, message.peer, message.tag)? };
                message.open = message.open.map(|open| open + 1);
                self.requests.push(request);
                self.messages.push(number);
            }
        }
        Ok(())
    }

    /// The values of an outgoing message, to be written before it is sent.
    pub fn outgoing<T: bytemuck::Pod>(&mut self, number: usize) -> &mut [T] {
        self.outgoing[number].values_mut()
    }

    /// Starts to send an outgoing message.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`].
    pub fn send(&mut self, communicator: &dyn Communicator, number: usize) -> Result<()> {
        let (limit, first) = (communicator.message_limit(), self.incoming.len());
        let message = &mut self.outgoing[number];
        message.open = Some(0);
        for part in message.bytes.chunks(limit) {
            // SAFETY: the buffer is written and dropped only when `open` is 0, and `Drop` leaks it otherwise.
            let request = unsafe { communicator.start_send(part, message.peer, message.tag)? };
            message.open = message.open.map(|open| open + 1);
            self.requests.push(request);
            self.messages.push(first + number);
        }
        Ok(())
    }

    /// Waits until something is done, and returns the incoming message that is complete now, if one is.
    fn progress(&mut self, communicator: &dyn Communicator) -> Result<Option<usize>> {
        // SAFETY: they were started here, on the communicator of all calls, and are removed once they are done.
        let at = unsafe { communicator.wait_any(&self.requests) }?;
        if at >= self.requests.len() {
            return Err(Error::Communication {
                rank: communicator.rank(),
                peer: None,
                action: "waiting",
                reason: format!("request {at} of {} is said to be done", self.requests.len()),
            });
        }
        // Order is kept for nothing: positions are the communicator's answer to this list.
        self.requests.swap_remove(at);
        let number = self.messages.swap_remove(at);
        let first = self.incoming.len();
        let message = match number.checked_sub(first) {
            None => &mut self.incoming[number],
            Some(sent) => &mut self.outgoing[sent],
        };
        message.open = message.open.map(|open| open - 1);
        Ok((number < first && message.open == Some(0)).then_some(number))
    }

    /// Waits until another incoming message is complete, and returns its number.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`].
    pub fn next(&mut self, communicator: &dyn Communicator) -> Result<usize> {
        loop {
            if let Some(number) = self.progress(communicator)? {
                return Ok(number);
            }
        }
    }

    /// Waits until incoming message `number` is complete.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`].
    pub fn wait(&mut self, communicator: &dyn Communicator, number: usize) -> Result<()> {
        while self.incoming[number].open != Some(0) {
            self.progress(communicator)?;
        }
        Ok(())
    }

    /// Waits until all messages are complete.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`].
    pub fn finish(&mut self, communicator: &dyn Communicator) -> Result<()> {
        while !self.requests.is_empty() {
            self.progress(communicator)?;
        }
        Ok(())
    }

    /// The values of an incoming message that is complete.
    pub fn incoming<T: bytemuck::Pod>(&self, number: usize) -> &[T] {
        self.incoming[number].values()
    }
}

impl Message {
    fn new<T>(peer: usize, tag: Tag, len: usize) -> Result<Self> {
        let bytes = len.saturating_mul(size_of::<T>());
        Ok(Message { peer, tag, bytes: Buffer::zeroed(bytes, "messages")?, open: None })
    }
}

impl Message {
    /// The values of a message that has come.
    fn values<T: bytemuck::Pod>(&self) -> &[T] {
        assert_eq!(self.open, Some(0), "the message is under way");
        match self.bytes.is_empty() {
            true => &[],
            false => bytemuck::cast_slice(&self.bytes),
        }
    }

    /// The values of a message that is to be sent.
    fn values_mut<T: bytemuck::Pod>(&mut self) -> &mut [T] {
        assert!(self.open.is_none_or(|open| open == 0), "the message is under way");
        match self.bytes.is_empty() {
            true => &mut [],
            false => bytemuck::cast_slice_mut(&mut self.bytes),
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // The communicator may still use them; that happens only after an error.
        for message in self.incoming.drain(..).chain(self.outgoing.drain(..)) {
            if message.open.is_some_and(|open| open > 0) {
                std::mem::forget(message.bytes);
            }
        }
    }
}

/// Sends `to[q]` to rank q and returns what every rank sends here. Collective.
///
/// # Errors
/// On every rank, [`Error::OutOfMemory`] of one, and as all calls of a [`Communicator`].
pub fn all_to_all<W: bytemuck::Pod>(ranks: &Ranks, to: &[&[W]]) -> Result<Vec<Vec<W>>> {
    let communicator = ranks.communicator();
    let lengths: Vec<u64> = to.iter().map(|words| words.len() as u64).collect();
    let mut from = vec![0; lengths.len()];
    communicator.all_to_all(&lengths, &mut from)?;
    let mut exchange = Exchange::default();
    let mut allocate = || {
        let mut incoming = Vec::new();
        for (peer, len) in from.iter().enumerate().filter(|(_, len)| **len > 0) {
            let number = exchange.add_incoming::<W>(peer, Tag::Plan, *len as usize)?;
            incoming.push((peer, number, try_vec(*len as usize, "arrays of another rank")?));
        }
        for (peer, words) in to.iter().enumerate().filter(|(_, words)| !words.is_empty()) {
            let number = exchange.add_outgoing::<W>(peer, Tag::Plan, words.len())?;
            exchange.outgoing::<W>(number).copy_from_slice(words);
        }
        Ok(incoming)
    };
    let allocated = allocate();
    // A rank without memory sends nothing, and the others must not wait for it.
    let incoming = ranks.together(allocated)?;
    exchange.receive(communicator)?;
    for number in 0..exchange.outgoing.len() {
        exchange.send(communicator, number)?;
    }
    exchange.finish(communicator)?;
    let mut received: Vec<Vec<W>> = to.iter().map(|_| Vec::new()).collect();
    for (peer, number, mut words) in incoming {
        words.extend_from_slice(exchange.incoming::<W>(number));
        received[peer] = words;
    }
    Ok(received)
}
