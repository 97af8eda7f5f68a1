//! `vendor`: cuSPARSE, for comparison; runs only when named.

use std::ffi::c_void;

use cudarc::cusparse::sys;
use gustav_core::{DType, Error, IndexType, Layout, Problem, Result, Semiring};

use super::cusparse::{self, DenseMatrix, Matrix, check, scalar, sums};
use crate::device::{Device, Stream};
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::product::tile::widest;
use crate::product::{only_spmm, unsupported};
use crate::schedule::pattern::Pattern;

/// The algorithms of cuSPARSE for CSR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// cuSPARSE's default.
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
    /// All of them.
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

/// Supports what cuSPARSE does: floating point, equal index types, plus-times, not deterministic.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    only_spmm(problem, "vendor")?;
    takes(problem, "segmented")
}

/// Common checks of cuSPARSE's products of a CSR matrix; `nearest` supports the rest.
pub(crate) fn takes(problem: &Problem, nearest: &str) -> Result<()> {
    let refuse = |reason: &str| Err(unsupported(problem, "vendor (cuSPARSE)", reason, nearest));
    if problem.dtype.is_integer() {
        return refuse("it takes no integers");
    }
    if problem.semiring != Semiring::PlusTimes {
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

// cuSPARSE supports both layouts.
pub(crate) const ANY_LAYOUT: bool = true;

/// cuSPARSE's default.
pub(crate) fn choose(_pattern: &Pattern<'_>, _problem: &Problem) -> Result<(Config, String)> {
    Ok((Config::Default, "named by the caller".into()))
}

pub(crate) fn configs(_problem: &Problem) -> Vec<Config> {
    Config::ALL.to_vec()
}

/// `ALG3` loads vectors as wide as the shape allows without a check of the alignment: unaligned
/// operands would cause a misaligned-address error, after which the device is unusable.
fn aligned(
    name: &'static str,
    address: u64,
    ld: usize,
    (rows, columns): (usize, usize),
    dtype: DType,
    layout: Layout,
) -> Result<()> {
    let length = match layout {
        Layout::RowMajor => columns,
        Layout::ColumnMajor => rows,
    };
    let vector = widest(dtype, length as u64);
    let bytes = u64::from(vector) * dtype.bytes() as u64;
    if widest(dtype, ld as u64) >= vector && address.is_multiple_of(bytes) {
        return Ok(());
    }
    Err(Error::Argument {
        name,
        found: format!("leading dimension {ld} at address {address:#x}"),
        expected: format!(
            "for CSR_ALG3, multiples of {vector} values; the other algorithms take any"
        ),
    })
}

/// The product in a plan.
pub(crate) type Prepared = cusparse::Prepared<Config>;

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.workspace_bytes()
    }

    // Describes and preprocesses A if it changed.
    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        let (layout_b, layout_c) = o.layouts;
        if self.config == Config::Alg3 {
            aligned("B", o.b, o.ldb, (o.inner, o.columns), o.dtype, layout_b)?;
            aligned("C", o.c, o.ldc, (o.rows, o.columns), o.dtype_c, layout_c)?;
        }
        self.handle.on(device, stream)?;
        let b = DenseMatrix::new(o.inner, o.columns, o.ldb, o.b, o.dtype, layout_b)?;
        let c = DenseMatrix::new(o.rows, o.columns, o.ldc, o.c, o.dtype_c, layout_c)?;
        let key =
            [o.offsets, o.indices, o.values, layout_b as u64, layout_c as u64, o.columns as u64];
        let (handle, algorithm) = (self.handle.0, self.config.raw());
        let none = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
        let (alpha, beta) = (scalar(&o.alpha), scalar(&o.beta));
        let sums = sums(o.dtype);
        // The arguments that all calls have, and then `$last`.
        macro_rules! call {
            ($function:ident, $matrix:expr, $last:expr) => {
                check(sys::$function(
                    handle,
                    none,
                    none,
                    alpha,
                    $matrix.raw.cast_const(),
                    b.0.cast_const(),
                    beta,
                    c.0,
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
                call!(cusparseSpMM_bufferSize, matrix, &mut bytes)?;
                let workspace = matrix.reserve(device, stream, bytes)?;
                call!(cusparseSpMM_preprocess, matrix, workspace)?;
            }
            self.matrix = Some(matrix);
        }
        let Some(matrix) = &self.matrix else { return Ok(()) };
        matrix.workspace.used_on(stream);
        let workspace = matrix.workspace.address() as *mut c_void;
        // SAFETY: the descriptors are alive, the operands are the caller's promise.
        unsafe { call!(cusparseSpMM, matrix, workspace) }
    }
}
