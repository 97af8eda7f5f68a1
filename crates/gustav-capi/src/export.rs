//! Arrays of the library as managed tensors.

use std::ffi::c_void;

use gustav::interop::dlpack::{
    DLDataType, DLDevice, DLManagedTensorVersioned, DLPackVersion, DLTensor,
};
use gustav::{Buffer, Index, Scalar};

/// A vector with what holds it.
pub(crate) struct Exported {
    data: *mut c_void,
    len: usize,
    dtype: DLDataType,
    flags: u64,
    owner: Box<dyn Send + Sync>,
}

impl Exported {
    /// Indices that `owner` holds, read-only.
    pub(crate) fn indices<I: Index>(indices: &[I], owner: impl Send + Sync + 'static) -> Self {
        Exported {
            data: indices.as_ptr().cast_mut().cast(),
            len: indices.len(),
            dtype: DLDataType::of_index(I::TYPE),
            flags: DLManagedTensorVersioned::READ_ONLY,
            owner: Box::new(owner),
        }
    }

    /// Values that nobody else has.
    pub(crate) fn values<T: Scalar>(mut values: Buffer<T>) -> Self {
        Exported {
            // The memory of a buffer does not move with it.
            data: values.as_mut_ptr().cast(),
            len: values.len(),
            dtype: DLDataType::of_value(T::DTYPE),
            flags: 0,
            owner: Box::new(values),
        }
    }
}

/// A managed tensor with what it points to.
#[repr(C)]
struct Managed {
    /// First, so that its address is that of the whole.
    tensor: DLManagedTensorVersioned,
    shape: [i64; 1],
    strides: [i64; 1],
    owner: Box<dyn Send + Sync>,
}

/// The managed tensor of a vector, for the caller to free by its deleter.
pub(crate) fn export(vector: Exported) -> *mut DLManagedTensorVersioned {
    let Exported { data, len, dtype, flags, owner } = vector;
    let dl_tensor = DLTensor {
        data,
        device: DLDevice { device_type: DLDevice::CPU, device_id: 0 },
        ndim: 1,
        dtype,
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let tensor = DLManagedTensorVersioned {
        version: DLPackVersion { major: 1, minor: 0 },
        manager_ctx: std::ptr::null_mut(),
        deleter: Some(free),
        flags,
        dl_tensor,
    };
    let managed = Box::new(Managed { tensor, shape: [len as i64], strides: [1], owner });
    let managed = Box::into_raw(managed);
    // SAFETY: the box was made above, and its fields do not move.
    unsafe {
        (*managed).tensor.dl_tensor.shape = (&raw mut (*managed).shape).cast();
        (*managed).tensor.dl_tensor.strides = (&raw mut (*managed).strides).cast();
    }
    managed.cast()
}

/// The deleter of [`export`].
///
/// # Safety
/// `tensor` is what it returned, and is used no more.
unsafe extern "C" fn free(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: promised by the caller; the tensor is the first field of the box.
    let managed = unsafe { Box::from_raw(tensor.cast::<Managed>()) };
    drop(managed.owner);
}
