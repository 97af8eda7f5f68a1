//! Ranks of a job as if they were on other hosts, and with shorter messages.

use gustav_core::Result;
use gustav_mpi::{Communicator, Ranks, Request, Tag};

use crate::cases::of_inner;

/// The same ranks, of which this one says that it is on `host` and that its messages have up to `limit` bytes.
pub struct Over {
    pub ranks: Ranks,
    pub host: usize,
    pub limit: usize,
}

impl Over {
    fn inner(&self) -> &dyn Communicator {
        self.ranks.communicator()
    }
}

// SAFETY: the calls are those of another.
unsafe impl Communicator for Over {
    of_inner!(rank size description all_reduce_max all_gather all_to_all barrier abort);

    fn host(&self) -> String {
        format!("host {}", self.host)
    }
    fn message_limit(&self) -> usize {
        self.limit.min(self.inner().message_limit())
    }
    unsafe fn start_send(&self, bytes: *const [u8], peer: usize, tag: Tag) -> Result<Request> {
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
