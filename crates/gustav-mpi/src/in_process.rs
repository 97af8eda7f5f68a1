//! Ranks that are threads of one process, and the rank that is alone.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use gustav_core::{Error, Result};

use crate::communicator::{Communicator, Request, Tag};
use crate::{Hosts, Ranks};

/// A rank that is a thread of this process: for programs that run on one machine, and for tests.
///
/// A rank that is dropped while others wait for it makes their calls fail.
#[derive(Debug)]
pub struct InProcess {
    rank: usize,
    host: String,
    group: Arc<Group>,
    requests: Mutex<Requests>,
}

#[derive(Debug)]
struct Group {
    size: usize,
    limit: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Messages that were sent and not yet received, by sender, receiver and tag.
    mail: HashMap<(usize, usize, Tag), VecDeque<Vec<u8>>>,
    /// What the ranks gave to the current collective call.
    contributions: BTreeMap<usize, Vec<u8>>,
    /// All of them, while ranks read it, and how many have yet to.
    gathered: Option<(Arc<Vec<Vec<u8>>>, usize)>,
    /// Ranks that have ended.
    ended: Vec<usize>,
}

#[derive(Debug, Default)]
struct Requests {
    /// Whether each request is done, as sends are when they start.
    done: Vec<bool>,
    /// Numbers of requests that were returned.
    free: Vec<usize>,
    /// Messages to be received, by sender and tag, in the order in which they were started.
    open: HashMap<(usize, Tag), VecDeque<Receive>>,
}

/// A message that is to be received.
#[derive(Clone, Copy, Debug)]
struct Receive {
    request: usize,
    bytes: *mut u8,
    len: usize,
}

// SAFETY: the bytes are borrowed by the request, whichever thread waits for it.
unsafe impl Send for Receive {}

impl InProcess {
    /// The ranks of `hosts`, in order, that send messages of up to `limit` bytes.
    fn group(hosts: &Hosts, limit: usize) -> Vec<InProcess> {
        let size = hosts.ranks();
        let (state, changed) = (Mutex::default(), Condvar::new());
        let group = Arc::new(Group { size, limit: limit.max(1), state, changed });
        let rank = |(rank, host)| InProcess {
            rank,
            host: format!("host {host}"),
            group: group.clone(),
            requests: Mutex::default(),
        };
        hosts.numbers().iter().enumerate().map(rank).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is left half done under the lock.
        self.group.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.group.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, action: &'static str, peer: Option<usize>, reason: String) -> Error {
        Error::Communication { rank: self.rank, peer, action, reason }
    }

    /// What every rank gives.
    fn gather(&self, mine: Vec<u8>, action: &'static str) -> Result<Arc<Vec<Vec<u8>>>> {
        let mut state = self.state();
        // Ranks that are slow may still read what the last call gathered.
        while state.gathered.is_some() {
            state = self.wait(state);
        }
        state.contributions.insert(self.rank, mine);
        if state.contributions.len() == self.group.size {
            let all = std::mem::take(&mut state.contributions).into_values().collect();
            state.gathered = Some((Arc::new(all), self.group.size));
            self.group.changed.notify_all();
        }
        loop {
            if let Some((all, readers)) = &mut state.gathered {
                let all = all.clone();
                *readers -= 1;
                if *readers == 0 {
                    state.gathered = None;
                    self.group.changed.notify_all();
                }
                return Ok(all);
            }
            if let Some(&peer) = state.ended.iter().find(|r| !state.contributions.contains_key(r)) {
                return Err(self.failed(action, Some(peer), "that rank has ended".into()));
            }
            state = self.wait(state);
        }
    }
}

impl Requests {
    fn start(&mut self, done: bool) -> usize {
        let number = self.free.pop().unwrap_or(self.done.len());
        match self.done.get_mut(number) {
            Some(state) => *state = done,
            None => self.done.push(done),
        }
        number
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.state().ended.push(self.rank);
        self.group.changed.notify_all();
    }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned)
}

// SAFETY: a message is copied when it is sent, and into the receiver's bytes, as many as the message has, before the
// request is returned; the entry of the request is removed then.
unsafe impl Communicator for InProcess {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.group.size
    }

    fn description(&self) -> String {
        match self.group.size {
            1 => "one rank".into(),
            size => format!("{size} threads of one process"),
        }
    }

    fn host(&self) -> String {
        self.host.clone()
    }

    fn message_limit(&self) -> usize {
        self.group.limit
    }

    fn all_reduce_max(&self, numbers_of_ranks: &mut [u64]) -> Result<()> {
        let all = self.gather(bytemuck::cast_slice(numbers_of_ranks).to_vec(), "all-reduce")?;
        for (rank, contributions) in all.iter().enumerate() {
            if contributions.len() != numbers_of_ranks.len() * 8 {
                let reason = "the ranks give different numbers of elements".into();
                return Err(self.failed("all-reduce", Some(rank), reason));
            }
            for (largest, found) in numbers_of_ranks.iter_mut().zip(numbers(contributions)) {
                *largest = found.max(*largest);
            }
        }
        Ok(())
    }

    fn all_gather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        let gathered = self.gather(mine.to_vec(), "all-gather")?;
        if all.len() != mine.len() * self.size() || gathered.iter().any(|g| g.len() != mine.len()) {
            let reason = "the ranks give different numbers of bytes".into();
            return Err(self.failed("all-gather", None, reason));
        }
        all.copy_from_slice(&gathered.concat());
        Ok(())
    }

    fn all_to_all(&self, to: &[u64], from: &mut [u64]) -> Result<()> {
        let all = self.gather(bytemuck::cast_slice(to).to_vec(), "all-to-all")?;
        let from_all = all.iter().map(|contributions| numbers(contributions).nth(self.rank));
        for (from, contributions) in from.iter_mut().zip(from_all) {
            *from = contributions.ok_or_else(|| {
                self.failed("all-to-all", None, "a number for every rank is needed".into())
            })?;
        }
        Ok(())
    }

    fn barrier(&self) -> Result<()> {
        self.gather(Vec::new(), "barrier").map(drop)
    }

    unsafe fn start_send(&self, bytes: *const [u8], peer: usize, tag: Tag) -> Result<Request> {
        // SAFETY: initialised bytes of the host, as promised.
        let message = unsafe { &*bytes }.to_vec();
        self.state().mail.entry((self.rank, peer, tag)).or_default().push_back(message);
        self.group.changed.notify_all();
        Ok(Request(self.requests().start(true)))
    }

    unsafe fn start_receive(&self, bytes: *mut [u8], peer: usize, tag: Tag) -> Result<Request> {
        let (bytes, len) = (bytes.cast(), bytes.len());
        let mut requests = self.requests();
        let request = requests.start(false);
        let open = requests.open.entry((peer, tag)).or_default();
        open.push_back(Receive { request, bytes, len });
        Ok(Request(request))
    }

    unsafe fn wait_any(&self, requests: &[Request]) -> Result<usize> {
        loop {
            if let Some(at) = self.done(requests, true)? {
                return Ok(at);
            }
        }
    }

    unsafe fn test_any(&self, requests: &[Request]) -> Result<Option<usize>> {
        self.done(requests, false)
    }

    fn abort(&self, status: i32) {
        // One rank of several cannot end the others' threads; they see that it has ended.
        if self.group.size == 1 {
            std::process::exit(status);
        }
    }
}

impl InProcess {
    /// The position among `requests` of one that is done; with `wait`, when there is one.
    fn done(&self, requests: &[Request], wait: bool) -> Result<Option<usize>> {
        let mut own = self.requests();
        let Requests { done, open, free } = &mut *own;
        loop {
            if let Some(at) = requests.iter().position(|r| done.get(r.0) == Some(&true)) {
                let number = requests[at].0;
                done[number] = false;
                free.push(number);
                return Ok(Some(at));
            }
            let mut state = self.state();
            let mut arrived = false;
            for ((peer, tag), receives) in open.iter_mut() {
                let Some(mail) = state.mail.get_mut(&(*peer, self.rank, *tag)) else { continue };
                while !receives.is_empty()
                    && let Some(message) = mail.pop_front()
                    && let Some(Receive { request, bytes, len }) = receives.pop_front()
                {
                    if message.len() != len {
                        let reason = format!("{} bytes came, {len} were expected", message.len());
                        return Err(self.failed("receiving", Some(*peer), reason));
                    }
                    // SAFETY: `len` bytes at `bytes` are borrowed by this request until it is returned.
                    unsafe { std::ptr::copy_nonoverlapping(message.as_ptr(), bytes, len) };
                    done[request] = true;
                    arrived = true;
                }
            }
            if arrived {
                continue;
            }
            let mut missing = open.iter().filter(|(_, receives)| !receives.is_empty()).peekable();
            if missing.peek().is_none() {
                return Err(self.failed("waiting", None, "there is no such request".into()));
            }
            // All mail has been looked at: what has not been sent will not be.
            if let Some(((peer, _), _)) = missing.find(|((peer, _), _)| state.ended.contains(peer))
            {
                let reason = "that rank has ended".into();
                return Err(self.failed("receiving", Some(*peer), reason));
            }
            if !wait {
                return Ok(None);
            }
            drop(self.wait(state));
        }
    }
}

impl Ranks {
    /// The rank that is alone: products on one rank need no communication library.
    pub fn alone() -> Self {
        Ranks::in_process(1).remove(0)
    }

    /// `size` ranks of this process, in order, at least one: each is for one thread.
    pub fn in_process(size: usize) -> Vec<Self> {
        Self::in_process_with_limit(size, usize::MAX)
    }

    /// The same with messages of at most `limit` bytes, at least 1: longer ones are sent in several, as over MPI.
    pub fn in_process_with_limit(size: usize, limit: usize) -> Vec<Self> {
        Self::in_process_on(&Hosts::of_consecutive(size.max(1), size), limit)
    }

    /// The same as if they were on `hosts`: what they send each other is what they would send there.
    pub fn in_process_on(hosts: &Hosts, limit: usize) -> Vec<Self> {
        InProcess::group(hosts, limit).into_iter().map(Ranks::new).collect()
    }
}
