//! `vendor`: cuSPARSE's SpGEMM, for comparison; runs only when named.

use std::ffi::c_void;
use std::ptr::null_mut;

use cudarc::cusparse::sys;
use gustav_core::{Error, Index, Operation, Problem, Result, Scalar};
use gustav_plan::Algorithm;

use super::cusparse::{Handle, SparseMatrix, check, scalar, sums};
use super::spmm::takes;
use crate::device::{Device, DeviceBuffer};
use crate::matrix::DeviceCsr;
use crate::product::sparse_method::{Method, no_refill};
use crate::product::sparse_operands::{Operands, Sparse};
use crate::product::unsupported;

/// The algorithms of cuSPARSE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// cuSPARSE's default, which is the first.
    #[default]
    Default,
    /// `CUSPARSE_SPGEMM_ALG1`.
    Alg1,
    /// `CUSPARSE_SPGEMM_ALG2`.
    Alg2,
    /// `CUSPARSE_SPGEMM_ALG3`, with a fifth of the products at a time.
    Alg3,
}

// Fraction of the products that ALG3 expands at a time, as in the vendor's example.
const CHUNK: f32 = 0.2;

impl Config {
    /// All of them.
    pub const ALL: [Config; 4] = [Config::Default, Config::Alg1, Config::Alg2, Config::Alg3];

    fn raw(self) -> sys::cusparseSpGEMMAlg_t {
        match self {
            Config::Default => sys::cusparseSpGEMMAlg_t::CUSPARSE_SPGEMM_DEFAULT,
            Config::Alg1 => sys::cusparseSpGEMMAlg_t::CUSPARSE_SPGEMM_ALG1,
            Config::Alg2 => sys::cusparseSpGEMMAlg_t::CUSPARSE_SPGEMM_ALG2,
            Config::Alg3 => sys::cusparseSpGEMMAlg_t::CUSPARSE_SPGEMM_ALG3,
        }
    }
}

/// Supports what cuSPARSE does: floating point, equal index types, plus-times, not deterministic, A
/// as stored.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    if problem.operation != Operation::Spgemm {
        let reason = "it multiplies two sparse matrices";
        return Err(unsupported(problem, "vendor (cuSPARSE)", reason, "Problem::spgemm"));
    }
    takes(problem, "binned")
}

pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    Config::ALL.to_vec()
}

/// cuSPARSE's handle.
pub(crate) struct Prepared {
    config: Config,
    handle: Handle,
    problem: Problem,
}

impl Prepared {
    pub(crate) fn new(
        device: &Device,
        _operands: &Operands,
        problem: &Problem,
        config: Config,
    ) -> Result<Self> {
        device.bind()?;
        Ok(Prepared { config, handle: Handle::new()?, problem: problem.clone() })
    }
}

impl<T: Scalar, I: Index, O: Index> Method<T, I, O> for Prepared {
    fn bytes(&self) -> usize {
        0
    }

    unsafe fn execute(&mut self, device: &Device, o: &Operands) -> Result<DeviceCsr<T, I, O>> {
        self.handle.on(device, device.stream())?;
        let a = SparseMatrix::new(&o.a, o)?;
        let b = SparseMatrix::new(&o.b, o)?;
        let offsets =
            DeviceBuffer::<O>::queued(device, o.a.rows + 1, "row offsets of C on the device")?;
        let shape = Sparse {
            rows: o.a.rows,
            cols: o.b.cols,
            nnz: 0,
            offsets: offsets.address(),
            indices: 0,
            values: 0,
        };
        let c = SparseMatrix::new(&shape, o)?;
        let call = Call {
            handle: self.handle.0,
            matrices: [a.0, b.0, c.0],
            factors: [o.alpha, 0],
            sums: sums(o.dtype),
            algorithm: self.config.raw(),
            description: Description::new()?,
        };
        // SAFETY: the descriptors are alive; the operands are the caller's promise.
        unsafe {
            let _first = call.stage(device, |bytes, at| call.estimate_work(bytes, at))?;
            let _second = match self.config {
                Config::Alg2 | Config::Alg3 => {
                    let mut bytes = call.estimate_memory(device)?;
                    let workspace = workspace(device, bytes)?;
                    call.compute(&mut bytes, workspace.address() as *mut c_void)?;
                    workspace
                }
                _ => call.stage(device, |bytes, at| call.compute(bytes, at))?,
            };
            let (mut rows, mut cols, mut nnz) = (0, 0, 0);
            check(sys::cusparseSpMatGetSize(c.0.cast_const(), &mut rows, &mut cols, &mut nnz))?;
            let nnz = usize::try_from(nnz).map_err(|_| Error::Device {
                action: "cuSPARSE",
                reason: format!("it counts {nnz} entries of C"),
            })?;
            let indices =
                DeviceBuffer::<I>::queued(device, nnz, "column indices of C on the device")?;
            let values = DeviceBuffer::<T>::queued(device, nnz, "values of C on the device")?;
            check(sys::cusparseCsrSetPointers(
                c.0,
                offsets.address() as *mut c_void,
                indices.address() as *mut c_void,
                values.address() as *mut c_void,
            ))?;
            call.copy()?;
            // The buffers above are freed in stream order.
            Ok(DeviceCsr::from_parts_unchecked(o.a.rows, o.b.cols, offsets, indices, values))
        }
    }

    fn refills(&self) -> bool {
        false
    }

    unsafe fn refill(
        &mut self,
        _: &Device,
        _: &Operands,
        _: &mut DeviceCsr<T, I, O>,
    ) -> Result<()> {
        Err(no_refill(&self.problem, Algorithm::Vendor))
    }
}

/// The common arguments of all stages of the product.
struct Call {
    handle: sys::cusparseHandle_t,
    matrices: [sys::cusparseSpMatDescr_t; 3],
    factors: [u64; 2],
    sums: sys::cudaDataType,
    algorithm: sys::cusparseSpGEMMAlg_t,
    description: Description,
}

/// Calls a stage with the common arguments.
macro_rules! stage {
    ($call:ident, $stage:ident $(, $more:expr)*) => {{
        let none = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
        let [a, b, c] = $call.matrices;
        check(sys::$stage(
            $call.handle,
            none,
            none,
            scalar(&$call.factors[0]),
            a.cast_const(),
            b.cast_const(),
            scalar(&$call.factors[1]),
            c,
            $call.sums,
            $call.algorithm,
            $call.description.0,
            $($more),*
        ))
    }};
}

type Workspace = DeviceBuffer<u64>;

impl Call {
    /// Runs a stage: first queries its workspace size, then computes.
    fn stage(
        &self,
        device: &Device,
        run: impl Fn(&mut usize, *mut c_void) -> Result<()>,
    ) -> Result<Workspace> {
        let mut bytes = 0;
        run(&mut bytes, null_mut())?;
        let workspace = workspace(device, bytes)?;
        run(&mut bytes, workspace.address() as *mut c_void)?;
        Ok(workspace)
    }

    fn estimate_work(&self, bytes: &mut usize, at: *mut c_void) -> Result<()> {
        // SAFETY: the descriptors are alive, and the workspace is as large as the stage requested.
        unsafe { stage!(self, cusparseSpGEMM_workEstimation, bytes, at) }
    }

    fn compute(&self, bytes: &mut usize, at: *mut c_void) -> Result<()> {
        // SAFETY: as above.
        unsafe { stage!(self, cusparseSpGEMM_compute, bytes, at) }
    }

    /// Bytes that ALG2 and ALG3 need to compute.
    fn estimate_memory(&self, device: &Device) -> Result<usize> {
        let (mut bytes, mut later) = (0, 0);
        // SAFETY: the descriptors are alive, and the workspace is as large as the stage requested.
        unsafe {
            let none = null_mut();
            stage!(self, cusparseSpGEMM_estimateMemory, CHUNK, &mut bytes, none, null_mut())?;
            let workspace = workspace(device, bytes)?;
            let at = workspace.address() as *mut c_void;
            stage!(self, cusparseSpGEMM_estimateMemory, CHUNK, &mut bytes, at, &mut later)?;
        }
        Ok(later)
    }

    fn copy(&self) -> Result<()> {
        // SAFETY: the descriptors are alive, and C's arrays have the size that cuSPARSE reported.
        unsafe { stage!(self, cusparseSpGEMM_copy) }
    }
}

fn workspace(device: &Device, bytes: usize) -> Result<Workspace> {
    DeviceBuffer::queued(device, bytes.div_ceil(8).max(1), "cuSPARSE's workspace")
}

/// cuSPARSE's descriptor of a product.
struct Description(sys::cusparseSpGEMMDescr_t);

impl Description {
    fn new() -> Result<Self> {
        let mut raw = null_mut();
        // SAFETY: writes the description.
        check(unsafe { sys::cusparseSpGEMM_createDescr(&mut raw) })?;
        Ok(Description(raw))
    }
}

impl Drop for Description {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { sys::cusparseSpGEMM_destroyDescr(self.0) };
    }
}
