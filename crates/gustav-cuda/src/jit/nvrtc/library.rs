//! The NVRTC library: loading it, and the functions that are called.

use std::error::Error as _;
use std::ffi::{c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gustav_core::{Error, Result};
use libloading::Library;

use super::search;

/// Status code of NVRTC's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(c_int);

impl Status {
    pub const SUCCESS: Status = Status(0);
}

/// `nvrtcProgram`, an opaque handle.
pub type RawProgram = *mut std::ffi::c_void;

macro_rules! functions {
    ($($name:ident = $symbol:literal: ($($argument:ty),*) -> $result:ty;)*) => {
        /// Functions of NVRTC, as declared in `nvrtc.h`.
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> $result,)*
            // Keeps the libraries loaded, which the function pointers require.
            _libraries: Vec<Library>,
        }

        impl Functions {
            /// Looks up the functions in the last of `libraries`.
            ///
            /// # Safety
            /// It is NVRTC, and its functions have the types declared here.
            unsafe fn of(libraries: Vec<Library>) -> std::result::Result<Self, libloading::Error> {
                let nvrtc = &libraries[libraries.len() - 1];
                $(
                    // SAFETY: promised by the caller.
                    let $name = *unsafe { nvrtc.get($symbol) }?;
                )*
                Ok(Functions { $($name,)* _libraries: libraries })
            }
        }
    };
}

functions! {
    version = "nvrtcVersion": (*mut c_int, *mut c_int) -> Status;
    num_supported_archs = "nvrtcGetNumSupportedArchs": (*mut c_int) -> Status;
    supported_archs = "nvrtcGetSupportedArchs": (*mut c_int) -> Status;
    create_program = "nvrtcCreateProgram": (
        *mut RawProgram, *const c_char, *const c_char,
        c_int, *const *const c_char, *const *const c_char
    ) -> Status;
    compile_program = "nvrtcCompileProgram": (RawProgram, c_int, *const *const c_char) -> Status;
    destroy_program = "nvrtcDestroyProgram": (*mut RawProgram) -> Status;
    program_log_size = "nvrtcGetProgramLogSize": (RawProgram, *mut usize) -> Status;
    program_log = "nvrtcGetProgramLog": (RawProgram, *mut c_char) -> Status;
    ptx_size = "nvrtcGetPTXSize": (RawProgram, *mut usize) -> Status;
    ptx = "nvrtcGetPTX": (RawProgram, *mut c_char) -> Status;
    cubin_size = "nvrtcGetCUBINSize": (RawProgram, *mut usize) -> Status;
    cubin = "nvrtcGetCUBIN": (RawProgram, *mut c_char) -> Status;
    error_string = "nvrtcGetErrorString": (Status) -> *const c_char;
}

/// The library of this process, loaded in the first call that finds it.
///
/// # Errors
/// [`Error::NoDevice`] that says where it was searched, or why it cannot be used.
pub fn functions() -> Result<&'static Functions> {
    static LOADED: OnceLock<Functions> = OnceLock::new();
    if let Some(functions) = LOADED.get() {
        return Ok(functions);
    }
    let functions = load().map_err(|reason| Error::NoDevice { reason })?;
    Ok(LOADED.get_or_init(|| functions))
}

fn load() -> std::result::Result<Functions, String> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    if let Some(named) = variable(search::VARIABLE) {
        let named = Path::new(&named);
        let file = search::in_folder(named).unwrap_or_else(|| named.into());
        return open(&file)
            .map_err(|e| format!("{} is {}: {e}", search::VARIABLE, named.display()));
    }
    // Names before folders: a library that the process has loaded already is found by its name.
    let names = search::NAMES.iter().map(Into::into);
    let folders = search::named().into_iter().chain(search::folders(&variable));
    let files = folders.filter_map(|folder| search::in_folder(&folder));
    let mut unusable = String::new();
    for (is_path, file) in names.map(|n| (false, n)).chain(files.map(|f| (true, f))) {
        match open(&file) {
            Ok(functions) => return Ok(functions),
            Err(e) if is_path => unusable = format!(" ({} cannot be used: {e})", file.display()),
            Err(_) => {}
        }
    }
    Err(format!(
        "CUDA's run-time compiler NVRTC was not found on the library path, in a CUDA toolkit, or in a \
         Python environment{unusable}; install it (pip install nvidia-cuda-nvrtc, or the toolkit), or \
         name its folder in {}",
        search::VARIABLE
    ))
}

fn open(file: &Path) -> std::result::Result<Functions, String> {
    // NVRTC loads the library with its built-in functions by name, without a path. If it is loaded
    // here first, NVRTC finds it.
    let builtins = file.parent().map(search::builtins).unwrap_or_default();
    let libraries = builtins.iter().map(PathBuf::as_path).chain([file]).map(|file| {
        // SAFETY: the file has NVRTC's name or was named as NVRTC by the user, and NVRTC's
        // initialisation has no requirements.
        unsafe { Library::new(file) }
    });
    let functions = libraries.collect::<std::result::Result<_, _>>().and_then(|libraries| {
        // SAFETY: as above; the types are those of `nvrtc.h`, which have not changed since CUDA
        // 11.2.
        unsafe { Functions::of(libraries) }
    });
    // The message of the system's loader is in the source of `libloading`'s error.
    functions.map_err(|e| e.source().map_or_else(|| e.to_string(), |source| source.to_string()))
}
