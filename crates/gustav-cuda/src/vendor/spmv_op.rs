//! cuSPARSE's SpMVOp, a planned SpMV of version 12.9. Its functions are looked up by name: cudarc's
//! bindings lack them, and other versions declare them with other arguments.
//!
//! Planning may copy the values of A, in another order: a plan multiplies by those of then.

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

use cudarc::cusparse::sys;
use gustav_core::{Error, Result};

use super::cusparse::{DenseVector, Handle, Matrix, check, scalar, sums};
use crate::device::{Device, Stream};
use crate::product::operands::Operands;

/// The version whose header was compared with the types below.
const VERSION: (c_int, c_int) = (12, 9);

type Status = sys::cusparseStatus_t;
type Operation = sys::cusparseOperation_t;
type Opaque = *mut c_void;

type BufferSize = unsafe extern "C" fn(
    sys::cusparseHandle_t,
    Operation,
    sys::cusparseConstSpMatDescr_t,
    sys::cusparseConstDnVecDescr_t,
    sys::cusparseDnVecDescr_t,
    sys::cusparseDnVecDescr_t,
    sys::cudaDataType,
    c_int,
    *mut usize,
) -> Status;
type CreateDescription = unsafe extern "C" fn(
    sys::cusparseHandle_t,
    *mut Opaque,
    Operation,
    sys::cusparseConstSpMatDescr_t,
    sys::cusparseConstDnVecDescr_t,
    sys::cusparseDnVecDescr_t,
    sys::cusparseDnVecDescr_t,
    sys::cudaDataType,
    c_int,
    *mut c_void,
) -> Status;
type CreatePlan = unsafe extern "C" fn(
    sys::cusparseHandle_t,
    Opaque,
    *mut Opaque,
    *const c_void,
    usize,
) -> Status;
type Destroy = unsafe extern "C" fn(Opaque) -> Status;
type Execute = unsafe extern "C" fn(
    sys::cusparseHandle_t,
    Opaque,
    *const c_void,
    *const c_void,
    sys::cusparseConstDnVecDescr_t,
    sys::cusparseConstDnVecDescr_t,
    sys::cusparseDnVecDescr_t,
) -> Status;

/// Its algorithms, by their numbers in the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Default = 0,
    Alg1 = 1,
    Alg2 = 2,
}

/// Its functions in the library that is loaded.
#[derive(Clone, Copy)]
struct Functions {
    buffer_size: BufferSize,
    create_description: CreateDescription,
    destroy_description: Destroy,
    create_plan: CreatePlan,
    destroy_plan: Destroy,
    execute: Execute,
}

impl Functions {
    /// Looks them up.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for another version than 12.9.
    fn of_library() -> Result<Self> {
        if super::cusparse::version_numbers()? != VERSION {
            return Err(unsupported("its functions were compared with those of 12.9 alone"));
        }
        let lacks = || unsupported("the library has no such function");
        // SAFETY: version 12.9 declares each function with these arguments; the library stays
        // loaded until the program ends.
        unsafe {
            let library = sys::culib();
            macro_rules! function {
                ($name:literal) => {
                    *library.get($name).map_err(|_| lacks())?
                };
            }
            Ok(Functions {
                buffer_size: function!(b"cusparseSpMVOp_bufferSize\0"),
                create_description: function!(b"cusparseSpMVOp_createDescr\0"),
                destroy_description: function!(b"cusparseSpMVOp_destroyDescr\0"),
                create_plan: function!(b"cusparseSpMVOp_createPlan\0"),
                destroy_plan: function!(b"cusparseSpMVOp_destroyPlan\0"),
                execute: function!(b"cusparseSpMVOp\0"),
            })
        }
    }
}

/// The refusal of a product by SpMVOp.
fn unsupported(reason: &str) -> Error {
    let version = super::cusparse::version().unwrap_or_default();
    Error::Unsupported {
        problem: "SpMVOp".into(),
        backend: format!("vendor (cuSPARSE {version})"),
        reason: reason.into(),
        nearest: "vendor by cusparseSpMV".into(),
    }
}

/// A planned product. What it was made of is dropped after it, but for the handle, which its owner
/// drops last.
pub(super) struct SpmvOp {
    functions: Functions,
    description: Opaque,
    plan: Opaque,
    x: DenseVector,
    y: DenseVector,
    matrix: Matrix,
    /// Of the last execution.
    stream: Stream,
}

// SAFETY: used by one thread at a time, through `&mut Prepared`.
unsafe impl Send for SpmvOp {}

impl SpmvOp {
    /// Plans y = A x for the operands of `o`, on `stream`, which is that of `handle`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the library has no SpMVOp, or none of these types;
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub(super) fn new(
        device: &Device,
        handle: &Handle,
        stream: &Stream,
        algorithm: Algorithm,
        o: &Operands,
    ) -> Result<Self> {
        let mut planned = SpmvOp {
            functions: Functions::of_library()?,
            description: null_mut(),
            plan: null_mut(),
            x: DenseVector::new(o.inner, o.b, o.dtype)?,
            y: DenseVector::new(o.rows, o.c, o.dtype_c)?,
            matrix: Matrix::new(device, o, [0; 6])?,
            stream: stream.clone(),
        };
        let none = Operation::CUSPARSE_OPERATION_NON_TRANSPOSE;
        let (algorithm, sums) = (algorithm as c_int, sums(o.dtype));
        let Functions { buffer_size, create_description, create_plan, .. } = planned.functions;
        // The vector that beta scales is the one that the result is written to.
        let (a, x, y) = (planned.matrix.raw.cast_const(), planned.x.0.cast_const(), planned.y.0);
        let mut bytes = 0;
        // SAFETY: the descriptors are alive.
        unsafe {
            let status = buffer_size(handle.0, none, a, x, y, y, sums, algorithm, &mut bytes);
            if status == Status::CUSPARSE_STATUS_NOT_SUPPORTED {
                return Err(unsupported(&format!("it has none of {} values", o.dtype)));
            }
            check(status)?;
            let workspace = planned.matrix.reserve(device, stream, bytes)?;
            let description = &mut planned.description;
            check(create_description(
                handle.0,
                description,
                none,
                a,
                x,
                y,
                y,
                sums,
                algorithm,
                workspace,
            ))?;
            check(create_plan(handle.0, *description, &mut planned.plan, null(), 0))?;
        }
        Ok(planned)
    }

    /// Bytes of the workspace.
    pub(super) fn bytes(&self) -> usize {
        self.matrix.workspace.bytes()
    }

    /// Queues y = alpha A x + beta y on `stream`, which is that of `handle`.
    ///
    /// # Safety
    /// The operands of `o` are those of the product, and live until it has run.
    pub(super) unsafe fn execute(
        &mut self,
        handle: &Handle,
        stream: &Stream,
        o: &Operands,
    ) -> Result<()> {
        self.stream = stream.clone();
        let SpmvOp { functions, plan, x, y, matrix, .. } = &*self;
        matrix.workspace.used_on(stream);
        let (alpha, beta) = (scalar(&o.alpha), scalar(&o.beta));
        // SAFETY: the descriptors are alive; the scalars are read during the call.
        unsafe {
            check(sys::cusparseDnVecSetValues(x.0, o.b as *mut c_void))?;
            check(sys::cusparseDnVecSetValues(y.0, o.c as *mut c_void))?;
            let (from, to) = (x.0.cast_const(), y.0);
            check((functions.execute)(handle.0, *plan, alpha, beta, from, to.cast_const(), to))
        }
    }
}

impl Drop for SpmvOp {
    fn drop(&mut self) {
        let Functions { destroy_plan, destroy_description, .. } = self.functions;
        // The library compiles kernels for a plan, and says nothing of when their code may go. After
        // an error of the device there is nothing to wait for.
        let _ = self.stream.synchronize();
        // SAFETY: created once, destroyed once, what is made of another first.
        unsafe {
            if !self.plan.is_null() {
                destroy_plan(self.plan);
            }
            if !self.description.is_null() {
                destroy_description(self.description);
            }
        }
    }
}
