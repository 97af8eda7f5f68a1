//! The vector operations of SpGEMM in AVX-512.

use std::arch::x86_64::*;

use gustav_core::Arith;

use super::accumulator::BLOCK;
use super::vector::Vector;
use super::{avx512_sort, radix};

/// AVX-512 F, BW, DQ and VL; used only inside functions compiled for them.
#[derive(Clone, Copy)]
pub(super) struct Avx512;

impl Vector for Avx512 {
    #[inline(always)]
    unsafe fn drain<A: Arith>(
        zero: A,
        flags: *mut u8,
        sums: *mut A,
        first: usize,
        last: usize,
        to_columns: *mut u32,
        to_sums: *mut A,
    ) -> usize {
        // SAFETY: as promised by the caller.
        unsafe { drain(zero, flags, sums, first, last, to_columns, to_sums) }
    }

    #[inline(always)]
    fn sort(list: &mut [u32], spare: &mut [u32]) {
        if list.len() <= avx512_sort::MAX {
            // SAFETY: only used where the machine has AVX-512.
            unsafe { avx512_sort::sort(list.as_mut_ptr(), list.len()) }
        } else {
            radix::sort(list, spare);
        }
    }
}

/// # Safety
/// As [`Vector::drain`], on a machine with AVX-512.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn drain<A: Arith>(
    zero: A,
    flags: *mut u8,
    sums: *mut A,
    first: usize,
    last: usize,
    to_columns: *mut u32,
    to_sums: *mut A,
) -> usize {
    let mut n = 0;
    let (mut block, end) = (first / BLOCK, last / BLOCK + 1);
    while block < end {
        // SAFETY: whole blocks of the accumulator are in bounds, and so are four blocks before
        // `end`; the outputs are valid for a block past the last element.
        unsafe {
            let at = flags.add(block * BLOCK).cast::<__m512i>();
            if block + 4 <= end {
                let low = _mm512_or_si512(at.read_unaligned(), at.add(1).read_unaligned());
                let high = _mm512_or_si512(at.add(2).read_unaligned(), at.add(3).read_unaligned());
                let any = _mm512_or_si512(low, high);
                if _mm512_test_epi64_mask(any, any) == 0 {
                    block += 4;
                    continue;
                }
            }
            let last = end.min(block + 4);
            while block < last {
                n += drain_block(zero, flags, sums, block, to_columns.add(n), to_sums.add(n));
                block += 1;
            }
        }
    }
    n
}

/// # Safety
/// As [`drain`], for one block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
unsafe fn drain_block<A: Arith>(
    zero: A,
    flags: *mut u8,
    sums: *mut A,
    block: usize,
    to_columns: *mut u32,
    to_sums: *mut A,
) -> usize {
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let start = block * BLOCK;
    // SAFETY: as promised by the caller.
    unsafe {
        let at = flags.add(start).cast::<__m512i>();
        let bytes = at.read_unaligned();
        let mask = _mm512_test_epi8_mask(bytes, bytes);
        if mask == 0 {
            return 0;
        }
        at.write_unaligned(_mm512_setzero_si512());
        let mut n = 0;
        for quarter in 0..4 {
            let from = start + quarter * 16;
            let bits = (mask >> (quarter * 16)) as u16;
            let columns = _mm512_add_epi32(lanes, _mm512_set1_epi32(from as i32));
            let packed = _mm512_maskz_compress_epi32(bits, columns);
            _mm512_storeu_si512(to_columns.add(n).cast(), packed);
            if size_of::<A>() == 4 {
                pack4(zero, bits, sums.add(from), to_sums.add(n));
            } else {
                let (low, high) = (bits as u8, (bits >> 8) as u8);
                pack8(zero, low, sums.add(from), to_sums.add(n));
                let behind = n + low.count_ones() as usize;
                pack8(zero, high, sums.add(from + 8), to_sums.add(behind));
            }
            n += bits.count_ones() as usize;
        }
        n
    }
}

/// Moves those of 16 four-byte sums whose bit is set to `to` without gaps, and sets them to zero.
///
/// # Safety
/// Both pointers are valid for 16 elements.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn pack4<A: Arith>(zero: A, bits: u16, sums: *mut A, to: *mut A) {
    // SAFETY: promised by the caller; A has four bytes.
    unsafe {
        let zeros = _mm512_set1_epi32(std::mem::transmute_copy(&zero));
        let packed = _mm512_maskz_compress_epi32(bits, _mm512_loadu_si512(sums.cast()));
        _mm512_storeu_si512(to.cast(), packed);
        _mm512_storeu_si512(sums.cast(), zeros);
    }
}

/// Moves those of 8 eight-byte sums whose bit is set to `to` without gaps, and sets them to zero.
///
/// # Safety
/// Both pointers are valid for 8 elements.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn pack8<A: Arith>(zero: A, bits: u8, sums: *mut A, to: *mut A) {
    // SAFETY: promised by the caller; A has eight bytes.
    unsafe {
        let zeros = _mm512_set1_epi64(std::mem::transmute_copy(&zero));
        let packed = _mm512_maskz_compress_epi64(bits, _mm512_loadu_si512(sums.cast()));
        _mm512_storeu_si512(to.cast(), packed);
        _mm512_storeu_si512(sums.cast(), zeros);
    }
}
