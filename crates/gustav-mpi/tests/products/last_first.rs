//! Ranks as threads that take messages in another order than that of their arrival: of those that are done, what was
//! started last.

use gustav_core::Result;
use gustav_mpi::{Communicator, Hosts, Ranks, Request, Tag};

use crate::cases::job::{Job, Part};
use crate::cases::of_inner;
use crate::common::parts_of;

/// Ranks whose messages are taken in the opposite order.
struct LastFirst {
    ranks: Ranks,
}

/// `ranks`, whose messages are taken so.
pub fn last_first(ranks: Vec<Ranks>) -> Vec<Ranks> {
    ranks.into_iter().map(|ranks| Ranks::new(LastFirst { ranks })).collect()
}

/// Jobs of such ranks, of numbers that several hosts can have several of.
pub struct LastFirstThreads;

impl Job for LastFirstThreads {
    fn sizes(&self) -> Vec<usize> {
        vec![4, 6, 7]
    }

    fn on_ranks<P: Part>(
        &self,
        hosts: &Hosts,
        limit: usize,
        work: impl Fn(Ranks) -> Result<P> + Sync,
    ) -> Result<Vec<P>> {
        parts_of(last_first(Ranks::in_process_on(hosts, limit)), work)
    }
}

impl LastFirst {
    fn inner(&self) -> &dyn Communicator {
        self.ranks.communicator()
    }
}

// SAFETY: the calls are those of another.
unsafe impl Communicator for LastFirst {
    of_inner!(rank size description host message_limit all_reduce_max all_gather all_to_all barrier abort);

    unsafe fn start_send(&self, bytes: *const [u8], peer: usize, tag: Tag) -> Result<Request> {
        // SAFETY: promised by the caller.
        unsafe { self.inner().start_send(bytes, peer, tag) }
    }
    unsafe fn start_receive(&self, bytes: *mut [u8], peer: usize, tag: Tag) -> Result<Request> {
        // SAFETY: promised by the caller.
        unsafe { self.inner().start_receive(bytes, peer, tag) }
    }
    unsafe fn wait_any(&self, requests: &[Request]) -> Result<usize> {
        loop {
            // SAFETY: promised by the caller.
            if let Some(at) = unsafe { self.test_any(requests)? } {
                return Ok(at);
            }
            std::thread::yield_now();
        }
    }
    unsafe fn test_any(&self, requests: &[Request]) -> Result<Option<usize>> {
        for at in (0..requests.len()).rev() {
            // SAFETY: promised by the caller.
            if unsafe { self.inner().test_any(&requests[at..=at])? }.is_some() {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}
