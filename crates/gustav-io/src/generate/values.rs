//! Seeded values.

use gustav_core::{Buffer, Result, Scalar, parallel};

use super::stream::{Purpose, Stream};

/// Entries drawn from one stream.
const RUN: usize = 4096;

/// `len` values of either sign: magnitudes uniform in [0.5, 1.5), rounded; for integers in 1..=9.
pub(crate) fn values<T: Scalar>(len: usize, seed: u64) -> Result<Buffer<T>> {
    let mut values = Buffer::<T>::zeroed(len, "values")?;
    parallel::chunks_mut(&mut values, RUN, |run, values| {
        let mut stream = Stream::new(seed, Purpose::Values, run as u64);
        for value in values {
            *value = draw(&mut stream);
        }
    });
    Ok(values)
}

fn draw<T: Scalar>(stream: &mut Stream) -> T {
    let bits = stream.bits();
    let negative = bits & 1 == 1;
    if T::DTYPE.is_integer() {
        let magnitude = 1 + (((bits >> 32) * 9) >> 32) as i64;
        return T::from_i64(if negative { -magnitude } else { magnitude });
    }
    let magnitude = 0.5 + (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
    // By way of the type of sums: a conversion from f64 to 16 bits in one step depends on the
    // processor.
    T::from_accum(T::Accum::from_f64(if negative { -magnitude } else { magnitude }))
}
