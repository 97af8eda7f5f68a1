//! MPI, loaded when the program runs.

mod abi;
mod engine;
mod search;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use gustav_core::{Error, Result};

use crate::Ranks;
use crate::communicator::{Communicator, Request, Tag};
use engine::Engine;
pub use engine::ThreadLevel;

// Bytes of one message: counts of MPI are 31 bits.
const MESSAGE_LIMIT: usize = 1 << 30;

/// The MPI of this process: the one that it has loaded, else one that is found now. Clones are the same.
///
/// MPI is initialised if nobody has done so, and then finalised when the last clone, and the last [`Ranks`] made of
/// it, is dropped; after a panic the job is aborted instead, as the other ranks would wait for ever. Finalising waits
/// for all ranks: one that gives up alone calls [`Communicator::abort`] before. After a finalisation by the program
/// every call is an error.
///
/// Where the [thread level](Mpi::thread_level) is [`ThreadLevel::Serialized`], calls of gustav exclude each other, but
/// those that the program makes itself, or another library, are not known here: no other thread is in MPI during a
/// call of [`Mpi::init`], of [`Mpi::world`], and of anything on the ranks.
#[derive(Clone)]
pub struct Mpi {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Box<dyn Engine>,
    version: String,
    level: ThreadLevel,
    /// The number of this rank among all of the job.
    rank: usize,
    /// Whether it was initialised here.
    ours: bool,
    /// One thread at a time, where MPI asks for it.
    lock: Mutex<()>,
}

impl std::fmt::Debug for Mpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:?})", self.shared.version, self.shared.level)
    }
}

impl Mpi {
    /// The process's MPI, initialised. No other thread is in MPI meanwhile, unless the thread level is
    /// [`ThreadLevel::Multiple`].
    ///
    /// # Errors
    /// [`Error::NoMpi`] naming all that was looked for when there is none, and when it was finalised before.
    pub fn init() -> Result<Self> {
        static CURRENT: Mutex<Weak<Shared>> = Mutex::new(Weak::new());
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = current.upgrade() {
            if shared.finalized() {
                return Err(Error::NoMpi { reason: shared.over() });
            }
            return Ok(Mpi { shared });
        }
        let shared = Arc::new(Shared::new()?);
        *current = Arc::downgrade(&shared);
        Ok(Mpi { shared })
    }

    /// The library's name and version.
    pub fn version(&self) -> &str {
        &self.shared.version
    }

    /// Bytes of its handles: those of an integer or of a pointer.
    pub fn handle_bytes(&self) -> usize {
        self.shared.engine.handle_bytes()
    }

    /// Which threads may call it.
    pub fn thread_level(&self) -> ThreadLevel {
        self.shared.level
    }

    /// Whether gustav initialised it, and finalises it.
    pub fn is_ours(&self) -> bool {
        self.shared.ours
    }

    /// All ranks of the job. Collective. No other thread is in MPI meanwhile, nor during calls on the ranks, unless the
    /// thread level is [`ThreadLevel::Multiple`].
    ///
    /// # Errors
    /// [`Error::Communication`], also when the program has finalised MPI; [`Error::NoMpi`] when a launcher of another
    /// MPI has started the processes, which then do not know of each other.
    pub fn world(&self) -> Result<Ranks> {
        // SAFETY: a communicator while MPI is initialised.
        let ranks = unsafe { self.ranks_of(self.shared.engine.world()) }?;
        let launched = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].iter().find_map(|name| {
            let size: usize = std::env::var(name).ok()?.parse().ok()?;
            Some((name, size))
        });
        match launched {
            Some((name, size)) if ranks.size() == 1 && size > 1 => Err(Error::NoMpi {
                reason: format!(
                    "a launcher started {size} processes ({name}), but {} sees one: the launcher is that of another \
                     MPI; name that one's library in {}",
                    self.version(),
                    search::VARIABLE
                ),
            }),
            _ => Ok(ranks),
        }
    }

    /// The ranks of a communicator of the program, of which a duplicate is made. Collective over it.
    ///
    /// # Safety
    /// `communicator` is an `MPI_Comm` of the MPI that this is, as an integer: its value where handles are integers
    /// (MPICH's `libmpi.so.12`), else the pointer's address. It is an intracommunicator. Where the thread level is
    /// [`ThreadLevel::Serialized`], no other thread is in MPI while gustav is.
    ///
    /// # Errors
    /// [`Error::Communication`] with the number that the rank has among all of the job, also when the program has
    /// finalised MPI.
    pub unsafe fn ranks_of(&self, communicator: usize) -> Result<Ranks> {
        let all = self.shared.rank;
        let _lock = self.shared.lock(all)?;
        // SAFETY: promised by the caller.
        let made = unsafe { self.shared.engine.duplicate(communicator) };
        let (handle, rank, size) =
            made.map_err(|reason| failed(all, "duplicating a communicator", None, reason))?;
        Ok(Ranks::new(MpiCommunicator { shared: self.shared.clone(), handle, rank, size }))
    }
}

fn over(version: &str) -> String {
    format!("{version} was finalised in this process, and cannot begin again")
}

fn failed(rank: usize, action: &'static str, peer: Option<usize>, reason: String) -> Error {
    Error::Communication { rank, peer, action, reason }
}

impl Shared {
    fn new() -> Result<Self> {
        let no_mpi = |reason: String| Error::NoMpi { reason };
        // Of several the one that the program has initialised.
        let (mut loaded, mut unusable) = (Vec::new(), None);
        for found in search::loaded() {
            let asked = engine::engine(found)
                .and_then(|engine| Ok((!engine.initialized().map_err(no_mpi)?, engine)));
            match asked {
                Ok(engine) => loaded.push(engine),
                Err(e) => unusable = Some(e),
            }
        }
        loaded.sort_by_key(|(not_initialized, _)| *not_initialized);
        let engine = match (loaded.into_iter().next(), unusable) {
            (Some((_, engine)), _) => engine,
            // Another one beside the one that the program uses would not know of its ranks.
            (None, Some(e)) => return Err(e),
            (None, None) => engine::engine(search::load()?)?,
        };
        let version = engine.version().map_err(no_mpi)?;
        if engine.finalized().map_err(no_mpi)? {
            return Err(no_mpi(over(&version)));
        }
        let ours = !engine.initialized().map_err(no_mpi)?;
        if ours {
            engine.initialize().map_err(no_mpi)?;
        }
        engine.check_constants().map_err(|e| no_mpi(format!("{version}: {e}")))?;
        let level = engine.thread_level().map_err(no_mpi)?;
        // SAFETY: a communicator while MPI is initialised.
        let (rank, _) = unsafe { engine.rank_and_size(engine.world()) }.map_err(no_mpi)?;
        Ok(Shared { engine, version, level, rank, ours, lock: Mutex::new(()) })
    }

    /// Whether it is over; the program may have ended it as well.
    fn finalized(&self) -> bool {
        self.engine.finalized().unwrap_or(true)
    }

    fn over(&self) -> String {
        over(&self.version)
    }

    /// The right to call MPI from this thread, for the rank of this number. MPI ends the process that calls it after it
    /// was finalised.
    fn lock(&self, rank: usize) -> Result<Option<MutexGuard<'_, ()>>> {
        if self.finalized() {
            return Err(failed(rank, "calling MPI", None, self.over()));
        }
        if self.level == ThreadLevel::Multiple {
            return Ok(None);
        }
        if self.level < ThreadLevel::Serialized {
            let main = self.engine.is_main_thread();
            let main =
                main.map_err(|reason| failed(rank, "asking for the main thread", None, reason))?;
            if !main {
                return Err(Error::Argument {
                    name: "thread",
                    found: "one that did not initialise MPI".into(),
                    expected: format!("the one that did, as {} granted no more", self.version),
                });
            }
        }
        Ok(Some(self.lock.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.ours || self.finalized() {
            return;
        }
        if std::thread::panicking() {
            return self.engine.abort(1);
        }
        if let Ok(_lock) = self.lock(self.rank) {
            // There is nobody to return an error to.
            let _ = self.engine.finalize();
        }
    }
}

/// A communicator of MPI. Messages and collective calls are its own: it is a duplicate.
pub struct MpiCommunicator {
    shared: Arc<Shared>,
    handle: usize,
    rank: usize,
    size: usize,
}

impl MpiCommunicator {
    fn call<R>(
        &self,
        action: &'static str,
        peer: Option<usize>,
        call: impl FnOnce(&dyn Engine, usize) -> Result<R, String>,
    ) -> Result<R> {
        let _lock = self.shared.lock(self.rank)?;
        call(&*self.shared.engine, self.handle).map_err(|e| failed(self.rank, action, peer, e))
    }

    fn peer(&self, peer: usize) -> Result<i32> {
        if peer < self.size {
            return Ok(peer as i32);
        }
        Err(Error::Argument {
            name: "rank",
            found: peer.to_string(),
            expected: format!("one of {} ranks", self.size),
        })
    }

    fn check_len(&self, what: &'static str, expected: usize, found: usize) -> Result<()> {
        gustav_core::validate::length(what, expected, found)
    }
}

// SAFETY: a request that MPI says is done is: the bytes of a message are written by then, and not touched again.
unsafe impl Communicator for MpiCommunicator {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn description(&self) -> String {
        format!("{} of {}", self.size, self.shared.version)
    }

    fn host(&self) -> String {
        // Without a name it is taken to be another host than all others, which is never wrong.
        let name = self.call("MPI_Get_processor_name", None, |mpi, _| mpi.host());
        name.unwrap_or_default()
    }

    fn message_limit(&self) -> usize {
        MESSAGE_LIMIT
    }

    fn all_reduce_max(&self, numbers: &mut [u64]) -> Result<()> {
        let mine = numbers.to_vec();
        self.call("MPI_Allreduce", None, |mpi, on| {
            // SAFETY: a duplicate that is not freed; equal lengths.
            unsafe { mpi.all_reduce_max(on, &mine, numbers) }
        })
    }

    fn all_gather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        self.check_len("bytes of all ranks", mine.len().saturating_mul(self.size), all.len())?;
        self.call("MPI_Allgather", None, |mpi, on| {
            // SAFETY: a duplicate that is not freed; `all` has the length of all contributions.
            unsafe { mpi.all_gather(on, mine, all) }
        })
    }

    fn all_to_all(&self, to: &[u64], from: &mut [u64]) -> Result<()> {
        self.check_len("numbers to ranks", self.size, to.len())?;
        self.check_len("numbers from ranks", self.size, from.len())?;
        self.call("MPI_Alltoall", None, |mpi, on| {
            // SAFETY: a duplicate that is not freed; a number for every rank.
            unsafe { mpi.all_to_all(on, to, from) }
        })
    }

    fn barrier(&self) -> Result<()> {
        self.call("MPI_Barrier", None, |mpi, on| {
            // SAFETY: a duplicate that is not freed.
            unsafe { mpi.barrier(on) }
        })
    }

    fn takes_device_memory(&self) -> bool {
        let said =
            self.call("MPIX_Query_cuda_support", None, |mpi, _| Ok(mpi.takes_device_memory()));
        said.unwrap_or(false)
    }

    unsafe fn start_send(&self, bytes: *const [u8], peer: usize, tag: Tag) -> Result<Request> {
        let to = self.peer(peer)?;
        self.call("MPI_Isend", Some(peer), |mpi, on| {
            // SAFETY: a duplicate that is not freed; the bytes stay, as the caller promises.
            unsafe { mpi.start_send(on, bytes, to, tag) }.map(Request)
        })
    }

    unsafe fn start_receive(&self, bytes: *mut [u8], peer: usize, tag: Tag) -> Result<Request> {
        let from = self.peer(peer)?;
        self.call("MPI_Irecv", Some(peer), |mpi, on| {
            // SAFETY: a duplicate that is not freed; the bytes stay, as the caller promises.
            unsafe { mpi.start_receive(on, bytes, from, tag) }.map(Request)
        })
    }

    unsafe fn wait_any(&self, requests: &[Request]) -> Result<usize> {
        self.call("MPI_Waitany", None, |mpi, _| {
            // SAFETY: requests in flight, as the caller promises.
            let done = unsafe { mpi.done(&mut requests.iter().map(|r| r.0), true) }?;
            done.ok_or_else(|| "it returned before one of them was done".into())
        })
    }

    unsafe fn test_any(&self, requests: &[Request]) -> Result<Option<usize>> {
        self.call("MPI_Testany", None, |mpi, _| {
            // SAFETY: requests in flight, as the caller promises.
            unsafe { mpi.done(&mut requests.iter().map(|r| r.0), false) }
        })
    }

    fn abort(&self, status: i32) {
        if self.shared.finalized() {
            // MPI has nobody left to end.
            std::process::exit(status);
        }
        self.shared.engine.abort(status);
    }
}

impl Drop for MpiCommunicator {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        if let Ok(_lock) = self.shared.lock(self.rank) {
            // SAFETY: the last use of the duplicate. There is nobody to return an error to.
            let _ = unsafe { self.shared.engine.free(self.handle) };
        }
    }
}
