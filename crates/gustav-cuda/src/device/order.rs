//! Ordering between streams: a buffer records its last writer and its readers, and work on another
//! stream waits for them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gustav_core::Result;

use super::memory::Memory;
use super::stream::Stream;
use super::{Device, DeviceBuffer, graph};

/// How work accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Read,
    Write,
}

/// The streams that use a block of memory.
///
/// While only one stream uses it, this is recorded in an atomic word, and further uses by that
/// stream take no lock.
#[derive(Debug, Default)]
pub(super) struct Users {
    /// [`sole`] of the state; 0 when several streams use the memory, or none.
    sole: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    writer: Option<Stream>,
    /// Streams that have read since the last write, after waiting for it.
    readers: Vec<Stream>,
    /// Streams whose order the memory's owner ensures, or that used it earlier: the next write and
    /// the release of the memory wait for them.
    others: Vec<Stream>,
}

// Length of a list of readers at which finished streams are dropped from it.
const PRUNED: usize = 16;

/// The word for memory that only `stream` uses.
fn sole(stream: &Stream, access: Access) -> u64 {
    stream.key() << 1 | u64::from(access == Access::Write)
}

impl Users {
    /// The users of memory that is allocated in stream order on `stream`.
    pub(super) fn allocated_on(stream: &Stream) -> Self {
        let users = Users::default();
        users.lock().writer = Some(stream.clone());
        users.sole.store(sole(stream, Access::Write), Ordering::Release);
        users
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `stream` needs no lock: nothing else uses the memory.
    fn is_sole(&self, stream: &Stream, access: Access) -> bool {
        let word = self.sole.load(Ordering::Acquire);
        word == sole(stream, Access::Write)
            || access == Access::Read && word == sole(stream, Access::Read)
    }

    fn publish(&self, state: &State) {
        let word = match (&state.writer, &state.readers[..]) {
            _ if !state.others.is_empty() => 0,
            (Some(writer), []) => sole(writer, Access::Write),
            (None, [reader]) => sole(reader, Access::Read),
            _ => 0,
        };
        self.sole.store(word, Ordering::Release);
    }

    fn read(&self, stream: &Stream, waits: &mut Waits) -> Result<()> {
        let mut state = self.lock();
        if state.writer.as_ref().is_some_and(|w| w.is(stream)) || holds(&state.readers, stream) {
            return Ok(());
        }
        if let Some(writer) = &state.writer {
            waits.wait(stream, writer)?;
        }
        if state.readers.len() >= PRUNED {
            // No more work can be queued on a stream whose last clone is in the list.
            let is_over = |s: &Stream| s.is_last_clone() && s.is_done().unwrap_or(false);
            state.readers.retain(|reader| !is_over(reader));
        }
        state.readers.push(stream.clone());
        self.publish(&state);
        Ok(())
    }

    /// A write with exclusive access to the buffer. With `is_shared` others may use it too, so
    /// earlier users stay recorded.
    fn write(&self, stream: &Stream, waits: &mut Waits, is_shared: bool) -> Result<()> {
        let mut state = self.lock();
        let State { writer, readers, others } = &mut *state;
        for earlier in writer.iter().chain(&*readers).chain(&*others) {
            waits.wait(stream, earlier)?;
        }
        if is_shared {
            for earlier in writer.take().into_iter().chain(readers.drain(..)) {
                if !earlier.is(stream) && !holds(others, &earlier) {
                    others.push(earlier);
                }
            }
        } else {
            readers.clear();
            others.clear();
        }
        *writer = Some(stream.clone());
        self.publish(&state);
        Ok(())
    }

    /// Records that `stream` uses the memory; the memory's owner orders its uses.
    fn note(&self, stream: &Stream) {
        if self.is_sole(stream, Access::Write) {
            return;
        }
        let mut state = self.lock();
        let is_idle = state.writer.is_none() && state.readers.is_empty() && state.others.is_empty();
        if is_idle {
            state.writer = Some(stream.clone());
        } else if !holds(&state.others, stream) {
            state.others.push(stream.clone());
        }
        self.publish(&state);
    }

    /// Removes all users; their work is done.
    pub(super) fn clear(&mut self) {
        *self.state.get_mut().unwrap_or_else(PoisonError::into_inner) = State::default();
        *self.sole.get_mut() = 0;
    }

    /// Makes `stream` wait for all users, and removes them.
    pub(super) fn end_on(&mut self, stream: &Stream) -> Result<()> {
        let mut waits = Waits::default();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for earlier in state.writer.iter().chain(&state.readers).chain(&state.others) {
            waits.wait(stream, earlier)?;
        }
        self.clear();
        Ok(())
    }
}

fn holds(streams: &[Stream], stream: &Stream) -> bool {
    streams.iter().any(|s| s.is(stream))
}

/// Streams that one call has waited for.
#[derive(Debug, Default)]
pub(super) struct Waits {
    waited: [u64; 4],
    count: usize,
}

impl Waits {
    fn wait(&mut self, stream: &Stream, earlier: &Stream) -> Result<()> {
        let key = earlier.key();
        if earlier.is(stream) || self.waited[..self.count].contains(&key) {
            return Ok(());
        }
        stream.after(earlier)?;
        if let Some(slot) = self.waited.get_mut(self.count) {
            *slot = key;
            self.count += 1;
        }
        Ok(())
    }
}

/// The uses of buffers by one call on one stream. A stream that several uses depend on is waited
/// for once.
pub(crate) struct Uses<'s> {
    stream: &'s Stream,
    ordered: bool,
    waits: Waits,
}

impl<'s> Uses<'s> {
    pub(crate) fn on(stream: &'s Stream) -> Self {
        Uses { stream, ordered: true, waits: Waits::default() }
    }

    /// Unless `ordered`, the caller orders the uses; they are only recorded, for the release of the
    /// memory.
    pub(crate) fn ordered(self, ordered: bool) -> Self {
        Uses { ordered, ..self }
    }

    /// A read of `buffer`: the stream waits for the last write on another stream.
    pub(crate) fn read<T>(&mut self, buffer: &DeviceBuffer<T>) -> Result<()> {
        self.access(buffer.memory(), Access::Read)
    }

    /// A write of `buffer`, to which the caller has exclusive access: the stream waits for all work
    /// on other streams.
    pub(crate) fn write<T>(&mut self, buffer: &DeviceBuffer<T>) -> Result<()> {
        self.access(buffer.memory(), Access::Write)
    }

    pub(crate) fn access(&mut self, memory: &std::sync::Arc<Memory>, access: Access) -> Result<()> {
        if graph::is_recording() {
            graph::hold_memory(memory, access);
        }
        let users = memory.users();
        if users.is_sole(self.stream, access) {
            return Ok(());
        }
        match access {
            _ if !self.ordered => users.note(self.stream),
            Access::Read => users.read(self.stream, &mut self.waits)?,
            Access::Write => users.write(self.stream, &mut self.waits, false)?,
        }
        Ok(())
    }

    /// As [`Uses::access`] for a launch of a graph, whose memory others may use as well.
    pub(super) fn launch(&mut self, memory: &Memory, access: Access) -> Result<()> {
        match access {
            Access::Read => memory.users().read(self.stream, &mut self.waits),
            Access::Write => memory.users().write(self.stream, &mut self.waits, true),
        }
    }
}

/// Records that `stream` uses memory whose owner orders its uses, such as a plan's workspace.
pub(super) fn note(memory: &std::sync::Arc<Memory>, stream: &Stream) {
    if graph::is_recording() {
        graph::hold_memory(memory, Access::Read);
    }
    memory.users().note(stream);
}

/// Orders a plan's executions one after another, because they use the same workspaces.
#[derive(Debug)]
pub(crate) struct PlanOrder {
    /// The device's stream, on which workspaces are freed.
    own: Stream,
    last: Option<Stream>,
}

impl PlanOrder {
    /// For a plan for `calls` calls whose setup is queued on the device's stream. A plan for a
    /// single call does not make the host wait for it.
    pub(crate) fn new(device: &Device, calls: u64) -> Result<Self> {
        let own = device.stream().clone();
        if calls <= 1 {
            return Ok(PlanOrder { last: Some(own.clone()), own });
        }
        own.synchronize()?;
        Ok(PlanOrder { own, last: None })
    }

    /// Makes the device's stream wait for all executions, before workspaces are freed there.
    pub(super) fn end(&self) -> Result<()> {
        self.last.as_ref().map_or(Ok(()), |last| self.own.after(last))
    }

    /// Makes `stream` wait for the previous execution.
    pub(crate) fn next(&mut self, stream: &Stream) -> Result<()> {
        if let Some(last) = &self.last {
            if last.is(stream) {
                return Ok(());
            }
            stream.after(last)?;
        }
        self.last = Some(stream.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(device: &Device) -> [Stream; 3] {
        [0; 3].map(|_| device.new_stream().expect("a stream"))
    }

    /// Checks which stream the word names, and which streams are still waited for.
    #[test]
    #[ignore = "needs a CUDA device"]
    fn a_stream_that_uses_memory_alone_is_named_in_one_word() {
        let device = Device::cuda(0).expect("a CUDA device");
        let [one, two, three] = streams(&device);
        let users = Users::default();
        let mut waits = Waits::default();
        users.read(&one, &mut waits).expect("a read");
        assert!(users.is_sole(&one, Access::Read) && !users.is_sole(&one, Access::Write));
        users.write(&one, &mut waits, false).expect("a write");
        assert!(users.is_sole(&one, Access::Read) && users.is_sole(&one, Access::Write));
        users.read(&two, &mut waits).expect("a read");
        assert!(!users.is_sole(&one, Access::Read) && !users.is_sole(&two, Access::Read));
        users.write(&three, &mut waits, false).expect("a write");
        assert!(users.is_sole(&three, Access::Write));
        assert!(users.lock().readers.is_empty(), "a write is ordered after all reads");
        users.note(&one);
        assert!(!users.is_sole(&three, Access::Write));
        users.write(&two, &mut waits, true).expect("a write of a graph");
        let state = users.lock();
        assert!(holds(&state.others, &one) && holds(&state.others, &three));
    }

    /// Finished streams are removed from the list of readers.
    #[test]
    #[ignore = "needs a CUDA device"]
    fn readers_that_are_gone_are_dropped() {
        let device = Device::cuda(0).expect("a CUDA device");
        let users = Users::default();
        for _ in 0..10 * PRUNED {
            let stream = device.new_stream().expect("a stream");
            users.read(&stream, &mut Waits::default()).expect("a read");
            stream.synchronize().expect("nothing");
        }
        assert!(users.lock().readers.len() <= PRUNED + 1);
    }
}
