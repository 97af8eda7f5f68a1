//! `vendor`: cuSPARSE, for comparison and for those who name it.

use std::ffi::c_void;

use cudarc::cusparse::sys;
use gustav_core::{Operation, Problem, Result};

use super::cusparse::{DenseVector, Handle, Matrix, check, scalar, sums};
use super::spmm::takes;
use crate::device::{Device, Stream};
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::product::unsupported;
use crate::schedule::pattern::Pattern;

/// Which of cuSPARSE's algorithms for CSR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// Its own choice.
    #[default]
    Default,
    /// `CUSPARSE_SPMV_CSR_ALG1`.
    Alg1,
    /// `CUSPARSE_SPMV_CSR_ALG2`.
    Alg2,
}

impl Config {
    /// Every one.
    pub const ALL: [Config; 3] = [Config::Default, Config::Alg1, Config::Alg2];

    fn raw(self) -> sys::cusparseSpMVAlg_t {
        match self {
            Config::Default => sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_ALG_DEFAULT,
            Config::Alg1 => sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_CSR_ALG1,
            Config::Alg2 => sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_CSR_ALG2,
        }
    }
}

/// What cuSPARSE's product takes: floating point, equal index types, plus-times, in no promised
/// order.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    if problem.operation != Operation::Spmv {
        let reason = "it multiplies by a vector";
        return Err(unsupported(problem, "vendor (cuSPARSE)", reason, "Problem::spmv"));
    }
    takes(problem, "row-split")
}

pub(crate) const ANY_LAYOUT: bool = true;

/// Its own choice.
pub(crate) fn choose(_: &Pattern<'_>, _: &Problem) -> Result<(Config, String)> {
    Ok((Config::Default, "its own choice".into()))
}

pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    Config::ALL.to_vec()
}

/// cuSPARSE's handle, and A as it was last prepared.
pub(crate) struct Prepared {
    config: Config,
    handle: Handle,
    matrix: Option<Matrix>,
}

impl Prepared {
    pub(crate) fn new(_: &Pattern<'_>, _: &Problem, config: Config) -> Result<Self> {
        Ok(Prepared { config, handle: Handle::new()?, matrix: None })
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.matrix.as_ref().map_or(0, |m| m.workspace.bytes())
    }

    // Describes and preprocesses A when it is new.
    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.handle.on(device, stream)?;
        let x = DenseVector::new(o.inner, o.b, o.dtype)?;
        let y = DenseVector::new(o.rows, o.c, o.dtype_c)?;
        let key = [o.offsets, o.indices, o.values, 0, 0, 1];
        let (handle, algorithm, sums) = (self.handle.0, self.config.raw(), sums(o.dtype));
        let none = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
        let (alpha, beta) = (scalar(&o.alpha), scalar(&o.beta));
        if self.matrix.as_ref().is_none_or(|m| m.key != key) {
            self.matrix = None;
            let mut matrix = Matrix::new(device, o, key)?;
            let (raw, mut bytes) = (matrix.raw.cast_const(), 0);
            // SAFETY: the descriptors are alive; the scalars are read during the calls.
            unsafe {
                check(sys::cusparseSpMV_bufferSize(
                    handle,
                    none,
                    alpha,
                    raw,
                    x.0.cast_const(),
                    beta,
                    y.0,
                    sums,
                    algorithm,
                    &mut bytes,
                ))?;
                let workspace = matrix.reserve(device, bytes)?;
                check(sys::cusparseSpMV_preprocess(
                    handle,
                    none,
                    alpha,
                    raw,
                    x.0.cast_const(),
                    beta,
                    y.0,
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
            sys::cusparseSpMV(
                handle,
                none,
                alpha,
                matrix.raw.cast_const(),
                x.0.cast_const(),
                beta,
                y.0,
                sums,
                algorithm,
                matrix.workspace.address() as *mut c_void,
            )
        })
    }
}
