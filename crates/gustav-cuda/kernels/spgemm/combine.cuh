// A product added to a sum in shared memory that other threads add to as well.
#pragma once
#include "common/semiring.cuh"

namespace combine {

template <class S, class A>
struct Adds {
    static constexpr bool VALUE = false;
};
template <class A>
struct Adds<PlusTimes<A>, A> {
    static constexpr bool VALUE = true;
};
template <class A>
struct Adds<PlusFirst<A>, A> {
    static constexpr bool VALUE = true;
};
template <class A>
struct Adds<PlusSecond<A>, A> {
    static constexpr bool VALUE = true;
};

__device__ __forceinline__ void add(f32 *to, f32 value) { atomicAdd(to, value); }
__device__ __forceinline__ void add(f64 *to, f64 value) { atomicAdd(to, value); }
__device__ __forceinline__ void add(i32 *to, i32 value) { atomicAdd(to, value); }
__device__ __forceinline__ void add(i64 *to, i64 value) { atomicAdd((u64 *)to, (u64)value); }

template <class Word, class S, class A>
__device__ __forceinline__ void swap(A *to, A value) {
    Word *word = reinterpret_cast<Word *>(to);
    Word seen = *(volatile Word *)word, before;
    do {
        before = seen;
        A sum;
        memcpy(&sum, &before, sizeof(A));
        sum = S::add(sum, value);
        Word after;
        memcpy(&after, &sum, sizeof(A));
        if (after == before) return;
        seen = atomicCAS(word, before, after);
    } while (seen != before);
}

// `to` = `to` (+) `value`, atomically.
template <class S, class A>
__device__ __forceinline__ void into(A *to, A value) {
    if constexpr (Adds<S, A>::VALUE)
        add(to, value);
    else if constexpr (sizeof(A) == 4)
        swap<u32, S>(to, value);
    else
        swap<u64, S>(to, value);
}

}  // namespace combine
