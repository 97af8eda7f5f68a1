//! Medians of repeated runs.

use std::time::Instant;

use crate::failure::Result;

/// The time of repeated runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Median of the runs in milliseconds.
    pub median_ms: f64,
    /// Number of runs.
    pub repeats: usize,
}

// Without `--repeat`: at least RUNS runs, and more while the total time is short.
const RUNS: usize = 5;
const SHORT_SECONDS: f64 = 0.1;
const MOST_RUNS: usize = 1000;
// Seconds after which no further run is started.
const LONG_SECONDS: f64 = 2.0;

/// Calls `run`, which returns its milliseconds: `repeat` times, or as often as fits into a tenth of
/// a second but at least five times, or for two seconds. A short run is preceded by a warm-up, as
/// cold caches and sleeping threads dominate its first time.
///
/// # Errors
/// The first error of `run`.
pub fn repeat(repeat: Option<usize>, run: &mut dyn FnMut() -> Result<f64>) -> Result<Timing> {
    repeat_while(repeat, run, &mut Ok)
}

/// The same where others have a say: `more` takes whether to run again as far as this process
/// knows, and returns what is done.
///
/// # Errors
/// The first error of `run` or `more`.
pub fn repeat_while(
    repeat: Option<usize>,
    run: &mut dyn FnMut() -> Result<f64>,
    more: &mut dyn FnMut(bool) -> Result<bool>,
) -> Result<Timing> {
    let begin = Instant::now();
    let first = run()?;
    let mut times = Vec::new();
    if first >= SHORT_SECONDS * 1e3 {
        times.push(first);
    }
    let enough = |runs: usize| match (repeat, begin.elapsed().as_secs_f64()) {
        (Some(count), _) => runs >= count,
        (None, seconds) => match runs {
            0 => false,
            1..RUNS => seconds > LONG_SECONDS,
            _ => seconds > SHORT_SECONDS || runs >= MOST_RUNS,
        },
    };
    while more(!enough(times.len()))? {
        times.push(run()?);
    }
    times.sort_by(f64::total_cmp);
    let half = times.len() / 2;
    let median_ms = if times.len().is_multiple_of(2) {
        (times[half - 1] + times[half]) / 2.0
    } else {
        times[half]
    };
    Ok(Timing { median_ms, repeats: times.len() })
}

/// Runs `work` once and returns its result and the milliseconds.
///
/// # Errors
/// The error of `work`.
pub fn once<R>(work: impl FnOnce() -> Result<R>) -> Result<(R, f64)> {
    let start = Instant::now();
    let result = work()?;
    Ok((result, start.elapsed().as_secs_f64() * 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_the_given_number_of_times_and_takes_the_median() {
        // A long first run counts, a short one is a warm-up.
        for first in [900.0, 99.0] {
            let times = [9.0, 1.0, 4.0, 2.0, 100.0, 3.0, 5.0];
            let counted = if first > 100.0 { 1 } else { 0 };
            for (count, medians) in [(1, [9.0, 900.0]), (2, [5.0, 454.5]), (7, [4.0, 4.0])] {
                let (mut next, mut runs) = (times.iter().copied(), 0);
                let timing = repeat(Some(count), &mut || {
                    runs += 1;
                    Ok(if runs == 1 { first } else { next.next().expect("enough times") })
                });
                let median_ms = medians[counted];
                assert_eq!(timing.expect("nothing fails"), Timing { median_ms, repeats: count });
                assert_eq!(runs, count + 1 - counted);
            }
        }
    }

    #[test]
    fn repeats_at_least_five_times_and_at_most_a_thousand_by_default() {
        let timing = repeat(None, &mut || Ok(1.0)).expect("nothing fails");
        assert!((RUNS..=MOST_RUNS).contains(&timing.repeats), "{timing:?}");
    }
}
