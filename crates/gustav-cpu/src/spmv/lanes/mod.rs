//! Vectors of one register. A kernel is written once with them, for all instruction sets.
//!
//! A kernel is a [`Kernel`] whose `run` is generic over [`Lanes`]; [`dispatch`] calls it inside
//! a function compiled for the instruction set at hand, into which everything is inlined.

mod array;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use gustav_core::Arith;

use crate::arch::Isa;
#[cfg(target_arch = "x86_64")]
use crate::arch::has_slow_gathers;

/// How many bytes ahead kernels prefetch with [`Lanes::prefetch`]: the hardware prefetcher does not
/// keep up with this many streams of values and codes.
pub(crate) const PREFETCH_DISTANCE: usize = 2048;

/// A register of `N` sums. Methods ending in `_first` access the first `n` lanes only; the others
/// are zero.
///
/// # Safety
/// Every method needs the instruction set of the implementing type; pointers must be readable for
/// the lanes accessed.
pub(crate) trait Lanes: Copy {
    type Elem: Arith;
    /// A register of `N` 32-bit indices.
    type Index: Copy;
    const N: usize;
    /// Whether [`Lanes::gather`] is an instruction, and not a load for each lane.
    const GATHERS: bool;

    unsafe fn zero() -> Self;
    unsafe fn load(from: *const Self::Elem) -> Self;
    unsafe fn load_first(from: *const Self::Elem, n: usize) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    /// `self * a + b`
    unsafe fn mul_add(self, a: Self, b: Self) -> Self;
    /// Sum of all lanes, in an order that depends on the type alone.
    unsafe fn sum(self) -> Self::Elem;

    /// Prefetches the cache line at `at`, which need not be readable.
    #[inline(always)]
    fn prefetch<T>(_at: *const T) {}

    unsafe fn index_u32(from: *const u32) -> Self::Index;
    unsafe fn index_u32_first(from: *const u32, n: usize) -> Self::Index;
    unsafe fn index_u16(from: *const u16) -> Self::Index;
    unsafe fn index_u16_first(from: *const u16, n: usize) -> Self::Index;
    /// `from[index]`, indices below 2^31.
    unsafe fn gather(from: *const Self::Elem, index: Self::Index) -> Self;
    unsafe fn gather_first(from: *const Self::Elem, index: Self::Index, n: usize) -> Self;
}

/// Lanes with a mask register; bit `k` of a mask selects lane `k`; lanes that are not selected are
/// zero.
///
/// # Safety
/// As [`Lanes`].
#[cfg(target_arch = "x86_64")]
pub(crate) trait MaskLanes: Lanes {
    /// Columns that [`MaskLanes::columns`] reads: as many as 16 bytes hold.
    const COLUMNS: usize;
    /// `COLUMNS` vectors.
    type Columns: AsRef<[Self]>;

    unsafe fn splat(value: Self::Elem) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// Stores the first `n` lanes.
    unsafe fn store_first(self, to: *mut Self::Elem, n: usize);
    unsafe fn load_mask(from: *const Self::Elem, mask: u32) -> Self;
    /// Loads consecutive values into the selected lanes.
    unsafe fn expand(from: *const Self::Elem, mask: u32) -> Self;
    /// Stores the selected lanes contiguously, and unspecified values after them, a vector in all.
    unsafe fn compress(self, to: *mut Self::Elem, mask: u32);
    /// Adds `other` to the selected lanes.
    unsafe fn add_mask(self, other: Self, mask: u32) -> Self;
    /// The last lane, broadcast to the selected lanes.
    unsafe fn splat_last(self, mask: u32) -> Self;
    /// Adds to each selected lane k the lane k - 2^`STEP`.
    unsafe fn add_earlier<const STEP: usize>(self, mask: u32) -> Self;
    unsafe fn index_u32_mask(from: *const u32, mask: u32) -> Self::Index;
    unsafe fn index_u16_mask(from: *const u16, mask: u32) -> Self::Index;
    unsafe fn gather_mask(from: *const Self::Elem, index: Self::Index, mask: u32) -> Self;
    /// Adds `self * a` to the selected lanes of `b`.
    unsafe fn mul_add_mask(self, a: Self, b: Self, mask: u32) -> Self;
    /// `COLUMNS` columns of a block of rows: lane k is read from `row(k)`.
    unsafe fn columns(row: impl Fn(usize) -> *const Self::Elem) -> Self::Columns;
    /// The largest of the first `N` lengths, which are below 2^31.
    unsafe fn longest(lengths: &[u32; 16]) -> usize;
    /// A mask of the lanes whose length exceeds `than`.
    unsafe fn longer(lengths: &[u32; 16], than: usize) -> u32;
}

/// A type of sums with vector registers: f32 and f64.
pub(crate) trait Element: Arith {
    #[cfg(target_arch = "x86_64")]
    type Avx512: MaskLanes<Elem = Self>;
    #[cfg(target_arch = "x86_64")]
    type Avx2: Lanes<Elem = Self>;
    /// Plain arrays, which compilers turn into the vectors of the target's baseline (NEON).
    type Plain: Lanes<Elem = Self>;
}

impl Element for f32 {
    #[cfg(target_arch = "x86_64")]
    type Avx512 = avx512::F32x16;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = avx2::F32x8;
    type Plain = array::Array<f32, 8>;
}

impl Element for f64 {
    #[cfg(target_arch = "x86_64")]
    type Avx512 = avx512::F64x8;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = avx2::F64x4;
    type Plain = array::Array<f64, 4>;
}

/// A computation over any kind of lanes.
pub(crate) trait Kernel<E: Element>: Sized {
    type Output;
    /// Whether [`Kernel::run_masked`] is another computation than [`Kernel::run`].
    #[cfg(target_arch = "x86_64")]
    const MASKED: bool = false;
    /// Runs the computation. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    /// The instruction set of `V` is there.
    unsafe fn run<V: Lanes<Elem = E>>(self) -> Self::Output;

    /// The same for lanes with masks, overridden where masks allow a faster kernel.
    ///
    /// # Safety
    /// As [`Kernel::run`].
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn run_masked<V: MaskLanes<Elem = E>>(self) -> Self::Output {
        // SAFETY: promised by the caller.
        unsafe { self.run::<V>() }
    }
}

/// Whether rows with so many entries in all are best summed one entry after another: where a vector of x takes a load
/// for each lane, a row that fills one vector at most gains nothing from it, and ends later.
#[inline(always)]
pub(crate) const fn are_short<V: Lanes>(rows: usize, entries: usize) -> bool {
    // Measured on an AVX2 machine: rows of one and a half vectors take as long with vectors as without, in f32 and f64.
    !V::GATHERS && 2 * entries < 3 * V::N * rows
}

/// Runs `kernel` with the lanes of `isa`.
pub(crate) fn dispatch<E: Element, K: Kernel<E>>(isa: Isa, kernel: K) -> K::Output {
    match isa {
        // Wider gathers are as slow.
        // SAFETY: plans reject an instruction set that the machine lacks; machines with AVX-512 have AVX2.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if !K::MASKED && has_slow_gathers() => unsafe { avx2::run_plain(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512::run(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 if has_slow_gathers() => unsafe { avx2::run_plain(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2::run(kernel) },
        // SAFETY: arrays need no instruction set.
        _ => unsafe { kernel.run::<E::Plain>() },
    }
}
