// What becomes of a finished sum: C = scale(alpha, sum) + scale(beta, C), C unread when beta is
// the semiring's zero; and the steps that SpMM may be asked for before it is stored.
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
        // Read through the ordinary path: this thread is about to write there.
        const tile::Pack<Out, N> old = *reinterpret_cast<const tile::Pack<Out, N> *>(to);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const A scaled = S::scale(beta, widen(old.at[i]));
            result.at[i] = Narrow<Out>::from(last(S::add(S::scale(alpha, sum[i]), scaled), i));
        }
    }
    tile::store(to, result);
}

// Steps, as bits: sums over the number of entries of their row, a value for every column, ReLU; or that sums are
// products which max or min took, so that empty rows have none.
constexpr int MEAN = 1, BIAS = 2, RELU = 4, EXTREMUM = 8;

// The second and third of them for neighbours of a row.
template <int STEPS, class A>
struct Steps {
    const A *bias;  // of the first of them

    __device__ __forceinline__ A operator()(A value, int i) const {
        if constexpr ((STEPS & BIAS) != 0) value += __ldg(bias + i);
        if constexpr ((STEPS & RELU) != 0) value = value < A(0) ? A(0) : value;
        return value;
    }
};

// C = alpha times the products that max or min took, or `empty`.
template <class A, class Out, int N>
__device__ __forceinline__ void finish_extremum(const A (&taken)[N], A alpha, bool is_empty, A empty,
                                                Out *to) {
    tile::Pack<Out, N> result;
#pragma unroll
    for (int i = 0; i < N; ++i)
        result.at[i] = Narrow<Out>::from(is_empty ? empty : times(alpha, taken[i]));
    tile::store(to, result);
}

// Stores sums of columns j, j + 1, ... of `row`, with STEPS; `args` has offsets of rows, C and a bias. With
// EXTREMUM, beta is the value of empty rows.
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
