//! Seeded values.

use gustav_core::{Buffer, Result, Scalar, parallel};

use super::stream::{Purpose, Stream};

/// Entries drawn from one stream.
const RUN: usize = 4096;

/// The values of entries `first` to `first + len` − 1, of either sign: magnitudes uniform in [0.5,
/// 1.5), rounded; for integers in 1..=9.
pub(crate) fn values<T: Scalar>(first: usize, len: usize, seed: u64) -> Result<Buffer<T>> {
    let mut values = Buffer::<T>::zeroed(len, "values")?;
    let to_next = (RUN - first % RUN).min(len);
    let (head, rest) = values.split_at_mut(to_next);
    let mut stream = Stream::new(seed, Purpose::Values, (first / RUN) as u64);
    // Every value takes one number of its stream.
    for _ in 0..first % RUN {
        stream.bits();
    }
    head.fill_with(|| draw(&mut stream));
    let runs = (first / RUN + 1) as u64;
    parallel::chunks_mut(rest, RUN, |run, values| {
        let mut stream = Stream::new(seed, Purpose::Values, runs + run as u64);
        values.fill_with(|| draw(&mut stream));
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
