// A lane's partial result for an element of C: a sum over the semiring; or, if winners are
// requested, the product chosen by max or min and the position of its nonzero in A.
//
// Of the latter kind, an empty one has the worst value and no position. If no product is better
// than the worst value, the first nonzero of the row is the winner.
#pragma once
#include "common/semiring.cuh"

// Sums over the semiring S; the positions, of type P, are not used.
template <class S, class A, class P>
struct Sums {
    using Sum = A;
    static __device__ __forceinline__ A zero() { return S::zero(); }
    static __device__ __forceinline__ A add(A a, A b) { return S::add(a, b); }
    static __device__ __forceinline__ A mul_add(A a, A b, P, A sum) { return S::mul_add(a, b, sum); }
    static __device__ __forceinline__ A shuffle_xor(u32 lanes, A sum, int distance) {
        return __shfl_xor_sync(lanes, sum, distance);
    }
};

template <class A, class P>
struct Candidate {
    A value;
    P position;
};

// Winners of S, which is max-times or min-times. Among equals, and among NaN, the lowest position
// wins.
template <class S, class A, class P>
struct Winners {
    using Sum = Candidate<A, P>;
    static constexpr P NONE = ~P(0);
    static __device__ __forceinline__ Sum zero() { return {S::zero(), NONE}; }
    static __device__ __forceinline__ Sum add(const Sum &a, const Sum &b) {
        const bool ties = !S::beats(a.value, b.value) && b.position < a.position;
        return S::beats(b.value, a.value) || ties ? b : a;
    }
    // A lane visits nonzeros in order, so of equals the first is kept.
    static __device__ __forceinline__ Sum mul_add(A a, A b, P position, const Sum &sum) {
        const A product = times(a, b);
        return S::beats(product, sum.value) ? Sum{product, position} : sum;
    }
    static __device__ __forceinline__ Sum shuffle_xor(u32 lanes, const Sum &sum, int distance) {
        return {__shfl_xor_sync(lanes, sum.value, distance),
                __shfl_xor_sync(lanes, sum.position, distance)};
    }
};

template <bool WINNERS, class S, class A, class P>
struct Reducing {
    using Type = Sums<S, A, P>;
};
template <class S, class A, class P>
struct Reducing<true, S, A, P> {
    using Type = Winners<S, A, P>;
};
