//! Vector registers as kernels use them. A kernel is compiled once for every instruction set; which
//! one runs is chosen at run time.

use gustav_core::{Arith, Ops, Scalar, Semiring};

use super::Isa;
use super::portable::Portable;

// Most lanes of a vector of any instruction set.
const MOST_LANES: usize = 16;

/// Vectors of sums over one scalar type on one instruction set.
///
/// # Safety
/// Every function needs the instruction set that the implementing type stands for. Loads and stores
/// access `LANES` values behind the pointer (masked ones only the lanes of the mask) and need no
/// alignment, except `stream`, which needs alignment to the vector's size, and `stream_16`, which
/// needs alignment to 16 bytes.
pub trait Vector<T: Scalar>: 'static {
    /// The operations that the vectors have: plus-times, or those of any semiring.
    type S: Ops<T::Accum>;
    /// A vector of sums.
    type V: Copy;
    /// A set of leading lanes.
    type Mask: Copy;
    /// Values in a vector.
    const LANES: usize;
    /// The largest number of vectors of sums that fit in registers beside the operands.
    const WIDTH: usize;
    /// Whether kernels without masks are worth compiling.
    const WHOLE: bool;
    /// Whether kernels that sum a row in several chains are worth compiling.
    const CHAINS: bool;
    /// Most vectors of a row when four rows are summed at once.
    const GROUP_WIDTH: usize;
    /// Whether kernels that sum several rows at once are worth compiling.
    const GROUPS: bool;

    /// `a` in every lane.
    unsafe fn splat(a: T::Accum) -> Self::V;
    /// The first `count` lanes, `count` at most `LANES`.
    unsafe fn mask(count: usize) -> Self::Mask;
    /// Loads and widens stored values.
    unsafe fn load(p: *const T) -> Self::V;
    /// Loads and widens the lanes of the mask.
    unsafe fn load_masked(p: *const T, mask: Self::Mask) -> Self::V;
    /// Rounds and stores.
    unsafe fn store(p: *mut T, v: Self::V);
    /// Rounds and stores the lanes of the mask.
    unsafe fn store_masked(p: *mut T, mask: Self::Mask, v: Self::V);
    /// Rounds and stores, with a streaming store where the instruction set has one.
    unsafe fn stream(p: *mut T, v: Self::V);
    /// The same with streaming stores of 16 bytes, for addresses that are only multiples of 16.
    unsafe fn stream_16(p: *mut T, v: Self::V);
    /// Prefetches the cache line at `p` to L1; `p` need not be readable.
    unsafe fn prefetch(p: *const T);
    /// Loads partial sums.
    unsafe fn load_sums(p: *const T::Accum) -> Self::V;
    /// Stores partial sums.
    unsafe fn store_sums(p: *mut T::Accum, v: Self::V);
    /// `acc ⊕ (a ⊗ b)`.
    unsafe fn mul_add(s: Self::S, a: Self::V, b: Self::V, acc: Self::V) -> Self::V;
    /// `a ⊕ b`.
    unsafe fn add(s: Self::S, a: Self::V, b: Self::V) -> Self::V;
    /// Applies α or β to a sum.
    unsafe fn scale(s: Self::S, factor: Self::V, sum: Self::V) -> Self::V;
    /// The sums of the lanes of four vectors.
    #[inline(always)]
    unsafe fn totals(v: [Self::V; 4]) -> [T::Accum; 4] {
        const { assert!(Self::LANES <= MOST_LANES && Self::LANES.is_power_of_two()) };
        v.map(|v| {
            let mut lanes = [T::Accum::zero(); MOST_LANES];
            // SAFETY: the array has at least as many lanes.
            unsafe { Self::store_sums(lanes.as_mut_ptr(), v) };
            let mut half = Self::LANES / 2;
            while half > 0 {
                for k in 0..half {
                    lanes[k] = lanes[k].plus(lanes[k + half]);
                }
                half /= 2;
            }
            lanes[0]
        })
    }
    /// In lanes where `product` beats `best` (larger with `MAX`, else smaller; NaN beats all but
    /// NaN) returns `product` and `at`, in the others `best` and `winner`.
    #[inline(always)]
    unsafe fn win<const MAX: bool>(
        product: Self::V,
        at: Self::V,
        best: Self::V,
        winner: Self::V,
    ) -> (Self::V, Self::V) {
        const { assert!(Self::LANES <= MOST_LANES) };
        let lanes = |v: Self::V| {
            let mut lanes = [T::Accum::zero(); MOST_LANES];
            // SAFETY: the array has at least as many lanes.
            unsafe { Self::store_sums(lanes.as_mut_ptr(), v) };
            lanes
        };
        let (product, at) = (lanes(product), lanes(at));
        let (mut best, mut winner) = (lanes(best), lanes(winner));
        for k in 0..Self::LANES {
            let wins = beats::<T::Accum, MAX>(product[k], best[k]);
            best[k] = if wins { product[k] } else { best[k] };
            winner[k] = if wins { at[k] } else { winner[k] };
        }
        // SAFETY: as above.
        unsafe { (Self::load_sums(best.as_ptr()), Self::load_sums(winner.as_ptr())) }
    }
    /// Runs `work` on these vectors, in a function of its own where that keeps its variables in
    /// registers.
    unsafe fn enter<W: Work<T>>(work: W);
}

/// Whether `product` replaces `best`: it is larger (smaller without `MAX`), or the first NaN.
#[inline(always)]
pub(crate) fn beats<A: Arith, const MAX: bool>(product: A, best: A) -> bool {
    let loses = if MAX { product <= best } else { product >= best };
    // NaN is the only value that differs from itself.
    #[allow(clippy::eq_op, reason = "false for NaN")]
    let number = best == best;
    !loses & number
}

/// Part of a kernel, written once for all vector types.
pub trait Work<T: Scalar> {
    /// Runs it; must be `#[inline(always)]`, so that it is compiled with the features of the
    /// instruction set.
    ///
    /// # Safety
    /// The instruction set of `V` is available.
    unsafe fn run<V: Vector<T>>(self);
}

/// Scalars and the vectors that their kernels are compiled for.
pub trait Dispatch: Scalar {
    /// Runs `work` with the vectors of `isa` for the semiring `kind`.
    ///
    /// # Safety
    /// `isa` is available.
    unsafe fn vectorize<W: Work<Self>>(isa: Isa, kind: Semiring, work: W);

    /// Whether the vectors for `isa` and `kind` are registers, not arrays.
    fn has_vectors(isa: Isa, kind: Semiring) -> bool {
        let float = !Self::DTYPE.is_integer();
        float && kind == Semiring::PlusTimes && isa != Isa::Portable
    }
}

/// Runs `work` with arrays as vectors; the compiler turns them into vectors of `isa`.
///
/// # Safety
/// `isa` is available.
unsafe fn portable<T: Scalar, W: Work<T>>(isa: Isa, work: W) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: AVX-512 machines have AVX2; otherwise promised by the caller.
        Isa::Avx2 | Isa::Avx512 => unsafe { super::avx2::enable::<T, Portable, W>(work) },
        // SAFETY: plain Rust needs no feature.
        _ => unsafe { work.run::<Portable>() },
    }
}

macro_rules! dispatch {
    ($t:ty, native) => {
        impl Dispatch for $t {
            unsafe fn vectorize<W: Work<Self>>(isa: Isa, kind: Semiring, work: W) {
                if kind != Semiring::PlusTimes {
                    // SAFETY: promised by the caller.
                    return unsafe { portable::<$t, W>(isa, work) };
                }
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: promised by the caller.
                    Isa::Avx512 => unsafe { super::avx512::enable::<$t, W>(work) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: promised by the caller.
                    Isa::Avx2 => unsafe { super::avx2::enable::<$t, super::avx2::Avx2, W>(work) },
                    #[cfg(target_arch = "aarch64")]
                    // SAFETY: promised by the caller.
                    Isa::Neon => unsafe { work.run::<super::neon::Neon>() },
                    // SAFETY: promised by the caller.
                    _ => unsafe { portable::<$t, W>(isa, work) },
                }
            }
        }
    };
    ($t:ty, portable) => {
        impl Dispatch for $t {
            unsafe fn vectorize<W: Work<Self>>(isa: Isa, _kind: Semiring, work: W) {
                // SAFETY: promised by the caller.
                unsafe { portable::<$t, W>(isa, work) }
            }
        }
    };
}

dispatch!(f32, native);
dispatch!(f64, native);
dispatch!(gustav_core::f16, native);
dispatch!(gustav_core::bf16, native);
dispatch!(i32, portable);
dispatch!(i64, portable);
