//! Names of Rust types in the kernels' source, and values in their parameters.

use gustav_core::{Arith, Extremum, IndexType, Semiring};

/// A semiring's template in `kernels/common/semiring.cuh`.
pub(crate) fn semiring(kind: Semiring) -> &'static str {
    match kind {
        Semiring::PlusTimes => "PlusTimes",
        Semiring::MinPlus => "MinPlus",
        Semiring::MaxTimes => "MaxTimes",
        Semiring::OrAnd => "OrAnd",
        Semiring::PlusFirst => "PlusFirst",
        Semiring::PlusSecond => "PlusSecond",
    }
}

/// The template that reduces the products of a row: a semiring's, or that of an extremum over
/// plus-times.
pub(crate) fn reduction(kind: Semiring, extremum: Option<Extremum>) -> &'static str {
    match extremum {
        None => semiring(kind),
        Some(Extremum::Max) => "MaxTimes",
        Some(Extremum::Min) => "MinTimes",
    }
}

/// The narrowest index type that holds every number below `bound`.
pub(crate) fn narrowest(bound: u64) -> IndexType {
    if bound <= 1 << 32 { IndexType::U32 } else { IndexType::U64 }
}

/// The type that holds the distance between rows, `ld` times `unit`, and every number below `rows`.
pub(crate) fn stride(ld: usize, unit: usize, rows: usize) -> IndexType {
    // Indices are below a bound, the distance is a number itself.
    let distance = (ld as u64).saturating_mul(unit as u64).saturating_add(1);
    narrowest(distance.max(rows as u64))
}

/// A scalar's bits, in the low bytes of 64.
pub(crate) fn bits<A: Arith>(value: A) -> u64 {
    let mut bytes = [0; 8];
    let value = bytemuck::bytes_of(&value);
    bytes[..value.len()].copy_from_slice(value);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_of_rows_is_a_number_of_its_type() {
        let most = 1usize << 32;
        for unit in [1, 2, 4, 8] {
            assert_eq!(stride(most / unit - 1, unit, most), IndexType::U32);
            assert_eq!(stride(most / unit, unit, 2), IndexType::U64, "would be 0");
        }
        assert_eq!(stride(8, 4, most + 1), IndexType::U64);
        assert_eq!(stride(usize::MAX, 8, 1), IndexType::U64);
    }
}
