// Row lengths in bins: one a length below 64, then eight an octave; gustav-plan's facts/row_lengths
// has the same.
#pragma once
#include "common/types.cuh"

namespace schedule {

constexpr int EXACT_BITS = 6;
constexpr int OCTAVE_BITS = 3;
constexpr int BINS = (1 << EXACT_BITS) + ((48 - EXACT_BITS) << OCTAVE_BITS);

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
