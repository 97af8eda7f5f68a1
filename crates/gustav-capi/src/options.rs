//! Options of products and plans.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, PoisonError};

use gustav::{Algorithm, Chooser, Device, Error, Result, Semiring, Threads};

use crate::pointer::pointee;

/// Options of a product. Begin with `gustav_options options = GUSTAV_OPTIONS;`, in which everything but the
/// size is 0, and set what differs; NULL in place of options is the same.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gustav_options {
    /// `sizeof(gustav_options)`: what a later version adds is 0 in programs that were compiled before.
    pub size: usize,
    /// "cpu" or "cuda:0"; NULL: "cpu".
    pub device: *const c_char,
    /// Threads of the CPU; 0: one per core, or what RAYON_NUM_THREADS says.
    pub threads: usize,
    /// How often a plan will be executed, as far as the caller knows; 0: once.
    pub calls: u64,
    /// "plus-times", "min-plus", "max-times", "or-and", "plus-first" or "plus-second"; NULL: "plus-times".
    /// Not for SDDMM.
    pub semiring: *const c_char,
    /// The name of an algorithm; NULL: what the library chooses.
    pub algorithm: *const c_char,
    /// `GUSTAV_TRANSPOSE`, `GUSTAV_DETERMINISTIC`, or both.
    pub flags: u32,
}

/// Multiplies Aᵀ instead of A. Not for SDDMM.
pub const GUSTAV_TRANSPOSE: u32 = 1;
/// Results are the same to the bit from run to run and for any number of threads.
pub const GUSTAV_DETERMINISTIC: u32 = 2;

/// The same, read.
pub(crate) struct Options {
    pub device: Device,
    pub calls: u64,
    pub semiring: Semiring,
    pub transpose: bool,
    pub deterministic: bool,
}

impl Options {
    /// Reads `options`.
    ///
    /// # Safety
    /// `options` is NULL or points to `size` bytes of the struct; its strings are NULL or end in 0.
    ///
    /// # Errors
    /// [`Error::Argument`] for names and bits that are not known, and what
    /// [`Device::cuda`](gustav::Device::cuda) lacks.
    pub(crate) unsafe fn read(options: *const gustav_options) -> Result<Self> {
        if options.is_null() {
            return Ok(Options {
                device: Device::cpu(),
                calls: 1,
                semiring: Semiring::PlusTimes,
                transpose: false,
                deterministic: false,
            });
        };
        // SAFETY: promised by the caller; every version of the struct begins with its size.
        let size = unsafe { *pointee("options", options.cast::<usize>())? };
        if size != size_of::<gustav_options>() {
            return Err(Error::Argument {
                name: "size of options",
                found: size.to_string(),
                expected: format!("sizeof(gustav_options), {}", size_of::<gustav_options>()),
            });
        }
        // SAFETY: promised by the caller; the struct is of this size.
        let given = unsafe { *pointee("options", options)? };
        // SAFETY: promised by the caller.
        let (device, semiring, algorithm) = unsafe {
            (
                text("device", given.device)?,
                text("semiring", given.semiring)?,
                text("algorithm", given.algorithm)?,
            )
        };
        let mut device: Device = device.unwrap_or("cpu").parse()?;
        if given.threads > 0 {
            device = device.on(threads(given.threads)?);
        }
        if let Some(name) = algorithm {
            device = device.choose(Chooser::Named(name.parse::<Algorithm>()?));
        }
        if given.flags & !(GUSTAV_TRANSPOSE | GUSTAV_DETERMINISTIC) != 0 {
            return Err(Error::Argument {
                name: "flags",
                found: format!("{:#x}", given.flags),
                expected: "GUSTAV_TRANSPOSE, GUSTAV_DETERMINISTIC or both".into(),
            });
        }
        Ok(Options {
            device,
            calls: given.calls.max(1),
            semiring: semiring.map_or(Ok(Semiring::PlusTimes), named)?,
            transpose: given.flags & GUSTAV_TRANSPOSE != 0,
            deterministic: given.flags & GUSTAV_DETERMINISTIC != 0,
        })
    }

    /// Refuses what products at the nonzeros of a pattern do not have.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub(crate) fn refuse_of_sddmm(&self) -> Result<()> {
        let found = match (self.transpose, self.semiring) {
            (true, _) => "GUSTAV_TRANSPOSE",
            (_, Semiring::PlusTimes) => return Ok(()),
            _ => "a semiring",
        };
        Err(Error::Unsupported {
            problem: found.into(),
            backend: "SDDMM".into(),
            reason: "it is a product of plus and times at a pattern as it is".into(),
            nearest: "options without it".into(),
        })
    }
}

/// The semiring with this name.
fn named(name: &str) -> Result<Semiring> {
    Semiring::ALL.into_iter().find(|s| s.name() == name).ok_or_else(|| Error::Argument {
        name: "semiring",
        found: name.into(),
        expected: Semiring::ALL.map(Semiring::name).join(", "),
    })
}

/// A string of C.
///
/// # Safety
/// `at` is NULL, or a string that ends in 0 and outlives the result.
pub(crate) unsafe fn text<'a>(name: &'static str, at: *const c_char) -> Result<Option<&'a str>> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: promised by the caller.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str().map(Some).map_err(|_| Error::Argument {
        name,
        found: text.to_string_lossy().into_owned(),
        expected: "text in UTF-8".into(),
    })
}

/// The pool of `count` threads, made when it is first asked for.
fn threads(count: usize) -> Result<Threads> {
    static POOLS: Mutex<BTreeMap<usize, Threads>> = Mutex::new(BTreeMap::new());
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = pools.get(&count) {
        return Ok(found.clone());
    }
    let made = Threads::new(count, false)?;
    pools.insert(count, made.clone());
    Ok(made)
}
