//! Interleaved rounds: the engines one after another, until there are enough samples or the time is
//! up.

use std::time::{Duration, Instant};

use gustav_core::Result;
use gustav_report::quantile;
use serde::Deserialize;

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timing {
    /// Executions of each engine before the first round.
    pub warmups: usize,
    /// Rounds, if time allows.
    pub rounds: usize,
    /// Fewest rounds of an engine, even if its time is up.
    pub min_rounds: usize,
    /// Most executions in one round; short ones are repeated to fill a millisecond.
    pub repeats: usize,
    /// Seconds that one engine may spend on one case.
    pub budget_s: f64,
    /// On a GPU: whether executions with dense operands run back to back on alternating sets, each
    /// of which is cold when it is used again, in place of single executions after a flush of the
    /// caches.
    pub rotate: bool,
    /// On a GPU: whether executions with warm caches are timed as well.
    pub hot: bool,
    /// On a GPU: whether plans are timed; otherwise each is made once.
    pub plans: bool,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            warmups: 3,
            rounds: 15,
            min_rounds: 5,
            repeats: 16,
            budget_s: 0.5,
            rotate: false,
            hot: true,
            plans: true,
        }
    }
}

/// Something that can be executed repeatedly.
pub trait Runner {
    /// `wake` untimed executions, which wake threads and fill caches, then `repeats` timed ones;
    /// milliseconds of each, or their mean if they are timed together.
    ///
    /// # Errors
    /// Errors of the engine.
    fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>>;

    /// Fewest executions in a round if one takes about `ms` milliseconds.
    fn least_repeats(&self, _ms: f64) -> usize {
        1
    }

    /// Drops the last result and returns its memory to the system, for engines whose results do not
    /// fit in memory together.
    ///
    /// # Errors
    /// Errors of the engine.
    fn yield_memory(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The samples of one engine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// One per round: the median of its executions, in milliseconds.
    pub ms: Vec<f64>,
    /// Executions timed in one round.
    pub repeats: usize,
}

impl Samples {
    /// The `q`-quantile of the samples.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        quantile(&self.ms, q)
    }
}

// Short executions are repeated until a sample takes about this long.
const SAMPLE_MS: f64 = 1.0;
// Longer executions need no untimed one before them.
const WAKE_BELOW_MS: f64 = 20.0;
// Executions this long are measured in three rounds.
const LONG_MS: f64 = 700.0;

struct State {
    wake: usize,
    repeats: usize,
    min_rounds: usize,
    spent: Duration,
}

/// Warms every engine up and times them round by round, starting with a different one in every
/// round. An engine that fails has its error in place of samples. With `one_result`, only the
/// engine being timed holds a result: it yields its memory afterwards, and allocates it again in
/// the untimed execution of its next round.
pub fn interleave(
    engines: &mut [&mut dyn Runner],
    timing: &Timing,
    one_result: bool,
) -> Vec<Result<Samples>> {
    let budget = Duration::from_secs_f64(timing.budget_s.max(0.0));
    let mut states = Vec::new();
    let mut samples: Vec<Result<Samples>> = Vec::new();
    for engine in engines.iter_mut() {
        let start = Instant::now();
        let mut times = Ok(Vec::new());
        for _ in 0..timing.warmups.max(1) {
            let taken = engine.run(0, 1);
            times = times.and_then(|mut all: Vec<f64>| taken.map(|t| (all.extend(t), all).1));
            if times.is_err() || start.elapsed() > 4 * budget {
                break;
            }
        }
        if one_result {
            let yielded = engine.yield_memory();
            times = times.and_then(|times| yielded.map(|()| times));
        }
        let estimate = times.as_ref().ok().and_then(|t| quantile(t, 0.0)).unwrap_or(LONG_MS);
        let repeats = (SAMPLE_MS / estimate.max(1e-6))
            .ceil()
            .clamp(1.0, timing.repeats.max(1) as f64) as usize;
        let repeats = repeats.max(engine.least_repeats(estimate));
        states.push(State {
            wake: usize::from(one_result || estimate < WAKE_BELOW_MS),
            repeats,
            min_rounds: if estimate > LONG_MS { 3 } else { timing.min_rounds },
            spent: Duration::ZERO,
        });
        samples.push(times.map(|_| Samples { ms: Vec::new(), repeats }));
    }
    for round in 0..timing.rounds {
        for offset in 0..engines.len() {
            let k = (offset + round) % engines.len();
            let state = &mut states[k];
            let Ok(own) = &mut samples[k] else { continue };
            if round >= state.min_rounds && state.spent > budget {
                continue;
            }
            let start = Instant::now();
            let mut times = engines[k].run(state.wake, state.repeats);
            if one_result {
                let yielded = engines[k].yield_memory();
                times = times.and_then(|times| yielded.map(|()| times));
            }
            match times {
                Ok(times) => own.ms.extend(quantile(&times, 0.5)),
                Err(e) => samples[k] = Err(e),
            }
            state.spent += start.elapsed();
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustav_core::Error;

    struct Fake {
        ms: f64,
        calls: usize,
        fail_at: usize,
        yielded: Vec<usize>,
    }

    fn fake(ms: f64, fail_at: usize) -> Fake {
        Fake { ms, calls: 0, fail_at, yielded: Vec::new() }
    }

    impl Runner for Fake {
        fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
            self.calls += wake + repeats;
            if self.calls >= self.fail_at {
                return Err(Error::NoDevice { reason: "lost".into() });
            }
            Ok(vec![self.ms; repeats])
        }

        fn yield_memory(&mut self) -> Result<()> {
            self.yielded.push(self.calls);
            Ok(())
        }
    }

    #[test]
    fn short_executions_are_repeated_and_long_ones_are_not() {
        let mut short = fake(0.1, usize::MAX);
        let mut long = fake(100.0, usize::MAX);
        let timing = Timing::default();
        let samples = interleave(&mut [&mut short, &mut long], &timing, false);
        let [a, b] = [0, 1].map(|k| samples[k].as_ref().unwrap().clone());
        assert_eq!((a.repeats, a.ms.len(), a.quantile(0.5)), (10, 15, Some(0.1)));
        assert_eq!((b.repeats, b.ms.len(), b.quantile(0.5)), (1, 15, Some(100.0)));
        assert_eq!(long.calls, 3 + 15);
        assert_eq!(short.calls, 3 + 15 * 11);
    }

    #[test]
    fn engines_whose_results_do_not_fit_together_yield_memory_after_every_turn() {
        let mut long = fake(100.0, usize::MAX);
        let samples =
            interleave(&mut [&mut long], &Timing { rounds: 2, ..Timing::default() }, true);
        assert_eq!(samples[0].as_ref().unwrap().ms.len(), 2);
        // Three warm-ups, then an untimed and a timed execution a round.
        assert_eq!(long.yielded, [3, 5, 7]);
        let mut held = fake(100.0, usize::MAX);
        interleave(&mut [&mut held], &Timing::default(), false);
        assert!(held.yielded.is_empty());
    }

    #[test]
    fn an_engine_that_fails_does_not_stop_the_others() {
        let mut bad = fake(50.0, 6);
        let mut good = fake(50.0, usize::MAX);
        let samples = interleave(&mut [&mut bad, &mut good], &Timing::default(), false);
        assert!(samples[0].as_ref().unwrap_err().to_string().contains("lost"));
        assert_eq!(samples[1].as_ref().unwrap().ms.len(), 15);
    }
}
