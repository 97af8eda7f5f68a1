//! Tensors of DLPack: capsules, and objects with `__dlpack__`; and those that other libraries are given.

use std::ffi::{CStr, c_void};

use gustav::DType;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyCapsule, PyDict};

use crate::array::{Array, Owner};
use crate::element::Element;
use crate::exchange;
use crate::place::{Place, elsewhere};
use crate::shape::{Dimensions, Shapes};

const PLAIN: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
// Of capsules whose tensor was taken.
const USED_PLAIN: &CStr = c"used_dltensor";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
// Of the owner of a tensor that was taken.
const OWNER: &CStr = c"gustav.taken";
// Of DLDeviceType: host memory, and host memory that a GPU reaches.
const CPU: i32 = 1;
const CUDA_HOST: i32 = 3;
const ROCM_HOST: i32 = 11;
// Memory of an NVIDIA GPU, and memory that moves between it and the host.
pub const CUDA: i32 = 2;
const CUDA_MANAGED: i32 = 13;
// The bit of `flags` for memory that may not be written.
const READ_ONLY: u64 = 1;

/// `DLTensor`.
#[repr(C)]
pub struct Tensor {
    pub data: *mut c_void,
    pub device_type: i32,
    pub device_id: i32,
    dimensions: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    /// In elements; null for a packed tensor.
    strides: *const i64,
    byte_offset: u64,
}

impl Tensor {
    /// Its lengths.
    ///
    /// # Safety
    /// A library filled the tensor, and has not let go of it.
    pub unsafe fn shape(&self) -> &[i64] {
        // SAFETY: the caller's promise.
        unsafe { self.numbers(self.shape) }.unwrap_or(&[])
    }

    /// Elements from one to the next in each dimension; `None` for a packed tensor.
    ///
    /// # Safety
    /// As of [`Tensor::shape`].
    unsafe fn strides(&self) -> Option<&[i64]> {
        // SAFETY: the caller's promise.
        unsafe { self.numbers(self.strides) }
    }

    /// As many numbers as there are dimensions, if there are any.
    unsafe fn numbers(&self, at: *const i64) -> Option<&[i64]> {
        let count = usize::try_from(self.dimensions).ok().filter(|count| *count > 0)?;
        // SAFETY: DLPack has a number for each dimension there.
        (!at.is_null()).then(|| unsafe { std::slice::from_raw_parts(at, count) })
    }
}

/// `DLManagedTensor`.
#[repr(C)]
struct Plain {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// The head of `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut c_void)>,
    flags: u64,
    tensor: Tensor,
}

/// A tensor that was taken out of its capsule, which nobody else can take it from any more.
struct Taken {
    managed: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: it is used once, to give the tensor back, by whichever thread drops it last.
unsafe impl Send for Taken {}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(deleter) = self.deleter {
            // SAFETY: the tensor was taken from its capsule, which leaves giving it back to the taker.
            unsafe { deleter(self.managed) }
        }
    }
}

/// The tensor that `object` is or exports, if it is a capsule, its class has a table of functions, or it has `__dlpack__`.
///
/// An object is asked for its tensor in the order of the stream of `place`; a capsule is in that order already.
pub(crate) fn array(
    name: &'static str,
    object: &Bound<'_, PyAny>,
    place: &Place,
    shapes: Shapes,
) -> PyResult<Option<Array>> {
    if let Ok(capsule) = object.cast::<PyCapsule>() {
        return read(name, capsule, shapes).map(Some);
    }
    if let Some(found) = exchange::array(name, object, place, shapes)? {
        return Ok(Some(found));
    }
    let py = object.py();
    if !object.hasattr(intern!(py, "__dlpack__"))? {
        return Ok(None);
    }
    let device = object.call_method0(intern!(py, "__dlpack_device__"))?;
    let device: (i32, i32) = device.extract()?;
    // Nothing is asked for that would be refused: exporting may wait for the device.
    place.of(name, gpu(name, device)?)?;
    let export = || -> PyResult<Bound<'_, PyAny>> {
        let options = PyDict::new(py);
        if let Place::Gpu(gpu) = place {
            options.set_item(intern!(py, "stream"), gpu.dlpack())?;
        }
        options.set_item(intern!(py, "max_version"), (1, 0))?;
        match object.call_method(intern!(py, "__dlpack__"), (), Some(&options)) {
            // Libraries of before DLPack 1.0 know no versions.
            Err(e) if e.is_instance_of::<PyTypeError>(py) => {
                options.del_item(intern!(py, "max_version"))?;
                object.call_method(intern!(py, "__dlpack__"), (), Some(&options))
            }
            other => other,
        }
    };
    let capsule = match export() {
        Ok(capsule) => capsule,
        // What the exporter cannot say may be said by `__array_interface__`.
        Err(e) if e.is_instance_of::<PyBufferError>(py) => {
            return match crate::interface::array(name, object, shapes) {
                Ok(Some(array)) => Ok(Some(array)),
                _ => Err(e),
            };
        }
        Err(e) => return Err(e),
    };
    read(name, capsule.cast::<PyCapsule>()?, shapes).map(Some)
}

/// A tensor on a GPU with what its pointers lead to. It begins with what DLPack knows of it.
#[repr(C)]
struct Exported<M> {
    managed: M,
    shape: Vec<i64>,
    strides: Vec<i64>,
    /// What keeps the memory.
    owner: Box<dyn Send + Sync>,
}

/// Memory of a GPU that is given to another library.
pub struct Memory<'a> {
    /// The address.
    pub data: *mut c_void,
    /// The number of the GPU.
    pub gpu: i32,
    /// The type of the elements, which lie there row after row.
    pub element: &'a Element,
    /// The number of elements in each dimension.
    pub shape: &'a [i64],
}

/// A capsule with a tensor, for a library that knows DLPack 1.0 if `versioned`; `owner` keeps the memory until that
/// library has done with it.
///
/// # Errors
/// `TypeError` for elements that DLPack has no name for.
pub fn capsule<'py>(
    py: Python<'py>,
    memory: Memory<'_>,
    owner: impl Send + Sync + 'static,
    versioned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (code, bits) = match memory.element {
        Element::Value(DType::I32 | DType::I64) => (0, memory.element.bytes() * 8),
        Element::U32 | Element::U64 => (1, memory.element.bytes() * 8),
        Element::Value(DType::Bf16) => (4, 16),
        Element::Value(DType::F16 | DType::F32 | DType::F64) => (2, memory.element.bytes() * 8),
        Element::Other(name) => {
            return Err(PyTypeError::new_err(format!("elements of type {name} are not exported")));
        }
    };
    let shape = memory.shape.to_vec();
    let mut strides = vec![1; shape.len()];
    for k in (1..shape.len()).rev() {
        // A shape without elements may have any strides.
        strides[k - 1] = i64::saturating_mul(strides[k], shape[k].max(1));
    }
    let tensor = Tensor {
        data: memory.data,
        device_type: CUDA,
        device_id: memory.gpu,
        dimensions: shape.len() as i32,
        code,
        bits: bits as u8,
        lanes: 1,
        // Vectors do not move their elements when they move.
        shape: shape.as_ptr(),
        strides: strides.as_ptr(),
        byte_offset: 0,
    };
    let owner: Box<dyn Send + Sync> = Box::new(owner);
    let context = std::ptr::null_mut();
    let (managed, name) = if versioned {
        let deleter = Some(delete::<Versioned> as unsafe extern "C" fn(*mut c_void));
        let managed = Versioned { major: 1, minor: 0, context, deleter, flags: 0, tensor };
        let exported = Box::new(Exported { managed, shape, strides, owner });
        (Box::into_raw(exported).cast::<c_void>(), VERSIONED)
    } else {
        let deleter = Some(delete::<Plain> as unsafe extern "C" fn(*mut c_void));
        let managed = Plain { tensor, context, deleter };
        let exported = Box::new(Exported { managed, shape, strides, owner });
        (Box::into_raw(exported).cast::<c_void>(), PLAIN)
    };
    // SAFETY: the name is static, and the destructor knows what the pointer is by it.
    unsafe {
        let capsule = pyo3::ffi::PyCapsule_New(managed, name.as_ptr(), Some(untaken));
        if capsule.is_null() {
            if versioned { delete::<Versioned>(managed) } else { delete::<Plain>(managed) }
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// Frees a tensor of [`capsule`].
///
/// # Safety
/// `managed` was made there with `M`, and is used no more.
unsafe extern "C" fn delete<M>(managed: *mut c_void) {
    // SAFETY: as required.
    let exported = unsafe { Box::from_raw(managed.cast::<Exported<M>>()) };
    let Exported { owner, shape, strides, managed: _ } = *exported;
    drop((owner, shape, strides));
}

/// The end of a capsule of [`capsule`], whose tensor is freed if nobody took it.
unsafe extern "C" fn untaken(capsule: *mut pyo3::ffi::PyObject) {
    // SAFETY: the interpreter gives a capsule that was made with this destructor; taking its tensor changes its name.
    unsafe {
        for (name, delete) in [
            (PLAIN, delete::<Plain> as unsafe extern "C" fn(*mut c_void)),
            (VERSIONED, delete::<Versioned>),
        ] {
            if pyo3::ffi::PyCapsule_IsValid(capsule, name.as_ptr()) != 0 {
                delete(pyo3::ffi::PyCapsule_GetPointer(capsule, name.as_ptr()));
                return;
            }
        }
    }
}

/// The GPU that a device of DLPack is; none for host memory.
fn gpu(name: &str, (kind, id): (i32, i32)) -> PyResult<Option<u32>> {
    match (kind, u32::try_from(id)) {
        (CPU | CUDA_HOST | ROCM_HOST, _) => Ok(None),
        (CUDA | CUDA_MANAGED, Ok(id)) => Ok(Some(id)),
        _ => {
            Err(elsewhere(name, &format!("device {id} of DLPack's kind {kind}"), "reach of gustav"))
        }
    }
}

/// Takes the tensor out of a capsule, which no other thread does meanwhile.
fn read(name: &'static str, capsule: &Bound<'_, PyCapsule>, shapes: Shapes) -> PyResult<Array> {
    with_critical_section(capsule.as_any(), || read_locked(name, capsule, shapes))
}

fn read_locked(
    name: &'static str,
    capsule: &Bound<'_, PyCapsule>,
    shapes: Shapes,
) -> PyResult<Array> {
    let wrong = |why: &str| PyValueError::new_err(format!("{name}: {why}"));
    let (tensor, readonly, deleter, name_of_capsule, used): (&Tensor, _, _, &CStr, &CStr) =
        if capsule.is_valid_checked(Some(PLAIN)) {
            // SAFETY: a capsule of this name points to a DLManagedTensor, which lives as long as the capsule.
            let plain: &Plain = unsafe { capsule.pointer_checked(Some(PLAIN))?.cast().as_ref() };
            (&plain.tensor, false, plain.deleter, PLAIN, USED_PLAIN)
        } else if capsule.is_valid_checked(Some(VERSIONED)) {
            // SAFETY: as above, of a DLManagedTensorVersioned; its head is the same in every version.
            let tensor: &Versioned =
                unsafe { capsule.pointer_checked(Some(VERSIONED))?.cast().as_ref() };
            if tensor.major != 1 {
                return Err(wrong(&format!(
                    "version {} of DLPack is not known, 1 is",
                    tensor.major
                )));
            }
            let readonly = tensor.flags & READ_ONLY != 0;
            (&tensor.tensor, readonly, tensor.deleter, VERSIONED, USED_VERSIONED)
        } else {
            return Err(wrong("the capsule holds no tensor, or one that was taken from it before"));
        };
    described(name, tensor, readonly, shapes, || {
        let managed = capsule.pointer_checked(Some(name_of_capsule))?.as_ptr();
        // SAFETY: the interpreter is attached, and names of DLPack's capsules are said to be changed so.
        if unsafe { pyo3::ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) } != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        let taken = Taken { managed, deleter };
        Ok(PyCapsule::new_with_value(capsule.py(), taken, OWNER)?.into_any().unbind())
    })
}

/// The array that a tensor of DLPack's describes; `owner`, which keeps its memory, is taken when all else is right.
///
/// # Errors
/// `ValueError` for a place that is none, and for what is not among `shapes`; those of `owner`.
pub(crate) fn described(
    name: &'static str,
    tensor: &Tensor,
    readonly: bool,
    shapes: Shapes,
    owner: impl FnOnce() -> PyResult<Owner>,
) -> PyResult<Array> {
    let gpu = gpu(name, (tensor.device_type, tensor.device_id))?;
    let element = match (tensor.code, tensor.bits, tensor.lanes) {
        (0, 32, 1) => Element::Value(DType::I32),
        (0, 64, 1) => Element::Value(DType::I64),
        (2, 16, 1) => Element::Value(DType::F16),
        (2, 32, 1) => Element::Value(DType::F32),
        (2, 64, 1) => Element::Value(DType::F64),
        (4, 16, 1) => Element::Value(DType::Bf16),
        (0, bits, 1) => Element::of_kind('i', usize::from(bits) / 8),
        (1, bits, 1) => Element::of_kind('u', usize::from(bits) / 8),
        (2, bits, 1) => Element::of_kind('f', usize::from(bits) / 8),
        (5, bits, 1) => Element::of_kind('c', usize::from(bits) / 8),
        (6, ..) => Element::Other("bool".into()),
        (code, bits, lanes) => {
            Element::Other(format!("code {code} of DLPack with {bits} bits in {lanes} lanes"))
        }
    };
    // SAFETY: the caller has a tensor that a library filled and has not let go of.
    let (shape, strides) = unsafe { (tensor.shape(), tensor.strides()) };
    let list = |numbers: &[i64], factor: isize| -> Vec<isize> {
        numbers.iter().map(|n| (*n as isize).saturating_mul(factor)).collect()
    };
    let (bytes, shape) = (element.bytes(), list(shape, 1));
    let strides = strides.map(|strides| list(strides, bytes as isize));
    let dimensions = Dimensions::new(name, &shape, strides.as_deref(), bytes, shapes)?;
    let data = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
    let owner = owner()?;
    Ok(Array { name, element, gpu, data, dimensions, readonly, owner })
}
