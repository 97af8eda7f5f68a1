//! Patterns on a GPU: of arrays of Python in place, and owned ones.

use std::sync::Arc;

use gustav::cuda::{DeviceBuffer, DevicePattern};
use gustav::{DType, Error, Index};
use pyo3::exceptions::{PyTypeError, PyValueError};

use crate::array::Array;
use crate::element::Element;
use crate::error::Fault;
use crate::pattern::{Arrays, Extents, Width, with_indices};
use crate::place::{Gpu, OnGpu};

/// A pattern of the library on a GPU, by the widths of its indices, as [`AnyOwned`](crate::pattern::AnyOwned).
pub enum Kind {
    Small(DevicePattern<u32, u32>),
    Long(DevicePattern<u32, u64>),
    Large(DevicePattern<u64, u64>),
}

/// The same, shared. The end of the last clone leaves the current device of its thread as it is.
#[derive(Clone)]
pub struct AnyDevice {
    ordinal: u32,
    kind: Arc<OnGpu<Kind>>,
}

impl AnyDevice {
    /// Of a GPU.
    pub fn new(gpu: &Gpu, kind: Kind) -> Self {
        AnyDevice { ordinal: gpu.ordinal, kind: Arc::new(OnGpu::new(&gpu.device, kind)) }
    }

    /// The number of the GPU.
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// The pattern, by the widths of its indices.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        with_indices!(Kind, self.kind(), |p| (p.nrows(), p.ncols()))
    }

    /// Number of nonzeros.
    pub fn nnz(&self) -> usize {
        with_indices!(Kind, self.kind(), |p| p.nnz())
    }

    /// Bytes of a row offset and of a column index.
    pub fn index_bytes(&self) -> (usize, usize) {
        fn of<I: Index, O: Index>(_: &DevicePattern<I, O>) -> (usize, usize) {
            (size_of::<O>(), size_of::<I>())
        }
        with_indices!(Kind, self.kind(), |p| of(p))
    }

    /// Where the arrays are.
    pub fn extents(&self) -> Extents {
        fn of<T>(buffer: &DeviceBuffer<T>) -> std::ops::Range<usize> {
            let start = buffer.address() as usize;
            start..start + buffer.bytes()
        }
        with_indices!(Kind, self.kind(), |p| Extents::new(of(p.offsets()), of(p.indices())))
    }

    /// Queues copying the arrays to vectors on the GPU.
    ///
    /// # Errors
    /// `ValueError` for vectors of another length or width.
    pub fn copy_into(&self, offsets: &Array, indices: &Array, gpu: &Gpu) -> Result<(), Fault> {
        fn copy<I: Index, O: Index>(
            p: &DevicePattern<I, O>,
            (offsets, indices): (&Array, &Array),
            gpu: &Gpu,
        ) -> Result<(), Fault> {
            offsets.index_buffer::<O>(gpu)?.copy_from(p.offsets(), &gpu.stream)?;
            Ok(indices.index_buffer::<I>(gpu)?.copy_from(p.indices(), &gpu.stream)?)
        }
        with_indices!(Kind, self.kind(), |p| copy(p, (offsets, indices), gpu))
    }
}

/// How the arrays of a pattern become buffers.
trait Take {
    fn take<I: Index>(&self, array: &Array, gpu: &Gpu) -> Result<DeviceBuffer<I>, Fault>;
}

/// Those of the caller, for the time of a call.
struct Borrowed;

impl Take for Borrowed {
    fn take<I: Index>(&self, array: &Array, gpu: &Gpu) -> Result<DeviceBuffer<I>, Fault> {
        array.index_buffer(gpu)
    }
}

/// Copies.
struct Copied;

impl Take for Copied {
    fn take<I: Index>(&self, array: &Array, gpu: &Gpu) -> Result<DeviceBuffer<I>, Fault> {
        let from = array.index_buffer::<I>(gpu)?;
        let mut to = DeviceBuffer::zeros(gpu.on()?, from.len(), "indices on the device")?;
        to.copy_from(&from, &gpu.stream)?;
        Ok(to)
    }
}

/// Those of the caller, held as long as the pattern is.
struct Held;

impl Take for Held {
    fn take<I: Index>(&self, array: &Array, gpu: &Gpu) -> Result<DeviceBuffer<I>, Fault> {
        let borrowed = array.index_buffer::<I>(gpu)?;
        // SAFETY: the owner of the array is held, whose memory this is; that nobody writes it is the caller's
        // promise.
        Ok(unsafe {
            DeviceBuffer::held(gpu.on()?, borrowed.address(), borrowed.len(), array.owner())
        })
    }
}

impl Arrays {
    /// The arrays as a pattern for the time of a call, validated, for work within [`Gpu::between`].
    ///
    /// # Errors
    /// What is wrong in them, with its place.
    pub fn on_gpu(&self, gpu: &Gpu) -> Result<AnyDevice, Fault> {
        self.take(&Borrowed, gpu)
    }

    /// A pattern with a copy of the arrays, validated.
    ///
    /// # Errors
    /// As [`Arrays::on_gpu`].
    pub fn copied_to_gpu(&self, gpu: &Gpu) -> Result<AnyDevice, Fault> {
        self.take(&Copied, gpu)
    }

    /// A pattern over the arrays where they are, which it holds, validated.
    ///
    /// # Errors
    /// As [`Arrays::on_gpu`].
    pub fn keep_on_gpu(&self, gpu: &Gpu) -> Result<AnyDevice, Fault> {
        gpu.between(|| self.take(&Held, gpu))
    }

    fn take(&self, take: &impl Take, gpu: &Gpu) -> Result<AnyDevice, Fault> {
        let kind = match (Width::of(&self.offsets)?.0, Width::of(&self.indices)?.0) {
            (Width::Narrow, Width::Narrow) => Kind::Small(self.checked_on_gpu(take, gpu)?),
            (Width::Wide, Width::Narrow) => Kind::Long(self.checked_on_gpu(take, gpu)?),
            (Width::Wide, Width::Wide) => Kind::Large(self.checked_on_gpu(take, gpu)?),
            (Width::Narrow, Width::Wide) => {
                return Err(PyTypeError::new_err(
                    "indptr of 32 bits beside indices of 64 is not taken on a GPU; give both in one type",
                )
                .into());
            }
        };
        Ok(AnyDevice::new(gpu, kind))
    }

    fn checked_on_gpu<I: Index, O: Index>(
        &self,
        take: &impl Take,
        gpu: &Gpu,
    ) -> Result<DevicePattern<I, O>, Fault> {
        let (rows, columns) = self.shape;
        let (offsets, indices) = (take.take(&self.offsets, gpu)?, take.take(&self.indices, gpu)?);
        let signed = matches!(self.indices.element, Element::Value(DType::I32 | DType::I64));
        DevicePattern::new(rows, columns, offsets, indices).map_err(|error| match &error {
            Error::Index { row, position, value, .. } if signed => {
                let value = match size_of::<I>() {
                    4 => i64::from(*value as u32 as i32),
                    _ => *value as i64,
                };
                match value < 0 {
                    false => error.into(),
                    true => PyValueError::new_err(format!(
                        "row {row}, entry {position}: index {value} is negative"
                    ))
                    .into(),
                }
            }
            _ => error.into(),
        })
    }
}
