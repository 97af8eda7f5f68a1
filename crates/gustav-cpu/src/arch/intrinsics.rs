//! A macro that implements [`Vector`](super::vector::Vector) for one instruction set, from the
//! intrinsics in which instruction sets differ.

/// Implements `Vector<$t>` for `$set`: sums `$accum` in registers `$v` of `$lanes` lanes, masks
/// `$mask`, up to `$group` vectors of a row when four rows are summed together. Every block is
/// unsafe code under the conditions of the trait.
macro_rules! vector {
    ($set:ty, $t:ty => $accum:ty, $v:ty, $mask:ty, $lanes:literal, $group:literal,
     [$splat:ident, $add:ident, $mul:ident, $load_sums:ident, $store_sums:ident],
     mul_add: |$fa:ident, $fb:ident, $fc:ident| $mul_add:expr,
     mask: |$c:ident| $make_mask:expr,
     load: |$lp:ident| $load:expr,
     load_masked: |$mp:ident, $mm:ident| $load_masked:expr,
     store: |$sp:ident, $sv:ident| $store:expr,
     store_masked: |$np:ident, $nm:ident, $nv:ident| $store_masked:expr,
     stream: |$tp:ident, $tv:ident| $stream:expr,
     stream_16: |$qp:ident, $qv:ident| $stream_16:expr,
     prefetch: |$hp:ident| $prefetch:expr,
     enter: |$w:ident| $enter:expr
     $(, totals: |$rv:ident| $totals:expr, win: $win:ident)?) => {
        impl Vector<$t> for $set {
            type S = gustav_core::PlusTimes;
            type V = $v;
            type Mask = $mask;
            const LANES: usize = $lanes;
            const WIDTH: usize = 8;
            const WHOLE: bool = true;
            const CHAINS: bool = true;
            const GROUP_WIDTH: usize = $group;
            const GROUPS: bool = true;

            // SAFETY, of this and every other block below: the caller guarantees the instruction
            // set, and that the lanes behind the pointers are valid and aligned.
            vector!(@each
                fn splat(a: $accum) -> $v { $splat(a) }
                fn mask($c: usize) -> $mask { $make_mask }
                fn load($lp: *const $t) -> $v { $load }
                fn load_masked($mp: *const $t, $mm: $mask) -> $v { $load_masked }
                fn store($sp: *mut $t, $sv: $v) -> () { $store }
                fn store_masked($np: *mut $t, $nm: $mask, $nv: $v) -> () { $store_masked }
                fn stream($tp: *mut $t, $tv: $v) -> () { $stream }
                fn stream_16($qp: *mut $t, $qv: $v) -> () { $stream_16 }
                fn prefetch($hp: *const $t) -> () { $prefetch }
                fn load_sums(p: *const $accum) -> $v { $load_sums(p) }
                fn store_sums(p: *mut $accum, v: $v) -> () { $store_sums(p, v) }
                fn mul_add(_s: gustav_core::PlusTimes, $fa: $v, $fb: $v, $fc: $v) -> $v { $mul_add }
                fn add(_s: gustav_core::PlusTimes, a: $v, b: $v) -> $v { $add(a, b) }
                fn scale(_s: gustav_core::PlusTimes, factor: $v, sum: $v) -> $v { $mul(factor, sum) }
            );
            $(
                vector!(@each fn totals($rv: [$v; 4]) -> [$accum; 4] { $totals });
                #[inline(always)]
                unsafe fn win<const MAX: bool>(
                    product: $v,
                    at: $v,
                    best: $v,
                    winner: $v,
                ) -> ($v, $v) {
                    // SAFETY: as above.
                    unsafe { $win::<MAX>(product, at, best, winner) }
                }
            )?
            #[inline(always)]
            unsafe fn enter<W: Work<$t>>($w: W) {
                // SAFETY: as above.
                unsafe { $enter }
            }
        }
    };
    (@each $(fn $name:ident($($arg:ident: $of:ty),*) -> $out:ty $body:block)*) => {
        $(
            #[inline(always)]
            #[allow(unused_unsafe, reason = "some instruction sets need no intrinsic here")]
            unsafe fn $name($($arg: $of),*) -> $out {
                // SAFETY: as above.
                unsafe { $body }
            }
        )*
    };
}
pub(super) use vector;
