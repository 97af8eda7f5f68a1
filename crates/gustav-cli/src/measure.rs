//! Running something several times and taking the median.

use std::time::Instant;

use crate::failure::Result;

/// How long a run took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Median of the runs in milliseconds.
    pub median_ms: f64,
    /// Number of runs.
    pub repeats: usize,
}

// Runs unless told otherwise, and the seconds after which no further one is begun.
const RUNS: usize = 5;
const SECONDS: f64 = 2.0;

/// Calls `run`, which returns its milliseconds: `repeat` times, or five times or for two seconds.
///
/// # Errors
/// The first error of `run`.
pub fn repeat(repeat: Option<usize>, run: &mut dyn FnMut() -> Result<f64>) -> Result<Timing> {
    let begin = Instant::now();
    let mut times = Vec::new();
    loop {
        times.push(run()?);
        let enough = match repeat {
            Some(count) => times.len() >= count,
            None => times.len() >= RUNS || begin.elapsed().as_secs_f64() > SECONDS,
        };
        if enough {
            break;
        }
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

/// Runs `work` once and returns its result with the milliseconds it took.
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
    fn repeats_as_often_as_asked_and_takes_the_median() {
        let times = [9.0, 1.0, 4.0, 2.0, 100.0, 3.0, 5.0];
        for (count, median_ms) in [(1, 9.0), (2, 5.0), (7, 4.0)] {
            let mut next = times.iter().copied();
            let timing = repeat(Some(count), &mut || Ok(next.next().expect("enough times")));
            assert_eq!(timing.expect("nothing fails"), Timing { median_ms, repeats: count });
        }
    }
}
