//! Where an MPI library is found.

use std::path::{Path, PathBuf};

use gustav_core::{Error, Result};
use libloading::Library;
use libloading::os::unix::{Library as Unix, RTLD_GLOBAL, RTLD_LAZY};

/// Names a library to use, by its file.
pub const VARIABLE: &str = "GUSTAV_MPI";

/// What handles are in a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// That of the MPI 5 standard.
    Standard,
    /// MPICH's, which Intel MPI, Cray MPICH and MVAPICH share.
    Mpich,
    /// Open MPI's.
    OpenMpi,
}

/// An MPI library that is loaded.
pub struct Found {
    pub library: Library,
    pub abi: Abi,
    pub name: String,
}

const STANDARD: [&str; 2] = ["libmpi_abi.so.1", "libmpi_abi.so.0"];
const MPICH: [&str; 1] = ["libmpi.so.12"];
const OPEN_MPI: [&str; 1] = ["libmpi.so.40"];
// So that they are found loaded by programs that were linked to an unversioned name as well.
const UNVERSIONED: [&str; 2] = ["libmpi_abi.so", "libmpi.so"];

/// Libraries that the process has loaded.
pub fn loaded() -> Vec<Found> {
    // Of Linux and of macOS; libloading does not name it.
    let only_loaded = libc::RTLD_NOLOAD | RTLD_LAZY;
    let names = STANDARD.iter().chain(&MPICH).chain(&OPEN_MPI).chain(&UNVERSIONED);
    names.filter_map(|name| open(Path::new(name), only_loaded).ok()).collect()
}

/// A library that is loaded now: the one that the user names, else one with a name from above, which lies beside the
/// first launcher on the path, or which the system's loader finds, or which lies beside another launcher or in a Python
/// environment.
///
/// # Errors
/// [`Error::NoMpi`] naming what was looked for.
pub fn load() -> Result<Found> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    // Open MPI's plug-ins look for its symbols.
    let flags = RTLD_LAZY | RTLD_GLOBAL;
    if let Some(file) = variable(VARIABLE).map(PathBuf::from) {
        return open(&file, flags).map_err(|e| Error::NoMpi {
            reason: format!("{VARIABLE} is {}: {e}", file.display()),
        });
    }
    let (open_mpi, others) = (OPEN_MPI.to_vec(), [&STANDARD[..], &MPICH].concat());
    let families = match variable("OMPI_COMM_WORLD_SIZE") {
        Some(_) => [open_mpi, others],
        None => [others, open_mpi],
    };
    let path = variable("PATH").unwrap_or_default();
    let has_launcher = |f: &PathBuf| f.join("mpiexec").is_file() || f.join("mpirun").is_file();
    let beside = |bin: PathBuf| Some(bin.join("../lib"));
    let mut launchers = std::env::split_paths(&path).filter(has_launcher).map(beside);
    let python = variable("VIRTUAL_ENV").map(|v| PathBuf::from(v).join("lib"));
    // The launcher that is called by its name is the first, and None is where the system's loader looks.
    let first = launchers.next();
    let places: Vec<Option<PathBuf>> =
        first.into_iter().chain([None]).chain(launchers).chain(python.map(Some)).collect();
    let mut unusable = String::new();
    for (place, name) in families.iter().flat_map(|names| {
        places.iter().flat_map(move |place| names.iter().map(move |name| (place, name)))
    }) {
        let file = place.as_ref().map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
        match open(&file, flags) {
            Ok(found) => return Ok(found),
            Err(e) if file.is_file() => {
                unusable = format!(" ({} cannot be used: {e})", file.display());
            }
            Err(_) => {}
        }
    }
    Err(Error::NoMpi {
        reason: format!(
            "the process has loaded none, and none was found on the library path, beside mpiexec on the path or in a \
             Python environment{unusable}: looked for {} (the MPI 5 ABI), {} (MPICH, Intel MPI, Cray MPICH, \
             MVAPICH) and {} (Open MPI 4 and 5). Install one (pip install mpich, or the system's), or name its \
             file in {VARIABLE}",
            STANDARD.join(" or "),
            MPICH[0],
            OPEN_MPI[0],
        ),
    })
}

fn open(file: &Path, flags: i32) -> std::result::Result<Found, String> {
    use std::error::Error as _;
    let in_words = |e: libloading::Error| {
        e.source().map_or_else(|| e.to_string(), |source| source.to_string())
    };
    // SAFETY: the file has the name of an MPI or was named as one by the user; loading one runs only its own
    // initialisers, which ask nothing of the process.
    let library = unsafe { Unix::open(Some(file), flags) }.map_err(in_words)?;
    let library = Library::from(library);
    let has = |name: &str| {
        // SAFETY: only its existence counts.
        unsafe { library.get::<*mut std::ffi::c_void>(name) }.is_ok()
    };
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    let abi = match () {
        () if !has("MPI_Init_thread") => return Err("it has no MPI_Init_thread".into()),
        () if has("ompi_mpi_comm_world") => Abi::OpenMpi,
        () if name.starts_with("libmpi_abi") => Abi::Standard,
        () => Abi::Mpich,
    };
    Ok(Found { library, abi, name: file.display().to_string() })
}
