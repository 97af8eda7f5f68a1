//! `vendor`: cuSPARSE, for comparison; runs only when named.

use std::ffi::c_void;

use cudarc::cusparse::sys;
use gustav_core::{Error, Problem, Result};

use super::cusparse::{self, DenseVector, Matrix, check, scalar, sums};
use super::spmm::takes;
use super::spmv_op::{self, SpmvOp};
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
    /// `CUSPARSE_SPMVOP_ALG_DEFAULT`.
    Op,
    /// `CUSPARSE_SPMVOP_ALG1`.
    OpAlg1,
    /// `CUSPARSE_SPMVOP_ALG2`.
    OpAlg2,
}

/// An algorithm by the function of cuSPARSE that has it.
enum Function {
    SpMV(sys::cusparseSpMVAlg_t),
    SpMVOp(spmv_op::Algorithm),
}

impl Config {
    /// Those of `cusparseSpMV`.
    pub const ALL: [Config; 3] = [Config::Default, Config::Alg1, Config::Alg2];

    /// Those of `cusparseSpMVOp` of version 12.9, for f32 and f64: another version, or another type,
    /// is [`Error::Unsupported`] in the first execution. They plan
    /// for the values of A in every execution but those that
    /// [reuse the conversion](crate::Call::reuse_conversion).
    pub const OP: [Config; 3] = [Config::Op, Config::OpAlg1, Config::OpAlg2];

    fn function(self) -> Function {
        use sys::cusparseSpMVAlg_t as Alg;
        match self {
            Config::Default => Function::SpMV(Alg::CUSPARSE_SPMV_ALG_DEFAULT),
            Config::Alg1 => Function::SpMV(Alg::CUSPARSE_SPMV_CSR_ALG1),
            Config::Alg2 => Function::SpMV(Alg::CUSPARSE_SPMV_CSR_ALG2),
            Config::Op => Function::SpMVOp(spmv_op::Algorithm::Default),
            Config::OpAlg1 => Function::SpMVOp(spmv_op::Algorithm::Alg1),
            Config::OpAlg2 => Function::SpMVOp(spmv_op::Algorithm::Alg2),
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
pub(crate) struct Prepared {
    /// By `cusparseSpMVOp`, for the values of A that were converted last. Dropped before the handle
    /// that it was made with.
    op: Option<SpmvOp>,
    spmv: cusparse::Prepared<Config>,
    device: Device,
}

impl Prepared {
    pub(crate) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        let spmv = cusparse::Prepared::new(pattern, problem, config)?;
        Ok(Prepared { op: None, spmv, device: pattern.device().clone() })
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.spmv.workspace_bytes() + self.op.as_ref().map_or(0, SpmvOp::bytes)
    }

    // Plans SpMVOp for these values; the other algorithms read those of each execution.
    unsafe fn convert(&mut self, stream: &Stream, o: &Operands) -> Result<()> {
        let Function::SpMVOp(algorithm) = self.spmv.config.function() else { return Ok(()) };
        let handle = &self.spmv.handle;
        handle.on(&self.device, stream)?;
        self.op = Some(SpmvOp::new(&self.device, handle, stream, algorithm, o)?);
        Ok(())
    }

    // Describes and preprocesses A if it changed.
    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.spmv.handle.on(device, stream)?;
        if let Some(op) = &mut self.op {
            // SAFETY: the operands are the caller's promise.
            return unsafe { op.execute(&self.spmv.handle, stream, o) };
        }
        let Function::SpMV(algorithm) = self.spmv.config.function() else {
            let action = "SpMVOp without a plan";
            return Err(Error::Device { action, reason: "values were not converted".into() });
        };
        let x = DenseVector::new(o.inner, o.b, o.dtype)?;
        let y = DenseVector::new(o.rows, o.c, o.dtype_c)?;
        let spmv = &mut self.spmv;
        let key = [o.offsets, o.indices, o.values, 0, 0, 1];
        let (handle, sums) = (spmv.handle.0, sums(o.dtype));
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
        if spmv.matrix.as_ref().is_none_or(|m| m.key != key) {
            spmv.matrix = None;
            let mut matrix = Matrix::new(device, o, key)?;
            let mut bytes = 0;
            // SAFETY: the descriptors are alive; the scalars are read during the calls.
            unsafe {
                call!(cusparseSpMV_bufferSize, matrix, &mut bytes)?;
                let workspace = matrix.reserve(device, stream, bytes)?;
                call!(cusparseSpMV_preprocess, matrix, workspace)?;
            }
            spmv.matrix = Some(matrix);
        }
        let Some(matrix) = &spmv.matrix else { return Ok(()) };
        matrix.workspace.used_on(stream);
        let workspace = matrix.workspace.address() as *mut c_void;
        // SAFETY: the descriptors are alive, the operands are the caller's promise.
        unsafe { call!(cusparseSpMV, matrix, workspace) }
    }
}
