//! What a plan remembers of the pattern that it was made for, so that it notices another one.

use std::sync::atomic::{AtomicU64, Ordering};

use gustav_core::{CsrView, Error, Index, IndexSlice, Result, Scalar, parallel};

use crate::Threads;

/// The size of a matrix, a digest of its pattern, and where its arrays were last seen.
///
/// Reading the whole pattern in every call would cost a good part of an SpMV. Arrays at the
/// addresses of the last call are therefore only sampled; others are digested. The kernels of
/// SpMV and SpMM stay within bounds for every valid matrix of the right size, so what a sample
/// misses (a pattern overwritten in place, with the samples unchanged) makes a wrong product and
/// nothing worse. Those of SpGEMM do not, so its plans digest the whole pattern in every call.
#[derive(Clone, Debug)]
pub struct Fingerprint {
    size: (usize, usize, usize),
    /// None in a plan that serves the call which made it.
    digest: Option<u64>,
    sample: u64,
    seen: (usize, usize),
}

impl Fingerprint {
    /// That of `a`; with `one_call` only its arrays are remembered.
    pub fn new<T: Scalar, I: Index, O: Index>(
        a: &CsrView<'_, T, I, O>,
        one_call: bool,
        threads: &Threads,
    ) -> Self {
        let pattern = Pattern::new(a);
        Fingerprint {
            size: (a.nrows(), a.ncols(), a.nnz()),
            digest: (!one_call).then(|| threads.run(|| pattern.digest())),
            sample: pattern.sample(),
            seen: pattern.addresses(),
        }
    }

    /// Checks that `a`, called `name`, has the pattern, wherever its arrays are; for kernels
    /// that stay within bounds if it has not.
    ///
    /// # Errors
    /// [`Error::Pattern`].
    pub fn check<T: Scalar, I: Index, O: Index>(
        &mut self,
        name: &str,
        a: &CsrView<'_, T, I, O>,
        threads: &Threads,
    ) -> Result<()> {
        let pattern = Pattern::new(a);
        if self.seen != pattern.addresses() || self.sample != pattern.sample() {
            self.check_whole(name, a, threads)?;
            (self.sample, self.seen) = (pattern.sample(), pattern.addresses());
        }
        self.check_size(name, a)
    }

    /// The same without trust in addresses, for kernels whose bounds follow from the pattern.
    ///
    /// # Errors
    /// [`Error::Pattern`].
    pub(crate) fn check_whole<T: Scalar, I: Index, O: Index>(
        &self,
        name: &str,
        a: &CsrView<'_, T, I, O>,
        threads: &Threads,
    ) -> Result<()> {
        self.check_size(name, a)?;
        if self.digest == Some(threads.run(|| Pattern::new(a).digest())) {
            return Ok(());
        }
        Err(Error::Pattern {
            expected: format!("{name} with the pattern that the plan was made for"),
            found: "other row offsets or column indices".into(),
        })
    }

    fn check_size<T: Scalar, I: Index, O: Index>(
        &self,
        name: &str,
        a: &CsrView<'_, T, I, O>,
    ) -> Result<()> {
        let size = (a.nrows(), a.ncols(), a.nnz());
        if self.size == size {
            return Ok(());
        }
        let words = |(rows, cols, nnz)| format!("{name} {rows} x {cols} with {nnz} nonzeros");
        Err(Error::Pattern { expected: words(self.size), found: words(size) })
    }
}

/// Row offsets and column indices.
#[derive(Clone, Copy)]
struct Pattern<'a> {
    offsets: IndexSlice<'a>,
    indices: IndexSlice<'a>,
}

impl<'a> Pattern<'a> {
    fn new<T: Scalar, I: Index, O: Index>(a: &CsrView<'a, T, I, O>) -> Self {
        Pattern { offsets: IndexSlice::new(a.offsets()), indices: IndexSlice::new(a.indices()) }
    }

    fn digest(self) -> u64 {
        digest(self.offsets).rotate_left(1) ^ digest(self.indices)
    }

    fn sample(self) -> u64 {
        sample(self.offsets).rotate_left(1) ^ sample(self.indices)
    }

    fn addresses(self) -> (usize, usize) {
        (address(self.offsets), address(self.indices))
    }
}

fn address(values: IndexSlice<'_>) -> usize {
    match values {
        IndexSlice::U32(v) => v.as_ptr().addr(),
        IndexSlice::U64(v) => v.as_ptr().addr(),
    }
}

// Values of an array that are looked at in every call.
const SAMPLES: usize = 16;

fn sample(values: IndexSlice<'_>) -> u64 {
    fn pick<I: Index>(values: &[I]) -> u64 {
        let step = values.len().div_ceil(SAMPLES).max(1);
        values.iter().step_by(step).fold(0, |hash, v| mix(hash, v.to_usize() as u64))
    }
    match values {
        IndexSlice::U32(v) => pick(v),
        IndexSlice::U64(v) => pick(v),
    }
}

// Values that one task digests.
const CHUNK: usize = 1 << 16;

/// Digest of an array, on the current pool.
fn digest(values: IndexSlice<'_>) -> u64 {
    fn chunks<I: Index>(values: &[I]) -> u64 {
        // Chunks are told apart by their number, so their order does not matter.
        let sum = AtomicU64::new(values.len() as u64);
        parallel::each(values.len().div_ceil(CHUNK), |k| {
            let chunk = &values[k * CHUNK..values.len().min((k + 1) * CHUNK)];
            let digest = of_slice(chunk).rotate_left(k as u32 % 64).wrapping_mul(2 * k as u64 + 1);
            sum.fetch_add(digest, Ordering::Relaxed);
        });
        sum.into_inner()
    }
    match values {
        IndexSlice::U32(v) => chunks(v),
        IndexSlice::U64(v) => chunks(v),
    }
}

// Odd constants with well-spread bits (the first is 2^64 divided by the golden ratio).
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
const LANE_SEEDS: [u64; 4] =
    [0x243F_6A88_85A3_08D3, 0x1319_8A2E_0370_7344, 0xA409_3822_299F_31D0, 0x082E_FA98_EC4E_6C89];

/// Digest of a slice; four independent lanes, so that the multiplier's latency is hidden.
pub(crate) fn of_slice<I: Index>(values: &[I]) -> u64 {
    let mut lanes = LANE_SEEDS;
    let mut fours = values.chunks_exact(4);
    for four in &mut fours {
        for (lane, v) in lanes.iter_mut().zip(four) {
            *lane = mix(*lane, v.to_usize() as u64);
        }
    }
    for v in fours.remainder() {
        lanes[0] = mix(lanes[0], v.to_usize() as u64);
    }
    lanes.iter().fold(values.len() as u64, |h, lane| mix(h, *lane))
}

#[inline(always)]
fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(MULTIPLIER).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    // 300 rows; row r has column (r * step) % 500, and r + 1 of an even r.
    fn matrix(step: usize) -> Csr<f32, u32, u32> {
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        for r in 0..300 {
            indices.push((r * step % 500) as u32);
            if r % 2 == 0 {
                indices.push(r as u32 + 1);
            }
            offsets.push(indices.len() as u32);
        }
        let values = vec![1.0; indices.len()];
        Csr::new(300, 500, offsets, indices, values).unwrap()
    }

    #[test]
    fn copies_are_known_and_other_patterns_are_not() {
        let threads = Threads::new(2, false).unwrap();
        let (a, copy, other) = (matrix(3), matrix(3), matrix(4));
        let mut plan = Fingerprint::new(&a.view(), false, &threads);
        for same in [&a, &copy, &a] {
            plan.check("A", &same.view(), &threads).unwrap();
        }
        let refusal = plan.check("A", &other.view(), &threads).unwrap_err();
        assert!(matches!(refusal, Error::Pattern { .. }), "{refusal}");
        // A refusal is not remembered as the pattern.
        plan.check("A", &copy.view(), &threads).unwrap();
        plan.check("A", &other.view(), &threads).unwrap_err();
    }

    #[test]
    fn one_call_knows_its_own_arrays_only() {
        let threads = Threads::new(1, false).unwrap();
        let (a, copy) = (matrix(3), matrix(3));
        let mut plan = Fingerprint::new(&a.view(), true, &threads);
        plan.check("A", &a.view(), &threads).unwrap();
        plan.check("A", &copy.view(), &threads).unwrap_err();
    }

    #[test]
    fn a_pattern_overwritten_in_place_is_noticed_where_it_is_sampled() {
        let threads = Threads::new(1, false).unwrap();
        let (offsets, values) = (vec![0u32, 2, 4], vec![1.0f32; 4]);
        let mut indices = vec![0u32, 1, 2, 3];
        fn view<'a>(o: &'a [u32], i: &'a [u32], v: &'a [f32]) -> CsrView<'a, f32> {
            CsrView::new(2, 9, o, i, v).unwrap()
        }
        let mut plan = Fingerprint::new(&view(&offsets, &indices, &values), false, &threads);
        indices[3] = 7;
        plan.check("A", &view(&offsets, &indices, &values), &threads).unwrap_err();
        indices[3] = 3;
        plan.check("A", &view(&offsets, &indices, &values), &threads).unwrap();
    }
}
