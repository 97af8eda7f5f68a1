//! NVIDIA GPUs: matrices that stay in a device's memory, and plans for them.
//!
//! ```no_run
//! use gustav::{Csr, Dense, Device};
//!
//! let a = Csr::<f32>::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0, 2.0])?;
//! let b = Dense::from_row_major(2, 1, vec![10.0, 20.0])?;
//!
//! let gpu = Device::cuda(0)?;
//! let a = gpu.upload(&a)?; // or borrow device pointers, see `DeviceBuffer::borrowed`
//! let b = gpu.upload(&b)?;
//! let mut c = gpu.zeros(2, 1, Default::default())?;
//!
//! let mut plan = a.pattern().spmm(1).calls(1000).plan(&gpu)?;
//! plan.execute(&a, &b, &mut c, ())?; // queued; values may change between calls
//! assert_eq!(c.download()?.data(), [20.0, 20.0]); // waits for the product
//! println!("{}", plan.explain());
//! # Ok::<(), gustav::Error>(())
//! ```
//!
//! Matrices in host memory are multiplied on a GPU as well, by the same calls as on the CPU; every
//! execution then moves the operands there and the product back.

mod order;
mod pipeline;
mod plan;
mod predict;
mod spgemm_plan;
mod tiled;
mod trial;
mod tune;
mod upload;

pub use gustav_cuda::Device as CudaDevice;
pub use gustav_cuda::foreign::{KeptContext, drop_of_graphs};
pub use gustav_cuda::jit::search_in as search_nvrtc_in;
pub use gustav_cuda::memory::ordinal_of;
pub use gustav_cuda::{
    Call, DeviceBuffer, DeviceCsr, DeviceDense, DevicePattern, DeviceSliceMut, DeviceValues,
    DeviceWinners, DeviceWinnersMut, Entries, Event, Graph, PinnedBuffer, Probe, Profile,
    SddmmCall, SpgemmCall, Stream,
};
pub use gustav_cuda::{attention, sddmm, softmax, spgemm, spmm, spmv};
pub use pipeline::PipelinePlan;
pub(crate) use plan::{
    plan_attention, plan_attention_gradients, plan_sddmm, plan_softmax, plan_spmm, plan_spmv,
};
pub use spgemm_plan::SpgemmPlan;
pub use upload::Upload;

use gustav_core::{Error, Layout, Result, Scalar};

use crate::Device;

/// A GPU with the name by which it was requested.
#[derive(Clone, Debug)]
pub(crate) struct Gpu {
    pub device: gustav_cuda::Device,
    pub name: String,
}

impl Gpu {
    /// The GPU number `ordinal`.
    pub fn new(ordinal: u32) -> Result<Self> {
        let name = format!("cuda:{ordinal}");
        Ok(Gpu { device: gustav_cuda::Device::cuda(ordinal as usize)?, name })
    }
}

/// A GPU in a few words.
pub(crate) fn description(p: &Profile) -> String {
    let (major, minor) = p.compute_capability;
    format!(
        "{}, {} multiprocessors, {} KiB shared memory a CTA, {} MiB L2, {} GiB memory, compute \
         capability {major}.{minor}, driver for CUDA {}.{}",
        p.name,
        p.multiprocessors,
        p.shared_bytes_per_cta >> 10,
        p.l2_bytes >> 20,
        p.memory_bytes >> 30,
        p.driver / 1000,
        p.driver % 1000 / 10,
    )
}

/// What only a GPU does. On the CPU, which multiplies matrices where they are, these are
/// [`Error::Unsupported`].
impl Device {
    /// A copy of a sparse ([`Csr`](crate::Csr)) or dense ([`Dense`](crate::Dense)) matrix in the
    /// device's memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn upload<M: Upload>(&self, matrix: M) -> Result<M::Resident> {
        matrix.upload(self.cuda_device()?)
    }

    /// A packed dense matrix of zeros in the device's memory.
    ///
    /// # Errors
    /// As [`Device::upload`].
    pub fn zeros<T: Scalar>(
        &self,
        nrows: usize,
        ncols: usize,
        layout: Layout,
    ) -> Result<DeviceDense<T>> {
        DeviceDense::zeros(self.cuda_device()?, nrows, ncols, layout)
    }

    /// A new queue of work on the device.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn stream(&self) -> Result<Stream> {
        self.cuda_device()?.new_stream()
    }

    /// Whether this is a GPU.
    pub fn is_cuda(&self) -> bool {
        self.gpu().is_some()
    }

    /// The backend's device, to borrow memory on (see [`DeviceBuffer::borrowed`]).
    ///
    /// # Errors
    /// [`Error::Unsupported`] on the CPU.
    pub fn cuda_device(&self) -> Result<&gustav_cuda::Device> {
        self.gpu().map(|g| &g.device).ok_or_else(|| Error::Unsupported {
            problem: "matrices and streams of its own".into(),
            backend: "the CPU".into(),
            reason: "it multiplies matrices where they are".into(),
            nearest: "a plan for the pattern in host memory, or Device::cuda".into(),
        })
    }
}
