//! Messages between this rank and others, whose buffers live as long as they are under way.

use std::any::Any;
use std::ops::Range;

use gustav_core::buffer::try_vec;
use gustav_core::{Buffer, Error, Result};

use crate::Ranks;
use crate::communicator::{Communicator, Request, Tag};

/// A message that is sent or received again and again, of a length that is known.
struct Message {
    peer: usize,
    tag: Tag,
    memory: Memory,
    /// Parts of it that are under way, or yet to be sent; `None` before it is started.
    open: Option<usize>,
}

/// Where the bytes of a message are.
enum Memory {
    Own(Buffer<u8>),
    Lent(Lent),
}

/// Bytes of a message in memory of another kind, such as that of a device.
pub struct Lent {
    /// The first byte, aligned for every type of values.
    pub first: *mut u8,
    /// Their number.
    pub len: usize,
    /// Whether they are in memory of the host.
    pub host: bool,
    /// What keeps them.
    pub _holder: Box<dyn Any + Send>,
}

// SAFETY: the bytes are the exchange's as long as the holder is there, which may be sent.
unsafe impl Send for Lent {}

/// A part of a message that is under way.
struct Part {
    /// The message: incoming ones first.
    message: usize,
    range: Range<usize>,
}

/// Messages to and from other ranks. Buffers are allocated once.
///
/// A message longer than a limit goes in several parts, which is the same on all ranks.
pub struct Exchange {
    limit: usize,
    incoming: Vec<Message>,
    outgoing: Vec<Message>,
    /// What is under way.
    requests: Vec<Request>,
    parts: Vec<Part>,
}

impl Default for Exchange {
    fn default() -> Self {
        Exchange {
            limit: usize::MAX,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            requests: Vec::new(),
            parts: Vec::new(),
        }
    }
}

impl Exchange {
    /// One whose messages go in parts of at most `limit` bytes, or of what the communicator allows.
    pub fn with_limit(limit: usize) -> Self {
        let mut exchange = Self::default();
        exchange.limit = limit;
        exchange
    }

    /// Has a message in other memory than the one that was allocated for it: that of the same number from `lend`, which
    /// gets the number of its bytes.
    ///
    /// # Safety
    /// There are as many initialised bytes, which nobody else touches but between executions, or as a message that is
    /// complete, or before it is sent.
    ///
    /// # Errors
    /// Those of `lend`.
    pub unsafe fn lend(
        &mut self,
        mut lend: impl FnMut(bool, usize, usize) -> Result<Lent>,
    ) -> Result<()> {
        let incoming = self.incoming.iter_mut().enumerate().map(|(number, m)| (true, number, m));
        let outgoing = self.outgoing.iter_mut().enumerate().map(|(number, m)| (false, number, m));
        for (comes, number, message) in incoming.chain(outgoing) {
            let lent = lend(comes, number, message.memory.len())?;
            assert_eq!(lent.len, message.memory.len(), "bytes of the message");
            message.memory = Memory::Lent(lent);
        }
        Ok(())
    }

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
        self.incoming.iter().chain(&self.outgoing).map(|m| m.memory.len()).sum()
    }

    /// Refuses to begin anew while something is under way, which it is only after an error.
    ///
    /// # Errors
    /// [`Error::Communication`] of `rank`.
    pub fn check_idle(&self, rank: usize) -> Result<()> {
        let sent = |m: &Message| m.open.is_none_or(|open| open == 0);
        if self.requests.is_empty() && self.outgoing.iter().all(sent) {
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
        let bytes = self.outgoing.iter().map(|m| m.memory.len() as u64);
        (bytes.sum(), self.outgoing.len() as u64)
    }

    /// Bytes of outgoing messages to the ranks that `is` accepts.
    pub fn bytes_to(&self, is: impl Fn(usize) -> bool) -> u64 {
        self.outgoing.iter().filter(|m| is(m.peer)).map(|m| m.memory.len() as u64).sum()
    }

    /// Bytes of all incoming messages.
    pub fn incoming_bytes(&self) -> u64 {
        self.incoming.iter().map(|m| m.memory.len() as u64).sum()
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
        let limit = self.limit.min(communicator.message_limit());
        for (number, message) in self.incoming.iter_mut().enumerate() {
            message.open = Some(0);
            for range in parts(message.memory.len(), limit) {
                let bytes = message.memory.part(&range);
                // SAFETY: the memory is read and dropped only when `open` is 0, and `Drop` leaks it otherwise.
                let request =
                    unsafe { communicator.start_receive(bytes, message.peer, message.tag)? };
                message.open = message.open.map(|open| open + 1);
                self.requests.push(request);
                self.parts.push(Part { message: number, range });
            }
        }
        Ok(())
    }

    /// The values of a part of an outgoing message that is to be sent, and how many are before them.
    pub fn outgoing_part<T>(&mut self, number: usize, range: &Range<usize>) -> (*mut [T], usize) {
        values_of(&mut self.outgoing[number].memory, range)
    }

    /// The values of a part of an incoming message that has come, and how many are before them.
    pub fn incoming_part<T>(&mut self, number: usize, range: &Range<usize>) -> (*const [T], usize) {
        let (values, first) = values_of(&mut self.incoming[number].memory, range);
        (values.cast_const(), first)
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
        self.send_parts(communicator, number)
            .try_for_each(|range| self.send_part(communicator, number, range))
    }

    /// The parts in which an outgoing message goes, as ranges of its bytes. It is under way until all were sent.
    pub fn send_parts(
        &mut self,
        communicator: &dyn Communicator,
        number: usize,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let limit = self.limit.min(communicator.message_limit());
        let message = &mut self.outgoing[number];
        let parts = parts(message.memory.len(), limit);
        message.open = Some(parts.clone().count());
        parts
    }

    /// Starts to send a part of an outgoing message.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`].
    pub fn send_part(
        &mut self,
        communicator: &dyn Communicator,
        number: usize,
        range: Range<usize>,
    ) -> Result<()> {
        let message = &mut self.outgoing[number];
        let bytes = message.memory.part(&range);
        // SAFETY: the memory is written and dropped only when `open` is 0, and `Drop` leaks it otherwise.
        let request = unsafe { communicator.start_send(bytes, message.peer, message.tag)? };
        self.requests.push(request);
        self.parts.push(Part { message: self.incoming.len() + number, range });
        Ok(())
    }

    /// Waits until something is done, and returns the incoming message of which a part has come, if one has.
    fn progress(&mut self, communicator: &dyn Communicator) -> Result<Option<Came>> {
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
        let Part { message: number, range } = self.parts.swap_remove(at);
        let first = self.incoming.len();
        let message = match number.checked_sub(first) {
            None => &mut self.incoming[number],
            Some(sent) => &mut self.outgoing[sent],
        };
        message.open = message.open.map(|open| open - 1);
        let complete = message.open == Some(0);
        Ok((number < first).then_some(Came { number, range, complete }))
    }

    /// Waits until a part of an incoming message has come.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`].
    pub fn next_part(&mut self, communicator: &dyn Communicator) -> Result<Came> {
        loop {
            if let Some(came) = self.progress(communicator)? {
                return Ok(came);
            }
        }
    }

    /// Waits until another incoming message is complete, and returns its number.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`].
    pub fn next(&mut self, communicator: &dyn Communicator) -> Result<usize> {
        loop {
            if let Some(Came { number, complete: true, .. }) = self.progress(communicator)? {
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

/// A part of an incoming message that has come.
pub struct Came {
    /// The message.
    pub number: usize,
    /// The bytes of it.
    pub range: Range<usize>,
    /// Whether nothing else of it is missing.
    pub complete: bool,
}

/// The values in bytes `range`, and how many are before them.
fn values_of<T>(memory: &mut Memory, range: &Range<usize>) -> (*mut [T], usize) {
    let size = size_of::<T>();
    let whole = range.start.is_multiple_of(size) && range.end.is_multiple_of(size);
    assert!(whole, "parts are of whole values");
    let first = memory.part(range).cast::<T>();
    (std::ptr::slice_from_raw_parts_mut(first, range.len() / size), range.start / size)
}

/// The parts of a message of `len` bytes.
fn parts(len: usize, limit: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    (0..len).step_by(limit.max(1)).map(move |first| first..len.min(first.saturating_add(limit)))
}

impl Memory {
    fn len(&self) -> usize {
        match self {
            Memory::Own(bytes) => bytes.len(),
            Memory::Lent(lent) => lent.len,
        }
    }

    fn part(&mut self, range: &Range<usize>) -> *mut [u8] {
        match self {
            Memory::Own(bytes) => &raw mut bytes[range.clone()],
            Memory::Lent(lent) => {
                assert!(range.end <= lent.len, "bytes of the message");
                let first = lent.first.wrapping_add(range.start);
                std::ptr::slice_from_raw_parts_mut(first, range.len())
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Own(bytes) => bytes,
            Memory::Lent(lent) => {
                assert!(lent.host, "the message is in memory of the host");
                // SAFETY: initialised, as promised, and written by nobody while they are borrowed.
                unsafe { std::slice::from_raw_parts(lent.first, lent.len) }
            }
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Own(bytes) => bytes,
            Memory::Lent(lent) => {
                assert!(lent.host, "the message is in memory of the host");
                // SAFETY: as above, and read by nobody.
                unsafe { std::slice::from_raw_parts_mut(lent.first, lent.len) }
            }
        }
    }
}

impl Message {
    fn new<T>(peer: usize, tag: Tag, len: usize) -> Result<Self> {
        let bytes = len.saturating_mul(size_of::<T>());
        let memory = Memory::Own(Buffer::zeroed(bytes, "messages")?);
        Ok(Message { peer, tag, memory, open: None })
    }

    /// The values of a message that has come.
    fn values<T: bytemuck::Pod>(&self) -> &[T] {
        assert_eq!(self.open, Some(0), "the message is under way");
        match self.memory.len() {
            0 => &[],
            _ => bytemuck::cast_slice(self.memory.bytes()),
        }
    }

    /// The values of a message that is to be sent.
    fn values_mut<T: bytemuck::Pod>(&mut self) -> &mut [T] {
        assert!(self.open.is_none_or(|open| open == 0), "the message is under way");
        match self.memory.len() {
            0 => &mut [],
            _ => bytemuck::cast_slice_mut(self.memory.bytes_mut()),
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // The communicator may still use them; that happens only after an error.
        for message in self.incoming.drain(..).chain(self.outgoing.drain(..)) {
            if message.open.is_some_and(|open| open > 0) {
                std::mem::forget(message.memory);
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
