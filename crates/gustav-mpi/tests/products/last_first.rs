//! Ranks as threads that take the messages which were started last first.

use gustav_core::Result;
use gustav_mpi::{Communicator, Ranks, Request, Tag};

use crate::cases::of_inner;

/// Ranks whose messages are taken in the opposite order.
struct LastFirst {
    ranks: Ranks,
}

/// `ranks` ranks.
pub fn last_first(ranks: usize) -> Vec<Ranks> {
    let ranks = Ranks::in_process(ranks).into_iter();
    ranks.map(|ranks| Ranks::new(LastFirst { ranks })).collect()
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
        let last = requests.len() - 1;
        // SAFETY: promised by the caller: the last is as good as another to wait for.
        unsafe { self.inner().wait_any(&requests[last..]).map(|_| last) }
    }
    unsafe fn test_any(&self, requests: &[Request]) -> Result<Option<usize>> {
        let last = requests.len() - 1;
        // SAFETY: promised by the caller.
        unsafe { self.inner().test_any(&requests[last..]).map(|at| at.map(|_| last)) }
    }
}
