//! Ranks of a job as if they were on other hosts, and with shorter messages.

use gustav_core::Result;
use gustav_mpi::{Communicator, Ranks, Request, Tag};

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
    fn rank(&self) -> usize {
        self.inner().rank()
    }
    fn size(&self) -> usize {
        self.inner().size()
    }
    fn description(&self) -> String {
        self.inner().description()
    }
    fn host(&self) -> String {
        format!("host {}", self.host)
    }
    fn message_limit(&self) -> usize {
        self.limit.min(self.inner().message_limit())
    }
    fn all_reduce_max(&self, numbers: &mut [u64]) -> Result<()> {
        self.inner().all_reduce_max(numbers)
    }
    fn all_gather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        self.inner().all_gather(mine, all)
    }
    fn all_to_all(&self, to: &[u64], from: &mut [u64]) -> Result<()> {
        self.inner().all_to_all(to, from)
    }
    fn barrier(&self) -> Result<()> {
        self.inner().barrier()
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
    fn abort(&self, status: i32) {
        self.inner().abort(status);
    }
}
