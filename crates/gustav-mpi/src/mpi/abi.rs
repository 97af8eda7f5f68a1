//! The three binary interfaces of MPI libraries: what handles are, and the functions that are called.

use std::ffi::{c_char, c_int, c_void};

use libloading::Library;

/// A handle of MPI: an integer in the MPICH ABI, else a pointer.
pub trait Handle: Copy + Send + Sync + 'static {
    /// The handle as a number.
    fn number(self) -> usize;
    /// The handle that has this number.
    fn of(number: usize) -> Self;
}

impl Handle for c_int {
    fn number(self) -> usize {
        self as u32 as usize
    }
    fn of(number: usize) -> Self {
        number as u32 as c_int
    }
}

/// A pointer that is passed back to the library and never read.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Opaque(pub *mut c_void);

// SAFETY: nothing reads through it.
unsafe impl Send for Opaque {}
// SAFETY: as above.
unsafe impl Sync for Opaque {}

impl Handle for Opaque {
    fn number(self) -> usize {
        self.0.expose_provenance()
    }
    fn of(number: usize) -> Self {
        Opaque(std::ptr::with_exposed_provenance_mut(number))
    }
}

/// Handles and numbers that every MPI has.
#[derive(Clone, Copy)]
pub struct Constants<H> {
    pub world: H,
    pub byte: H,
    /// An unsigned integer of 64 bits.
    pub uint64: H,
    pub max: H,
    pub errors_return: H,
    /// `MPI_THREAD_SINGLE`, `_FUNNELED`, `_SERIALIZED` and `_MULTIPLE`.
    pub thread_levels: [c_int; 4],
}

/// The thread levels of MPIs before the standard had an ABI.
const CONSECUTIVE: [c_int; 4] = [0, 1, 2, 3];

/// Memory for a status of any library, which nothing reads.
#[repr(C, align(16))]
pub struct Status([u8; 256]);

impl Status {
    pub fn new() -> Self {
        Status([0; 256])
    }
}

pub const SUCCESS: c_int = 0;

macro_rules! functions {
    ($($name:ident = $symbol:literal: ($($argument:ty),*);)*) => {
        /// Functions of an MPI library, as declared in `mpi.h`; all return an error code.
        pub struct Functions<H> {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl<H: Handle> Functions<H> {
            /// The functions of `library`.
            ///
            /// # Safety
            /// It is an MPI whose handles are `H`, and stays loaded.
            pub unsafe fn of(library: &Library) -> Result<Self, libloading::Error> {
                $(
                    // SAFETY: promised by the caller; the types are those of the MPI standard.
                    let $name = *unsafe { library.get($symbol) }?;
                )*
                Ok(Functions { $($name,)* })
            }
        }
    };
}

functions! {
    initialized = "MPI_Initialized": (*mut c_int);
    finalized = "MPI_Finalized": (*mut c_int);
    init_thread = "MPI_Init_thread": (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    query_thread = "MPI_Query_thread": (*mut c_int);
    is_thread_main = "MPI_Is_thread_main": (*mut c_int);
    finalize = "MPI_Finalize": ();
    abort = "MPI_Abort": (H, c_int);
    library_version = "MPI_Get_library_version": (*mut c_char, *mut c_int);
    error_string = "MPI_Error_string": (c_int, *mut c_char, *mut c_int);
    type_size = "MPI_Type_size": (H, *mut c_int);
    processor_name = "MPI_Get_processor_name": (*mut c_char, *mut c_int);
    comm_rank = "MPI_Comm_rank": (H, *mut c_int);
    comm_size = "MPI_Comm_size": (H, *mut c_int);
    comm_dup = "MPI_Comm_dup": (H, *mut H);
    comm_free = "MPI_Comm_free": (*mut H);
    comm_set_errhandler = "MPI_Comm_set_errhandler": (H, H);
    barrier = "MPI_Barrier": (H);
    all_reduce = "MPI_Allreduce": (*const c_void, *mut c_void, c_int, H, H, H);
    all_gather = "MPI_Allgather": (*const c_void, c_int, H, *mut c_void, c_int, H, H);
    all_to_all = "MPI_Alltoall": (*const c_void, c_int, H, *mut c_void, c_int, H, H);
    start_send = "MPI_Isend": (*const c_void, c_int, H, c_int, c_int, H, *mut H);
    start_receive = "MPI_Irecv": (*mut c_void, c_int, H, c_int, c_int, H, *mut H);
    wait_any = "MPI_Waitany": (c_int, *mut H, *mut c_int, *mut Status);
    test_any = "MPI_Testany": (c_int, *mut H, *mut c_int, *mut c_int, *mut Status);
}

/// Of the ABI of the MPI 5 standard, §20: handles are pointers with small numbers.
pub const STANDARD: Constants<usize> = Constants {
    world: 0x101,
    byte: 0x247,
    uint64: 0x259,
    max: 0x23,
    errors_return: 0x143,
    thread_levels: [0, 1024, 2048, 4096],
};

/// Of the MPICH ABI: handles are integers. `MPI_UNSIGNED_LONG` has kept its number in all versions.
pub const MPICH: Constants<usize> = Constants {
    world: 0x4400_0000,
    byte: 0x4c00_010d,
    uint64: 0x4c00_0808,
    max: 0x5800_0001,
    errors_return: 0x5400_0001,
    thread_levels: CONSECUTIVE,
};

/// Of Open MPI: handles are the addresses of its symbols.
///
/// # Errors
/// When one is missing: it is not an Open MPI.
pub fn open_mpi(library: &Library) -> Result<Constants<usize>, libloading::Error> {
    // A program that was linked to it without position-independent code has the symbols itself.
    let process = Library::from(libloading::os::unix::Library::this());
    let address = |name: &str| {
        // SAFETY: only the address is taken.
        let of = |library: &Library| unsafe { library.get::<*mut c_void>(name) }.map(|s| *s);
        let address = of(&process).or_else(|_| of(library))?;
        Ok::<_, libloading::Error>(address.expose_provenance())
    };
    Ok(Constants {
        world: address("ompi_mpi_comm_world")?,
        byte: address("ompi_mpi_byte")?,
        uint64: address("ompi_mpi_uint64_t")?,
        max: address("ompi_mpi_op_max")?,
        errors_return: address("ompi_mpi_errors_return")?,
        thread_levels: CONSECUTIVE,
    })
}

impl Constants<usize> {
    /// The same as handles.
    pub fn handles<H: Handle>(self) -> Constants<H> {
        Constants {
            world: H::of(self.world),
            byte: H::of(self.byte),
            uint64: H::of(self.uint64),
            max: H::of(self.max),
            errors_return: H::of(self.errors_return),
            thread_levels: self.thread_levels,
        }
    }
}
