// Bins of row lengths, as in gustav-plan's facts/row_lengths: one per length below 2^EXACT_BITS,
// then 2^OCTAVE_BITS per octave.
#pragma once
#include "common/types.cuh"

namespace schedule {

constexpr int EXACT_BITS = GUSTAV_EXACT_BITS;
constexpr int OCTAVE_BITS = GUSTAV_OCTAVE_BITS;
constexpr int BINS = GUSTAV_BINS;

__device__ __forceinline__ int length_bin(u64 length) {
    if (length < 1 << EXACT_BITS) return (int)length;
    const int octave = 63 - __clzll((long long)length);
    const int eighth = (int)(length >> (octave - OCTAVE_BITS)) & ((1 << OCTAVE_BITS) - 1);
    const int bin = (1 << EXACT_BITS) + ((octave - EXACT_BITS) << OCTAVE_BITS) + eighth;
    return bin < BINS ? bin : BINS - 1;
}

// A row with at least `longest` nonzeros is cut at multiples of `longest` from its start, rounded
// down to a whole chunk of at most ALIGNMENT nonzeros.
constexpr u64 ALIGNMENT = 8;

__device__ __forceinline__ u64 parts(u64 first, u64 last, int longest_bits) {
    const u64 span = last - (first & ~(ALIGNMENT - 1));
    return (span + ((u64)1 << longest_bits) - 1) >> longest_bits;
}

}  // namespace schedule
