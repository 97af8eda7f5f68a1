// What becomes of a finished sum: C = scale(alpha, sum) + scale(beta, C), C unread when beta is
// the semiring's zero.
#pragma once
#include "common/semiring.cuh"
#include "tile/pack.cuh"

template <class S, class A, class Out, int N>
__device__ __forceinline__ void finish(const A (&sum)[N], A alpha, A beta, Out *to) {
    tile::Pack<Out, N> result;
    if (beta == S::zero()) {
#pragma unroll
        for (int i = 0; i < N; ++i) result.at[i] = Narrow<Out>::from(S::scale(alpha, sum[i]));
    } else {
        // Read through the ordinary path: this thread is about to write there.
        const tile::Pack<Out, N> old = *reinterpret_cast<const tile::Pack<Out, N> *>(to);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const A scaled = S::scale(beta, widen(old.at[i]));
            result.at[i] = Narrow<Out>::from(S::add(S::scale(alpha, sum[i]), scaled));
        }
    }
    tile::store(to, result);
}
