//! Streaming stores, which bypass the caches: for results larger than the caches.

/// Copies `from` to `to`, with streaming stores where the instruction set has them; call [`fence`]
/// before other threads read `to`.
///
/// # Panics
/// When the lengths differ.
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len());
    let head = to.as_ptr().align_offset(LINE).min(to.len());
    let (to_head, to) = to.split_at_mut(head);
    let (from_head, from) = from.split_at(head);
    to_head.copy_from_slice(from_head);
    let (mut to, mut from) = (to.chunks_exact_mut(LINE), from.chunks_exact(LINE));
    for (to, from) in (&mut to).zip(&mut from) {
        // SAFETY: both hold a cache line, and `to` is aligned to one.
        unsafe { line(to.as_mut_ptr(), from.as_ptr()) }
    }
    to.into_remainder().copy_from_slice(from.remainder());
}

/// Orders streaming stores before all later stores. Needed before another thread may read C.
#[inline(always)]
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

const LINE: usize = 64;

/// # Safety
/// Both are valid for a cache line, and `to` is aligned to one.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn line(to: *mut u8, from: *const u8) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    let (to, from) = (to.cast::<__m128i>(), from.cast::<__m128i>());
    // SAFETY: promised by the caller; SSE2 is part of x86-64.
    unsafe {
        let parts = [0, 1, 2, 3].map(|k| _mm_loadu_si128(from.add(k)));
        for (k, part) in parts.into_iter().enumerate() {
            _mm_stream_si128(to.add(k), part);
        }
    }
}

/// # Safety
/// As above.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn line(to: *mut u8, from: *const u8) {
    // SAFETY: promised by the caller.
    unsafe { std::ptr::copy_nonoverlapping(from, to, LINE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_arrives_from_and_to_any_address() {
        let from: Vec<u8> = (0..400u32).map(|k| (k * 7) as u8).collect();
        for len in [0, 1, 63, 64, 65, 200, 300] {
            for at in 0..70 {
                let mut to = vec![0xEE; 400];
                copy(&mut to[at..at + len], &from[3..3 + len]);
                fence();
                assert_eq!(to[at..at + len], from[3..3 + len]);
                assert!(to[..at].iter().chain(&to[at + len..]).all(|b| *b == 0xEE));
            }
        }
    }
}
