//! Values for patterns.

use gustav_core::{Buffer, Result, Scalar, parallel};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::options::Values;

const RUN: usize = 1 << 14;

/// One value per entry, or `None` when all are 1.
pub(crate) fn values<T: Scalar>(values: Values, entries: usize) -> Result<Option<Buffer<T>>> {
    values_from(values, 0, entries)
}

/// The same for `entries` entries from number `first` on.
pub(crate) fn values_from<T: Scalar>(
    values: Values,
    first: usize,
    entries: usize,
) -> Result<Option<Buffer<T>>> {
    let Values::Random(seed) = values else { return Ok(None) };
    let mut buffer = Buffer::<T>::zeroed(entries, "values")?;
    parallel::chunks_mut(&mut buffer, RUN, |run, values| {
        // Each task skips to its position in one random stream, so the values do not depend on the
        // number of threads.
        let mut stream = Pcg64Mcg::seed_from_u64(seed);
        stream.advance((first + run * RUN) as u128);
        values.fill_with(|| draw(stream.next_u64()));
    });
    Ok(Some(buffer))
}

fn draw<T: Scalar>(bits: u64) -> T {
    if T::DTYPE.is_integer() {
        T::from_i64(1 + (bits % 9) as i64)
    } else {
        // f32 holds 24 bits exactly, so that all types get the same numbers.
        T::from_f64((bits >> 40) as f64 / f64::from(1 << 23) - 1.0)
    }
}

/// `entries` ones.
pub(crate) fn ones<T: Scalar>(entries: usize) -> Result<Buffer<T>> {
    let mut buffer = Buffer::<T>::zeroed(entries, "values")?;
    parallel::chunks_mut(&mut buffer, RUN, |_, run| run.fill(T::one()));
    Ok(buffer)
}
