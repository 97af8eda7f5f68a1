//! Ranks as threads of one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gustav_core::Result;
use gustav_mpi::{Communicator, Hosts, Ranks, Request, Tag};

use crate::cases::job::{Job, Part};
use crate::cases::of_inner;
use crate::cases::spread::Spread;

/// Numbers of ranks that are tried one after another.
pub const RANKS: [usize; 6] = [1, 2, 3, 4, 7, 8];

/// Jobs of all these numbers of ranks, which are threads.
pub struct Threads;

impl Job for Threads {
    fn sizes(&self) -> Vec<usize> {
        RANKS.to_vec()
    }

    fn on_ranks<P: Part>(
        &self,
        hosts: &Hosts,
        limit: usize,
        work: impl Fn(Ranks) -> Result<P> + Sync,
    ) -> Result<Vec<P>> {
        parts_of(Ranks::in_process_on(hosts, limit), work)
    }
}

/// What every rank gives, in order, as bytes in between, which are what ranks of an MPI job give.
pub fn parts_of<P: Part>(
    ranks: Vec<Ranks>,
    work: impl Fn(Ranks) -> Result<P> + Sync,
) -> Result<Vec<P>> {
    let parts = all_ok(on_ranks(ranks, |ranks| work(ranks).map(|part| part.to_bytes())))?;
    Ok(parts.iter().map(|bytes| P::of_bytes(bytes)).collect())
}

/// The ranks of `spread`, which send messages of up to `limit` bytes.
pub fn in_process(spread: &Spread, limit: usize) -> Vec<Ranks> {
    Ranks::in_process_on(&spread.hosts(), limit)
}

/// Runs `work` on every rank, and returns what each gives, in order.
pub fn on_ranks<R: Send>(ranks: Vec<Ranks>, work: impl Fn(Ranks) -> R + Sync) -> Vec<R> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = ranks.into_iter().map(|r| scope.spawn(move || work(r))).collect();
        let results = threads.into_iter().map(|t| t.join());
        results.map(|r| r.unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    })
}

/// The error of the rank that failed first, in order, if one did.
pub fn all_ok<R>(results: Vec<Result<R>>) -> Result<Vec<R>> {
    results.into_iter().collect()
}

/// Called before a rank communicates, and told whether it sends a message.
type OnCall = Box<dyn Fn(bool) + Send + Sync>;

/// Ranks whose messages are counted.
pub struct Counting {
    ranks: Ranks,
    sent: Arc<Sent>,
    on_call: OnCall,
}

/// What was sent of products.
#[derive(Default)]
pub struct Sent {
    bytes: AtomicU64,
    messages: AtomicU64,
}

impl Sent {
    /// Bytes and messages.
    pub fn products(&self) -> [u64; 2] {
        [&self.bytes, &self.messages].map(|n| n.load(Ordering::Relaxed))
    }
}

impl Counting {
    pub fn over(ranks: Ranks) -> (Ranks, Arc<Sent>) {
        Self::watched(ranks, |_| ())
    }

    /// The same, with a function that is called before every reduction and message of a product.
    pub fn watched(
        ranks: Ranks,
        on_call: impl Fn(bool) + Send + Sync + 'static,
    ) -> (Ranks, Arc<Sent>) {
        let (sent, on_call) = (Arc::new(Sent::default()), Box::new(on_call));
        (Ranks::new(Counting { ranks, sent: sent.clone(), on_call }), sent)
    }

    fn inner(&self) -> &dyn Communicator {
        self.ranks.communicator()
    }
}

// SAFETY: the calls are those of another communicator.
unsafe impl Communicator for Counting {
    of_inner!(rank size description host message_limit all_gather all_to_all barrier abort);

    fn all_reduce_max(&self, numbers: &mut [u64]) -> Result<()> {
        (self.on_call)(false);
        self.inner().all_reduce_max(numbers)
    }
    unsafe fn start_send(&self, bytes: *const [u8], peer: usize, tag: Tag) -> Result<Request> {
        if tag != Tag::Plan {
            (self.on_call)(true);
            self.sent.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            self.sent.messages.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: promised by the caller.
        unsafe { self.inner().start_send(bytes, peer, tag) }
    }
    unsafe fn start_receive(&self, bytes: *mut [u8], peer: usize, tag: Tag) -> Result<Request> {
        // SAFETY: promised by the caller.
        unsafe { self.inner().start_receive(bytes, peer, tag) }
    }
    unsafe fn wait_any(&self, requests: &[Request]) -> Result<usize> {
        // SAFETY: promised by the caller.
        unsafe { self.inner().wait_any(requests) }
    }
    unsafe fn test_any(&self, requests: &[Request]) -> Result<Option<usize>> {
        // SAFETY: promised by the caller.
        unsafe { self.inner().test_any(requests) }
    }
}
