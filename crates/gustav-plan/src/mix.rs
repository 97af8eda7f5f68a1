//! A hash function for pseudorandom numbers that are the same on every machine.

/// Element under hash function number `k`: the finisher of SplitMix64.
pub(crate) fn mix(element: u64, k: u64) -> u64 {
    let mut x = element.wrapping_add(k.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
