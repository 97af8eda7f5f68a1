//! The pattern of Aᵀ, made on the device, and A's values in its order. See
//! `kernels/csr/transpose.cu`.

use std::sync::Arc;

use gustav_core::{Index, IndexType, Result, Scalar};

use super::DevicePattern;
use super::gather::Gather;
use crate::device::memory::Memory;
use crate::device::order::{Access, Uses};
use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;

/// Threads of a CTA, and values of a digit.
const BLOCK: u32 = 256;
const DIGIT_BITS: u32 = BLOCK.ilog2();
/// Entries of a tile for every thread.
const ROUNDS: u32 = 16;

/// The source with its parameters.
pub(crate) fn request(index: IndexType, offset: IndexType) -> Request {
    request!("csr/transpose.cu")
        .with_block::<Arguments>()
        .with("INDEX", index)
        .with("OFFSET", offset)
        .with("BLOCK", BLOCK)
        .with("ROUNDS", ROUNDS)
}

/// The pattern of Aᵀ, and for each of its nonzeros the position of the same nonzero in A.
#[derive(Debug)]
pub(crate) struct TransposedPattern<I, O> {
    pub offsets: DeviceBuffer<O>,
    pub indices: DeviceBuffer<I>,
    source: DeviceBuffer<O>,
}

parameter_block! {
    struct Arguments {
        /// Of the entries in their order so far.
        columns: *const Index,
        /// Likewise; null in the first round, which takes them as stored.
        positions: *const Offset,
        sorted_columns: *mut Index,
        sorted_positions: *mut Offset,
        /// Digit by digit, of every tile.
        counts: *mut Offset,
        /// Of the digits.
        totals: *mut Offset,
        /// Of the matrix.
        offsets: *const Offset,
        /// Of the columns.
        starts: *mut Offset,
        /// Of the sorted entries.
        rows: *mut Index,
        nrows: u64,
        ncols: u64,
        nnz: u64,
        tiles: u64,
        /// Of the digit.
        shift: u32,
    }
}

impl<I: Index, O: Index> TransposedPattern<I, O> {
    /// Queues the pattern of the transpose of `a` on the device's stream, to be waited for by the
    /// caller. Entries of a row of it are in the order of the rows of `a`, in every run.
    ///
    /// # Errors
    /// [`gustav_core::Error::Overflow`] when a row of `a` is no column index,
    /// [`gustav_core::Error::OutOfMemory`], [`gustav_core::Error::Device`].
    pub(crate) fn new(device: &Device, a: &DevicePattern<I, O>) -> Result<Self> {
        I::try_from_usize(a.nrows().saturating_sub(1), "row index of the transpose")?;
        let starts = a.ncols().saturating_add(1);
        let made = TransposedPattern {
            offsets: DeviceBuffer::queued(device, starts, "row offsets of the transpose")?,
            indices: DeviceBuffer::queued(device, a.nnz(), "column indices of the transpose")?,
            source: DeviceBuffer::queued(device, a.nnz(), "positions of the transpose")?,
        };
        a.join(device)?;
        made.sort(device, a)?;
        Ok(made)
    }

    /// For each nonzero the position of the same nonzero in A.
    pub(crate) fn positions(&self) -> &DeviceBuffer<O> {
        &self.source
    }

    /// Queues sorting the entries of `a` by column, digit by digit.
    fn sort(&self, device: &Device, a: &DevicePattern<I, O>) -> Result<()> {
        let (stream, nnz) = (device.stream(), a.nnz());
        let bits = usize::BITS - a.ncols().saturating_sub(1).leading_zeros();
        let digits = bits.div_ceil(DIGIT_BITS).max(1);
        let tiles = nnz.div_ceil((BLOCK * ROUNDS) as usize);
        let spare = if digits > 1 { nnz } else { 0 };
        // Entries go back and forth between these and the arrays of the transpose, to end there.
        let columns = DeviceBuffer::<I>::queued(device, spare, "columns on their way")?;
        let positions = DeviceBuffer::<O>::queued(device, spare, "positions on their way")?;
        let counts = tiles.saturating_mul(BLOCK as usize);
        let counts = DeviceBuffer::<O>::queued(device, counts, "counts of digits")?;
        let totals = DeviceBuffer::<O>::queued(device, BLOCK as usize, "counts of digits")?;
        let module = device.module(&request(I::TYPE, O::TYPE))?;
        let [tally, sum, scatter] = [c"tally", c"sum", c"scatter"].map(|name| module.kernel(name));
        let (tally, sum, scatter) = (tally?, sum?, scatter?);
        let mut arguments = Arguments {
            columns: a.indices().address(),
            positions: 0,
            sorted_columns: 0,
            sorted_positions: 0,
            counts: counts.address(),
            totals: totals.address(),
            offsets: a.offsets().address(),
            starts: self.offsets.address(),
            rows: self.indices.address(),
            nrows: a.nrows() as u64,
            ncols: a.ncols() as u64,
            nnz: nnz as u64,
            tiles: tiles as u64,
            shift: 0,
        };
        for digit in 0..digits {
            let ends = (digits - digit) % 2 == 1;
            let to = match ends {
                true => (self.indices.address(), self.source.address()),
                false => (columns.address(), positions.address()),
            };
            (arguments.sorted_columns, arguments.sorted_positions) = to;
            arguments.shift = digit * DIGIT_BITS;
            // SAFETY: every place that the counts give is
            // below nnz, and freed buffers wait for the stream.
            unsafe {
                tally.launch(stream, (tiles as u64, 1), BLOCK, &arguments)?;
                if tiles > 0 {
                    sum.launch(stream, (u64::from(BLOCK), 1), BLOCK, &arguments)?;
                }
                scatter.launch(stream, (tiles as u64, 1), BLOCK, &arguments)?;
            }
            (arguments.columns, arguments.positions) = to;
        }
        let grid = |count: usize| {
            let profile = device.profile();
            let most = profile.multiprocessors * profile.threads_per_multiprocessor;
            ((count as u64).div_ceil(u64::from(BLOCK)).min(most.max(1) as u64), 1)
        };
        // SAFETY: as above; the columns are read to their end before rows take their place.
        unsafe {
            module.kernel(c"starts")?.launch(stream, grid(a.ncols() + 1), BLOCK, &arguments)?;
            module.kernel(c"rows")?.launch(stream, grid(nnz), BLOCK, &arguments)
        }
    }
}

/// Aᵀ as a plan holds it: a shared pattern, and values gathered from A's at every execution.
pub(crate) struct Transposed<T> {
    pub offsets: Arc<Memory>,
    pub indices: Arc<Memory>,
    pub values: DeviceBuffer<T>,
    source: Arc<Memory>,
    gather: Gather,
    nnz: usize,
    bytes: usize,
}

impl<T: Scalar> Transposed<T> {
    /// Of `batch` matrices of `pattern`; the pattern is made on the own stream of `device` unless another plan
    /// has made it.
    ///
    /// # Errors
    /// As [`TransposedPattern::new`].
    pub(crate) fn new<I: Index, O: Index>(
        device: &Device,
        pattern: &TransposedPattern<I, O>,
        batch: usize,
    ) -> Result<Self> {
        let TransposedPattern { offsets, indices, source } = pattern;
        let nnz = indices.len();
        let room = nnz.saturating_mul(batch);
        let values = DeviceBuffer::<T>::queued(device, room, "values of the transpose")?;
        let bytes = offsets.bytes() + indices.bytes() + source.bytes() + values.bytes();
        let [offsets, source] = [offsets, source].map(|array| array.memory().clone());
        let indices = indices.memory().clone();
        let gather = Gather::new(device, T::DTYPE, O::TYPE, false)?;
        Ok(Transposed { offsets, indices, values, source, gather, nnz, bytes })
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Address of the positions in A, of the type of the row offsets.
    pub(crate) fn permutation(&self) -> u64 {
        self.source.address()
    }

    /// Queues the gathering of the values of A, or of one A after another, each in the order of its pattern, which
    /// the stream may read.
    pub(crate) fn refresh(
        &self,
        uses: &mut Uses<'_>,
        stream: &Stream,
        values: &DeviceBuffer<T>,
    ) -> Result<()> {
        for array in [&self.offsets, &self.indices, &self.source] {
            uses.access(array, Access::Read)?;
        }
        self.values.used_on(stream);
        let (source, out) = (self.source.address(), self.values.address());
        let nnz = self.nnz;
        for first in (0..values.len().min(self.values.len())).step_by(nnz.max(1)) {
            let bytes = (first * size_of::<T>()) as u64;
            let (from, to) = (values.address() + bytes, out + bytes);
            // SAFETY: both value arrays hold `nnz` entries from there on, as the positions do, which are below
            // `nnz`, and the buffers wait for the stream when freed.
            unsafe { self.gather.launch(stream, from, source, to, nnz)? };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;
    use crate::matrix::DeviceCsr;

    /// A matrix whose rows repeat columns of all kinds, in no order.
    fn matrix<I: Index, O: Index>(rows: usize, cols: usize, nnz: usize) -> Csr<f32, I, O> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize
        };
        let mut ends: Vec<usize> = (1..rows).map(|_| next() % (nnz + 1)).collect();
        ends.extend([0, nnz]);
        ends.sort_unstable();
        let columns: Vec<I> = (0..nnz)
            .map(|i| I::truncate(if i % 3 == 0 { cols - 1 } else { next() % cols }))
            .collect();
        let values = (0..nnz).map(|i| i as f32).collect::<Vec<_>>();
        let offsets: Vec<O> = ends.into_iter().map(O::truncate).collect();
        Csr::new(rows, cols, offsets, columns, values).expect("a matrix")
    }

    fn check<I: Index, O: Index>(device: &Device, rows: usize, cols: usize, nnz: usize) {
        let host = matrix::<I, O>(rows, cols, nnz);
        let a = DeviceCsr::upload(device, &host.view()).expect("A");
        let found = a.pattern().transposed(device).expect("a transpose");
        let moved = Transposed::new(device, &found, 1).expect("values");
        let stream = device.stream();
        moved.refresh(&mut Uses::on(stream), stream, a.values().buffer()).expect("values");
        let expected = host.pattern().transposed().expect("a transpose");
        let (offsets, indices) = (expected.pattern().offsets(), expected.pattern().indices());
        let source = expected.permutation();
        let column = format!("{rows} x {cols}, {nnz} entries");
        assert!(found.offsets.to_host().expect("offsets")[..] == *offsets, "{column}: offsets");
        assert!(found.indices.to_host().expect("indices")[..] == *indices, "{column}: indices");
        assert!(found.source.to_host().expect("source")[..] == *source, "{column}: positions");
        let values = moved.values.to_host().expect("values");
        let expected = source.iter().map(|s| host.values()[s.to_usize()]);
        assert!(values.iter().copied().eq(expected), "{column}: values");
    }

    #[test]
    #[ignore = "needs a CUDA device"]
    fn transposes_are_those_of_the_host() {
        let device = Device::cuda(0).expect("a CUDA device");
        let sizes = [
            (1, 1, 0),
            (1, 1, 1),
            (5, 3, 40),
            (300, 256, 5_000),
            (1000, 257, 4096),
            (7, 70_000, 50_000),
            (70_000, 5, 100_000),
            (1 << 18, 1 << 18, 3_000_000),
            (1000, 20_000_000, 100_000),
        ];
        for (rows, cols, nnz) in sizes {
            check::<u32, u32>(&device, rows, cols, nnz);
            check::<u64, u64>(&device, rows, cols, nnz);
        }
        check::<u32, u64>(&device, 900, 800, 9_000);
        check::<u64, u32>(&device, 900, 800, 9_000);
    }
}
