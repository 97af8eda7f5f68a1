// The epilogue: C = scale(alpha, sum) + scale(beta, C), where C is not read if beta is the
// semiring's zero; and the optional steps of SpMM before the store.
#pragma once
#include "common/semiring.cuh"
#include "tile/pack.cuh"

// No further steps.
struct Stored {
    template <class A>
    __device__ __forceinline__ A operator()(A value, int) const {
        return value;
    }
};

template <class S, class A, class Out, int N, class Last = Stored>
__device__ __forceinline__ void finish(const A (&sum)[N], A alpha, A beta, Out *to,
                                       Last last = {}) {
    tile::Pack<Out, N> result;
    if (beta == S::zero()) {
#pragma unroll
        for (int i = 0; i < N; ++i) result.at[i] = Narrow<Out>::from(last(S::scale(alpha, sum[i]), i));
    } else {
        // Not through the read-only path: this thread is about to write there.
        const tile::Pack<Out, N> old = *reinterpret_cast<const tile::Pack<Out, N> *>(to);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const A scaled = S::scale(beta, widen(old.at[i]));
            result.at[i] = Narrow<Out>::from(last(S::add(S::scale(alpha, sum[i]), scaled), i));
        }
    }
    tile::store(to, result);
}

// Steps, as bits: divide by the number of entries of the row, add a value per column, ReLU.
// EXTREMUM: "sums" are products chosen by max or min, of which empty rows have none.
constexpr int MEAN = 1, BIAS = 2, RELU = 4, EXTREMUM = 8;

// BIAS and RELU for neighbouring elements of a row.
template <int STEPS, class A>
struct Steps {
    const A *bias;  // of the first element

    __device__ __forceinline__ A operator()(A value, int i) const {
        if constexpr ((STEPS & BIAS) != 0) value += __ldg(bias + i);
        if constexpr ((STEPS & RELU) != 0) value = value < A(0) ? A(0) : value;
        return value;
    }
};

// C = alpha times the products chosen by max or min, or `empty`.
template <class A, class Out, int N>
__device__ __forceinline__ void finish_extremum(const A (&taken)[N], A alpha, bool is_empty, A empty,
                                                Out *to) {
    tile::Pack<Out, N> result;
#pragma unroll
    for (int i = 0; i < N; ++i)
        result.at[i] = Narrow<Out>::from(is_empty ? empty : times(alpha, taken[i]));
    tile::store(to, result);
}

// Stores sums of columns j, j + 1, ... of `row`, with STEPS; `args` holds row offsets, C and a
// bias. With EXTREMUM, beta is the value of empty rows.
template <class S, int STEPS, class Args, class A, int N>
__device__ __forceinline__ void finish_row(const Args &args, const A (&sum)[N], u64 row, u64 j) {
    A alpha = from_bits<A>(args.alpha);
    const A beta = from_bits<A>(args.beta);
    auto *to = args.c + row * args.ldc + j;
    if constexpr (STEPS == 0) {
        finish<S>(sum, alpha, beta, to);
    } else if constexpr ((STEPS & EXTREMUM) != 0) {
        finish_extremum(sum, alpha, args.offsets[row] == args.offsets[row + 1], beta, to);
    } else {
        if constexpr ((STEPS & MEAN) != 0) {
            const u64 length = args.offsets[row + 1] - args.offsets[row];
            if (length > 0) alpha /= A(length);
        }
        finish<S>(sum, alpha, beta, to, Steps<STEPS, A>{args.bias + j});
    }
}
