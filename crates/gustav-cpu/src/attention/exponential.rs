//! Exponentials and logarithms of sums, many at a time.

use gustav_core::Arith;

/// Scores that are computed together.
pub const CHUNK: usize = 32;
// Lanes of the widest vectors: exponentials of fewer cost as much.
const BLOCK: usize = 16;

/// A type of sums with exponentials.
pub trait Exponential: Arith {
    /// The exponentials of the first `count` of `x`, within two units in the last place; others of
    /// them may change.
    fn exponentials(x: &mut [Self; CHUNK], count: usize);
    /// The exponential.
    fn exp(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// 1 / x.
    fn reciprocal(self) -> Self;
}

/// x with its exponential: eˣ = 2ⁿ·eʳ with |r| ≤ ln 2 / 2, eʳ by its Taylor polynomial, whose rest
/// is below 2⁻²⁶. The product with 2ⁿ is in two steps, because 2ⁿ may be subnormal or infinite
/// where eˣ is not. In plain operations, so that the compiler makes vectors of it.
#[inline(always)]
fn exponential(x: f32) -> f32 {
    // The sum with it rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts; products of the first with the integers at hand are exact.
    const HIGH: f32 = 355.0 / 512.0;
    const LOW: f32 = -2.121_944_4e-4;
    // Beyond these, 0 and infinity. Comparisons leave NaN as it is.
    let x = if x < -105.0 { -105.0 } else { x };
    let x = if x > 90.0 { 90.0 } else { x };
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * HIGH) - n * LOW;
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = (p * r) * r + r + 1.0;
    let n = (rounded.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let half = n >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    p * power(half) * power(n.wrapping_sub(half))
}

impl Exponential for f32 {
    #[inline(always)]
    fn exponentials(x: &mut [f32; CHUNK], count: usize) {
        for block in 0..count.div_ceil(BLOCK) {
            for k in block * BLOCK..(block + 1) * BLOCK {
                x[k] = exponential(x[k]);
            }
        }
    }
    #[inline(always)]
    fn exp(self) -> f32 {
        exponential(self)
    }
    #[inline(always)]
    fn ln(self) -> f32 {
        f32::ln(self)
    }
    #[inline(always)]
    fn reciprocal(self) -> f32 {
        1.0 / self
    }
}

impl Exponential for f64 {
    #[inline(always)]
    fn exponentials(x: &mut [f64; CHUNK], count: usize) {
        for x in &mut x[..count] {
            *x = f64::exp(*x);
        }
    }
    #[inline(always)]
    fn exp(self) -> f64 {
        f64::exp(self)
    }
    #[inline(always)]
    fn ln(self) -> f64 {
        f64::ln(self)
    }
    #[inline(always)]
    fn reciprocal(self) -> f64 {
        1.0 / self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_right_within_two_units_in_the_last_place() {
        let mut worst = 0.0_f64;
        // Every 97th float from −110 to 90.
        for sign in [0, 1 << 31] {
            let last = if sign == 0 { 90.0_f32 } else { 110.0 };
            for bits in (0..last.to_bits()).step_by(97) {
                let x = f32::from_bits(bits | sign);
                let (found, exact) = (exponential(x), f64::from(x).exp());
                if exact > f64::from(f32::MAX) {
                    assert_eq!(found, f32::INFINITY, "{x}");
                    continue;
                }
                let unit = (exact * 2f64.powi(-24)).max(2f64.powi(-149));
                let error = (f64::from(found) - exact).abs() / unit;
                assert!(error <= 4.0, "{x}: {found:e} for {exact:e}, {error} u");
                worst = worst.max(error);
            }
        }
        assert!(worst > 0.5, "{worst}");
    }

    #[test]
    fn exponentials_of_what_is_not_finite() {
        assert_eq!(exponential(f32::NEG_INFINITY), 0.0);
        assert_eq!(exponential(f32::MIN), 0.0);
        assert_eq!(exponential(f32::INFINITY), f32::INFINITY);
        assert!(exponential(f32::NAN).is_nan());
        assert_eq!((exponential(0.0), exponential(-0.0)), (1.0, 1.0));
        let mut x = [1.0; CHUNK];
        f32::exponentials(&mut x, 17);
        assert!(x[..17].iter().all(|x| *x == exponential(1.0)));
    }
}
