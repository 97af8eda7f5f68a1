//! An MPI library behind one interface, whatever its handles are.

use std::ffi::{c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gustav_core::{Error, Result};
use libloading::Library;

use super::abi::{self, Constants, Functions, Handle, Opaque, SUCCESS, Status};
use super::search::{Abi, Found};
use crate::communicator::Tag;

/// How long a launcher takes to forward what a rank prints, with a margin.
const PASSED_ON: Duration = Duration::from_millis(300);

/// How many threads may call MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadLevel {
    /// The process has one thread.
    Single,
    /// Only the thread that initialised it.
    Funneled,
    /// One thread at a time.
    Serialized,
    /// Any threads at any time.
    Multiple,
}

impl ThreadLevel {
    /// The level that an MPI with these numbers of levels means by `level`.
    fn of(level: c_int, levels: [c_int; 4]) -> Self {
        let granted = levels.iter().rposition(|least| *least <= level).unwrap_or(0);
        [Self::Single, Self::Funneled, Self::Serialized, Self::Multiple][granted]
    }
}

/// The calls of an MPI library, with handles as numbers. Errors are MPI's own words.
pub trait Engine: Send + Sync {
    fn initialized(&self) -> Result<bool, String>;
    fn finalized(&self) -> Result<bool, String>;
    fn initialize(&self) -> Result<(), String>;
    fn finalize(&self) -> Result<(), String>;
    fn thread_level(&self) -> Result<ThreadLevel, String>;
    fn is_main_thread(&self) -> Result<bool, String>;
    fn version(&self) -> Result<String, String>;
    /// The name of the host.
    fn host(&self) -> Result<String, String>;
    /// Refuses a library whose constants are not those of its ABI.
    fn check_constants(&self) -> Result<(), String>;
    /// Bytes of a handle.
    fn handle_bytes(&self) -> usize;
    fn world(&self) -> usize;
    fn abort(&self, status: i32);
    /// A communicator of the same ranks as `from`, whose errors are returned; its rank and size.
    ///
    /// # Safety
    /// `from` is a communicator of the library.
    unsafe fn duplicate(&self, from: usize) -> Result<(usize, usize, usize), String>;
    /// The rank and the size of a communicator.
    ///
    /// # Safety
    /// `of` is a communicator of the library.
    unsafe fn rank_and_size(&self, of: usize) -> Result<(usize, usize), String>;
    /// # Safety
    /// `communicator` was returned by [`Engine::duplicate`] and is not used again.
    unsafe fn free(&self, communicator: usize) -> Result<(), String>;
    /// # Safety
    /// Of this and the following: `on` was returned by [`Engine::duplicate`].
    unsafe fn barrier(&self, on: usize) -> Result<(), String>;
    /// # Safety
    /// See [`Engine::barrier`]; both have the same length.
    unsafe fn all_reduce_max(&self, on: usize, mine: &[u64], all: &mut [u64])
    -> Result<(), String>;
    /// # Safety
    /// See [`Engine::barrier`]; `all` has the length of what every rank gives.
    unsafe fn all_gather(&self, on: usize, mine: &[u8], all: &mut [u8]) -> Result<(), String>;
    /// # Safety
    /// See [`Engine::barrier`]; both have a number for every rank.
    unsafe fn all_to_all(&self, on: usize, to: &[u64], from: &mut [u64]) -> Result<(), String>;
    /// # Safety
    /// See [`Engine::barrier`], and [`Communicator::start_send`](crate::Communicator::start_send).
    unsafe fn start_send(
        &self,
        on: usize,
        bytes: *const [u8],
        peer: c_int,
        tag: Tag,
    ) -> Result<usize, String>;
    /// # Safety
    /// See [`Engine::barrier`], and [`Communicator::start_receive`](crate::Communicator::start_receive).
    unsafe fn start_receive(
        &self,
        on: usize,
        bytes: *mut [u8],
        peer: c_int,
        tag: Tag,
    ) -> Result<usize, String>;
    /// Whether messages may be in memory of a CUDA device; MPI is initialised.
    fn takes_device_memory(&self) -> bool;
    /// One of `requests` that is done, if one is; with `wait`, when one is.
    ///
    /// # Safety
    /// `requests` are some that were started and are not done.
    unsafe fn done(
        &self,
        requests: &mut dyn ExactSizeIterator<Item = usize>,
        wait: bool,
    ) -> Result<Option<usize>, String>;
}

/// The library behind [`Engine`].
///
/// # Errors
/// [`Error::NoMpi`] when it lacks what its ABI has.
pub fn engine(found: Found) -> Result<Box<dyn Engine>> {
    let Found { library, abi, name } = found;
    let engine = || -> Result<Box<dyn Engine>, libloading::Error> {
        match abi {
            Abi::Standard => boxed::<Opaque>(library, abi::STANDARD),
            Abi::Mpich => boxed::<c_int>(library, abi::MPICH),
            Abi::OpenMpi => {
                let constants = abi::open_mpi(&library)?;
                boxed::<Opaque>(library, constants)
            }
        }
    };
    engine().map_err(|e| Error::NoMpi { reason: format!("{name} cannot be used: {e}") })
}

fn boxed<H: Handle>(
    library: Library,
    constants: Constants<usize>,
) -> Result<Box<dyn Engine>, libloading::Error> {
    // SAFETY: the ABI was found by the library's name and symbols.
    Ok(Box::new(unsafe { Calls::<H>::new(library, constants) }?))
}

struct Calls<H> {
    functions: Functions<H>,
    constants: Constants<H>,
    /// Requests in the library's form, while they are waited for.
    requests: Mutex<Vec<H>>,
    /// An extension of Open MPI's, which others have as well, that says whether this build takes pointers to CUDA
    /// devices.
    cuda_support: Option<unsafe extern "C" fn() -> c_int>,
    /// MPI libraries do not bear to be unloaded.
    _library: ManuallyDrop<Library>,
}

impl<H: Handle> Calls<H> {
    /// # Safety
    /// `library` is an MPI with handles `H` and these constants.
    unsafe fn new(
        library: Library,
        constants: Constants<usize>,
    ) -> Result<Self, libloading::Error> {
        // SAFETY: promised by the caller; it is never unloaded.
        let functions = unsafe { Functions::of(&library) }?;
        let (constants, requests) = (constants.handles(), Mutex::default());
        // SAFETY: it takes nothing and returns an integer, wherever it is.
        let cuda_support = unsafe { library.get("MPIX_Query_cuda_support") }.map(|f| *f).ok();
        let _library = ManuallyDrop::new(library);
        Ok(Calls { functions, constants, requests, cuda_support, _library })
    }

    /// The result of a call that returned `code`.
    fn check(&self, code: c_int) -> Result<(), String> {
        if code == SUCCESS {
            return Ok(());
        }
        let mut text = [0_u8; 4096];
        let mut len = 0;
        // SAFETY: the longest text of any library has 512 bytes.
        let status =
            unsafe { (self.functions.error_string)(code, text.as_mut_ptr().cast(), &mut len) };
        let text = text.split(|b| *b == 0).next().unwrap_or_default();
        Err(match status {
            SUCCESS => String::from_utf8_lossy(text).into_owned(),
            _ => format!("error {code}"),
        })
    }

    /// What a function writes as an integer.
    fn number(&self, call: impl FnOnce(&mut c_int) -> c_int) -> Result<c_int, String> {
        let mut number = 0;
        self.check(call(&mut number))?;
        Ok(number)
    }

    fn requests(&self) -> MutexGuard<'_, Vec<H>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where `values` begin. Of none that is an address which a library may take for `MPI_IN_PLACE`, such as 1: it gets
/// another, at which it reads and writes nothing.
fn address<T>(values: &[T]) -> *const c_void {
    static NOTHING: u64 = 0;
    if values.is_empty() { (&raw const NOTHING).cast() } else { values.as_ptr().cast() }
}

/// The same of values that are written.
fn address_mut<T>(values: &mut [T]) -> *mut c_void {
    if values.is_empty() { address(values).cast_mut() } else { values.as_mut_ptr().cast() }
}

fn count(len: usize) -> Result<c_int, String> {
    c_int::try_from(len).map_err(|_| format!("{len} elements in one message are too many"))
}

// SAFETY of the calls below: arguments have the types and lengths of the MPI standard, pointers are of live values,
// and communicators are promised by callers.
impl<H: Handle> Engine for Calls<H> {
    fn initialized(&self) -> Result<bool, String> {
        // SAFETY: may be called at any time.
        self.number(|n| unsafe { (self.functions.initialized)(n) }).map(|n| n != 0)
    }

    fn finalized(&self) -> Result<bool, String> {
        // SAFETY: may be called at any time.
        self.number(|n| unsafe { (self.functions.finalized)(n) }).map(|n| n != 0)
    }

    fn initialize(&self) -> Result<(), String> {
        let [.., multiple] = self.constants.thread_levels;
        let null = std::ptr::null_mut();
        // SAFETY: no arguments of the program are passed, which the standard allows.
        self.number(|n| unsafe { (self.functions.init_thread)(null, null.cast(), multiple, n) })
            .map(drop)
    }

    fn finalize(&self) -> Result<(), String> {
        // SAFETY: takes nothing.
        self.check(unsafe { (self.functions.finalize)() })
    }

    fn thread_level(&self) -> Result<ThreadLevel, String> {
        // SAFETY: MPI is initialised, as callers see to.
        let level = self.number(|n| unsafe { (self.functions.query_thread)(n) })?;
        Ok(ThreadLevel::of(level, self.constants.thread_levels))
    }

    fn is_main_thread(&self) -> Result<bool, String> {
        // SAFETY: any thread may ask.
        self.number(|n| unsafe { (self.functions.is_thread_main)(n) }).map(|n| n != 0)
    }

    fn version(&self) -> Result<String, String> {
        // More than MPI_MAX_LIBRARY_VERSION_STRING of any library.
        let mut text = vec![0_u8; 1 << 16];
        let at: *mut c_char = text.as_mut_ptr().cast();
        // SAFETY: the buffer has the length that MPI asks for; may be called at any time.
        self.number(|n| unsafe { (self.functions.library_version)(at, n) })?;
        // Name and version are first; what distinguishes builds follows.
        let line = text.split(|b| [0, b'\n', b','].contains(b)).next().unwrap_or_default();
        let words = String::from_utf8_lossy(line);
        Ok(words.split_whitespace().collect::<Vec<_>>().join(" ").replace(" :", ":"))
    }

    fn host(&self) -> Result<String, String> {
        // More than MPI_MAX_PROCESSOR_NAME of any library.
        let mut text = [0_u8; 4096];
        let at: *mut c_char = text.as_mut_ptr().cast();
        // SAFETY: the buffer has the length that MPI asks for; MPI is initialised, as callers see to.
        self.number(|n| unsafe { (self.functions.processor_name)(at, n) })?;
        let name = text.split(|b| *b == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    fn check_constants(&self) -> Result<(), String> {
        for (handle, bytes) in [(self.constants.byte, 1), (self.constants.uint64, 8)] {
            // SAFETY: a type of the ABI.
            let size = self.number(|n| unsafe { (self.functions.type_size)(handle, n) })?;
            if size != bytes {
                return Err(format!(
                    "a type of {bytes} bytes has {size} there: it has another ABI"
                ));
            }
        }
        Ok(())
    }

    fn handle_bytes(&self) -> usize {
        size_of::<H>()
    }

    fn world(&self) -> usize {
        self.constants.world.number()
    }

    fn abort(&self, status: i32) {
        // MPICH's launcher drops what ranks have printed and it has not yet forwarded when a job is aborted.
        std::thread::sleep(PASSED_ON);
        // Some return before the launcher ends this process, which must not go on.
        // SAFETY: of all processes, and of this one.
        unsafe {
            (self.functions.abort)(self.constants.world, status);
            libc::_exit(status);
        }
    }

    unsafe fn duplicate(&self, from: usize) -> Result<(usize, usize, usize), String> {
        let mut made = H::of(0);
        // SAFETY: a communicator, as promised.
        self.check(unsafe { (self.functions.comm_dup)(H::of(from), &mut made) })?;
        // SAFETY: a communicator that was just made.
        self.check(unsafe {
            (self.functions.comm_set_errhandler)(made, self.constants.errors_return)
        })?;
        // SAFETY: as above.
        let (rank, size) = unsafe { self.rank_and_size(made.number()) }?;
        Ok((made.number(), rank, size))
    }

    unsafe fn rank_and_size(&self, of: usize) -> Result<(usize, usize), String> {
        // SAFETY: a communicator, as promised.
        let rank = self.number(|n| unsafe { (self.functions.comm_rank)(H::of(of), n) })?;
        // SAFETY: as above.
        let size = self.number(|n| unsafe { (self.functions.comm_size)(H::of(of), n) })?;
        Ok((rank as usize, size as usize))
    }

    unsafe fn free(&self, communicator: usize) -> Result<(), String> {
        let mut communicator = H::of(communicator);
        // SAFETY: promised by the caller.
        self.check(unsafe { (self.functions.comm_free)(&mut communicator) })
    }

    unsafe fn barrier(&self, on: usize) -> Result<(), String> {
        // SAFETY: promised by the caller.
        self.check(unsafe { (self.functions.barrier)(H::of(on)) })
    }

    unsafe fn all_reduce_max(
        &self,
        on: usize,
        mine: &[u64],
        all: &mut [u64],
    ) -> Result<(), String> {
        let (from, to) = (address(mine), address_mut(all));
        let Constants { uint64, max, .. } = self.constants;
        // SAFETY: as many elements on both sides, as promised.
        self.check(unsafe {
            (self.functions.all_reduce)(from, to, count(mine.len())?, uint64, max, H::of(on))
        })
    }

    unsafe fn all_gather(&self, on: usize, mine: &[u8], all: &mut [u8]) -> Result<(), String> {
        let (n, byte) = (count(mine.len())?, self.constants.byte);
        let (from, to) = (address(mine), address_mut(all));
        // SAFETY: the buffer has the length that MPI asks for, as promised.
        self.check(unsafe { (self.functions.all_gather)(from, n, byte, to, n, byte, H::of(on)) })
    }

    unsafe fn all_to_all(&self, on: usize, to: &[u64], from: &mut [u64]) -> Result<(), String> {
        let uint64 = self.constants.uint64;
        let (send, receive) = (address(to), address_mut(from));
        // SAFETY: an element for every rank on both sides, as promised.
        self.check(unsafe {
            (self.functions.all_to_all)(send, 1, uint64, receive, 1, uint64, H::of(on))
        })
    }

    unsafe fn start_send(
        &self,
        on: usize,
        bytes: *const [u8],
        peer: c_int,
        tag: Tag,
    ) -> Result<usize, String> {
        let (n, byte, at) = (count(bytes.len())?, self.constants.byte, bytes.cast());
        let mut request = H::of(0);
        // SAFETY: the bytes stay, as promised.
        self.check(unsafe {
            (self.functions.start_send)(at, n, byte, peer, tag as c_int, H::of(on), &mut request)
        })?;
        Ok(request.number())
    }

    unsafe fn start_receive(
        &self,
        on: usize,
        bytes: *mut [u8],
        peer: c_int,
        tag: Tag,
    ) -> Result<usize, String> {
        let (n, byte, at) = (count(bytes.len())?, self.constants.byte, bytes.cast());
        let mut request = H::of(0);
        // SAFETY: the bytes stay, as promised.
        self.check(unsafe {
            (self.functions.start_receive)(at, n, byte, peer, tag as c_int, H::of(on), &mut request)
        })?;
        Ok(request.number())
    }

    fn takes_device_memory(&self) -> bool {
        // SAFETY: MPI is initialised, as callers see to.
        self.cuda_support.is_some_and(|supports| unsafe { supports() } == 1)
    }

    unsafe fn done(
        &self,
        requests: &mut dyn ExactSizeIterator<Item = usize>,
        wait: bool,
    ) -> Result<Option<usize>, String> {
        // Several threads may wait, each for its own.
        let mut list = std::mem::take(&mut *self.requests());
        list.clear();
        list.extend(requests.map(H::of));
        let (n, mut status) = (count(list.len())?, Status::new());
        let (list_at, mut is_done) = (list.as_mut_ptr(), 1);
        // SAFETY: requests in flight, as promised; the status is as large as that of any library.
        let done = self.number(|at| unsafe {
            match wait {
                true => (self.functions.wait_any)(n, list_at, at, &mut status),
                false => (self.functions.test_any)(n, list_at, at, &mut is_done, &mut status),
            }
        });
        *self.requests() = list;
        let done = done?;
        let none = |_| "none of the requests is under way".to_owned();
        (is_done != 0).then(|| usize::try_from(done).map_err(none)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_levels_are_those_of_the_abi() {
        use ThreadLevel::{Funneled, Multiple, Serialized, Single};
        let of = |levels, numbers: [c_int; 4]| numbers.map(|n| ThreadLevel::of(n, levels));
        let all = [Single, Funneled, Serialized, Multiple];
        assert_eq!(of(abi::MPICH.thread_levels, [0, 1, 2, 3]), all);
        assert_eq!(of(abi::STANDARD.thread_levels, [0, 1024, 2048, 4096]), all);
        assert_eq!(
            of(abi::STANDARD.thread_levels, [-1, 3, 2047, 5000]),
            [Single, Single, Funneled, Multiple]
        );
    }
}
