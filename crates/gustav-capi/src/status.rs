//! Status codes, the text of the last error, and the wall that no panic passes.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use gustav::Error;
use gustav::interop::dlpack::{DLManagedTensorVersioned, DLTensor};

use crate::pointer::{self, managed_tensor};

/// What a call did. The text of an error is that of `gustav_last_error`.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum gustav_status {
    /// Done.
    GUSTAV_OK = 0,
    /// An argument is wrong: NULL, a shape, a type, strides, an index, a handle that was freed.
    GUSTAV_INVALID = 1,
    /// The request is well formed, but not implemented; the text says the nearest that works.
    GUSTAV_UNSUPPORTED = 2,
    /// There is no memory.
    GUSTAV_OUT_OF_MEMORY = 3,
    /// There is no such device, or its driver or compiler is missing.
    GUSTAV_NO_DEVICE = 4,
    /// A device's driver refused.
    GUSTAV_DEVICE = 5,
    /// A defect of gustav.
    GUSTAV_INTERNAL = 6,
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs `work` and says how it ended; the text of an error is held for `gustav_last_error`.
pub(crate) fn guard(work: impl FnOnce() -> gustav::Result<()>) -> gustav_status {
    let (status, text) = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return gustav_status::GUSTAV_OK,
        Ok(Err(error)) => (of(&error), error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let text = format!("internal error, a defect: {}", text.unwrap_or("unknown"));
            (gustav_status::GUSTAV_INTERNAL, text)
        }
    };
    let mut text = text.into_bytes();
    text.retain(|byte| *byte != 0);
    // A thread that ends has no text any more.
    let _ = LAST.try_with(|last| last.replace(CString::new(text).unwrap_or_default()));
    status
}

fn of(error: &Error) -> gustav_status {
    match error.kind() {
        Error::Unsupported { .. } => gustav_status::GUSTAV_UNSUPPORTED,
        Error::OutOfMemory { .. } => gustav_status::GUSTAV_OUT_OF_MEMORY,
        Error::NoDevice { .. } => gustav_status::GUSTAV_NO_DEVICE,
        Error::Device { .. } => gustav_status::GUSTAV_DEVICE,
        _ => gustav_status::GUSTAV_INVALID,
    }
}

/// What went wrong in the last call of this thread that returned an error: what, where, and what would
/// work; "" before the first. Valid until the thread's next call that returns an error.
#[unsafe(no_mangle)]
pub extern "C" fn gustav_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The version of the library, "major.minor.patch".
#[unsafe(no_mangle)]
pub extern "C" fn gustav_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// The tensor of a managed one, to pass to the other functions: `*tensor` points into `managed`, which
/// stays the caller's. With `written` not 0, a tensor whose flags say that it is read-only is an error;
/// so is another major version of DLPack than 1.
///
/// # Safety
/// `managed` is NULL or points to a managed tensor; `tensor` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_tensor(
    managed: *const DLManagedTensorVersioned,
    written: i32,
    tensor: *mut *const DLTensor,
) -> gustav_status {
    guard(|| {
        // SAFETY: promised by the caller.
        let (managed, tensor) =
            unsafe { (managed_tensor("managed", managed)?, pointer::written("tensor", tensor)?) };
        if written != 0 && managed.flags & DLManagedTensorVersioned::READ_ONLY != 0 {
            return Err(Error::Argument {
                name: "managed",
                found: "a tensor that is read-only".into(),
                expected: "one that may be written".into(),
            });
        }
        *tensor = &managed.dl_tensor;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: the text is that of this thread, which makes no other call meanwhile.
        unsafe { CStr::from_ptr(gustav_last_error()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn a_panic_is_a_status() {
        assert_eq!(guard(|| panic!("of a test")), gustav_status::GUSTAV_INTERNAL);
        assert_eq!(last(), "internal error, a defect: of a test");
        assert_eq!(guard(|| Ok(())), gustav_status::GUSTAV_OK);
    }

    #[test]
    fn an_error_is_a_status_and_a_text_of_its_thread() {
        let error = || Error::Argument { name: "x", found: "a\0b".into(), expected: "c".into() };
        assert_eq!(guard(|| Err(error())), gustav_status::GUSTAV_INVALID);
        assert_eq!(last(), "x: ab is not valid, expected c");
        std::thread::spawn(|| assert_eq!(last(), "")).join().expect("the other thread");
    }
}
