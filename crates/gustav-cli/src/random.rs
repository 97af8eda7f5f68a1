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
    rows(nrows, 0..nrows, ncols, layout, seed)
}

/// These rows of the matrix of `nrows` rows that [`dense`] makes.
///
/// # Errors
/// When there is not enough memory.
pub fn rows<T: Scalar>(
    nrows: usize,
    rows: impl ExactSizeIterator<Item = usize>,
    ncols: usize,
    layout: Layout,
    seed: u64,
) -> Result<Dense<T>> {
    let mut m = Dense::<T>::zeros(rows.len(), ncols, layout)?;
    let mut to = m.view_mut();
    for (k, row) in rows.enumerate() {
        for column in 0..ncols {
            let position = match layout {
                Layout::RowMajor => row * ncols + column,
                Layout::ColumnMajor => column * nrows + row,
            };
            to.set(k, column, value(seed, position as u64));
        }
    }
    Ok(m)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_whole() {
        for layout in [Layout::RowMajor, Layout::ColumnMajor] {
            let whole = dense::<f64>(7, 3, layout, 5).expect("small");
            let chosen = [5, 2, 3, 6];
            let part = rows::<f64>(7, chosen.into_iter(), 3, layout, 5).expect("small");
            for (row, column) in (0..4).flat_map(|r| (0..3).map(move |c| (r, c))) {
                let (found, expected) = (part.view(), whole.view());
                let of = chosen[row];
                assert_eq!(found.get(row, column), expected.get(of, column), "{layout}");
            }
        }
    }

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
