//! What gustav needs of a library that connects ranks.

use gustav_core::Result;

/// A message in flight, as its communicator numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request(pub usize);

/// The calls between ranks that distributed products are made of.
///
/// [`MpiCommunicator`](crate::MpiCommunicator) is MPI's, [`InProcess`](crate::InProcess) connects threads of one
/// process, or is alone. A program with another communication library implements these calls; products then run on
/// it.
///
/// Collective calls are made by every rank, in the same order. Messages between two ranks with one tag arrive in the
/// order in which they were sent. Every call may fail with
/// [`Error::Communication`](gustav_core::Error::Communication), which names this rank and, where there is one, the
/// peer.
///
/// # Safety
/// An implementation does not touch the bytes of a message after [`wait_any`](Communicator::wait_any) or
/// [`test_any`](Communicator::test_any) has returned its request, and has written all bytes of a received one by then.
pub unsafe trait Communicator: Send + Sync {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// What connects the ranks, in a few words.
    fn description(&self) -> String;

    /// The name of the host that this rank is on: ranks with equal names share one. Without a name, every rank is taken
    /// to be on a host of its own.
    fn host(&self) -> String {
        String::new()
    }

    /// The largest message in bytes, at least 1; longer ones are sent in several.
    fn message_limit(&self) -> usize;

    /// Replaces every number by its maximum over the ranks. Collective.
    ///
    /// # Errors
    /// As all calls.
    fn all_reduce_max(&self, numbers: &mut [u64]) -> Result<()>;

    /// `all` becomes what the ranks give as `mine`, in rank order: `size` times as many bytes, the same number on
    /// every rank. Collective.
    ///
    /// # Errors
    /// As all calls.
    fn all_gather(&self, mine: &[u8], all: &mut [u8]) -> Result<()>;

    /// Sends `to[q]` to rank q; `from[q]` becomes what rank q sends here. Both have `size` numbers. Collective.
    ///
    /// # Errors
    /// As all calls.
    fn all_to_all(&self, to: &[u64], from: &mut [u64]) -> Result<()>;

    /// Returns when every rank has called it. Collective.
    ///
    /// # Errors
    /// As all calls.
    fn barrier(&self) -> Result<()>;

    /// Whether messages may be in memory of a CUDA device.
    fn takes_device_memory(&self) -> bool {
        false
    }

    /// Starts to send `bytes`, no more than [`message_limit`](Communicator::message_limit), to `peer`.
    ///
    /// # Safety
    /// The bytes are initialised, and in memory of the host unless
    /// [`takes_device_memory`](Communicator::takes_device_memory) says otherwise. They stay where they are, and nobody
    /// writes them, until [`wait_any`](Communicator::wait_any) or [`test_any`](Communicator::test_any) returns the
    /// request, or for ever.
    ///
    /// # Errors
    /// As all calls.
    unsafe fn start_send(&self, bytes: *const [u8], peer: usize, tag: Tag) -> Result<Request>;

    /// Starts to receive a message of just as many bytes from `peer`.
    ///
    /// # Safety
    /// As of a send, where the bytes are; nobody reads or writes them, and they stay where they are, until
    /// [`wait_any`](Communicator::wait_any) or [`test_any`](Communicator::test_any) returns the request, or for ever.
    ///
    /// # Errors
    /// As all calls.
    unsafe fn start_receive(&self, bytes: *mut [u8], peer: usize, tag: Tag) -> Result<Request>;

    /// Waits until one of `requests` is done, at least one, and returns its position among them.
    ///
    /// # Safety
    /// All were started on this communicator, and none has been returned before.
    ///
    /// # Errors
    /// As all calls.
    unsafe fn wait_any(&self, requests: &[Request]) -> Result<usize>;

    /// The position among `requests`, at least one, of one that is done, if one is: it does not wait, and messages go
    /// on meanwhile.
    ///
    /// # Safety
    /// As [`wait_any`](Communicator::wait_any): a request is returned by one of the two, once.
    ///
    /// # Errors
    /// As all calls.
    unsafe fn test_any(&self, requests: &[Request]) -> Result<Option<usize>>;

    /// Ends the processes of all ranks, or where that is not possible this one's part, with an exit status.
    fn abort(&self, status: i32);
}

/// What a message is for. MPI guarantees tags up to 32,767.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Tag {
    /// Descriptions that ranks exchange when a plan is made.
    Plan = 1,
    /// Operands: rows of dense matrices and values.
    Operands = 2,
    /// Partial rows of a result.
    Partial = 3,
    /// Operands that are to be forwarded to ranks of the same host.
    ToRelay = 4,
    /// Operands that are forwarded.
    Forwarded = 5,
    /// Values that another rank of a team multiplies.
    Values = 6,
    /// Rows of sums that are sent back for them.
    Sums = 7,
    /// Partial rows that another rank of the same host adds up.
    ToReduce = 8,
}
