//! Seeded random operands, the same on every machine.

use gustav::buffer::try_vec;
use gustav::{Dense, Layout, Scalar};

use crate::failure::Result;

/// Value number `position` of the sequence of `seed`: uniform in [-1, 1), for integer types in
/// 1..=9 (the generator is SplitMix64, Steele, Lea and Flood 2014).
fn value<T: Scalar>(seed: u64, position: u64) -> T {
    let mut z = seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(position);
    z = z.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    if T::DTYPE.is_integer() {
        T::from_i64((z % 9) as i64 + 1)
    } else {
        T::from_f64((z >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
    }
}

/// A vector of `len` random values.
///
/// # Errors
/// When there is not enough memory.
pub fn vector<T: Scalar>(len: usize, seed: u64) -> Result<Vec<T>> {
    let mut values = try_vec(len, "random vector")?;
    values.extend((0..len).map(|k| value::<T>(seed, k as u64)));
    Ok(values)
}

/// A packed matrix of random values.
///
/// # Errors
/// When there is not enough memory.
pub fn dense<T: Scalar>(nrows: usize, ncols: usize, layout: Layout, seed: u64) -> Result<Dense<T>> {
    let mut m = Dense::<T>::zeros(nrows, ncols, layout)?;
    for (k, v) in m.data_mut().iter_mut().enumerate() {
        *v = value(seed, k as u64);
    }
    Ok(m)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_range_and_depend_on_seed_and_position() {
        let a = vector::<f64>(1000, 1).expect("small");
        assert!(a.iter().all(|v| (-1.0..1.0).contains(v)));
        assert!(a.iter().sum::<f64>().abs() < 100.0);
        assert_ne!(a, vector::<f64>(1000, 2).expect("small"));
        assert_eq!(a[..10], vector::<f64>(10, 1).expect("small"));
        let b = vector::<i32>(1000, 1).expect("small");
        assert!((1..=9).all(|k| b.contains(&k)) && b.iter().all(|v| (1..=9).contains(v)));
    }
}
