//! `output-stationary`: a CTA per strip of columns of C, as the study of row permutations (§II-B)
//! describes it. See `kernels/spmm/output_stationary.cu`.

use gustav_core::{Layout, Problem, Result};
use gustav_plan::Algorithm;

use super::catalog::Method;
use super::operands::Operands;
use super::papers;
use super::pattern::Pattern;
use super::stationary::{self, Arguments};
use crate::Device;
use crate::kernel::Kernel;
use crate::stream::Stream;

pub use super::stationary::Config;
pub(super) use super::stationary::{ANY_LAYOUT, choose, configs};

/// The kernel's file and text.
pub(crate) const SOURCE: (&str, &str) =
    ("spmm/output_stationary.cu", include_str!("../../kernels/spmm/output_stationary.cu"));

/// What the source defines.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    papers::spmm(problem, Algorithm::OutputStationary, Layout::ColumnMajor)
}

/// The compiled kernel.
pub(super) struct Prepared {
    config: Config,
    kernel: Kernel,
}

impl Prepared {
    pub(super) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        config.check()?;
        let request = stationary::request(SOURCE, problem.dtype, config);
        let kernel = pattern.device().module(&request)?.kernel(c"output_stationary")?;
        Ok(Prepared { config, kernel })
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        0
    }

    unsafe fn launch(&mut self, _device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        // SAFETY: the operands are the caller's promise.
        unsafe { stationary::launch(&self.kernel, self.config, stream, &Arguments::new(o)) }
    }
}
