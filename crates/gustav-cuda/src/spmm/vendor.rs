//! `vendor`: cuSPARSE, for comparison and for those who name it.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

use cudarc::cusparse::sys;
use gustav_core::{DType, Error, IndexType, Layout, Operation, Problem, Result, SemiringKind};

use super::catalog::Method;
use super::operands::Operands;
use super::pattern::Pattern;
use super::unsupported;
use crate::stream::Stream;
use crate::{Device, DeviceBuffer};

/// Which of cuSPARSE's algorithms for CSR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// Its own choice.
    #[default]
    Default,
    /// `CUSPARSE_SPMM_CSR_ALG1`.
    Alg1,
    /// `CUSPARSE_SPMM_CSR_ALG2`.
    Alg2,
    /// `CUSPARSE_SPMM_CSR_ALG3`.
    Alg3,
}

impl Config {
    /// Every one.
    pub const ALL: [Config; 4] = [Config::Default, Config::Alg1, Config::Alg2, Config::Alg3];

    fn raw(self) -> sys::cusparseSpMMAlg_t {
        match self {
            Config::Default => sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_ALG_DEFAULT,
            Config::Alg1 => sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG1,
            Config::Alg2 => sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG2,
            Config::Alg3 => sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG3,
        }
    }
}

/// The version of cuSPARSE, for example `12.6.3`.
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
        check(unsafe { sys::cusparseGetProperty(part, &mut number) })?;
        parts.push(number.to_string());
    }
    Ok(parts.join("."))
}

fn present() -> Result<()> {
    // SAFETY: only tries to open the library.
    if unsafe { sys::is_culib_present() } {
        return Ok(());
    }
    let reason = "the library libcusparse was not found; install cuSPARSE or name another \
                  algorithm than vendor";
    Err(Error::NoDevice { reason: reason.into() })
}

/// What cuSPARSE takes: floating point, equal index types, plus-times, in no promised order.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    let refuse = |reason: &str| Err(unsupported(problem, "vendor (cuSPARSE)", reason, "segmented"));
    if problem.operation != Operation::Spmm {
        return refuse("it multiplies by a dense matrix");
    }
    if problem.dtype.is_integer() {
        return refuse("it takes no integers");
    }
    if problem.semiring != SemiringKind::PlusTimes {
        return refuse("it computes plus-times");
    }
    if problem.index_type != problem.offset_type {
        return refuse("indices and offsets must be of one type");
    }
    if problem.index_type == IndexType::U32 && problem.nnz.max(problem.cols) > i32::MAX as usize {
        return refuse("its 32-bit indices are signed");
    }
    if problem.deterministic {
        return refuse("its order of summation is not promised");
    }
    Ok(())
}

// cuSPARSE takes either layout itself.
pub(super) const ANY_LAYOUT: bool = true;

/// Its own choice.
pub(super) fn choose(_pattern: &Pattern<'_>, _problem: &Problem) -> Result<(Config, String)> {
    Ok((Config::Default, "named by the caller".into()))
}

pub(super) fn configs(_problem: &Problem) -> Vec<Config> {
    Config::ALL.to_vec()
}

/// cuSPARSE's handle, and A as it was last prepared.
pub(super) struct Prepared {
    config: Config,
    handle: Handle,
    matrix: Option<Matrix>,
}

struct Handle(sys::cusparseHandle_t);

// SAFETY: the handle is used by one thread at a time, through `&mut Prepared`.
unsafe impl Send for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { sys::cusparseDestroy(self.0) };
    }
}

/// A's descriptor with the workspace that it was preprocessed in.
struct Matrix {
    raw: sys::cusparseSpMatDescr_t,
    key: [u64; 6],
    workspace: DeviceBuffer<u64>,
}

// SAFETY: as for the handle.
unsafe impl Send for Matrix {}

impl Drop for Matrix {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { sys::cusparseDestroySpMat(self.raw.cast_const()) };
    }
}

struct DenseMatrix(sys::cusparseDnMatDescr_t);

impl DenseMatrix {
    fn new(
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

impl Prepared {
    pub(super) fn new(_pattern: &Pattern<'_>, _problem: &Problem, config: Config) -> Result<Self> {
        present()?;
        let mut handle = null_mut();
        // SAFETY: writes the handle, for the context that the caller has bound.
        check(unsafe { sys::cusparseCreate(&mut handle) })?;
        Ok(Prepared { config, handle: Handle(handle), matrix: None })
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.matrix.as_ref().map_or(0, |m| m.workspace.bytes())
    }

    // Describes and preprocesses A when it is new.
    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        let (layout_b, layout_c) = o.layouts;
        device.bind()?;
        // SAFETY: the stream is alive.
        check(unsafe { sys::cusparseSetStream(self.handle.0, stream.handle().cast()) })?;
        let b = DenseMatrix::new(o.inner, o.columns, o.ldb, o.b, o.dtype, layout_b)?;
        let c = DenseMatrix::new(o.rows, o.columns, o.ldc, o.c, o.dtype_c, layout_c)?;
        let key =
            [o.offsets, o.indices, o.values, layout_b as u64, layout_c as u64, o.columns as u64];
        let (handle, algorithm) = (self.handle.0, self.config.raw());
        let none = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
        let (alpha, beta) = (scalar(&o.alpha), scalar(&o.beta));
        let sums = value_type(if o.dtype.bytes() == 2 { DType::F32 } else { o.dtype });
        if self.matrix.as_ref().is_none_or(|m| m.key != key) {
            self.matrix = None;
            let mut raw = null_mut();
            let (rows, inner, nnz) = (o.rows as i64, o.inner as i64, o.nnz as i64);
            // SAFETY: only stores the description.
            check(unsafe {
                sys::cusparseCreateCsr(
                    &mut raw,
                    rows,
                    inner,
                    nnz,
                    o.offsets as *mut c_void,
                    o.indices as *mut c_void,
                    o.values as *mut c_void,
                    index_type(o.offset_type),
                    index_type(o.index_type),
                    sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO,
                    value_type(o.dtype),
                )
            })?;
            let empty = DeviceBuffer::uninit(device, 0, "cuSPARSE's workspace")?;
            let mut matrix = Matrix { raw, key, workspace: empty };
            let mut bytes = 0;
            // SAFETY: the descriptors are alive; the scalars are read during the calls.
            unsafe {
                check(sys::cusparseSpMM_bufferSize(
                    handle,
                    none,
                    none,
                    alpha,
                    raw.cast_const(),
                    b.0.cast_const(),
                    beta,
                    c.0,
                    sums,
                    algorithm,
                    &mut bytes,
                ))?;
                matrix.workspace =
                    DeviceBuffer::uninit(device, bytes.div_ceil(8), "cuSPARSE's workspace")?;
                let workspace = matrix.workspace.address() as *mut c_void;
                check(sys::cusparseSpMM_preprocess(
                    handle,
                    none,
                    none,
                    alpha,
                    raw.cast_const(),
                    b.0.cast_const(),
                    beta,
                    c.0,
                    sums,
                    algorithm,
                    workspace,
                ))?;
            }
            self.matrix = Some(matrix);
        }
        let Some(matrix) = &self.matrix else { return Ok(()) };
        matrix.workspace.used_on(stream);
        // SAFETY: the descriptors are alive, the operands are the caller's promise.
        check(unsafe {
            sys::cusparseSpMM(
                handle,
                none,
                none,
                alpha,
                matrix.raw.cast_const(),
                b.0.cast_const(),
                beta,
                c.0,
                sums,
                algorithm,
                matrix.workspace.address() as *mut c_void,
            )
        })
    }
}

fn scalar(bits: &u64) -> *const c_void {
    std::ptr::from_ref(bits).cast()
}

fn value_type(dtype: DType) -> sys::cudaDataType {
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

fn check(status: sys::cusparseStatus_t) -> Result<()> {
    if status == sys::cusparseStatus_t::CUSPARSE_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: cuSPARSE answers with a constant string.
    let reason = unsafe { CStr::from_ptr(sys::cusparseGetErrorString(status)) };
    Err(Error::Device { action: "cuSPARSE", reason: reason.to_string_lossy().into_owned() })
}
