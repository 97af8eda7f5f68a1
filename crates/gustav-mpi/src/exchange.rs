//! Messages between this rank and others, whose buffers live as long as they are in flight.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use gustav_core::buffer::try_vec;
use gustav_core::{Error, Result};

use crate::Ranks;
use crate::communicator::{Communicator, Request, Tag};
use crate::message::{External, Memory, Message};
use crate::volume::Traffic;

// Bytes that two ranks are assumed to exchange in a second, and what a message takes besides them, while neither
// computes.
const SLOWEST: f64 = 1e9;
const LATENCY: Duration = Duration::from_micros(50);
// The longest that a rank waits although it could multiply.
const LONGEST: Duration = Duration::from_millis(100);

/// A chunk of a message that is in flight.
struct Chunk {
    /// The message: incoming ones first.
    message: usize,
    range: Range<usize>,
}

/// Messages to and from other ranks. Buffers are allocated once.
///
/// A message longer than a limit goes in several chunks, which is the same on all ranks.
pub struct Exchange {
    limit: usize,
    incoming: Vec<Message>,
    outgoing: Vec<Message>,
    /// What is in flight.
    requests: Vec<Request>,
    chunks: Vec<Chunk>,
    /// Incoming messages that are complete and were not returned yet, in the order of arrival.
    complete: VecDeque<usize>,
    /// The end of waiting for messages in flight although one is complete, once that is so.
    patient_until: Option<Instant>,
}

impl Default for Exchange {
    fn default() -> Self {
        Exchange {
            limit: usize::MAX,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            requests: Vec::new(),
            chunks: Vec::new(),
            complete: VecDeque::new(),
            patient_until: None,
        }
    }
}

impl Exchange {
    /// One whose messages go in chunks of at most `limit` bytes, or of what the communicator allows.
    pub fn with_limit(limit: usize) -> Self {
        let mut exchange = Self::default();
        exchange.limit = limit;
        exchange
    }

    /// Replaces the memory of every message by what `external` returns for it, given whether it is incoming, its
    /// number and the number of its bytes.
    ///
    /// # Safety
    /// There are as many initialised bytes, which nobody else touches but between executions, or as a message that is
    /// complete, or before it is sent.
    ///
    /// # Errors
    /// Those of `external`.
    pub unsafe fn use_external(
        &mut self,
        mut external: impl FnMut(bool, usize, usize) -> Result<External>,
    ) -> Result<()> {
        let incoming = self.incoming.iter_mut().enumerate().map(|(number, m)| (true, number, m));
        let outgoing = self.outgoing.iter_mut().enumerate().map(|(number, m)| (false, number, m));
        for (is_incoming, number, message) in incoming.chain(outgoing) {
            let external = external(is_incoming, number, message.memory.len())?;
            assert_eq!(external.len, message.memory.len(), "bytes of the message");
            message.memory = Memory::External(external);
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

    /// Says that this rank sends something once incoming message `number` has arrived: other ranks wait for it.
    pub fn set_urgent(&mut self, number: usize) {
        self.incoming[number].is_urgent = true;
    }

    /// Number of incoming messages.
    pub fn incoming_count(&self) -> usize {
        self.incoming.len()
    }

    /// Bytes of all buffers.
    pub fn bytes(&self) -> usize {
        self.incoming.iter().chain(&self.outgoing).map(|m| m.memory.len()).sum()
    }

    /// Refuses to begin again while something is in flight, which it is only after an error.
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
            reason: "its messages may still be under way, and those of a new plan with these ranks might be taken for them: make new ranks".into(),
        })
    }

    /// The messages of this rank to and from the ranks that `is` accepts.
    pub fn traffic(&self, is: impl Fn(usize) -> bool) -> Traffic {
        let outgoing = self.outgoing.iter().filter(|m| is(m.peer));
        let incoming = self.incoming.iter().filter(|m| is(m.peer));
        Traffic {
            sent_bytes: outgoing.clone().map(|m| m.memory.len() as u64).sum(),
            received_bytes: incoming.map(|m| m.memory.len() as u64).sum(),
            sent_messages: outgoing.count() as u64,
        }
    }

    /// An incoming message that is complete, where one is given, and an outgoing one to be written.
    pub fn pair<T: bytemuck::Pod, U: bytemuck::Pod>(
        &mut self,
        incoming: Option<usize>,
        outgoing: usize,
    ) -> (&[T], &mut [U]) {
        let received = incoming.map_or(&[][..], |number| self.incoming[number].values());
        (received, self.outgoing[outgoing].values_mut())
    }

    /// Starts to receive all incoming messages.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`].
    pub fn receive(&mut self, communicator: &dyn Communicator) -> Result<()> {
        let limit = self.limit.min(communicator.message_limit());
        self.outgoing.iter_mut().for_each(|message| message.sent = 0);
        self.complete.clear();
        self.patient_until = None;
        for (number, message) in self.incoming.iter_mut().enumerate() {
            message.open = Some(0);
            for range in chunks(message.memory.len(), limit) {
                let bytes = message.memory.chunk(&range);
                // SAFETY: the memory is read and dropped only when `open` is 0, and `Drop` leaks it otherwise.
                let request =
                    unsafe { communicator.start_receive(bytes, message.peer, message.tag)? };
                message.open = message.open.map(|open| open + 1);
                self.requests.push(request);
                self.chunks.push(Chunk { message: number, range });
            }
        }
        Ok(())
    }

    /// The values of a chunk of an outgoing message that is to be sent, and how many are before them.
    pub fn outgoing_chunk<T>(&mut self, number: usize, range: &Range<usize>) -> (*mut [T], usize) {
        self.outgoing[number].memory.values_of(range)
    }

    /// The values of a chunk of an incoming message that has arrived, and how many are before them.
    pub fn incoming_chunk<T>(
        &mut self,
        number: usize,
        range: &Range<usize>,
    ) -> (*const [T], usize) {
        let (values, first) = self.incoming[number].memory.values_of(range);
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
        self.send_chunks(communicator, number)
            .try_for_each(|range| self.send_chunk(communicator, number, range))
    }

    /// The chunks in which an outgoing message goes, as ranges of its bytes. It is in flight until all were sent.
    pub fn send_chunks(
        &mut self,
        communicator: &dyn Communicator,
        number: usize,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let limit = self.limit.min(communicator.message_limit());
        let message = &mut self.outgoing[number];
        let chunks = chunks(message.memory.len(), limit);
        message.open = Some(chunks.clone().count());
        chunks
    }

    /// Starts to send a chunk of an outgoing message.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`].
    pub fn send_chunk(
        &mut self,
        communicator: &dyn Communicator,
        number: usize,
        range: Range<usize>,
    ) -> Result<()> {
        let message = &mut self.outgoing[number];
        let bytes = message.memory.chunk(&range);
        // SAFETY: the memory is written and dropped only when `open` is 0, and `Drop` leaks it otherwise.
        let request = unsafe { communicator.start_send(bytes, message.peer, message.tag)? };
        message.sent = range.end;
        self.requests.push(request);
        self.chunks.push(Chunk { message: self.incoming.len() + number, range });
        Ok(())
    }

    /// `result` of an execution that began with [`Exchange::receive`]. After an error other than of communication it
    /// sends what this rank has not sent yet, with whatever contents, and receives everything, so that no rank waits
    /// for this one; the others learn of the error in an agreement that follows.
    ///
    /// # Errors
    /// That of `result`, and as all calls of a [`Communicator`].
    pub fn complete<R>(&mut self, communicator: &dyn Communicator, result: Result<R>) -> Result<R> {
        match &result {
            Ok(_) => return result,
            Err(e) if matches!(e.kind(), Error::Communication { .. }) => return result,
            Err(_) => {}
        }
        for number in 0..self.outgoing.len() {
            let sent = self.outgoing[number].sent;
            let limit = self.limit.min(communicator.message_limit());
            let chunks = chunks(self.outgoing[number].memory.len(), limit);
            if sent == 0 {
                self.outgoing[number].open = Some(chunks.clone().count());
            }
            for range in chunks.filter(|range| range.start >= sent) {
                self.send_chunk(communicator, number, range)?;
            }
        }
        self.finish(communicator)?;
        result
    }

    /// Waits until something is done, and returns the incoming message of which a chunk has arrived, if one has.
    fn progress(&mut self, communicator: &dyn Communicator) -> Result<Option<Arrived>> {
        // SAFETY: they were started here, on the communicator of all calls, and are removed once they are done.
        let at = unsafe { communicator.wait_any(&self.requests) }?;
        self.take(communicator, at)
    }

    /// The same without waiting.
    fn try_progress(&mut self, communicator: &dyn Communicator) -> Result<Option<Arrived>> {
        // SAFETY: as of `progress`.
        match unsafe { communicator.test_any(&self.requests) }? {
            Some(at) => self.take(communicator, at),
            None => {
                std::thread::yield_now();
                Ok(None)
            }
        }
    }

    /// Takes note that request `at` is done.
    fn take(&mut self, communicator: &dyn Communicator, at: usize) -> Result<Option<Arrived>> {
        if at >= self.requests.len() {
            return Err(Error::Communication {
                rank: communicator.rank(),
                peer: None,
                action: "waiting",
                reason: format!("request {at} of {} is said to be done", self.requests.len()),
            });
        }
        // Order does not matter: positions are the communicator's answer to this list.
        self.requests.swap_remove(at);
        let Chunk { message: number, range } = self.chunks.swap_remove(at);
        let first = self.incoming.len();
        let message = match number.checked_sub(first) {
            None => &mut self.incoming[number],
            Some(sent) => &mut self.outgoing[sent],
        };
        message.open = message.open.map(|open| open - 1);
        let complete = message.open == Some(0);
        Ok((number < first).then_some(Arrived { number, range, complete }))
    }

    /// Waits until another incoming message is complete, and returns its number: an urgent one first.
    ///
    /// Most libraries move messages only within their calls, so that what this rank is about to compute would hold up
    /// those in flight, and the ranks at their other end. They are waited for as long as their bytes take, within a
    /// limit, but not for what others have yet to compute.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`].
    pub fn next(&mut self, communicator: &dyn Communicator) -> Result<usize> {
        self.next_with(communicator, |_, _| Ok(()))
    }

    /// The same, with a call of `arrived` for every chunk that arrives.
    ///
    /// # Errors
    /// As there, and those of `arrived`.
    pub fn next_with(
        &mut self,
        communicator: &dyn Communicator,
        mut arrived: impl FnMut(&mut Self, &Arrived) -> Result<()>,
    ) -> Result<usize> {
        loop {
            let urgent = self.complete.iter().position(|number| self.incoming[*number].is_urgent);
            let next = match urgent {
                None if self.is_patient() => None,
                at => self.complete.remove(at.unwrap_or(0)),
            };
            if let Some(number) = next {
                return Ok(number);
            }
            let chunk = match self.complete.is_empty() {
                true => self.progress(communicator)?,
                false => self.try_progress(communicator)?,
            };
            if let Some(chunk) = chunk {
                arrived(self, &chunk)?;
                self.complete.extend(chunk.complete.then_some(chunk.number));
            }
        }
    }

    /// Whether messages in flight are waited for although one is complete.
    fn is_patient(&mut self) -> bool {
        if self.complete.is_empty() || !self.chunks.iter().any(|chunk| self.is_first(chunk)) {
            return false;
        }
        let until = Instant::now() + self.transfer_time();
        Instant::now() < *self.patient_until.get_or_insert(until)
    }

    /// Whether a chunk in flight is of a message that ranks send first, not one that they have yet to compute.
    fn is_first(&self, chunk: &Chunk) -> bool {
        let message = match chunk.message.checked_sub(self.incoming.len()) {
            None => &self.incoming[chunk.message],
            Some(outgoing) => &self.outgoing[outgoing],
        };
        matches!(message.tag, Tag::Operands | Tag::ToRelay)
    }

    /// How long the messages in flight that ranks send first may take, within the limit.
    fn transfer_time(&self) -> Duration {
        let first = self.chunks.iter().filter(|chunk| self.is_first(chunk));
        let bytes: usize = first.map(|chunk| chunk.range.len()).sum();
        LONGEST.min(LATENCY + Duration::from_secs_f64(bytes as f64 / SLOWEST))
    }

    /// Waits until incoming message `number` is complete; it is not returned by [`Exchange::next`].
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

/// A chunk of an incoming message that has arrived.
pub struct Arrived {
    /// The message.
    pub number: usize,
    /// The bytes of it.
    pub range: Range<usize>,
    /// Whether nothing else of it is missing.
    pub complete: bool,
}

/// The chunks of a message of `len` bytes.
fn chunks(len: usize, limit: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    (0..len).step_by(limit.max(1)).map(move |first| first..len.min(first.saturating_add(limit)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::on_ranks;

    #[test]
    fn what_others_wait_for_comes_first() {
        let found = on_ranks(Ranks::in_process(2), |ranks| -> Result<Vec<usize>> {
            let (communicator, peer) = (ranks.communicator(), 1 - ranks.rank());
            let mut exchange = Exchange::default();
            for tag in [Tag::Operands, Tag::ToRelay] {
                exchange.add_incoming::<u32>(peer, tag, 3)?;
                exchange.add_outgoing::<u32>(peer, tag, 3)?;
            }
            exchange.set_urgent(1);
            exchange.receive(communicator)?;
            (0..2).try_for_each(|message| exchange.send(communicator, message))?;
            let mut complete = VecDeque::new();
            while complete.len() < 2 {
                let arrived = exchange.progress(communicator)?;
                complete.extend(arrived.filter(|of| of.complete).map(|of| of.number));
            }
            exchange.complete = complete;
            let found = (0..2).map(|_| exchange.next(communicator)).collect();
            exchange.finish(communicator)?;
            found
        });
        for found in found {
            assert_eq!(found.expect("two messages"), [1, 0]);
        }
    }

    #[test]
    fn late_ranks_are_not_waited_for() {
        // Rank 2 sends to rank 0 only when that has what rank 1 sent, and has said so.
        let found = on_ranks(Ranks::in_process(3), |ranks| -> Result<Vec<usize>> {
            let communicator = ranks.communicator();
            let mut exchange = Exchange::default();
            let mut found = Vec::new();
            match ranks.rank() {
                0 => {
                    exchange.add_incoming::<u64>(2, Tag::Operands, 5)?;
                    exchange.add_incoming::<u64>(1, Tag::Operands, 5)?;
                    exchange.add_outgoing::<u64>(2, Tag::Partial, 1)?;
                    exchange.receive(communicator)?;
                    found.push(exchange.next(communicator)?);
                    exchange.send(communicator, 0)?;
                    found.push(exchange.next(communicator)?);
                }
                1 => {
                    exchange.add_outgoing::<u64>(0, Tag::Operands, 5)?;
                    exchange.send(communicator, 0)?;
                }
                _ => {
                    exchange.add_incoming::<u64>(0, Tag::Partial, 1)?;
                    exchange.add_outgoing::<u64>(0, Tag::Operands, 5)?;
                    exchange.receive(communicator)?;
                    exchange.next(communicator)?;
                    exchange.send(communicator, 0)?;
                }
            }
            exchange.finish(communicator)?;
            Ok(found)
        });
        let found: Vec<_> = found.into_iter().map(|found| found.expect("messages")).collect();
        assert_eq!(found[0], [1, 0]);
    }
}
