//! `vendor`: cuSPARSE, for comparison and for those who name it.

use std::ffi::c_void;

use cudarc::cusparse::sys;
use gustav_core::{DType, Error, Layout, Problem, Result};

use super::cusparse::{DenseMatrix, Handle, SparseMatrix, check, scalar, sums};
use crate::device::{Device, DeviceBuffer, Stream};
use crate::matrix::Sparse;
use crate::product::sampled::{Method, Operands, only_sddmm};
use crate::product::unsupported;

/// Which of cuSPARSE's algorithms; there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// Its own choice.
    #[default]
    Default,
}

/// What cuSPARSE's product takes: f32 and f64, equal index types.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    only_sddmm(problem, "vendor")?;
    let refuse = |reason: &str| {
        Err(unsupported(problem, "vendor on CUDA (cuSPARSE)", reason, "nonzero-split"))
    };
    if !matches!(problem.dtype, DType::F32 | DType::F64) {
        return refuse("cuSPARSE samples products of f32 and f64");
    }
    if problem.index_type != problem.offset_type {
        return refuse("cuSPARSE wants row offsets and column indices of one type");
    }
    if problem.columns == 0 {
        return refuse("cuSPARSE takes no matrix without columns");
    }
    Ok(())
}

pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    vec![Config::Default]
}

/// cuSPARSE's handle and the workspace of the last execution.
pub(crate) struct Prepared {
    handle: Handle,
    workspace: Option<DeviceBuffer<u64>>,
    /// The operands that the workspace was prepared for.
    key: [u64; 4],
}

impl Prepared {
    pub(crate) fn new(_: Config) -> Result<Self> {
        Ok(Prepared { handle: Handle::new()?, workspace: None, key: [0; 4] })
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.workspace.as_ref().map_or(0, DeviceBuffer::bytes)
    }

    fn compile(&mut self, _: &Device, _: &Operands) -> Result<()> {
        Ok(())
    }

    // Prepares operands at new addresses.
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
        let out = SparseMatrix::described(
            &Sparse {
                rows: o.rows,
                cols: o.cols,
                nnz: o.nnz,
                offsets: o.offsets,
                indices: o.indices,
                values: o.values,
            },
            (o.offset_type, o.index_type),
            o.dtype,
        )?;
        let none = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
        let (alpha, beta) = (scalar(&o.alpha), scalar(&o.beta));
        // The arguments that all calls have, and then `$last`.
        macro_rules! call {
            ($function:ident, $last:expr) => {
                check(sys::$function(
                    self.handle.0,
                    none,
                    none,
                    alpha,
                    x.0.cast_const(),
                    y.0.cast_const(),
                    beta,
                    out.0,
                    sums(o.dtype),
                    sys::cusparseSDDMMAlg_t::CUSPARSE_SDDMM_ALG_DEFAULT,
                    $last,
                ))
            };
        }
        let key = [o.offsets, o.values, o.x, o.y];
        let mut bytes = 0;
        // SAFETY: the descriptors are alive, the scalars are read during the calls, and the operands are
        // the caller's promise.
        unsafe {
            if self.workspace.is_none() || self.key != key {
                call!(cusparseSDDMM_bufferSize, &mut bytes)?;
                let words = bytes.div_ceil(8);
                let workspace = DeviceBuffer::uninit(device, words, "cuSPARSE's workspace")?;
                call!(cusparseSDDMM_preprocess, workspace.address() as *mut c_void)?;
                (self.workspace, self.key) = (Some(workspace), key);
            }
            let Some(workspace) = &self.workspace else { return Ok(()) };
            workspace.used_on(stream);
            call!(cusparseSDDMM, workspace.address() as *mut c_void)
        }
    }
}
