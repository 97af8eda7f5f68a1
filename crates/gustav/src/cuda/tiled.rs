//! Products larger than a GPU's memory.

use gustav_core::{Csr, CsrView, Error, Index, Problem, Result, Scalar};
use gustav_cuda::spgemm::Options;
use gustav_cuda::spgemm::tiled::{self, Tiling};
use gustav_plan::{Algorithm, Chooser};

use crate::Device;

impl Device {
    /// C = α·A·B of matrices in host memory by `tiled` (Chen et al. 2025, §7.2): in as many tiles
    /// as the GPU's memory, or the cap in `tiling`, requires. The device's chooser picks the
    /// algorithm of every tile.
    ///
    /// # Errors
    /// [`Error::Unsupported`] on the CPU, which has no memory of its own,
    /// [`Error::Cancelled`](gustav_core::Error::Cancelled) when the callback said so, and as
    /// [`tiled::multiply`].
    pub fn spgemm_tiled<'a, T: Scalar, I: Index, O: Index>(
        &self,
        a: impl Into<CsrView<'a, T, I, O>>,
        alpha: T::Accum,
        b: impl Into<CsrView<'a, T, I, O>>,
        problem: &Problem,
        tiling: Tiling<'_>,
    ) -> Result<Csr<T, I, O>> {
        let chooser = match self.chooser() {
            Chooser::Named(Algorithm::Tiled) => Chooser::Auto,
            Chooser::Autotune => {
                return Err(Error::Unsupported {
                    problem: problem.to_string(),
                    backend: "tiled on CUDA".into(),
                    reason: "every tile would be tuned anew".into(),
                    nearest: "auto or a name".into(),
                });
            }
            other => other,
        };
        let options = Options { chooser, ..Options::default() };
        tiled::multiply(self.cuda_device()?, (a.into(), alpha, b.into()), problem, &options, tiling)
    }
}
