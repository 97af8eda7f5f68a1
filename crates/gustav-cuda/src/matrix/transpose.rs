//! Computes the pattern of Aᵀ on the device, and gathers A's values to its order. See
//! `kernels/csr/transpose.cu`.

use std::sync::Arc;

use gustav_core::{Index, IndexType, Result, Scalar};

use super::gather::Gather;
use super::{DevicePattern, PatternFacts};
use crate::device::memory::Memory;
use crate::device::order::{Access, Uses};
use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;

/// Threads of a CTA, and number of values of a digit of the radix sort.
const BLOCK: u32 = 256;
const DIGIT_BITS: u32 = BLOCK.ilog2();
/// Entries of a tile per thread.
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
    /// The facts that plans counted.
    pub facts: PatternFacts,
}

parameter_block! {
    struct Arguments {
        /// Columns of the entries in their present order.
        columns: *const Index,
        /// Positions of the entries in A; null in the first round, in which they are in order.
        positions: *const Offset,
        sorted_columns: *mut Index,
        sorted_positions: *mut Offset,
        /// Number of entries of each digit in every tile.
        counts: *mut Offset,
        /// Number of entries of each digit.
        totals: *mut Offset,
        /// Row offsets of A.
        offsets: *const Offset,
        /// Row offsets of Aᵀ.
        starts: *mut Offset,
        /// Rows of the sorted entries.
        rows: *mut Index,
        nrows: u64,
        ncols: u64,
        nnz: u64,
        tiles: u64,
        /// Lowest bit of the digit.
        shift: u32,
    }
}

impl<I: Index, O: Index> TransposedPattern<I, O> {
    /// Queues the computation of the transpose of `a` on the device's stream; the caller orders its
    /// uses. Entries of its rows are in the order of the rows of `a`, in every run.
    ///
    /// # Errors
    /// [`gustav_core::Error::Overflow`] when a row number of `a` does not fit the type of column
    /// indices, [`gustav_core::Error::OutOfMemory`], [`gustav_core::Error::Device`].
    pub(crate) fn new(device: &Device, a: &DevicePattern<I, O>) -> Result<Self> {
        I::try_from_usize(a.nrows().saturating_sub(1), "row index of the transpose")?;
        let starts = a.ncols().saturating_add(1);
        let made = TransposedPattern {
            offsets: DeviceBuffer::queued(device, starts, "row offsets of the transpose")?,
            indices: DeviceBuffer::queued(device, a.nnz(), "column indices of the transpose")?,
            source: DeviceBuffer::queued(device, a.nnz(), "positions of the transpose")?,
            facts: PatternFacts::default(),
        };
        a.join(device)?;
        made.sort(device, a)?;
        Ok(made)
    }

    /// For each nonzero the position of the same nonzero in A.
    pub(crate) fn positions(&self) -> &DeviceBuffer<O> {
        &self.source
    }

    /// Queues a radix sort of the entries of `a` by column.
    fn sort(&self, device: &Device, a: &DevicePattern<I, O>) -> Result<()> {
        let (stream, nnz) = (device.stream(), a.nnz());
        let bits = usize::BITS - a.ncols().saturating_sub(1).leading_zeros();
        let digits = bits.div_ceil(DIGIT_BITS).max(1);
        let tiles = nnz.div_ceil((BLOCK * ROUNDS) as usize);
        let spare = if digits > 1 { nnz } else { 0 };
        // Rounds alternate between these arrays and those of the transpose; the last one writes the
        // latter.
        let columns = DeviceBuffer::<I>::queued(device, spare, "columns while they are sorted")?;
        let positions =
            DeviceBuffer::<O>::queued(device, spare, "positions while they are sorted")?;
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
            // SAFETY: all positions from the counts are below nnz, and freed buffers wait for the
            // stream.
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
        // SAFETY: as above; all columns are read before rows overwrite them.
        unsafe {
            module.kernel(c"starts")?.launch(stream, grid(a.ncols() + 1), BLOCK, &arguments)?;
            module.kernel(c"rows")?.launch(stream, grid(nnz), BLOCK, &arguments)
        }
    }
}

/// Aᵀ in a plan: a shared pattern, and values gathered from A's in every execution.
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
    /// For `batch` matrices of `pattern`; the pattern may have been computed on the own stream of
    /// `device`.
    ///
    /// # Errors
    /// As [`TransposedPattern::new`].
    pub(crate) fn new<I: Index, O: Index>(
        device: &Device,
        pattern: &TransposedPattern<I, O>,
        batch: usize,
    ) -> Result<Self> {
        let TransposedPattern { offsets, indices, source, .. } = pattern;
        let nnz = indices.len();
        let count = nnz.saturating_mul(batch);
        let values = DeviceBuffer::<T>::queued(device, count, "values of the transpose")?;
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

    /// Queues the gather of the values of A, or of one A after another.
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
            // SAFETY: both value arrays hold `nnz` entries from there on, there are `nnz`
            // positions, all below `nnz`, and the buffers wait for the stream when freed.
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

    /// A matrix with unsorted and repeated columns.
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
