// N neighbouring values loaded and stored with few, wide instructions.
//
// The address must be a multiple of the size of N values, at most 16 bytes; the host chooses N
// accordingly.
#pragma once
#include "common/types.cuh"
#include "ptx/memory.cuh"

namespace tile {

template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
    T at[N];
};

// Value `i` in the type of sums.
template <class T, int N>
__device__ __forceinline__ auto widen_at(const Pack<T, N> &pack, int i) {
    return widen(pack.at[i]);
}
// Of two bf16 in a word, the upper one needs only a mask.
template <int N>
__device__ __forceinline__ f32 widen_at(const Pack<bf16, N> &pack, int i) {
    if constexpr (N % 2 != 0) {
        return widen(pack.at[i]);
    } else {
        u32 word;
        memcpy(&word, &pack.at[i & ~1], 4);
        return i % 2 == 0 ? ptx::widen_bf16_lower(word) : ptx::widen_bf16_upper(word);
    }
}

template <int N>
__device__ __forceinline__ f32 widen_at(const Pack<f16, N> &pack, int i) {
    if constexpr (N % 2 != 0) {
        return widen(pack.at[i]);
    } else {
        u32 word;
        memcpy(&word, &pack.at[i & ~1], 4);
        return i % 2 == 0 ? ptx::widen_f16_lower(word) : ptx::widen_f16_upper(word);
    }
}

template <class T, int N>
__device__ __forceinline__ Pack<T, N> load(const T *from) {
    constexpr int bytes = sizeof(T) * N;
    constexpr int words = bytes < 4 ? 1 : bytes < 16 ? bytes / 4 : 4;
    static_assert(bytes == 2 || bytes == 4 || bytes == 8 || bytes % 16 == 0, "no such transaction");
    Pack<T, N> pack;
    if constexpr (bytes == 2) {
        u16 word = ptx::load_readonly_16(from);
        memcpy(&pack, &word, 2);
    } else {
#pragma unroll
        for (int i = 0; i < bytes; i += words * 4) {
            u32 word[words];
            ptx::load_readonly(reinterpret_cast<const u8 *>(from) + i, word);
            memcpy(reinterpret_cast<u8 *>(&pack) + i, word, words * 4);
        }
    }
    return pack;
}

// The same if `condition` holds, otherwise anything.
template <class T, int N>
__device__ __forceinline__ Pack<T, N> load_if(bool condition, const T *from) {
    constexpr int bytes = sizeof(T) * N;
    constexpr int words = bytes < 4 ? 1 : bytes < 16 ? bytes / 4 : 4;
    static_assert(bytes == 2 || bytes == 4 || bytes == 8 || bytes % 16 == 0, "no such transaction");
    Pack<T, N> pack;
    if constexpr (bytes == 2) {
        u16 word = ptx::load_readonly_16_if(condition, from);
        memcpy(&pack, &word, 2);
    } else {
#pragma unroll
        for (int i = 0; i < bytes; i += words * 4) {
            u32 word[words];
            ptx::load_readonly_if(condition, reinterpret_cast<const u8 *>(from) + i, word);
            memcpy(reinterpret_cast<u8 *>(&pack) + i, word, words * 4);
        }
    }
    return pack;
}

// Values that other CTAs wrote in this launch, after an acquire: read from L2.
template <class T, int N>
__device__ __forceinline__ Pack<T, N> load_shared_by_all(const T *from) {
    constexpr int bytes = sizeof(T) * N;
    constexpr int words = bytes < 16 ? bytes / 4 : 4;
    Pack<T, N> pack;
#pragma unroll
    for (int i = 0; i < bytes; i += words * 4) {
        u32 word[words];
        ptx::load_cached(reinterpret_cast<const u8 *>(from) + i, word);
        memcpy(reinterpret_cast<u8 *>(&pack) + i, word, words * 4);
    }
    return pack;
}

template <class T, int N>
__device__ __forceinline__ void store(T *to, const Pack<T, N> &pack) {
    constexpr int bytes = sizeof(T) * N;
    constexpr int words = bytes < 4 ? 1 : bytes < 16 ? bytes / 4 : 4;
    if constexpr (bytes == 2) {
        u16 word;
        memcpy(&word, &pack, 2);
        ptx::store_streaming_16(to, word);
    } else {
#pragma unroll
        for (int i = 0; i < bytes; i += words * 4) {
            u32 word[words];
            memcpy(word, reinterpret_cast<const u8 *>(&pack) + i, words * 4);
            ptx::store_streaming(reinterpret_cast<u8 *>(to) + i, word);
        }
    }
}

}  // namespace tile
