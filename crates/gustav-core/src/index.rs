//! Column indices and row offsets: u32 and u64, chosen independently.

use std::fmt::{Debug, Display};
use std::hash::Hash;

use crate::{Error, Result};

/// Name of an index type at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexType {
    /// 32-bit unsigned.
    U32,
    /// 64-bit unsigned.
    U64,
}

impl IndexType {
    /// Bytes of one index.
    pub const fn bytes(self) -> usize {
        match self {
            IndexType::U32 => 4,
            IndexType::U64 => 8,
        }
    }
}

impl Display for IndexType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            IndexType::U32 => "u32",
            IndexType::U64 => "u64",
        })
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// A column index or a row offset: `u32` or `u64`.
pub trait Index:
    sealed::Sealed
    + Copy
    + Ord
    + Hash
    + Default
    + Debug
    + Display
    + Send
    + Sync
    + bytemuck::Pod
    + 'static
{
    /// The type's name at run time.
    const TYPE: IndexType;
    /// The largest value.
    const MAX: u64;

    /// The index as a `usize`; lossless on the 64-bit targets that gustav supports.
    fn to_usize(self) -> usize;
    /// `value` as an index, truncated: the caller checks that it fits.
    fn truncate(value: usize) -> Self;
    /// `value` as an index.
    ///
    /// # Errors
    /// [`Error::Overflow`] naming `what` when it does not fit.
    fn try_from_usize(value: usize, what: &'static str) -> Result<Self> {
        if value as u64 > Self::MAX {
            return Err(Error::Overflow { what, need: value as u128, index_type: Self::TYPE });
        }
        Ok(Self::truncate(value))
    }
    /// The two indices at `at`, in one load where a register holds both.
    ///
    /// # Safety
    /// Two indices can be read at `at`.
    #[inline(always)]
    unsafe fn pair(at: *const Self) -> [usize; 2] {
        // SAFETY: promised by the caller.
        unsafe { [(*at).to_usize(), (*at.add(1)).to_usize()] }
    }
}

impl Index for u32 {
    const TYPE: IndexType = IndexType::U32;
    const MAX: u64 = u32::MAX as u64;
    #[inline(always)]
    fn to_usize(self) -> usize {
        self as usize
    }
    #[inline(always)]
    fn truncate(value: usize) -> Self {
        value as u32
    }
    #[inline(always)]
    unsafe fn pair(at: *const u32) -> [usize; 2] {
        // SAFETY: promised by the caller.
        let both = unsafe { at.cast::<u64>().read_unaligned() };
        let (low, high) = (both as u32 as usize, (both >> 32) as usize);
        if cfg!(target_endian = "little") { [low, high] } else { [high, low] }
    }
}

impl Index for u64 {
    const TYPE: IndexType = IndexType::U64;
    const MAX: u64 = u64::MAX;
    #[inline(always)]
    fn to_usize(self) -> usize {
        self as usize
    }
    #[inline(always)]
    fn truncate(value: usize) -> Self {
        value as u64
    }
}

/// An array of indices of either type: for code that need not be compiled twice.
#[derive(Clone, Copy, Debug)]
pub enum IndexSlice<'a> {
    /// 32-bit indices.
    U32(&'a [u32]),
    /// 64-bit indices.
    U64(&'a [u64]),
}

impl<'a> IndexSlice<'a> {
    /// `indices` of either type.
    #[inline(always)]
    pub fn new<I: Index>(indices: &'a [I]) -> Self {
        match I::TYPE {
            IndexType::U32 => IndexSlice::U32(bytemuck::cast_slice(indices)),
            IndexType::U64 => IndexSlice::U64(bytemuck::cast_slice(indices)),
        }
    }

    /// The index at `at`.
    ///
    /// # Panics
    /// When out of range.
    #[inline]
    pub fn get(&self, at: usize) -> usize {
        match self {
            IndexSlice::U32(indices) => indices[at].to_usize(),
            IndexSlice::U64(indices) => indices[at].to_usize(),
        }
    }

    /// Replaces the contents of `out` by the indices of `range`.
    ///
    /// # Panics
    /// When out of range.
    pub fn read(&self, range: std::ops::Range<usize>, out: &mut Vec<usize>) {
        out.clear();
        match self {
            IndexSlice::U32(indices) => out.extend(indices[range].iter().map(|i| i.to_usize())),
            IndexSlice::U64(indices) => out.extend(indices[range].iter().map(|i| i.to_usize())),
        }
    }
}

/// A signed integer type whose arrays can be read as unsigned when nothing is negative.
pub trait SignedIndex: Copy + PartialOrd + Default + Debug + bytemuck::Pod {
    /// The unsigned type of the same width.
    type Unsigned: Index;
}

impl SignedIndex for i32 {
    type Unsigned = u32;
}

impl SignedIndex for i64 {
    type Unsigned = u64;
}

/// Reads an array of `i32` or `i64` as `u32` or `u64` without a copy.
///
/// # Errors
/// [`Error::Argument`] with the position of the first negative entry.
pub fn unsigned<S: SignedIndex>(indices: &[S]) -> Result<&[S::Unsigned]> {
    if let Some(position) = indices.iter().position(|i| *i < S::default()) {
        return Err(Error::Argument {
            name: "index array",
            found: format!("{:?} at position {position}", indices[position]),
            expected: "no negative entries".into(),
        });
    }
    Ok(bytemuck::cast_slice(indices))
}
