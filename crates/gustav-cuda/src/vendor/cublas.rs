//! The cuBLAS handle, and products of dense matrices.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

use cudarc::cublas::sys;
use gustav_core::{DType, Error, Result};

use crate::device::{Device, DeviceBuffer, Stream};
use crate::product::operands::Operands;

// The workspace that cuBLAS recommends on the largest devices; without it cuBLAS would allocate one
// itself.
const WORKSPACE_BYTES: usize = 32 << 20;

/// The version of cuBLAS, for example `13.1.0`.
///
/// # Errors
/// [`Error::NoDevice`] when the library is missing.
pub fn version() -> Result<String> {
    use sys::libraryPropertyType_t::{MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
    present()?;
    let mut parts = Vec::new();
    for part in [MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL] {
        let mut number = 0;
        // SAFETY: writes one integer.
        check(unsafe { sys::cublasGetProperty(part, &mut number) })?;
        parts.push(number.to_string());
    }
    Ok(parts.join("."))
}

/// Whether the library can be loaded.
fn present() -> Result<()> {
    // SAFETY: only tries to open the library.
    if unsafe { sys::is_culib_present() } {
        return Ok(());
    }
    let reason = "the library libcublas was not found; install cuBLAS or name another algorithm \
                  than dense";
    Err(Error::NoDevice { reason: reason.into() })
}

/// cuBLAS's handle and its workspace.
pub(crate) struct Handle {
    raw: sys::cublasHandle_t,
    workspace: DeviceBuffer<u64>,
}

// SAFETY: the handle is used by one thread at a time, through `&mut Prepared`.
unsafe impl Send for Handle {}

impl Handle {
    /// A handle for `device`.
    pub(crate) fn new(device: &Device) -> Result<Self> {
        present()?;
        device.bind()?;
        let what = "cuBLAS's workspace";
        let workspace = DeviceBuffer::uninit(device, WORKSPACE_BYTES / 8, what)?;
        let mut raw = null_mut();
        // SAFETY: writes the handle.
        check(unsafe { sys::cublasCreate_v2(&mut raw) })?;
        Ok(Handle { raw, workspace })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.workspace.bytes()
    }

    /// Queues C = α·A·B + β·C for row-major matrices, A packed at `a`; with `tf32`, factors in f32
    /// are rounded to TF32.
    ///
    /// # Safety
    /// The addresses are valid for these shapes until the work is done.
    pub(crate) unsafe fn multiply(
        &self,
        device: &Device,
        stream: &Stream,
        a: u64,
        o: &Operands,
        tf32: bool,
    ) -> Result<()> {
        device.bind()?;
        self.workspace.used_on(stream);
        let none = sys::cublasOperation_t::CUBLAS_OP_N;
        let pointer = |address: u64| address as *const c_void;
        let (values, sums) = (value_type(o.dtype), value_type(o.dtype_c));
        // cuBLAS is column-major: a row-major matrix is its transpose there, so B is the first
        // operand. SAFETY: the stream is alive, the workspace waits for it when freed, the scalars
        // are read during the call, and the matrices are the caller's promise.
        unsafe {
            check(sys::cublasSetStream_v2(self.raw, stream.handle().cast()))?;
            let workspace = self.workspace.address() as *mut c_void;
            check(sys::cublasSetWorkspace_v2(self.raw, workspace, WORKSPACE_BYTES))?;
            check(sys::cublasGemmEx_64(
                self.raw,
                none,
                none,
                o.columns as i64,
                o.rows as i64,
                o.inner as i64,
                std::ptr::from_ref(&o.alpha).cast(),
                pointer(o.b),
                values,
                o.ldb.max(1) as i64,
                pointer(a),
                values,
                o.inner.max(1) as i64,
                std::ptr::from_ref(&o.beta).cast(),
                o.c as *mut c_void,
                sums,
                o.ldc.max(1) as i64,
                compute_type(o.dtype, tf32),
                sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            ))
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { sys::cublasDestroy_v2(self.raw) };
    }
}

fn value_type(dtype: DType) -> sys::cudaDataType {
    match dtype {
        DType::F16 => sys::cudaDataType::CUDA_R_16F,
        DType::Bf16 => sys::cudaDataType::CUDA_R_16BF,
        DType::F64 => sys::cudaDataType::CUDA_R_64F,
        _ => sys::cudaDataType::CUDA_R_32F,
    }
}

fn compute_type(dtype: DType, tf32: bool) -> sys::cublasComputeType_t {
    match dtype {
        DType::F64 => sys::cublasComputeType_t::CUBLAS_COMPUTE_64F,
        DType::F32 if tf32 => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
        _ => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
    }
}

/// Converts a status of the library to [`Error`].
fn check(status: sys::cublasStatus_t) -> Result<()> {
    if status == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: cuBLAS returns a constant string.
    let reason = unsafe { CStr::from_ptr(sys::cublasGetStatusString(status)) };
    Err(Error::Device { action: "cuBLAS", reason: reason.to_string_lossy().into_owned() })
}
