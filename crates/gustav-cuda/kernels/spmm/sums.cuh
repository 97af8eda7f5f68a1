// What a lane holds of an element of C while its row is summed: a sum over the semiring; or, where winners are
// asked for, the product that max or min takes with the position of its nonzero in A.
//
// A sum of the latter kind that holds no product has the worst value and no position. What is not better
// than that was won by the first nonzero of its row.
#pragma once
#include "common/semiring.cuh"

// Over the semiring S, with positions of type P, which sums have no use for.
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

// Of max-times or min-times, S. Among equals, and among NaN, the lowest position wins.
template <class S, class A, class P>
struct Winners {
    using Sum = Candidate<A, P>;
    static constexpr P NONE = ~P(0);
    static __device__ __forceinline__ Sum zero() { return {S::zero(), NONE}; }
    static __device__ __forceinline__ Sum add(const Sum &a, const Sum &b) {
        const bool ties = !S::beats(a.value, b.value) && b.position < a.position;
        return S::beats(b.value, a.value) || ties ? b : a;
    }
    // A lane takes nonzeros in their order: of equals the sum has the first.
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
