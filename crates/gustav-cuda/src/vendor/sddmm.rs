//! `vendor`: cuSPARSE, for comparison and for those who name it.

use std::ffi::c_void;

use cudarc::cusparse::sys;
use gustav_core::{Error, IndexType, Layout, Problem, Result};

use super::cusparse::{DenseMatrix, Handle, SparseMatrix, check, scalar, sums, version};
use crate::device::{Device, DeviceBuffer, Stream};
use crate::matrix::Sparse;
use crate::product::sampled::{Method, Operands, only_sddmm};
use crate::product::unsupported;

/// Which of cuSPARSE's algorithms; there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// cuSPARSE's default.
    #[default]
    Default,
}

/// What cuSPARSE's product takes: floating point (16 bits of newer versions, which older ones
/// refuse in the first execution), equal index types.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    only_sddmm(problem, "vendor")?;
    let refuse = |reason: &str| {
        Err(unsupported(problem, "vendor on CUDA (cuSPARSE)", reason, "nonzero-split"))
    };
    if problem.dtype.is_integer() {
        return refuse("cuSPARSE takes no integers");
    }
    if problem.index_type != problem.offset_type {
        return refuse("cuSPARSE wants row offsets and column indices of one type");
    }
    if problem.index_type == IndexType::U32 && problem.nnz.max(problem.cols) > i32::MAX as usize {
        return refuse("its 32-bit indices are signed");
    }
    if problem.deterministic {
        return refuse("its order of summation is not promised");
    }
    if problem.columns == 0 {
        return refuse("cuSPARSE takes no matrix without columns");
    }
    Ok(())
}

pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    vec![Config::Default]
}

/// cuSPARSE's handle, and the pattern as it was last preprocessed.
pub(crate) struct Prepared {
    handle: Handle,
    described: Option<Described>,
}

/// The pattern's descriptor with the workspace that it was preprocessed in.
struct Described {
    matrix: SparseMatrix,
    workspace: DeviceBuffer<u64>,
    /// Leading dimensions of X and Y, on which the size of the workspace may depend.
    leading: (usize, usize),
}

impl Prepared {
    pub(crate) fn new(_: Config) -> Result<Self> {
        Ok(Prepared { handle: Handle::new()?, described: None })
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.described.as_ref().map_or(0, |d| d.workspace.bytes())
    }

    fn compile(&mut self, _: &Device, _: &Operands) -> Result<()> {
        Ok(())
    }

    // Describes and preprocesses the pattern at the first execution, and for other leading
    // dimensions.
    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        if o.factors != 0 {
            return Err(Error::Unsupported {
                problem: "an SDDMM with a factor of every nonzero".into(),
                backend: "vendor on CUDA (cuSPARSE)".into(),
                reason: "cuSPARSE has no such factor".into(),
                nearest: "nonzero-split".into(),
            });
        }
        self.handle.on(device, stream)?;
        let x = DenseMatrix::new(o.rows, o.depth, o.ldx, o.x, o.dtype, Layout::RowMajor)?;
        // Yᵀ: the same memory read column by column.
        let y = DenseMatrix::new(o.depth, o.cols, o.ldy, o.y, o.dtype, Layout::ColumnMajor)?;
        let none = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
        let (alpha, beta) = (scalar(&o.alpha), scalar(&o.beta));
        // The arguments that all calls have, and then `$last`.
        macro_rules! call {
            ($function:ident, $matrix:expr, $last:expr) => {
                sys::$function(
                    self.handle.0,
                    none,
                    none,
                    alpha,
                    x.0.cast_const(),
                    y.0.cast_const(),
                    beta,
                    $matrix.0,
                    sums(o.dtype),
                    sys::cusparseSDDMMAlg_t::CUSPARSE_SDDMM_ALG_DEFAULT,
                    $last,
                )
            };
        }
        let leading = (o.ldx, o.ldy);
        // SAFETY: the descriptors are alive, the scalars are read during the calls, and the
        // operands are the caller's promise.
        unsafe {
            if self.described.as_ref().is_none_or(|d| d.leading != leading) {
                self.described = None;
                let sparse = Sparse {
                    rows: o.rows,
                    cols: o.cols,
                    nnz: o.nnz,
                    offsets: o.offsets,
                    indices: o.indices,
                    values: o.values,
                };
                let types = (o.offset_type, o.index_type);
                let matrix = SparseMatrix::described(&sparse, types, o.dtype)?;
                let mut bytes = 0;
                let status = call!(cusparseSDDMM_bufferSize, matrix, &mut bytes);
                if status == sys::cusparseStatus_t::CUSPARSE_STATUS_NOT_SUPPORTED {
                    return Err(Error::Unsupported {
                        problem: format!("an SDDMM of {} values", o.dtype),
                        backend: format!("vendor on CUDA (cuSPARSE {})", version()?),
                        reason: "this version lacks it".into(),
                        nearest: "nonzero-split".into(),
                    });
                }
                check(status)?;
                let words = bytes.div_ceil(8);
                let workspace = DeviceBuffer::uninit(device, words, "cuSPARSE's workspace")?;
                workspace.used_on(stream);
                check(call!(cusparseSDDMM_preprocess, matrix, workspace.address() as *mut c_void))?;
                self.described = Some(Described { matrix, workspace, leading });
            }
            let Some(Described { matrix, workspace, .. }) = &self.described else { return Ok(()) };
            workspace.used_on(stream);
            check(sys::cusparseSpMatSetValues(matrix.0, o.values as *mut c_void))?;
            check(call!(cusparseSDDMM, matrix, workspace.address() as *mut c_void))
        }
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::{IndexType, Operation};

    use super::*;

    #[test]
    fn indices_that_cusparse_takes_for_negative_are_refused() {
        let problem = |nnz, cols| Problem::of_pattern(Operation::Sddmm, 10, cols, nnz).columns(8);
        let most = i32::MAX as usize;
        supports(&problem(most, most)).expect("what fits 31 bits");
        for problem in [problem(most + 1, 10), problem(10, most + 1)] {
            let text = supports(&problem).expect_err("a refusal").to_string();
            assert!(text.contains("signed") && text.contains("nonzero-split"), "{text}");
            let wide = IndexType::U64;
            supports(&Problem { index_type: wide, offset_type: wide, ..problem }).expect("64 bits");
        }
    }
}
