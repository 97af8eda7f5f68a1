// The two operations of a product, and how a factor scales a sum.
//
// `A` is the type of sums. `zero` is the value of an empty sum and the beta that leaves C unread;
// `one` is the neutral alpha.
#pragma once
#include "common/types.cuh"

template <class A>
struct Limits;
template <>
struct Limits<f32> {
    static __device__ __forceinline__ f32 highest() { return __int_as_float(0x7f800000); }
    static __device__ __forceinline__ f32 lowest() { return __int_as_float(0xff800000); }
};
template <>
struct Limits<f64> {
    static __device__ __forceinline__ f64 highest() {
        return __longlong_as_double(0x7ff0000000000000ll);
    }
    static __device__ __forceinline__ f64 lowest() {
        return __longlong_as_double(0xfff0000000000000ull);
    }
};
template <>
struct Limits<i32> {
    static __device__ __forceinline__ i32 highest() { return 0x7fffffff; }
    static __device__ __forceinline__ i32 lowest() { return -0x7fffffff - 1; }
};
template <>
struct Limits<i64> {
    static __device__ __forceinline__ i64 highest() { return 0x7fffffffffffffffll; }
    static __device__ __forceinline__ i64 lowest() { return -0x7fffffffffffffffll - 1; }
};

// Integers wrap around: they are added and multiplied unsigned, which is defined behaviour.
__device__ __forceinline__ f32 plus(f32 a, f32 b) { return a + b; }
__device__ __forceinline__ f64 plus(f64 a, f64 b) { return a + b; }
__device__ __forceinline__ i32 plus(i32 a, i32 b) { return (i32)((u32)a + (u32)b); }
__device__ __forceinline__ i64 plus(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
__device__ __forceinline__ f32 times(f32 a, f32 b) { return a * b; }
__device__ __forceinline__ f64 times(f64 a, f64 b) { return a * b; }
__device__ __forceinline__ i32 times(i32 a, i32 b) { return (i32)((u32)a * (u32)b); }
__device__ __forceinline__ i64 times(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
__device__ __forceinline__ f32 times_plus(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
__device__ __forceinline__ f64 times_plus(f64 a, f64 b, f64 c) { return fma(a, b, c); }
__device__ __forceinline__ i32 times_plus(i32 a, i32 b, i32 c) { return plus(times(a, b), c); }
__device__ __forceinline__ i64 times_plus(i64 a, i64 b, i64 c) { return plus(times(a, b), c); }

// Sums in which the highest integer stands for infinity.
__device__ __forceinline__ f32 plus_saturating(f32 a, f32 b) { return a + b; }
__device__ __forceinline__ f64 plus_saturating(f64 a, f64 b) { return a + b; }
template <class A>
__device__ __forceinline__ A plus_saturating(A a, A b) {
    const A highest = Limits<A>::highest(), lowest = Limits<A>::lowest();
    if (a == highest || b == highest) return highest;
    if (b > 0 && a > highest - b) return highest;
    if (b < 0 && a < lowest - b) return lowest;
    return a + b;
}

template <class A>
struct PlusTimes {
    static __device__ __forceinline__ A zero() { return A(0); }
    static __device__ __forceinline__ A one() { return A(1); }
    static __device__ __forceinline__ A add(A a, A b) { return plus(a, b); }
    static __device__ __forceinline__ A mul_add(A a, A b, A sum) { return times_plus(a, b, sum); }
    static __device__ __forceinline__ A scale(A factor, A sum) { return times(factor, sum); }
};

template <class A>
struct MinPlus {
    static __device__ __forceinline__ A zero() { return Limits<A>::highest(); }
    static __device__ __forceinline__ A one() { return A(0); }
    static __device__ __forceinline__ A add(A a, A b) { return a < b || a != a ? a : b; }
    static __device__ __forceinline__ A mul_add(A a, A b, A sum) {
        return add(sum, plus_saturating(a, b));
    }
    static __device__ __forceinline__ A scale(A factor, A sum) {
        return plus_saturating(factor, sum);
    }
};

template <class A>
struct MaxTimes {
    static __device__ __forceinline__ A zero() { return Limits<A>::lowest(); }
    static __device__ __forceinline__ A one() { return A(1); }
    static __device__ __forceinline__ A add(A a, A b) { return a > b || a != a ? a : b; }
    static __device__ __forceinline__ A mul_add(A a, A b, A sum) { return add(sum, times(a, b)); }
    // The maximum of an empty row stays -infinity, whatever the sign of the factor.
    static __device__ __forceinline__ A scale(A factor, A sum) {
        return sum == zero() ? sum : times(factor, sum);
    }
    // Whether `a` replaces `b`: if it is larger, or the first NaN.
    static __device__ __forceinline__ bool beats(A a, A b) { return !(a <= b) && b == b; }
};

// The minimum of products. The host has no such semiring.
template <class A>
struct MinTimes {
    static __device__ __forceinline__ A zero() { return Limits<A>::highest(); }
    static __device__ __forceinline__ A one() { return A(1); }
    static __device__ __forceinline__ A add(A a, A b) { return a < b || a != a ? a : b; }
    static __device__ __forceinline__ A mul_add(A a, A b, A sum) { return add(sum, times(a, b)); }
    static __device__ __forceinline__ A scale(A factor, A sum) { return times(factor, sum); }
    static __device__ __forceinline__ bool beats(A a, A b) { return !(a >= b) && b == b; }
};

template <class A>
struct OrAnd {
    static __device__ __forceinline__ A zero() { return A(0); }
    static __device__ __forceinline__ A one() { return A(1); }
    static __device__ __forceinline__ A add(A a, A b) { return A(a != A(0) || b != A(0)); }
    static __device__ __forceinline__ A scale(A factor, A sum) {
        return A(factor != A(0) && sum != A(0));
    }
    static __device__ __forceinline__ A mul_add(A a, A b, A sum) { return add(sum, scale(a, b)); }
};

template <class A>
struct PlusFirst : PlusTimes<A> {
    static __device__ __forceinline__ A mul_add(A a, A, A sum) { return plus(sum, a); }
};

template <class A>
struct PlusSecond : PlusTimes<A> {
    static __device__ __forceinline__ A mul_add(A, A b, A sum) { return plus(sum, b); }
};
