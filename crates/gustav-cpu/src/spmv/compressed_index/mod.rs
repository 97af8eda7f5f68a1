//! `compressed-index` (ours): the plan encodes the column indices in fewer bytes; values stay in
//! the caller's array.
//!
//! SpMV reads a value and an index for every entry and computes little with them, so it is bound by
//! these reads and by the gather of x; the index bytes and the gather can be saved. Each segment of
//! rows has its own encoding (see [`encode::Code`]): rows of a grid need no index and are
//! multiplied a vector of rows at a time; consecutive columns need one mask for a whole vector and
//! no gather; other rows take 16 bits for an index where their columns lie close enough.

#[cfg(test)]
mod decode;
mod encode;
pub(super) mod kernel;
#[cfg(target_arch = "x86_64")]
mod masked;
#[cfg(target_arch = "x86_64")]
mod slices;
mod survey;

use bytemuck::cast_slice;
use gustav_core::{Arith, Buffer, DType, Index, IndexSlice, Ops, Result, Scalar};

use super::compiled::Compiled;
use super::epilogue::{Epilogue, Output};
use super::lanes::Element;
use super::partitions::Partitions;
use super::rows::Operands;
use crate::arch::{Isa, has_slow_gathers};
use crate::schedule;
use encode::{Encoded, Pattern};
use kernel::Part;
use survey::Limits;

pub(crate) struct Compressed<A> {
    pub(crate) partitions: Partitions<A>,
    pub(crate) columns: Columns,
}

/// The encoded pattern, with a copy of the offsets: all bounds of the kernels' reads are in the
/// plan, whatever matrix of the planned size they receive.
pub(crate) struct Columns {
    offsets: Offsets,
    encoded: Encoded,
}

/// Row offsets, 32-bit ones where they suffice.
enum Offsets {
    U32(Buffer<u32>),
    U64(Buffer<u64>),
}

impl<A: Arith> Compressed<A> {
    /// Encodes the pattern for values of type `dtype` (f32 or f64) and the vectors of `isa`, in
    /// partitions for `threads` threads.
    pub(crate) fn new(
        offsets: IndexSlice<'_>,
        indices: &[u32],
        dtype: DType,
        isa: Isa,
        threads: usize,
    ) -> Result<Self> {
        let loads = isa == Isa::Avx512 && has_slow_gathers();
        let limits = Limits { width: 64 / dtype.bytes(), masks: isa == Isa::Avx512, loads };
        let offsets = match offsets {
            IndexSlice::U32(offsets) => Offsets::U32(copy(offsets)?),
            IndexSlice::U64(offsets) if indices.len() <= u32::MAX as usize => {
                Offsets::U32(copy(offsets)?)
            }
            IndexSlice::U64(offsets) => Offsets::U64(copy(offsets)?),
        };
        let (partitions, encoded) = match &offsets {
            Offsets::U32(offsets) => encode(Pattern { offsets, indices }, limits, threads)?,
            Offsets::U64(offsets) => encode(Pattern { offsets, indices }, limits, threads)?,
        };
        Ok(Compressed { partitions, columns: Columns { offsets, encoded } })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.partitions.bytes() + self.columns.bytes()
    }
}

fn encode<A: Arith, O: Index>(
    pattern: Pattern<'_, O>,
    limits: Limits,
    threads: usize,
) -> Result<(Partitions<A>, Encoded)> {
    let partitions = Partitions::new(pattern.offsets, schedule::merge_path, threads)?;
    let rows: Vec<_> = partitions.whole_rows().collect();
    let encoded = Encoded::new(pattern, &rows, limits)?;
    Ok((partitions, encoded))
}

fn copy<A: Index, B: Index>(offsets: &[A]) -> Result<Buffer<B>> {
    let mut copy = Buffer::zeroed(offsets.len(), "row offsets of the plan")?;
    for (to, from) in copy.iter_mut().zip(offsets) {
        *to = B::truncate(from.to_usize());
    }
    Ok(copy)
}

impl Columns {
    fn bytes(&self) -> usize {
        let offsets = match &self.offsets {
            Offsets::U32(offsets) => size_of_val(&**offsets),
            Offsets::U64(offsets) => size_of_val(&**offsets),
        };
        offsets + self.encoded.bytes()
    }

    /// Finishes the whole rows of partition `partition` of a matrix of the planned size, f32 or f64
    /// with 32-bit column indices.
    ///
    /// # Safety
    /// The rows are in bounds of `y`, no other thread accesses them during the call, and `isa` is
    /// available.
    pub(crate) unsafe fn multiply<T: Scalar, I: Index, S: Ops<T::Accum>>(
        &self,
        isa: Isa,
        partition: usize,
        operands: &Operands<'_, T, I>,
        epilogue: &Epilogue<T::Accum, S>,
        y: Output<'_, T>,
    ) {
        // SAFETY: promised by the caller.
        unsafe {
            match T::DTYPE {
                DType::F32 => f32::partition(isa, self.part(partition, operands, epilogue, y)),
                _ => f64::partition(isa, self.part(partition, operands, epilogue, y)),
            }
        }
    }

    fn part<'a, E: Element, T: Scalar, I: Index, S: Ops<T::Accum>>(
        &'a self,
        partition: usize,
        operands: &Operands<'a, T, I>,
        epilogue: &Epilogue<T::Accum, S>,
        y: Output<'_, T>,
    ) -> Part<'a, E> {
        Part {
            columns: self,
            partition,
            indices: cast_slice(operands.indices),
            values: cast_slice::<T, E>(operands.values),
            x: cast_slice::<T, E>(operands.x),
            finish: epilogue.finish(y),
        }
    }

    /// The offsets of the pattern's rows.
    pub(crate) fn offsets(&self) -> IndexSlice<'_> {
        match &self.offsets {
            Offsets::U32(offsets) => IndexSlice::U32(offsets),
            Offsets::U64(offsets) => IndexSlice::U64(offsets),
        }
    }
}
