//! Seeded values, poison, and α and β per semiring.

use gustav_core::{Arith, Scalar, Semiring};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::Scaling;

/// A seeded generator.
pub fn rng(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::new(u128::from(seed) << 64 | 0xcafe_f00d_d15e_a5e5)
}

/// A value of either sign: magnitude in [0.5, 1.5) for floating-point types, in 1..=9 for
/// integers.
pub fn value<T: Scalar>(rng: &mut Pcg64Mcg) -> T {
    let negative: bool = rng.random();
    if T::DTYPE.is_integer() {
        let magnitude = rng.random_range(1..=9i64);
        T::from_i64(if negative { -magnitude } else { magnitude })
    } else {
        let magnitude = 0.5 + rng.random::<f64>();
        // By way of the type of sums: f64 to 16 bits in one step depends on the processor.
        T::from_accum(T::Accum::from_f64(if negative { -magnitude } else { magnitude }))
    }
}

/// `len` seeded values.
pub fn values<T: Scalar>(len: usize, seed: u64) -> Vec<T> {
    let mut rng = rng(seed);
    (0..len).map(|_| value(&mut rng)).collect()
}

/// What stands where nothing may be read: NaN, or for integers a large odd number.
pub fn poison<T: Scalar>() -> T {
    if T::DTYPE.is_integer() { T::from_i64(0x5bad_5bad) } else { T::from_f64(f64::NAN) }
}

/// What stands where nothing may be written.
pub fn sentinel<T: Scalar>() -> T {
    T::from_f64(-1536.0)
}

/// α and β of a case over `semiring`, of the type of sums `A`.
pub fn scaling<A: Arith>(semiring: Semiring, choice: Scaling) -> (A, A) {
    let (one, zero) = (semiring.one(), semiring.zero());
    // Exact in every type; a negative α changes the order of candidates in max-times.
    let (alpha, beta) = if A::DTYPE.is_integer() { (-3.0, 2.0) } else { (-0.75, 1.5) };
    let (alpha, beta) = (A::from_f64(alpha), A::from_f64(beta));
    match choice {
        Scaling::Plain => (one, zero),
        Scaling::Alpha => (alpha, zero),
        Scaling::Accumulate => (one, one),
        Scaling::AlphaBeta => (alpha, beta),
    }
}
