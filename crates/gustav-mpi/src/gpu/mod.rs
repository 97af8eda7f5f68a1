//! What products over ranks have in common where a rank computes on a GPU.

mod forwarding;
mod messages;
mod placing;
mod staging;

use std::ops::Range;

use gustav_core::{Batch, Error, Layout, Problem, Result};
use gustav_cuda::{DeviceBuffer, DeviceDense};

use crate::local::DistScalar;
use crate::{Communication, Device, Ranks};
pub use messages::{GpuMessages, Transport};
pub use placing::Placing;
pub use staging::{Joined, Staging};

// Bytes of a chunk of a message where a rank has a GPU: chunks are copied from and to it while others are sent.
const CHUNK: usize = 1 << 22;

/// Where a rank computes its part of products: on a GPU. Other ranks may use others, the same, or their CPU; several
/// GPUs of a host are those of several ranks.
///
/// Messages go through page-locked memory of the host, in chunks that are copied while others are sent; where MPI says
/// that it takes pointers to device memory, directly.
#[derive(Clone, Debug)]
pub struct Gpu {
    pub(crate) device: gustav_cuda::Device,
    pub(crate) options: Device,
}

impl Gpu {
    /// The GPU `device`.
    pub fn new(device: gustav_cuda::Device) -> Self {
        Gpu { device, options: Device::default() }
    }

    /// The GPU number `rank` of those of this machine, modulo their number: a GPU for each of the ranks that share a
    /// host, if it has as many, when `rank` is this one's number among them
    /// ([`Hosts::position`](crate::Hosts::position)).
    ///
    /// # Errors
    /// [`Error::NoDevice`] when there is none.
    pub fn of_rank(rank: usize) -> Result<Self> {
        let count = gustav_cuda::Device::count()?;
        if count == 0 {
            return Err(Error::NoDevice { reason: "the NVIDIA driver finds no GPU".into() });
        }
        Ok(Gpu::new(gustav_cuda::Device::cuda(rank % count)?))
    }

    /// The GPU.
    pub fn device(&self) -> &gustav_cuda::Device {
        &self.device
    }

    /// Sets what ranks send each other, else the cheapest.
    #[must_use]
    pub fn communication(self, communication: Communication) -> Self {
        Gpu { options: self.options.communication(communication), ..self }
    }

    /// As [`Device::two_levels`].
    #[must_use]
    pub fn two_levels(self, two: bool) -> Self {
        Gpu { options: self.options.two_levels(two), ..self }
    }
}

/// Whether some rank computes on a GPU, as this one does if `here`, and the most bytes of a chunk of a message.
/// Collective.
///
/// # Errors
/// [`Error::Unsupported`] on every rank where a chunk could not hold a value.
pub fn chunks(ranks: &Ranks, here: bool, problem: &Problem) -> Result<(bool, usize)> {
    let mut any = [u64::from(here)];
    ranks.communicator().all_reduce_max(&mut any)?;
    if any[0] == 0 {
        return Ok((false, usize::MAX));
    }
    // Whole values of every type.
    let limit = CHUNK.min(ranks.communicator().message_limit()) / 8 * 8;
    match limit {
        0 => Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: BACKEND.into(),
            reason: "messages of the communicator are too short for a value".into(),
            nearest: "one whose messages have 8 bytes".into(),
        }),
        _ => Ok((true, limit)),
    }
}

/// What errors call this.
pub const BACKEND: &str = "products over ranks with GPUs";

/// Positions of values as a GPU has them.
pub fn positions(of: impl Iterator<Item = usize>) -> Result<Vec<u32>> {
    let narrow = |position: usize| {
        u32::try_from(position).map_err(|_| Error::Unsupported {
            problem: "a rank of more than 2^32 nonzeros".into(),
            backend: BACKEND.into(),
            reason: "positions of its values are numbered in u32".into(),
            nearest: "more ranks".into(),
        })
    };
    of.map(narrow).collect()
}

/// Checks shape and layout of a dense operand.
pub fn check_dense<T: DistScalar>(expected: &Batch, found: &DeviceDense<T>) -> Result<()> {
    let shape = (found.nrows(), found.ncols());
    expected.strides(shape, found.layout(), found.leading_dimension()).map(drop)
}

/// Checks that operands are on `device`.
pub fn check_device<T: DistScalar>(
    device: &gustav_cuda::Device,
    operands: &[(&'static str, &DeviceBuffer<T>)],
) -> Result<()> {
    match operands.iter().find(|(_, m)| m.device() != device) {
        None => Ok(()),
        Some((name, _)) => Err(Error::Argument {
            name,
            found: "memory on another device".into(),
            expected: format!("memory on {}", device.profile().name),
        }),
    }
}

/// `len` values of `buffer` from `first` on, as memory of its own: unlike those of [`DeviceBuffer::part`], work on them
/// does not wait for other work on the buffer.
///
/// # Safety
/// `buffer` lives until the work on them is done, and the caller orders it after other work on them.
pub unsafe fn part<T: DistScalar>(
    buffer: &DeviceBuffer<T>,
    first: usize,
    len: usize,
) -> DeviceBuffer<T> {
    assert!(first + len <= buffer.len(), "values of the buffer");
    let address = buffer.address() + (first * size_of::<T>()) as u64;
    // SAFETY: values of the buffer; the rest is promised by the caller.
    unsafe { DeviceBuffer::borrowed(buffer.device(), address, len) }
}

/// Rows `rows` of `m`, in its memory.
///
/// # Safety
/// As [`DeviceBuffer::part`].
pub unsafe fn rows_in<T: DistScalar>(
    m: &DeviceDense<T>,
    rows: Range<usize>,
) -> Result<DeviceDense<T>> {
    let (layout, ld, data) = (m.layout(), m.leading_dimension(), m.data());
    let step = if layout == Layout::RowMajor { ld } else { 1 };
    // A matrix without columns may have no memory.
    let first = data.len().min(rows.start * step);
    // SAFETY: promised by the caller.
    let values = unsafe { data.part(first, data.len() - first) };
    DeviceDense::new(rows.len(), m.ncols(), layout, ld, values)
}

/// Rows of a message as a matrix.
///
/// # Safety
/// As [`part`].
pub unsafe fn rows_of<T: DistScalar>(
    buffer: &DeviceBuffer<T>,
    first: usize,
    (rows, n): (usize, usize),
) -> Result<DeviceDense<T>> {
    // SAFETY: promised by the caller.
    let values = unsafe { part(buffer, first * n, rows * n) };
    DeviceDense::new(rows, n, Layout::RowMajor, n, values)
}
