//! Pointers of a caller as references.

use gustav::interop::dlpack::{
    DLManagedTensorVersioned, DLPackVersion, DLTensor, Tensor, TensorMut,
};
use gustav::{Error, Result};

/// What a pointer points to.
///
/// # Safety
/// `at` is NULL, or points to a value that nobody writes as long as the result is used.
///
/// # Errors
/// [`Error::Argument`] for NULL, and for an address that the type cannot have.
pub(crate) unsafe fn pointee<'a, T>(name: &'static str, at: *const T) -> Result<&'a T> {
    check(name, at)?;
    // SAFETY: promised by the caller.
    Ok(unsafe { &*at })
}

/// Where a call writes.
///
/// # Safety
/// `at` is NULL, or points to a value that nobody else uses as long as the result is used.
///
/// # Errors
/// As [`pointee`].
pub(crate) unsafe fn written<'a, T>(name: &'static str, at: *mut T) -> Result<&'a mut T> {
    check(name, at)?;
    // SAFETY: promised by the caller.
    Ok(unsafe { &mut *at })
}

/// As [`written`], of what a caller may leave out by NULL.
///
/// # Safety
/// As for [`written`].
///
/// # Errors
/// As [`written`].
pub(crate) unsafe fn optional<'a, T>(name: &'static str, at: *mut T) -> Result<Option<&'a mut T>> {
    // SAFETY: promised by the caller.
    if at.is_null() { Ok(None) } else { unsafe { written(name, at) }.map(Some) }
}

fn check<T>(name: &'static str, at: *const T) -> Result<()> {
    let found = match at {
        at if at.is_null() => "NULL".into(),
        at if !at.is_aligned() => format!("{at:p}, which is not aligned"),
        _ => return Ok(()),
    };
    Err(Error::Argument { name, found, expected: "a pointer".into() })
}

/// A managed tensor of the version that is known.
///
/// # Safety
/// `at` is NULL or points to a managed tensor, of any version.
///
/// # Errors
/// As [`pointee`], and [`Error::Argument`] for another major version.
pub(crate) unsafe fn managed_tensor<'a>(
    name: &'static str,
    at: *const DLManagedTensorVersioned,
) -> Result<&'a DLManagedTensorVersioned> {
    check(name, at)?;
    // SAFETY: structs of every version begin with the version.
    let DLPackVersion { major, .. } = unsafe { at.cast::<DLPackVersion>().read() };
    if major != 1 {
        return Err(Error::Argument {
            name: "version of DLPack",
            found: major.to_string(),
            expected: "1".into(),
        });
    }
    // SAFETY: promised by the caller, and the struct is of this version.
    Ok(unsafe { &*at })
}

/// A tensor that is read.
///
/// # Safety
/// As for [`Tensor::new`], or NULL.
///
/// # Errors
/// As [`pointee`] and [`Tensor::new`].
pub(crate) unsafe fn tensor<'a>(name: &'static str, at: *const DLTensor) -> Result<Tensor<'a>> {
    // SAFETY: promised by the caller.
    unsafe { Tensor::new(name, pointee(name, at)?) }
}

/// A tensor that is written.
///
/// # Safety
/// As for [`TensorMut::new`], or NULL.
///
/// # Errors
/// As [`tensor`].
pub(crate) unsafe fn tensor_mut<'a>(
    name: &'static str,
    at: *const DLTensor,
) -> Result<TensorMut<'a>> {
    // SAFETY: promised by the caller.
    unsafe { TensorMut::new(name, pointee(name, at)?) }
}
