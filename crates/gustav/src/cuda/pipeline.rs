//! Dense matrices in host memory, multiplied as sparse ones on a GPU while the CPU converts.

use gustav_core::{DenseView, Error, Result, Scalar};
use gustav_cpu::Threads;
use gustav_cpu::dense::{CsrRowsMut, compress};
use gustav_cuda::spgemm::pipeline::{Block, Config, Pipeline, Stage};

use super::{DeviceDense, PinnedBuffer};
use crate::Device;

/// A plan for products of dense m × k by k × n matrices with many zeros by `pipeline` (Chen et al.
/// 2025, §4.3), made by [`Device::plan_pipeline`].
pub struct PipelinePlan<T> {
    inner: Pipeline<T>,
    shape: [usize; 3],
    threads: Threads,
}

impl Device {
    /// Plans products of dense m × k by k × n matrices in host memory, `shape` being m, k, n: the
    /// device's threads convert a block of A to CSR while the GPU multiplies the one before.
    ///
    /// # Errors
    /// [`Error::Unsupported`] on the CPU and for other types than f32 and f64,
    /// [`Error::Argument`], [`Error::Overflow`], [`Error::OutOfMemory`], [`Error::Device`].
    pub fn plan_pipeline<T: Scalar>(
        &self,
        shape: [usize; 3],
        config: Config,
    ) -> Result<PipelinePlan<T>> {
        let inner = Pipeline::new(self.cuda_device()?, shape, config)?;
        Ok(PipelinePlan { inner, shape, threads: self.threads().clone() })
    }
}

impl<T: Scalar> PipelinePlan<T> {
    /// C = α·A·B into `c` on the GPU, and from there into `host` when given, row after row; done
    /// when this returns. Nothing is allocated. Elements that no nonzeros produce are minus zero,
    /// so that [`DeviceDense::to_csr`] finds the pattern of C.
    ///
    /// # Errors
    /// [`Error::Shape`] for other shapes, [`Error::Unsupported`] for column-major operands,
    /// [`Error::Length`], [`Error::Device`].
    pub fn execute(
        &mut self,
        a: DenseView<'_, T>,
        alpha: T::Accum,
        b: DenseView<'_, T>,
        c: &mut DeviceDense<T>,
        host: Option<&mut PinnedBuffer<T>>,
    ) -> Result<()> {
        let [m, k, n] = self.shape;
        if [a.nrows(), a.ncols(), b.nrows(), b.ncols()] != [m, k, k, n] {
            return Err(Error::Shape {
                op: "pipeline",
                expected: format!("{m} x {k} times {k} x {n}"),
                found: format!("{} x {} times {} x {}", a.nrows(), a.ncols(), b.nrows(), b.ncols()),
            });
        }
        let convert = |dense: DenseView<'_, T>, block: Block<'_, T>| {
            let Block { rows, first, offsets, indices, values } = block;
            compress(&self.threads, dense, rows, first, CsrRowsMut { offsets, indices, values })
        };
        let mut of_b = |block: Block<'_, T>| convert(b, block);
        let mut of_a = |block: Block<'_, T>| convert(a, block);
        self.inner.run(&mut of_b, &mut of_a, alpha, c, host)
    }

    /// The timeline of the last execution.
    pub fn timeline(&self) -> &[Stage] {
        self.inner.timeline()
    }

    /// Bytes of page-locked and of device memory that the plan holds.
    pub fn bytes(&self) -> (usize, usize) {
        self.inner.bytes()
    }
}
