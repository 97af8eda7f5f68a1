//! The cuSPARSE handle and descriptors.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use cudarc::cusparse::sys;
use gustav_core::{DType, Error, IndexType, Layout, Problem, Result};

use crate::device::{Device, DeviceBuffer, Stream};
use crate::matrix::Sparse;
use crate::product::operands::Operands;
use crate::product::sparse_operands;
use crate::schedule::pattern::Pattern;

/// The version of cuSPARSE, for example `12.6.3`.
///
/// # Errors
/// [`Error::NoDevice`] when the library is missing.
pub fn version() -> Result<String> {
    let (major, minor) = version_numbers()?;
    let patch = property(sys::libraryPropertyType_t::PATCH_LEVEL)?;
    Ok(format!("{major}.{minor}.{patch}"))
}

/// The first two numbers of [`version`].
pub(crate) fn version_numbers() -> Result<(c_int, c_int)> {
    use sys::libraryPropertyType_t::{MAJOR_VERSION, MINOR_VERSION};
    Ok((property(MAJOR_VERSION)?, property(MINOR_VERSION)?))
}

fn property(part: sys::libraryPropertyType_t) -> Result<c_int> {
    present()?;
    let mut number = 0;
    // SAFETY: writes one integer.
    check(unsafe { sys::cusparseGetProperty(part, &mut number) })?;
    Ok(number)
}

/// Whether the library can be loaded.
fn present() -> Result<()> {
    // SAFETY: only tries to open the library.
    if unsafe { sys::is_culib_present() } {
        return Ok(());
    }
    let reason = "the library libcusparse was not found; install cuSPARSE or name another \
                  algorithm than vendor";
    Err(Error::NoDevice { reason: reason.into() })
}

/// cuSPARSE's handle.
pub(crate) struct Handle(pub sys::cusparseHandle_t);

// SAFETY: the handle is used by one thread at a time, through `&mut Prepared`.
unsafe impl Send for Handle {}

impl Handle {
    /// A handle for the context that the caller has bound.
    pub(crate) fn new() -> Result<Self> {
        present()?;
        let mut handle = null_mut();
        // SAFETY: writes the handle.
        check(unsafe { sys::cusparseCreate(&mut handle) })?;
        Ok(Handle(handle))
    }

    /// Queues later work on `stream` of `device`.
    pub(crate) fn on(&self, device: &Device, stream: &Stream) -> Result<()> {
        device.bind()?;
        // SAFETY: the stream is alive.
        check(unsafe { sys::cusparseSetStream(self.0, stream.handle().cast()) })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { sys::cusparseDestroy(self.0) };
    }
}

/// A sparse matrix's descriptor.
pub(crate) struct SparseMatrix(pub sys::cusparseSpMatDescr_t);

// SAFETY: as for the handle.
unsafe impl Send for SparseMatrix {}

impl SparseMatrix {
    /// Describes the CSR arrays of `m`, of the types of `o`.
    pub(crate) fn new(m: &Sparse, o: &sparse_operands::Operands) -> Result<Self> {
        Self::described(m, (o.offset_type, o.index_type), o.dtype)
    }

    /// Describes the CSR arrays of `m` with these types of row offsets, column indices and values.
    pub(crate) fn described(
        m: &Sparse,
        types: (IndexType, IndexType),
        dtype: DType,
    ) -> Result<Self> {
        csr(m, types, dtype).map(SparseMatrix)
    }
}

impl Drop for SparseMatrix {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { sys::cusparseDestroySpMat(self.0.cast_const()) };
    }
}

fn csr(
    m: &Sparse,
    (offsets, indices): (IndexType, IndexType),
    dtype: DType,
) -> Result<sys::cusparseSpMatDescr_t> {
    let mut raw = null_mut();
    // SAFETY: only stores the description.
    check(unsafe {
        sys::cusparseCreateCsr(
            &mut raw,
            m.rows as i64,
            m.cols as i64,
            m.nnz as i64,
            m.offsets as *mut c_void,
            m.indices as *mut c_void,
            m.values as *mut c_void,
            index_type(offsets),
            index_type(indices),
            sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO,
            value_type(dtype),
        )
    })?;
    Ok(raw)
}

/// A's descriptor with the workspace of its preprocessing.
pub(crate) struct Matrix {
    pub raw: sys::cusparseSpMatDescr_t,
    /// The operands that it was preprocessed for.
    pub key: [u64; 6],
    pub workspace: DeviceBuffer<u64>,
}

impl Matrix {
    /// A of `o`, without a workspace.
    pub(crate) fn new(device: &Device, o: &Operands, key: [u64; 6]) -> Result<Self> {
        let workspace = DeviceBuffer::uninit(device, 0, "cuSPARSE's workspace")?;
        let sparse = Sparse {
            rows: o.rows,
            cols: o.inner,
            nnz: o.nnz,
            offsets: o.offsets,
            indices: o.indices,
            values: o.values,
        };
        let raw = csr(&sparse, (o.offset_type, o.index_type), o.dtype)?;
        Ok(Matrix { raw, key, workspace })
    }

    /// Allocates a workspace of `bytes`, which work on `stream` uses, and returns its address.
    pub(crate) fn reserve(
        &mut self,
        device: &Device,
        stream: &Stream,
        bytes: usize,
    ) -> Result<*mut c_void> {
        self.workspace = DeviceBuffer::uninit(device, bytes.div_ceil(8), "cuSPARSE's workspace")?;
        self.workspace.used_on(stream);
        Ok(self.workspace.address() as *mut c_void)
    }
}

// SAFETY: as for the handle.
unsafe impl Send for Matrix {}

impl Drop for Matrix {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { sys::cusparseDestroySpMat(self.raw.cast_const()) };
    }
}

/// A product of a CSR matrix: the cuSPARSE handle, and A as last preprocessed.
pub(crate) struct Prepared<C> {
    pub config: C,
    pub handle: Handle,
    pub matrix: Option<Matrix>,
}

impl<C> Prepared<C> {
    pub(crate) fn new(_: &Pattern<'_>, _: &Problem, config: C) -> Result<Self> {
        Ok(Prepared { config, handle: Handle::new()?, matrix: None })
    }

    /// Bytes of the workspace.
    pub(crate) fn workspace_bytes(&self) -> usize {
        self.matrix.as_ref().map_or(0, |m| m.workspace.bytes())
    }
}

/// A dense matrix's descriptor.
pub(crate) struct DenseMatrix(pub sys::cusparseDnMatDescr_t);

impl DenseMatrix {
    /// A descriptor of these arguments.
    pub(crate) fn new(
        rows: usize,
        columns: usize,
        ld: usize,
        address: u64,
        dtype: DType,
        layout: Layout,
    ) -> Result<Self> {
        let order = match layout {
            Layout::RowMajor => sys::cusparseOrder_t::CUSPARSE_ORDER_ROW,
            Layout::ColumnMajor => sys::cusparseOrder_t::CUSPARSE_ORDER_COL,
        };
        let mut raw = null_mut();
        let least = if layout == Layout::RowMajor { columns } else { rows };
        let (rows, columns, ld) = (rows as i64, columns as i64, ld.max(least).max(1) as i64);
        // SAFETY: only stores the description.
        check(unsafe {
            sys::cusparseCreateDnMat(
                &mut raw,
                rows,
                columns,
                ld,
                address as *mut c_void,
                value_type(dtype),
                order,
            )
        })?;
        Ok(DenseMatrix(raw))
    }
}

impl Drop for DenseMatrix {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { sys::cusparseDestroyDnMat(self.0.cast_const()) };
    }
}

/// A vector's descriptor.
pub(crate) struct DenseVector(pub sys::cusparseDnVecDescr_t);

impl DenseVector {
    /// A descriptor of these arguments.
    pub(crate) fn new(len: usize, address: u64, dtype: DType) -> Result<Self> {
        let mut raw = null_mut();
        // SAFETY: only stores the description.
        check(unsafe {
            sys::cusparseCreateDnVec(
                &mut raw,
                len as i64,
                address as *mut c_void,
                value_type(dtype),
            )
        })?;
        Ok(DenseVector(raw))
    }
}

impl Drop for DenseVector {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { sys::cusparseDestroyDnVec(self.0.cast_const()) };
    }
}

/// The type of sums of a product of values of `dtype`.
pub(crate) fn sums(dtype: DType) -> sys::cudaDataType {
    value_type(if dtype.bytes() == 2 { DType::F32 } else { dtype })
}

/// A factor's bits as cuSPARSE reads them.
pub(crate) fn scalar(bits: &u64) -> *const c_void {
    std::ptr::from_ref(bits).cast()
}

pub(crate) fn value_type(dtype: DType) -> sys::cudaDataType {
    match dtype {
        DType::F16 => sys::cudaDataType::CUDA_R_16F,
        DType::Bf16 => sys::cudaDataType::CUDA_R_16BF,
        DType::F64 => sys::cudaDataType::CUDA_R_64F,
        _ => sys::cudaDataType::CUDA_R_32F,
    }
}

fn index_type(t: IndexType) -> sys::cusparseIndexType_t {
    match t {
        IndexType::U32 => sys::cusparseIndexType_t::CUSPARSE_INDEX_32I,
        IndexType::U64 => sys::cusparseIndexType_t::CUSPARSE_INDEX_64I,
    }
}

/// Converts a status of the library to [`Error`].
pub(crate) fn check(status: sys::cusparseStatus_t) -> Result<()> {
    if status == sys::cusparseStatus_t::CUSPARSE_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: cuSPARSE returns a constant string.
    let reason = unsafe { CStr::from_ptr(sys::cusparseGetErrorString(status)) };
    Err(Error::Device { action: "cuSPARSE", reason: reason.to_string_lossy().into_owned() })
}
