//! `vendor`: cuSPARSE, for comparison; runs only when named.

use std::ffi::c_void;

use cudarc::cusparse::sys;
use gustav_core::{Problem, Result};

use super::cusparse::{self, DenseVector, Matrix, check, scalar, sums};
use super::spmm::takes;
use crate::device::{Device, Stream};
use crate::product::method::Method;
use crate::product::only_spmv;
use crate::product::operands::Operands;
use crate::schedule::pattern::Pattern;

/// The algorithms of cuSPARSE for CSR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// cuSPARSE's default.
    #[default]
    Default,
    /// `CUSPARSE_SPMV_CSR_ALG1`.
    Alg1,
    /// `CUSPARSE_SPMV_CSR_ALG2`.
    Alg2,
}

impl Config {
    /// All of them.
    pub const ALL: [Config; 3] = [Config::Default, Config::Alg1, Config::Alg2];

    fn raw(self) -> sys::cusparseSpMVAlg_t {
        match self {
            Config::Default => sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_ALG_DEFAULT,
            Config::Alg1 => sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_CSR_ALG1,
            Config::Alg2 => sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_CSR_ALG2,
        }
    }
}

/// Supports what cuSPARSE does: floating point, equal index types, plus-times, not deterministic.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    only_spmv(problem, "vendor")?;
    takes(problem, "row-split")
}

pub(crate) const ANY_LAYOUT: bool = true;

/// cuSPARSE's default.
pub(crate) fn choose(_: &Pattern<'_>, _: &Problem) -> Result<(Config, String)> {
    Ok((Config::Default, "its own choice".into()))
}

pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    Config::ALL.to_vec()
}

/// The product in a plan.
pub(crate) type Prepared = cusparse::Prepared<Config>;

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.workspace_bytes()
    }

    // Describes and preprocesses A if it changed.
    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.handle.on(device, stream)?;
        let x = DenseVector::new(o.inner, o.b, o.dtype)?;
        let y = DenseVector::new(o.rows, o.c, o.dtype_c)?;
        let key = [o.offsets, o.indices, o.values, 0, 0, 1];
        let (handle, algorithm, sums) = (self.handle.0, self.config.raw(), sums(o.dtype));
        let none = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
        let (alpha, beta) = (scalar(&o.alpha), scalar(&o.beta));
        // The arguments that all calls have, and then `$last`.
        macro_rules! call {
            ($function:ident, $matrix:expr, $last:expr) => {
                check(sys::$function(
                    handle,
                    none,
                    alpha,
                    $matrix.raw.cast_const(),
                    x.0.cast_const(),
                    beta,
                    y.0,
                    sums,
                    algorithm,
                    $last,
                ))
            };
        }
        if self.matrix.as_ref().is_none_or(|m| m.key != key) {
            self.matrix = None;
            let mut matrix = Matrix::new(device, o, key)?;
            let mut bytes = 0;
            // SAFETY: the descriptors are alive; the scalars are read during the calls.
            unsafe {
                call!(cusparseSpMV_bufferSize, matrix, &mut bytes)?;
                let workspace = matrix.reserve(device, bytes)?;
                call!(cusparseSpMV_preprocess, matrix, workspace)?;
            }
            self.matrix = Some(matrix);
        }
        let Some(matrix) = &self.matrix else { return Ok(()) };
        matrix.workspace.used_on(stream);
        let workspace = matrix.workspace.address() as *mut c_void;
        // SAFETY: the descriptors are alive, the operands are the caller's promise.
        unsafe { call!(cusparseSpMV, matrix, workspace) }
    }
}
