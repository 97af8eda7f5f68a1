//! Order among streams: a buffer knows its last writer and its readers, and work on another stream
//! waits for them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gustav_core::Result;

use super::memory::Memory;
use super::stream::Stream;
use super::{Device, DeviceBuffer, graph};

/// What work does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Read,
    Write,
}

/// The streams that use a block of memory.
///
/// While one stream alone uses it, an atomic word says so, and its next use takes no lock.
#[derive(Debug, Default)]
pub(super) struct Users {
    /// [`sole`] of the state; 0 when several streams use the memory, or none.
    sole: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    writer: Option<Stream>,
    /// Streams that wait for the writer and have read since.
    readers: Vec<Stream>,
    /// Streams that the owner of the memory orders, or that used it earlier: waited for before the
    /// next write, and before the memory is freed.
    others: Vec<Stream>,
}

// Finished streams are dropped from a list of readers when it has grown to so many.
const PRUNED: usize = 16;

/// The word for memory that `stream` alone uses.
fn sole(stream: &Stream, access: Access) -> u64 {
    stream.key() << 1 | u64::from(access == Access::Write)
}

impl Users {
    /// Of memory that is allocated in the order of `stream`.
    pub(super) fn allocated_on(stream: &Stream) -> Self {
        let users = Users::default();
        users.lock().writer = Some(stream.clone());
        users.sole.store(sole(stream, Access::Write), Ordering::Release);
        users
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `stream` may go on without a lock: nobody else uses the memory.
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
            // Nobody can queue more on a stream whose last clone is here.
            let is_over = |s: &Stream| s.is_last_clone() && s.is_done().unwrap_or(false);
            state.readers.retain(|reader| !is_over(reader));
        }
        state.readers.push(stream.clone());
        self.publish(&state);
        Ok(())
    }

    /// A write with exclusive access to the buffer. `is_shared` says that others may use it too: earlier users are then
    /// remembered.
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

    /// Remembers that `stream`, which its owner orders, uses the memory.
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

    /// Forgets all users, whose work is done.
    pub(super) fn clear(&mut self) {
        *self.state.get_mut().unwrap_or_else(PoisonError::into_inner) = State::default();
        *self.sole.get_mut() = 0;
    }

    /// Lets `stream` wait for all users, which are forgotten.
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

/// Streams that were waited for in one call.
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

/// The uses that one call makes of buffers on one stream. A stream that several of them wait for is
/// waited for once.
pub(crate) struct Uses<'s> {
    stream: &'s Stream,
    ordered: bool,
    waits: Waits,
}

impl<'s> Uses<'s> {
    pub(crate) fn on(stream: &'s Stream) -> Self {
        Uses { stream, ordered: true, waits: Waits::default() }
    }

    /// Uses that the caller orders, unless `ordered`: they are waited for before memory is freed.
    pub(crate) fn ordered(self, ordered: bool) -> Self {
        Uses { ordered, ..self }
    }

    /// Lets the stream read `buffer`: it waits for the last write on another stream.
    pub(crate) fn read<T>(&mut self, buffer: &DeviceBuffer<T>) -> Result<()> {
        self.access(buffer.memory(), Access::Read)
    }

    /// Lets the stream write `buffer`, to which the caller has exclusive access: it waits for all work
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

/// Remembers that `stream` uses memory whose owner orders its uses: a plan's workspace.
pub(super) fn note(memory: &std::sync::Arc<Memory>, stream: &Stream) {
    if graph::is_recording() {
        graph::hold_memory(memory, Access::Read);
    }
    memory.users().note(stream);
}

/// The order of a plan's executions, which use the same workspaces: one after another.
#[derive(Debug)]
pub(crate) struct PlanOrder {
    /// The device's stream, on which workspaces are freed.
    own: Stream,
    last: Option<Stream>,
}

impl PlanOrder {
    /// Of a plan for so many calls, whose work is queued on the device's stream: a single one waits for
    /// nothing on the host.
    pub(crate) fn new(device: &Device, calls: u64) -> Result<Self> {
        let own = device.stream().clone();
        if calls <= 1 {
            return Ok(PlanOrder { last: Some(own.clone()), own });
        }
        own.synchronize()?;
        Ok(PlanOrder { own, last: None })
    }

    /// Lets the device's stream wait for all executions, before workspaces are freed there.
    pub(super) fn end(&self) -> Result<()> {
        self.last.as_ref().map_or(Ok(()), |last| self.own.after(last))
    }

    /// Lets `stream` wait for the execution before.
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

    /// Who is named in the word, and who is still waited for.
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

    /// Streams that ended leave the list of readers.
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
